//! Keys of 64 bits, in the order of the values, and codes: their upper 32 bits.
//!
//! Numbers are the bits of the nearest f64, times their nanoseconds, each made unsigned so that order is kept. A key of 0 is no
//! value's: it says that there is none. Codes are what is laid out in rows and compared first; the lower 32 bits (the *low*)
//! are stored only where they are not what [`implied_low`] says, and compared only where the codes are equal.
//!
//! Some values share a key with another one: integers beyond 2^53 that are no f64, and times in the first seconds of 1677.
//! Operands of that kind are tested by their whole set; for values of an event that are ([`Key::is_exact`]), equal keys are
//! compared once more by value.

use enroute_filter::{Number, RawText, RawValue, Timestamp};

/// The place of a value on its class's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) bits: u64,
    /// Whether no other value has the same key.
    pub(super) is_exact: bool,
}

/// The least key of a value.
const LEAST: u64 = 1 << 32;
const SIGN: u64 = 1 << 63;

impl Key {
    pub(super) fn of_number(number: Number) -> Key {
        let float = number.to_f64_rounded();
        Key { bits: ordered(float), is_exact: Number::from_f64(float) == Some(number) }
    }

    pub(super) fn of_time(time: Timestamp) -> Key {
        let ordered = time.0 as u64 ^ SIGN;
        Key { bits: ordered.max(LEAST), is_exact: ordered >= LEAST }
    }

    /// The key of an event's number or time; none for NaN and other classes.
    #[inline]
    pub(super) fn of_value(value: RawValue<'_>) -> Option<Key> {
        match value {
            RawValue::Int(int) if int.unsigned_abs() <= 1 << 53 => {
                Some(Key { bits: ordered(int as f64), is_exact: true })
            }
            RawValue::Int(int) => Some(Key::of_number(Number::from(int))),
            RawValue::Float(float) if float.is_nan() => None,
            RawValue::Float(float) => Some(Key { bits: ordered(float), is_exact: true }),
            RawValue::Time(time) => Some(Key::of_time(time)),
            RawValue::Bool(_) | RawValue::String(_) => None,
        }
    }
}

/// The bits of a number, made unsigned so that order is kept; both zeros have the same.
#[inline]
fn ordered(float: f64) -> u64 {
    let bits = (float + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The number with this key; only for keys of numbers.
pub(super) fn number_of(key: u64) -> Number {
    let bits = if key & SIGN == 0 { !key } else { key ^ SIGN };
    Number::from_f64(f64::from_bits(bits)).unwrap_or(Number::MIN)
}

/// The time with this key.
pub(super) fn time_of(key: u64) -> Timestamp {
    Timestamp((key ^ SIGN) as i64)
}

#[inline]
pub(super) fn code_of(key: u64) -> u32 {
    (key >> 32) as u32
}

/// The low of a key that has this code and whose value is a short one, such as a small integer.
#[inline]
pub(super) fn implied_low(code: u32) -> u32 {
    if code >> 31 == 1 { 0 } else { u32::MAX }
}

/// The key of a code and a low.
#[inline]
pub(super) fn with_low(code: u32, low: u32) -> u64 {
    u64::from(code) << 32 | u64::from(low)
}

/// The key of a code with the low that it implies.
#[inline]
pub(super) fn implied_key(code: u32) -> u64 {
    with_low(code, implied_low(code))
}

/// The code of a string in the order of strings: its first four bytes.
#[inline]
pub(super) fn string_code(string: &str) -> u32 {
    head_code(RawText::from(string).head())
}

/// The code of a string with this head: see [`RawText::head`].
#[inline]
pub(super) fn head_code(head: u128) -> u32 {
    (head as u32).swap_bytes().max(1)
}

/// Whether no string with the same code is less.
pub(super) fn is_least_of_code(string: &str) -> bool {
    string.is_empty() || (string.len() <= 4 && !string.ends_with('\0') && string_code(string) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_numbers_and_lead_back() {
        let floats = [
            f64::NEG_INFINITY,
            -1e300,
            -5.5,
            -5.0,
            -1e-300,
            0.0,
            5e-324,
            1.0,
            1.0_f64.next_up(),
            9.75,
            1e19,
            f64::INFINITY,
        ];
        let mut last = 0;
        for float in floats {
            let number = Number::from_f64(float).unwrap();
            let key = Key::of_number(number);
            assert!(key.bits > last && key.is_exact && code_of(key.bits) > 0, "{float}");
            assert_eq!(number_of(key.bits), number);
            assert_eq!(Key::of_value(RawValue::Float(float)), Some(key));
            last = key.bits;
        }
        assert_eq!(Key::of_value(RawValue::Float(-0.0)), Key::of_value(RawValue::Int(0)));
        assert_eq!(Key::of_value(RawValue::Float(-7.0)), Key::of_value(RawValue::Int(-7)));
        assert_eq!(Key::of_value(RawValue::Float(f64::NAN)), None);
        assert!(!Key::of_number(Number::from((1 << 53) + 1)).is_exact);
        for int in [-3, 0, 3, 1_000] {
            let key = Key::of_number(Number::from(int)).bits;
            assert_eq!(key as u32, implied_low(code_of(key)), "{int}");
        }
    }

    #[test]
    fn keys_of_times_are_never_that_of_absence() {
        for time in [i64::MIN, i64::MIN + 5, -1, 0, 1, i64::MAX] {
            let key = Key::of_time(Timestamp(time));
            assert!(code_of(key.bits) > 0);
            assert_eq!(key.is_exact, time > i64::MIN + 5);
            assert!(!key.is_exact || time_of(key.bits) == Timestamp(time));
        }
    }

    #[test]
    fn codes_of_strings_are_in_their_order() {
        let strings = ["", "\0", "\0\0\0\u{1}", "a", "a\0", "ab", "abc", "abcd", "abcde", "b", "é", "\u{10ffff}"];
        assert!(strings.windows(2).all(|pair| string_code(pair[0]) <= string_code(pair[1])));
        let least: Vec<bool> = strings.iter().map(|string| is_least_of_code(string)).collect();
        assert_eq!(least, [true, false, false, true, false, true, true, true, false, true, true, true]);
    }
}
