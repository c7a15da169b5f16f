//! Values as 64-bit codes that keep their order, and whether a bound's code says all about it.
//!
//! Within one class, a smaller value never has the greater code. Codes of different values may be equal: of integers
//! beyond 2^53, and of strings that begin with the same seven bytes and are longer. A bound is *exact* if no value
//! but itself has its code; then comparing codes is comparing values, whatever the value.

use enroute_filter::{Number, Timestamp};

/// The code of an attribute that the event does not have. No value has it.
pub(crate) const ABSENT: u64 = 0;
/// At most the code of any value: a lower bound that bounds nothing.
pub(crate) const LEAST: u64 = 1;
/// Above the code of every value: an upper bound that bounds nothing.
pub(crate) const GREATEST: u64 = u64::MAX;

/// So many bytes of a string are in its code.
const STRING_BYTES: usize = 7;

/// An interval of codes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// Whether exactly the values with these codes are meant; else some of them.
    pub(crate) exact: bool,
}

pub(crate) fn of_bool(bool: bool) -> u64 {
    LEAST + u64::from(bool)
}

/// The bits of the nearest float, made to ascend.
pub(crate) fn of_number(number: Number) -> u64 {
    let bits = number.to_f64_rounded().to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The float whose code it is.
pub(crate) fn to_float(code: u64) -> f64 {
    f64::from_bits(if code >> 63 == 1 { code & !(1 << 63) } else { !code })
}

/// Nanoseconds, from 1 on; the first two moments there are share their code, and so do the last two.
pub(crate) fn of_time(time: Timestamp) -> u64 {
    ((time.0 as u64) ^ (1 << 63)).clamp(LEAST, GREATEST - 1)
}

/// The first seven bytes, then the length up to eight, since "a" comes before "a\0".
pub(crate) fn of_string(string: &str) -> u64 {
    let bytes = string.as_bytes();
    let mut code = [0; STRING_BYTES + 1];
    let copied = bytes.len().min(STRING_BYTES);
    code[..copied].copy_from_slice(&bytes[..copied]);
    code[STRING_BYTES] = bytes.len().min(STRING_BYTES + 1) as u8;
    u64::from_be_bytes(code) + LEAST
}

pub(crate) fn of_numbers((first, last): (Number, Number)) -> Span {
    // Integers that are no floats lie between these, and are rounded to a float in between or at the ends.
    let is_exact = |number: Number| {
        let size = number.to_f64_rounded().abs();
        size < 2_f64.powi(53) || size > 2_f64.powi(63)
    };
    let low = if first == Number::MIN { LEAST } else { of_number(first) };
    let high = if last == Number::MAX { GREATEST } else { of_number(last) };
    Span { low, high, exact: is_exact(first) && is_exact(last) }
}

pub(crate) fn of_times((first, last): (Timestamp, Timestamp)) -> Span {
    let high = if last.0 == i64::MAX { GREATEST } else { of_time(last) };
    let is_alone = |time| (LEAST + 1..GREATEST - 1).contains(&of_time(time));
    let exact = (first.0 == i64::MIN || is_alone(first)) && (last.0 == i64::MAX || is_alone(last));
    Span { low: of_time(first), high, exact }
}

/// From a first string to before another, or to the end of all.
pub(crate) fn of_strings((first, end): (&str, Option<&str>)) -> Span {
    let low = of_string(first);
    if end.is_some_and(|end| end.strip_prefix(first) == Some("\0")) {
        return Span { low, high: low, exact: first.len() <= STRING_BYTES };
    }
    let end_is_exact = end.is_none_or(|end| end.len() <= STRING_BYTES);
    let high = end.map_or(GREATEST, |end| of_string(end) - u64::from(end_is_exact));
    Span { low, high, exact: first.len() <= STRING_BYTES && end_is_exact }
}

/// The strings that begin like one of at most seven bytes, given its code. None if no string lies behind them, or for
/// "".
pub(crate) fn of_prefix(code: u64) -> Option<Span> {
    let bytes = (code - LEAST).to_be_bytes();
    let prefix = std::str::from_utf8(bytes.get(..usize::from(bytes[STRING_BYTES]))?).ok()?;
    let stem = prefix.trim_end_matches(char::MAX);
    let last = stem.chars().next_back()?;
    let next = (last..=char::MAX).nth(1)?;
    let end = format!("{}{next}", &stem[..stem.len() - last.len_utf8()]);
    let span = of_strings((prefix, Some(&end)));
    span.exact.then_some(span)
}

/// How many bytes the string with this code has, at most eight.
pub(crate) fn length(code: u64) -> usize {
    (code - LEAST) as usize & 0xff
}

/// The code of the first bytes of the string with this code: of at most seven, and of no more than it has.
pub(crate) fn first_bytes(code: u64, length: usize) -> u64 {
    ((code - LEAST) & !(u64::MAX >> (8 * length)) | length as u64) + LEAST
}

/// Whether a string begins with one of at most seven bytes, both given by their codes.
pub(crate) fn begins_with(code: u64, prefix: u64) -> bool {
    code != ABSENT && length(code) >= length(prefix) && first_bytes(code, length(prefix)) == prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_the_order_and_exact_bounds_are_alone() {
        let floats = [f64::NEG_INFINITY, -1e19, -2.5, -0.0, 1e-300, 1.0, 1.5, 9e15, 1e19, f64::INFINITY];
        let mut numbers: Vec<Number> = floats.into_iter().filter_map(Number::from_f64).collect();
        let large = [1 << 53, (1 << 53) + 1, i64::MAX - 1, i64::MAX, i64::MIN];
        numbers.extend(large.into_iter().map(Number::from));
        numbers.sort_unstable();
        let strings =
            ["", "\0", "a", "a\0", "a\0\0", "ab", "abcdefg", "abcdefg\0", "abcdefgh", "abcdefh", "\u{10ffff}"];
        let coded = numbers.iter().map(|&number| (of_number(number), of_numbers((number, number)).exact));
        check(&coded.collect::<Vec<_>>());
        let point = |string: &&str| {
            let next = format!("{string}\0");
            (of_string(string), of_strings((string, Some(&next))).exact)
        };
        check(&strings.iter().map(point).collect::<Vec<_>>());
        let times = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX].map(Timestamp);
        check(&times.map(|time| (of_time(time), of_times((time, time)).exact)));
    }

    fn check(codes: &[(u64, bool)]) {
        for (code, exact) in codes {
            assert!((LEAST..GREATEST).contains(code));
            assert!(!exact || codes.iter().filter(|(other, _)| other == code).count() == 1, "{codes:?}");
        }
        assert!(codes.is_sorted_by_key(|(code, _)| code), "{codes:?}");
        assert!(codes.iter().any(|(_, exact)| *exact));
    }

    #[test]
    fn a_prefix_is_an_interval() {
        let span = of_prefix(of_string("ab")).unwrap();
        assert_eq!(span, Span { low: of_string("ab"), high: of_string("ac") - 1, exact: true });
        assert!(span.high >= of_string("ab\u{10ffff}\u{10ffff}\u{10ffff}"));
        for string in ["ab", "abc", "ab\0", "abcdefghi", "a", "ac", "", "b"] {
            assert_eq!(begins_with(of_string(string), of_string("ab")), string.starts_with("ab"), "{string}");
        }
        assert!(begins_with(of_string("x"), of_string("")) && !begins_with(ABSENT, of_string("")));
        assert_eq!(of_prefix(of_string("\u{10ffff}")), None);
        assert_eq!(of_prefix(of_string("")), None);
        assert_eq!(of_prefix(of_string("a\u{10ffff}")).unwrap().high, of_string("b") - 1);
    }

    #[test]
    fn floats_come_back() {
        for float in [-2.5, 0.0, 1e300, -1e-300] {
            assert_eq!(to_float(of_number(Number::from_f64(float).unwrap())), float);
        }
    }
}
