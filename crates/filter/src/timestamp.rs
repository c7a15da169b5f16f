//! Moments, and their text form: RFC 3339 with a mandatory zone.

use std::fmt;
use std::str::FromStr;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A moment: nanoseconds since the Unix epoch, UTC. Reaches from September 1677 to April 2262.
///
/// Reads and prints as RFC 3339 (`2013-01-01T06:00:00.5+01:00`); prints in UTC with as many decimals as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// Why a text is no moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// Not of the form RFC 3339 asks for.
    #[error("not an RFC 3339 time; expected something like 2013-01-01T06:00:00Z")]
    Malformed,
    /// The zone is missing.
    #[error("a time needs a zone: Z, or an offset like +01:00")]
    NoZone,
    /// There is no such day or time of day; leap seconds have no number of their own since the epoch, so are none either.
    #[error("there is no such day or time of day")]
    NoSuchTime,
    /// More than nine decimals.
    #[error("a time is kept to the nanosecond: at most nine decimals")]
    TooPrecise,
    /// Before 1677 or after 2262.
    #[error("the time is out of range; times reach from September 1677 to April 2262")]
    OutOfRange,
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Timestamp, TimestampError> {
        let mut cursor = Cursor(text.as_bytes());
        let year = cursor.digits(4)?;
        cursor.one_of(b"-")?;
        let month = cursor.digits(2)?;
        cursor.one_of(b"-")?;
        let day = cursor.digits(2)?;
        cursor.one_of(b"Tt ")?;
        let hour = cursor.digits(2)?;
        cursor.one_of(b":")?;
        let minute = cursor.digits(2)?;
        cursor.one_of(b":")?;
        let second = cursor.digits(2)?;
        let nanosecond = cursor.fraction()?;
        let offset = cursor.zone()?;
        let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        if !exists || hour > 23 || minute > 59 || second > 59 {
            return Err(TimestampError::NoSuchTime);
        }
        let seconds =
            days_since_epoch(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
        let nanoseconds = i128::from(seconds) * NANOS_PER_SECOND + i128::from(nanosecond);
        i64::try_from(nanoseconds).map(Timestamp).map_err(|_| TimestampError::OutOfRange)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(NANOS_PER_SECOND as i64);
        let nanosecond = self.0.rem_euclid(NANOS_PER_SECOND as i64);
        let (year, month, day) = civil_date(seconds.div_euclid(SECONDS_PER_DAY));
        let second_of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanosecond != 0 {
            let decimals = format!("{nanosecond:09}");
            write!(f, ".{}", decimals.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// What is still to be read.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn digits(&mut self, count: usize) -> Result<i64, TimestampError> {
        let (digits, rest) = self.0.split_at_checked(count).ok_or(TimestampError::Malformed)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, digit| match digit {
            b'0'..=b'9' => Ok(number * 10 + i64::from(digit - b'0')),
            _ => Err(TimestampError::Malformed),
        })
    }

    fn one_of(&mut self, accepted: &[u8]) -> Result<u8, TimestampError> {
        match self.0.split_first() {
            Some((first, rest)) if accepted.contains(first) => {
                self.0 = rest;
                Ok(*first)
            }
            _ => Err(TimestampError::Malformed),
        }
    }

    /// The optional decimals of the second, in nanoseconds.
    fn fraction(&mut self) -> Result<i64, TimestampError> {
        if self.one_of(b".").is_err() {
            return Ok(0);
        }
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(TimestampError::Malformed);
        }
        if count > 9 {
            return Err(TimestampError::TooPrecise);
        }
        let scale = 10_i64.pow(9 - count as u32);
        Ok(self.digits(count)? * scale)
    }

    /// The zone up to the end of the text, in seconds east of UTC.
    fn zone(&mut self) -> Result<i64, TimestampError> {
        if self.0.is_empty() {
            return Err(TimestampError::NoZone);
        }
        let offset = match self.one_of(b"Zz+-")? {
            sign @ (b'+' | b'-') => {
                let hours = self.digits(2)?;
                self.one_of(b":")?;
                let minutes = self.digits(2)?;
                if hours > 23 || minutes > 59 {
                    return Err(TimestampError::NoSuchTime);
                }
                let seconds = hours * 3600 + minutes * 60;
                if sign == b'-' { -seconds } else { seconds }
            }
            _ => 0,
        };
        if self.0.is_empty() { Ok(offset) } else { Err(TimestampError::Malformed) }
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. Years are counted from March, so that the leap day is a
/// year's last; 400 of them have 146,097 days.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_since_epoch`]: year, month, day.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, nanoseconds, printed) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
            ("2013-01-01T06:00:00Z", 1_357_020_000_000_000_000, "2013-01-01T06:00:00Z"),
            ("2013-01-01t06:00:00.50+01:30", 1_357_014_600_500_000_000, "2013-01-01T04:30:00.5Z"),
            ("2012-02-29 23:59:59.000000001z", 1_330_559_999_000_000_001, "2012-02-29T23:59:59.000000001Z"),
            ("1969-12-31T23:59:59.999999999-00:00", -1, "1969-12-31T23:59:59.999999999Z"),
            ("2000-03-01T00:00:00Z", 951_868_800_000_000_000, "2000-03-01T00:00:00Z"),
            ("1677-09-21T00:12:43.145224192Z", i64::MIN, "1677-09-21T00:12:43.145224192Z"),
            ("2262-04-11T23:47:16.854775807Z", i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ] {
            assert_eq!(text.parse(), Ok(Timestamp(nanoseconds)), "{text}");
            assert_eq!(Timestamp(nanoseconds).to_string(), printed);
        }
    }

    #[test]
    fn refuses() {
        use TimestampError::*;
        for (text, error) in [
            ("", Malformed),
            ("2013-01-01", Malformed),
            ("2013-01-01T06:00Z", Malformed),
            ("2013-1-1T06:00:00Z", Malformed),
            ("+013-01-01T06:00:00Z", Malformed),
            ("2013-01-01T06:00:00.Z", Malformed),
            ("2013-01-01T06:00:00Zx", Malformed),
            ("2013-01-01T06:00:00+0100", Malformed),
            ("2013-01-01T06:00:00é", Malformed),
            ("2013-01-01T06:00:00", NoZone),
            ("2013-01-01T06:00:00.5", NoZone),
            ("2013-02-29T06:00:00Z", NoSuchTime),
            ("1900-02-29T06:00:00Z", NoSuchTime),
            ("2013-13-01T06:00:00Z", NoSuchTime),
            ("2013-04-31T06:00:00Z", NoSuchTime),
            ("2013-00-01T06:00:00Z", NoSuchTime),
            ("2013-01-00T06:00:00Z", NoSuchTime),
            ("2013-01-01T24:00:00Z", NoSuchTime),
            ("2013-01-01T06:60:00Z", NoSuchTime),
            ("2016-12-31T23:59:60Z", NoSuchTime),
            ("2013-01-01T06:00:00+24:00", NoSuchTime),
            ("2013-01-01T06:00:00.0123456789Z", TooPrecise),
            ("1677-09-21T00:12:43.145224191Z", OutOfRange),
            ("2262-04-11T23:47:16.854775808Z", OutOfRange),
            ("9999-12-31T23:59:59Z", OutOfRange),
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(error), "{text}");
        }
    }

    #[test]
    fn every_day_comes_back() {
        for day in -110_000..110_000 {
            let (year, month, of_month) = civil_date(day);
            assert_eq!(days_since_epoch(year, month, of_month), day);
            assert!((1..=days_in_month(year, month)).contains(&of_month));
        }
    }
}
