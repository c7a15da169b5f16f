//! What a filter amounts to, and where it may not say what was meant.

use super::expression::{Expression, Operator};
use super::lower::lower;
use super::{ParseError, canonical};
use crate::{Comparison, Filter, Limits, Timestamp, TimestampError, Value};
use serde::Serialize;
use std::collections::BTreeSet;

/// What a filter amounts to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The canonical form as text.
    pub canonical: String,
    /// The attributes that every event that matches has, sorted.
    pub required: Vec<String>,
    /// The attributes that the text names, sorted.
    pub mentioned: Vec<String>,
    /// Where the filter may not say what was meant, in the order of the text, each once.
    pub warnings: Vec<Warning>,
}

/// A hint that a filter may not say what was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What the hint is about.
    pub kind: WarningKind,
    /// The same for people, with what to write instead.
    pub message: String,
}

/// The kinds of [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// A negation skips events without the attribute.
    SkipsAbsent,
    /// A part of the filter, or the whole, is true of no event.
    NeverTrue,
    /// The filter matches every event.
    AlwaysTrue,
    /// A string that reads like a time is compared as a string.
    LooksLikeTime,
    /// A string that reads like a number is ordered as a string.
    LooksLikeNumber,
}

impl Explanation {
    /// Explains a filter's text.
    ///
    /// # Errors
    /// As those of [`Filter::parse_with`].
    pub fn of(text: &str, limits: &Limits) -> Result<Explanation, ParseError> {
        let expression = Expression::parse_with(text, limits)?;
        let filter = canonical(&expression, text, limits)?;
        let mut review =
            Review { limits, mentioned: BTreeSet::new(), null_tested: BTreeSet::new(), warnings: Vec::new() };
        review.names(&expression);
        review.part(&expression, false);
        if filter == Filter::always() {
            review.warn(WarningKind::AlwaysTrue, "the filter matches every event".to_owned());
        }
        Ok(Explanation {
            canonical: filter.to_string(),
            required: filter.required_attributes().iter().map(|attribute| attribute.to_string()).collect(),
            mentioned: review.mentioned.into_iter().map(str::to_owned).collect(),
            warnings: review.warnings,
        })
    }
}

/// A walk through a syntax tree.
struct Review<'e> {
    limits: &'e Limits,
    mentioned: BTreeSet<&'e str>,
    /// Attributes under IS NULL or IS NOT NULL: their absence was thought of.
    null_tested: BTreeSet<&'e str>,
    warnings: Vec<Warning>,
}

impl<'e> Review<'e> {
    fn warn(&mut self, kind: WarningKind, message: String) {
        let warning = Warning { kind, message };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn names(&mut self, expression: &'e Expression) {
        match expression {
            Expression::Constant(_) => {}
            Expression::Not(operand) => self.names(operand),
            Expression::And(operands) | Expression::Or(operands) => {
                operands.iter().for_each(|operand| self.names(operand));
            }
            Expression::Constraint { attribute, operator } => {
                self.mentioned.insert(attribute);
                if *operator == Operator::IsNull {
                    self.null_tested.insert(attribute);
                }
            }
        }
    }

    /// Reviews a part of the filter, under an odd number of NOTs if `negated`. Returns whether it is never true; the smallest
    /// such part is what the warning shows.
    fn part(&mut self, expression: &'e Expression, negated: bool) -> bool {
        match (expression, negated) {
            (Expression::Constant(value), _) => *value == negated,
            (Expression::Not(operand), _) => self.part(operand, !negated),
            (Expression::And(operands), false) | (Expression::Or(operands), true) => {
                let never = operands.iter().filter(|operand| self.part(operand, negated)).count();
                never > 0 || self.is_never(expression, negated)
            }
            (Expression::Or(operands), false) | (Expression::And(operands), true) => {
                operands.iter().filter(|operand| self.part(operand, negated)).count() == operands.len()
            }
            (Expression::Constraint { attribute, operator }, _) => {
                self.absence(attribute, operator, negated);
                self.literals(attribute, operator);
                self.is_never(expression, negated)
            }
        }
    }

    /// Warns if a part is never true.
    fn is_never(&mut self, part: &Expression, negated: bool) -> bool {
        // The whole was lowered without passing a limit, hence so is each part.
        let is_never = lower(part, negated, self.limits).is_ok_and(|filter| filter == Filter::never());
        if is_never {
            let part = if negated { Expression::Not(Box::new(part.clone())) } else { part.clone() };
            self.warn(WarningKind::NeverTrue, format!("this is never true: {part}"));
        }
        is_never
    }

    fn absence(&mut self, attribute: &str, operator: &Operator, negated: bool) {
        let is_negation = match operator {
            Operator::IsNull => false,
            Operator::Compare(Comparison::Ne, _) => !negated,
            Operator::Compare(
                Comparison::Eq | Comparison::Lt | Comparison::Le | Comparison::Gt | Comparison::Ge,
                _,
            )
            | Operator::In(_)
            | Operator::Between(_, _)
            | Operator::Like { .. }
            | Operator::Prefix(_)
            | Operator::Suffix(_)
            | Operator::Contains(_) => negated,
        };
        if is_negation && !self.null_tested.contains(attribute) {
            let name = super::print::attribute(attribute);
            self.warn(
                WarningKind::SkipsAbsent,
                format!("the negation skips events without {name}; to have those too, add: OR {name} IS NULL"),
            );
        }
    }

    fn literals(&mut self, attribute: &str, operator: &Operator) {
        let (operands, ordered) = match operator {
            Operator::Compare(Comparison::Eq | Comparison::Ne, operand) => (vec![operand], false),
            Operator::Compare(_, operand) => (vec![operand], true),
            Operator::In(operands) => (operands.iter().collect(), false),
            Operator::Between(low, high) => (vec![low, high], true),
            Operator::IsNull
            | Operator::Like { .. }
            | Operator::Prefix(_)
            | Operator::Suffix(_)
            | Operator::Contains(_) => return,
        };
        let name = super::print::attribute(attribute);
        for operand in operands {
            let Value::String(string) = operand else { continue };
            let literal = super::print::string_literal(string);
            if matches!(string.parse::<Timestamp>(), Ok(_) | Err(TimestampError::NoZone)) {
                self.warn(
                    WarningKind::LooksLikeTime,
                    format!("{name} is compared with the string {literal}; if it is a time, write TIMESTAMP {literal}"),
                );
            } else if ordered && reads_as_number(string) {
                self.warn(
                    WarningKind::LooksLikeNumber,
                    format!("{name} is ordered as a string, character by character; if it is a number, leave out the quotes of {literal}"),
                );
            }
        }
    }
}

/// Digits, that is: not the words that floats may be written as, too.
fn reads_as_number(string: &str) -> bool {
    string.contains(|character: char| character.is_ascii_digit()) && string.trim().parse::<f64>().is_ok()
}
