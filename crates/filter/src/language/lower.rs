//! The syntax tree to the canonical form: NOT goes down to the leaves, leaves become constraints, and those are combined.
//!
//! A constraint is true only where its attribute is present and of its class. So once NOT stands at the leaves only,
//! UNKNOWN may count as FALSE, and two values do for three.

use super::expression::{Expression, Operator};
use crate::{Conjunction, Constraint, Filter, LimitExceeded, Limits, Test, Value};

/// The filter that is true exactly where the expression, or with `negated` its negation, is TRUE.
pub(super) fn lower(expression: &Expression, negated: bool, limits: &Limits) -> Result<Filter, LimitExceeded> {
    match (expression, negated) {
        (Expression::Constant(value), _) => Ok(if *value != negated { Filter::always() } else { Filter::never() }),
        (Expression::Not(operand), _) => lower(operand, !negated, limits),
        (Expression::And(operands), false) | (Expression::Or(operands), true) => lower_all(operands, negated, limits),
        (Expression::Or(operands), false) | (Expression::And(operands), true) => {
            let mut conjunctions = Vec::new();
            for operand in operands {
                conjunctions.extend_from_slice(lower(operand, negated, limits)?.conjunctions());
            }
            Filter::any_of(conjunctions, limits)
        }
        (Expression::Constraint { attribute, operator }, _) => {
            let constraint = Constraint::new(attribute.as_str(), test(operator, negated));
            Ok(Conjunction::new([constraint]).map_or_else(Filter::never, Filter::from))
        }
    }
}

/// The filter that is true where all operands, or their negations, are. By halves: patterns on one attribute are compared
/// each with each whenever two filters are combined, which, one by one, would take time with the cube of their number.
fn lower_all(operands: &[Expression], negated: bool, limits: &Limits) -> Result<Filter, LimitExceeded> {
    match operands {
        [] => Ok(Filter::always()),
        [operand] => lower(operand, negated, limits),
        _ => {
            let (left, right) = operands.split_at(operands.len() / 2);
            lower_all(left, negated, limits)?.and(&lower_all(right, negated, limits)?, limits)
        }
    }
}

fn test(operator: &Operator, negated: bool) -> Test {
    let leaf = match operator {
        Operator::IsNull => Test::Absent,
        Operator::Compare(comparison, operand) => {
            let comparison = if negated { comparison.negated() } else { *comparison };
            return Test::compare(comparison, operand);
        }
        Operator::In(operands) => {
            let operands = operands.iter().map(Value::as_ref);
            return if negated { Test::none_of(operands) } else { Test::one_of(operands) };
        }
        Operator::Between(low, high) => {
            return if negated { Test::not_between(low, high) } else { Test::between(low, high) };
        }
        // The parser lets no stray escape pass; one in a tree built by hand matches nothing.
        Operator::Like { pattern, escape } => match Test::like(pattern, *escape) {
            Ok(test) => test,
            Err(_) => return Test::one_of([]),
        },
        Operator::Prefix(prefix) => Test::prefix(prefix),
        Operator::Suffix(suffix) => Test::suffix(suffix),
        Operator::Contains(part) => Test::contains(part),
    };
    if negated { leaf.complement() } else { leaf }
}
