//! From constraints to predicates.
//!
//! | the constraint allows | becomes |
//! | --- | --- |
//! | `IS NULL`, `IS NOT NULL` | that predicate |
//! | one point: `= 5` | `= 5` |
//! | all of a class but one point: `<> 5` | `<> 5` |
//! | one interval of numbers or times | `>= first` and `<= last`, or the one of them that says something |
//! | one interval of strings | `PREFIX p` if it is one; else `>= first` and `< end`, or the one that says something |
//! | up to [`MOST_POINTS`] points, of any classes, bools not counted | a disjunction of `=` |
//! | anything else: more points, several intervals, patterns | one predicate that tests the set as a whole |

use super::predicate::{Operand, Predicate};
use enroute_filter::{Class, Number, Test, Timestamp, ValueSet};
use std::sync::Arc;

/// More points than this are cheaper to find in their sorted set than to follow pointers to, one by one.
pub(crate) const MOST_POINTS: usize = 8;

/// The predicates of a constraint as groups: it holds where each group has a true predicate. In a group of several at
/// most one is ever true.
pub(crate) fn groups(test: &Test) -> Vec<Vec<Predicate>> {
    let set = match test {
        Test::Absent => return vec![vec![Predicate::Absent]],
        Test::Present => return vec![vec![Predicate::Present]],
        Test::In(set) => set,
    };
    if let Some(hole) = hole(set) {
        return vec![vec![Predicate::NotEqual(hole)]];
    }
    match pieces(set) {
        Some(mut pieces) if pieces.len() == 1 => {
            pieces.remove(0).into_iter().map(|predicate| vec![predicate]).collect()
        }
        Some(pieces) if pieces.iter().all(|piece| matches!(piece[..], [Predicate::Equal(_)])) => vec![pieces.concat()],
        _ => vec![vec![whole(set)]],
    }
}

/// The predicates of a constraint as one disjunction: it holds where one of them is true.
pub(crate) fn alternatives(test: &Test) -> Vec<Predicate> {
    let mut groups = groups(test);
    match test {
        Test::In(set) if groups.len() > 1 => vec![whole(set)],
        _ => groups.remove(0),
    }
}

fn whole(set: &ValueSet) -> Predicate {
    Predicate::OneOf(Arc::new(set.clone()))
}

/// Each point and interval of the set as the predicates that must hold together. None if there are too many, or patterns.
fn pieces(set: &ValueSet) -> Option<Vec<Vec<Predicate>>> {
    let (numbers, times, strings) = (set.numbers().intervals(), set.times().intervals(), set.strings().intervals());
    if set.has_patterns() || numbers.len() + times.len() + strings.len() > MOST_POINTS {
        return None;
    }
    let bools = [false, true].into_iter().filter(|&bool| set.bools().contains(bool));
    let bools = bools.map(|bool| vec![Predicate::Equal(Operand::Bool(bool))]);
    let numbers = numbers.map(|(first, last)| interval(Operand::Number(first), Operand::Number(last)));
    let times = times.map(|(first, last)| interval(Operand::Time(first), Operand::Time(last)));
    let strings = strings.map(|(first, end)| string_interval(first, end));
    Some(bools.chain(numbers).chain(times).chain(strings).collect())
}

/// A closed interval of a class that has a greatest value.
fn interval(first: Operand, last: Operand) -> Vec<Predicate> {
    if first == last {
        return vec![Predicate::Equal(first)];
    }
    let from_least = first == first.least();
    let to_greatest = Some(&last) == last.greatest().as_ref();
    match (from_least, to_greatest) {
        (_, true) => vec![Predicate::AtLeast(first)],
        (true, false) => vec![Predicate::AtMost(last)],
        (false, false) => vec![Predicate::AtLeast(first), Predicate::AtMost(last)],
    }
}

fn string_interval(first: &str, end: Option<&str>) -> Vec<Predicate> {
    let at_least = Predicate::AtLeast(Operand::String(first.into()));
    let Some(end) = end else { return vec![at_least] };
    if is_next(first, end) {
        vec![Predicate::Equal(Operand::String(first.into()))]
    } else if prefix_end(first).as_deref() == Some(end) {
        vec![Predicate::Prefix(first.into())]
    } else if first.is_empty() {
        vec![Predicate::Below(end.into())]
    } else {
        vec![at_least, Predicate::Below(end.into())]
    }
}

/// The one point that a set leaves out of the one class it is about, if that is all it leaves out.
fn hole(set: &ValueSet) -> Option<Operand> {
    let mut classes = set.classes();
    let (class, None) = (classes.next()?, classes.next()) else { return None };
    if set.has_patterns() {
        return None;
    }
    match class {
        Class::Bool => None,
        Class::Number => {
            let [(least, last), (first, greatest)] = two(set.numbers().intervals())?;
            let point = last.successor()?;
            let rest = point.successor() == Some(first) && least == Number::MIN && greatest == Number::MAX;
            rest.then_some(Operand::Number(point))
        }
        Class::Time => {
            let [(Timestamp(i64::MIN), last), (first, Timestamp(i64::MAX))] = two(set.times().intervals())? else {
                return None;
            };
            let point = last.0.checked_add(1)?;
            (point.checked_add(1) == Some(first.0)).then_some(Operand::Time(Timestamp(point)))
        }
        Class::String => {
            let [("", Some(point)), (first, None)] = two(set.strings().intervals())? else { return None };
            is_next(point, first).then(|| Operand::String(point.into()))
        }
    }
}

