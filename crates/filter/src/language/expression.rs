//! The syntax tree, and what it means: a direct evaluator in Kleene's three values.
//!
//! Nothing here knows the canonical form. The evaluator is the definition that the canonical form is tested against.

use super::error::ParseError;
use super::parser;
use crate::{Comparison, Event, Limits, Value, ValueRef};
use std::cmp::Ordering;

/// A filter as it was written.
///
/// What [`Expression::parse`] returns is nested as deep as [`Limit::Nesting`](crate::Limit::Nesting) allows, and no deeper.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// TRUE or FALSE.
    Constant(bool),
    /// NOT, also that of `NOT IN`, `IS NOT NULL` and the like.
    Not(Box<Expression>),
    /// AND of two or more.
    And(Vec<Expression>),
    /// OR of two or more.
    Or(Vec<Expression>),
    /// What is said of one attribute.
    Constraint {
        /// The attribute.
        attribute: String,
        /// What is said of it.
        operator: Operator,
    },
}

/// What an [`Expression`] says of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// `IS NULL`.
    IsNull,
    /// A comparison with a literal on its right.
    Compare(Comparison, Value),
    /// `IN`.
    In(Vec<Value>),
    /// `BETWEEN`, both ends included.
    Between(Value, Value),
    /// `LIKE`.
    Like {
        /// The pattern as it was written: `%` and `_` are wildcards.
        pattern: String,
        /// The character that takes a wildcard's meaning away.
        escape: Option<char>,
    },
    /// `PREFIX`.
    Prefix(String),
    /// `SUFFIX`.
    Suffix(String),
    /// `CONTAINS`.
    Contains(String),
}

impl Expression {
    /// Parses a filter's text within the default limits.
    ///
    /// # Errors
    /// As [`Expression::parse_with`].
    pub fn parse(text: &str) -> Result<Expression, ParseError> {
        parser::parse(text, &Limits::default())
    }

    /// Parses a filter's text within the given limits.
    ///
    /// # Errors
    /// The text is not of the language, or passes a limit.
    pub fn parse_with(text: &str, limits: &Limits) -> Result<Expression, ParseError> {
        parser::parse(text, limits)
    }

    /// TRUE, FALSE or UNKNOWN (`None`); an event matches only where this is TRUE.
    ///
    /// This is the language's definition, kept plain rather than fast: `LIKE` takes time proportional to the product of
    /// pattern and string.
    pub fn evaluate(&self, event: &Event) -> Option<bool> {
        match self {
            Expression::Constant(value) => Some(*value),
            Expression::Not(operand) => operand.evaluate(event).map(|value| !value),
            Expression::And(operands) => decide(operands.iter().map(|operand| operand.evaluate(event)), false),
            Expression::Or(operands) => decide(operands.iter().map(|operand| operand.evaluate(event)), true),
            Expression::Constraint { attribute, operator } => operator.evaluate(event.get(attribute)),
        }
    }
}

/// AND, where FALSE is `decisive`, or OR, where TRUE is: one decisive operand decides; else one that is UNKNOWN leaves all
/// unknown.
fn decide(operands: impl IntoIterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for operand in operands {
        match operand {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

impl Operator {
    fn evaluate(&self, value: Option<ValueRef<'_>>) -> Option<bool> {
        if let Operator::IsNull = self {
            return Some(value.is_none());
        }
        let value = value?;
        let string = if let ValueRef::String(string) = value { Some(string) } else { None };
        match self {
            Operator::IsNull => Some(false),
            Operator::Compare(comparison, operand) => compare(value, *comparison, operand),
            Operator::In(operands) => {
                decide(operands.iter().map(|operand| compare(value, Comparison::Eq, operand)), true)
            }
            Operator::Between(low, high) => {
                decide([compare(value, Comparison::Ge, low), compare(value, Comparison::Le, high)], false)
            }
            Operator::Like { pattern, escape } => Some(like(pattern, *escape, string?)),
            Operator::Prefix(prefix) => Some(string?.starts_with(prefix.as_str())),
            Operator::Suffix(suffix) => Some(string?.ends_with(suffix.as_str())),
            Operator::Contains(part) => Some(string?.contains(part.as_str())),
        }
    }
}

fn compare(value: ValueRef<'_>, comparison: Comparison, operand: &Value) -> Option<bool> {
    let order = match (value, operand) {
        (ValueRef::Bool(value), Value::Bool(operand)) => match comparison {
            Comparison::Eq | Comparison::Ne => value.cmp(operand),
            Comparison::Lt | Comparison::Le | Comparison::Gt | Comparison::Ge => return None,
        },
        (ValueRef::Int(value), Value::Int(operand)) => value.cmp(operand),
        (ValueRef::Float(value), Value::Float(operand)) => value.partial_cmp(operand)?,
        (ValueRef::Int(value), Value::Float(operand)) => order_of_int_and_float(value, *operand)?,
        (ValueRef::Float(value), Value::Int(operand)) => order_of_int_and_float(*operand, value)?.reverse(),
        (ValueRef::String(value), Value::String(operand)) => value.chars().cmp(operand.chars()),
        (ValueRef::Time(value), Value::Time(operand)) => value.cmp(operand),
        (
            ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Float(_) | ValueRef::String(_) | ValueRef::Time(_),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Time(_),
        ) => return None,
    };
    Some(match comparison {
        Comparison::Eq => order.is_eq(),
        Comparison::Ne => order.is_ne(),
        Comparison::Lt => order.is_lt(),
        Comparison::Le => order.is_le(),
        Comparison::Gt => order.is_gt(),
        Comparison::Ge => order.is_ge(),
    })
}

/// By mathematical value; `None` for NaN.
fn order_of_int_and_float(int: i64, float: f64) -> Option<Ordering> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        None
    } else if float >= TWO_TO_63 {
        Some(Ordering::Less)
    } else if float < -TWO_TO_63 {
        Some(Ordering::Greater)
    } else {
        let whole = float.trunc();
        Some(int.cmp(&(whole as i64)).then_with(|| 0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)))
    }
}

/// One element of a pattern.
enum Element {
    Run,
    One,
    Character(char),
}

fn like(pattern: &str, escape: Option<char>, string: &str) -> bool {
    let mut elements = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        elements.push(match character {
            _ if Some(character) == escape => Element::Character(characters.next().unwrap_or(character)),
            '%' => Element::Run,
            '_' => Element::One,
            _ => Element::Character(character),
        });
    }
    let string: Vec<char> = string.chars().collect();
    // matched[n]: the elements so far match the first n characters.
    let mut matched = vec![false; string.len() + 1];
    matched[0] = true;
    for element in elements {
        match element {
            Element::Run => (1..matched.len()).for_each(|n| matched[n] |= matched[n - 1]),
            Element::One => {
                matched.rotate_right(1);
                matched[0] = false;
            }
            Element::Character(character) => {
                (1..matched.len()).rev().for_each(|n| matched[n] = matched[n - 1] && string[n - 1] == character);
                matched[0] = false;
            }
        }
    }
    matched[string.len()]
}
