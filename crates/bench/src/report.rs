//! What was measured, as numbers for programs and as a table for people.

use crate::measure::Run;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What was measured on one input.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many subscriptions there were.
    pub subscriptions: usize,
    /// How many more were drawn, which some engine cannot say.
    pub passed_over: usize,
    /// How many events there were; slow engines were given fewer.
    pub events: usize,
    /// How often each engine was given them.
    pub rounds: usize,
    /// Engine by engine, in the order of the plan.
    pub engines: Vec<EngineReport>,
}

/// What was measured of one engine. Matching is not given where the build was given up.
#[derive(Clone, Debug, Serialize)]
pub struct EngineReport {
    /// The engine.
    pub name: String,
    /// How many subscriptions it took in the time it had; if not all, it was given up.
    pub inserted: usize,
    /// Of one insertion, as a mean over all.
    pub insert_nanoseconds: f64,
    /// Bytes in use by subscription, as the allocator counts them.
    pub bytes_per_subscription: f64,
    /// The figures of matching and removing.
    pub matching: Option<Matching>,
    /// The slowest insertion of a build, in thread time.
    pub slowest_insert_microseconds: Option<f64>,
    /// The slowest removal during a build, in thread time.
    pub slowest_remove_microseconds: Option<f64>,
    /// How many times faster than the naive scan and the peer it matches, if they were measured: by the least times of
    /// the events that both had.
    pub times_faster_than: BTreeMap<String, f64>,
    /// Where its results differ; empty if it was right.
    pub differences: Vec<String>,
}

/// How an engine matched, and removed.
#[derive(Clone, Debug, Serialize)]
pub struct Matching {
    /// How many events it had time for.
    pub events: usize,
    /// Microseconds an event, as a mean over each event's least time in the rounds.
    pub microseconds_minimum: f64,
    /// Microseconds an event, as a mean over each event's median time in the rounds.
    pub microseconds_median: f64,
    /// Half of the events took at most this, as a median of the rounds.
    pub microseconds_percentile_50: f64,
    /// 99 in 100 events took at most this, as a median of the rounds.
    pub microseconds_percentile_99: f64,
    /// Matching subscriptions of an event.
    pub matches_per_event: f64,
    /// Of one removal, as a mean.
    pub remove_nanoseconds: f64,
}

impl Report {
    /// Whether all engines found what they should.
    pub fn is_right(&self) -> bool {
        self.engines.iter().all(|engine| engine.differences.is_empty())
    }

    /// What was measured of an engine.
    pub fn engine(&self, name: &str) -> Option<&EngineReport> {
        self.engines.iter().find(|engine| engine.name == name)
    }
}

impl EngineReport {
    pub(crate) fn new(run: &Run, times_faster_than: BTreeMap<String, f64>) -> EngineReport {
        EngineReport {
            name: run.name.to_owned(),
            inserted: run.inserted,
            insert_nanoseconds: nanoseconds(run.inserting) / run.inserted.max(1) as f64,
            bytes_per_subscription: run.bytes as f64 / run.inserted.max(1) as f64,
            matching: run.is_complete.then(|| Matching::new(run)).flatten(),
            slowest_insert_microseconds: run.slowest.map(|[insert, _]| microseconds(insert)),
            slowest_remove_microseconds: run.slowest.map(|[_, remove]| microseconds(remove)),
            times_faster_than,
            differences: run.differences.clone(),
        }
    }

    /// See [`Matching::microseconds_minimum`].
    pub fn microseconds(&self) -> Option<f64> {
        self.matching.as_ref().map(|matching| matching.microseconds_minimum)
    }
}

impl Matching {
    fn new(run: &Run) -> Option<Matching> {
        let times = run.least_and_median_times();
        let events = times.len();
        let least: Duration = times.iter().map(|(least, _)| *least).sum();
        let medians = sorted(times.iter().map(|(_, median)| microseconds(*median)).collect());
        Some(Matching {
            events,
            microseconds_minimum: microseconds(least) / events.max(1) as f64,
            microseconds_median: medians.iter().sum::<f64>() / events.max(1) as f64,
            microseconds_percentile_50: percentile(&medians, 50)?,
            microseconds_percentile_99: percentile(&medians, 99)?,
            matches_per_event: run.matches as f64 / events.max(1) as f64,
            remove_nanoseconds: nanoseconds(run.removing) / run.removed.max(1) as f64,
        })
    }
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers
}

/// The least of the sorted numbers that so many in a hundred do not exceed.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} subscriptions, {} events, {} rounds", self.subscriptions, self.events, self.rounds)?;
        if self.passed_over > 0 {
            writeln!(f, "{} subscriptions were passed over, as a-tree cannot say them", self.passed_over)?;
        }
        let header = [
            "engine",
            "us/event",
            "median",
            "p50",
            "p99",
            "matches",
            "insert ns",
            "remove ns",
            "bytes/sub",
            "max ins us",
            "max rem us",
            "x naive",
            "x a-tree",
            "events",
            "results",
        ];
        let rows = std::iter::once(header.map(str::to_owned)).chain(self.engines.iter().map(row));
        let rows: Vec<[String; 15]> = rows.collect();
        let widths: Vec<usize> =
            (0..header.len()).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
        for row in rows {
            let (name, figures) = row.split_first().expect("there are columns");
            write!(f, "{name:<width$}", width = widths[0])?;
            for (figure, width) in figures.iter().zip(&widths[1..]) {
                write!(f, "  {figure:>width$}")?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "us/event: the mean of each event's least time in the rounds; x: how many times faster, on the events both had time for"
        )?;
        for engine in &self.engines {
            for difference in engine.differences.iter().take(3) {
                writeln!(f, "{}: {difference}", engine.name)?;
            }
        }
        Ok(())
    }
}

fn row(engine: &EngineReport) -> [String; 15] {
    let matching = engine.matching.as_ref();
    let of = |figure: fn(&Matching) -> f64| matching.map_or("-".to_owned(), |matching| short(figure(matching)));
    let option = |figure: Option<f64>| figure.map_or("-".to_owned(), short);
    let than = |reference: &str| option(engine.times_faster_than.get(reference).copied());
    let results = match (matching, engine.differences.len()) {
        (None, 0) => format!("given up at {}", engine.inserted),
        (Some(_), 0) => "equal".to_owned(),
        (_, differences) => format!("{differences} DIFFER"),
    };
    [
        engine.name.clone(),
        of(|matching| matching.microseconds_minimum),
        of(|matching| matching.microseconds_median),
        of(|matching| matching.microseconds_percentile_50),
        of(|matching| matching.microseconds_percentile_99),
        of(|matching| matching.matches_per_event),
        short(engine.insert_nanoseconds),
        of(|matching| matching.remove_nanoseconds),
        short(engine.bytes_per_subscription),
        option(engine.slowest_insert_microseconds),
        option(engine.slowest_remove_microseconds),
        than("naive"),
        than("a-tree"),
        matching.map_or(0, |matching| matching.events).to_string(),
        results,
    ]
}

/// Three figures or so.
pub(crate) fn short(number: f64) -> String {
    let places = match number.abs() {
        0.0 => 0,
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let numbers: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&numbers, 50), Some(100.0));
        assert_eq!(percentile(&numbers, 99), Some(198.0));
        assert_eq!(percentile(&[7.0], 50), Some(7.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [(0.0, "0"), (0.01234, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1234")] {
            assert_eq!(short(number), text);
        }
    }
}