fn two<T>(mut items: impl Iterator<Item = T>) -> Option<[T; 2]> {
    let two = [items.next()?, items.next()?];
    items.next().is_none().then_some(two)
}

/// Whether no string lies between the two.
fn is_next(string: &str, next: &str) -> bool {
    next.strip_prefix(string) == Some("\0")
}

/// The first string behind all that begin with `prefix`; none if nothing is behind them.
fn prefix_end(prefix: &str) -> Option<String> {
    let stem = prefix.trim_end_matches(char::MAX);
    let last = stem.chars().next_back()?;
    let next = (last..=char::MAX).nth(1).expect("the greatest characters are trimmed");
    let stem = stem.strip_suffix(last).expect("the stem ends with its last character");
    Some(format!("{stem}{next}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_filter::Filter;

    fn constraint(text: &str) -> Test {
        let filter = Filter::parse(text).unwrap();
        let [conjunction] = filter.conjunctions() else { panic!("one conjunction: {text}") };
        let [constraint] = conjunction.constraints() else { panic!("one constraint: {text}") };
        constraint.test().clone()
    }

    fn show(predicate: &Predicate) -> String {
        let operand = |operand: &Operand| match operand {
            Operand::Bool(bool) => format!("{bool}"),
            Operand::Number(number) => format!("{}", number.to_f64_rounded()),
            Operand::Time(time) => format!("{time}"),
            Operand::String(string) => format!("{string:?}"),
        };
        match predicate {
            Predicate::Equal(it) => format!("={}", operand(it)),
            Predicate::AtLeast(it) => format!(">={}", operand(it)),
            Predicate::AtMost(it) => format!("<={}", operand(it)),
            Predicate::Below(it) => format!("<{it:?}"),
            Predicate::NotEqual(it) => format!("<>{}", operand(it)),
            Predicate::Prefix(it) => format!("{it}%"),
            Predicate::OneOf(_) => "set".into(),
            Predicate::Present => "present".into(),
            Predicate::Absent => "absent".into(),
        }
    }

    /// Groups by commas, the alternatives of a group by bars.
    fn shown(test: &Test) -> String {
        let group = |group: &Vec<Predicate>| group.iter().map(show).collect::<Vec<_>>().join("|");
        groups(test).iter().map(group).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn constraints_become_predicates() {
        for (text, predicates, single) in [
            ("a IS NULL", "absent", "absent"),
            ("EXISTS a", "present", "present"),
            ("a = 5", "=5", "=5"),
            ("a <> 5", "<>5", "<>5"),
            ("a <> -9223372036854775808", "<>-9223372036854776000", "<>-9223372036854776000"),
            ("a >= 5", ">=5", ">=5"),
            ("a > 5", ">=5.000000000000001", ">=5.000000000000001"),
            ("a <= 5", "<=5", "<=5"),
            ("a between 2 and 9", ">=2, <=9", "set"),
            ("a < 5 or a >= 5", ">=-inf", ">=-inf"),
            ("a", "=true", "=true"),
            ("a or not a", "=false|=true", "=false|=true"),
            ("a = 'x'", "=\"x\"", "=\"x\""),
            ("a <> 'x'", "<>\"x\"", "<>\"x\""),
            ("a <> ''", ">=\"\\0\"", ">=\"\\0\""),
            ("a >= 'x'", ">=\"x\"", ">=\"x\""),
            ("a < 'x'", "<\"x\"", "<\"x\""),
            ("a between 'b' and 'd'", ">=\"b\", <\"d\\0\"", "set"),
            ("a prefix 'ab'", "ab%", "ab%"),
            ("a prefix ''", ">=\"\"", ">=\"\""),
            ("a in (6, 3)", "=3|=6", "=3|=6"),
            ("a in (6, 'x', true)", "=true|=6|=\"x\"", "=true|=6|=\"x\""),
            ("a in (1, 2, 3, 4, 5, 6, 7, 8)", "=1|=2|=3|=4|=5|=6|=7|=8", "=1|=2|=3|=4|=5|=6|=7|=8"),
            ("a in (1, 2, 3, 4, 5, 6, 7, 8, 9)", "set", "set"),
            ("a not in (1, 2)", "set", "set"),
            ("a = 1 or a > 5", "set", "set"),
            ("a like '%x%'", "set", "set"),
            ("a <> 5 or a = 'x'", "set", "set"),
            ("a <> TIMESTAMP '1970-01-01T00:00:00Z'", "<>1970-01-01T00:00:00Z", "<>1970-01-01T00:00:00Z"),
            (
                "a between TIMESTAMP '1970-01-01T00:00:00Z' and TIMESTAMP '1970-01-02T00:00:00Z'",
                ">=1970-01-01T00:00:00Z, <=1970-01-02T00:00:00Z",
                "set",
            ),
        ] {
            let test = constraint(text);
            assert_eq!(shown(&test), predicates, "{text}");
            assert_eq!(alternatives(&test).iter().map(show).collect::<Vec<_>>().join("|"), single, "{text}");
        }
    }

    #[test]
    fn prefixes_are_found_again() {
        for prefix in
            ["a", "ab", "\u{d7ff}", "\u{e000}", "a\u{10ffff}", "a\u{10ffff}\u{10ffff}", "\0", "\u{7f}", "\u{ffff}"]
        {
            assert_eq!(groups(&Test::prefix(prefix)), [[Predicate::Prefix(prefix.into())]], "{prefix:?}");
        }
        // Nothing lies behind these.
        let last = Test::prefix("\u{10ffff}");
        assert_eq!(groups(&last), [[Predicate::AtLeast(Operand::String("\u{10ffff}".into()))]]);
    }
}
