//! The tables at the end, and the verdict.

use super::reckoning::{Crossings, Expected};
use super::replay::Replayed;
use super::scenario::{AIRPORTS, BROKERS, LINKS, SUBSCRIPTIONS};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Table, count};

/// What came of a run.
pub(super) struct Outcome {
    pub(super) replayed: Replayed,
    /// Events that the brokers have sent over each link in each direction.
    pub(super) crossings: Crossings,
}

/// Prints everything.
///
/// # Errors
/// If anything is not as it should be.
pub(super) fn print(outcome: &Outcome, expected: &Expected) -> Result<(), Failure> {
    let mut output = Output::new();
    let seconds = outcome.replayed.took.as_secs_f64();
    output.line(format_args!(
        "{} events published at {} airports in {seconds:.2} s ({} a second)\n",
        count(outcome.replayed.published),
        AIRPORTS.len(),
        count((outcome.replayed.published as f64 / seconds) as u64)
    ))?;
    let mut wrong = subscriptions(outcome, expected, &mut output)?;
    wrong += links(outcome, expected, &mut output)?;
    if outcome.replayed.incomplete > 0 {
        wrong += 1;
        output.line(format_args!(
            "{} events went out before the network was ready",
            count(outcome.replayed.incomplete)
        ))?;
    }
    if wrong == 0 {
        output.line("Every subscriber got exactly what it asked for, once; no link carried an event for nobody.")?;
    }
    output.flush()?;
    match wrong {
        0 => Ok(()),
        1 => Err(Failure::new("one thing above is not as it should be")),
        _ => Err(Failure::new(format!("{wrong} things above are not as they should be"))),
    }
}

/// The table of the subscriptions; how many rows are not as they should be.
fn subscriptions(outcome: &Outcome, expected: &Expected, output: &mut Output) -> Result<u32, Failure> {
    let mut wrong = 0;
    let mut table = Table::new(&["at", "subscription", "expected", "received", "duplicates", ""]);
    for (index, (broker, filter)) in SUBSCRIPTIONS.into_iter().enumerate() {
        let received = outcome.replayed.received[index];
        let expected = expected.received[index];
        let fine = received.matching == expected && received.duplicates == 0 && received.unwanted == 0;
        wrong += u32::from(!fine);
        table.row([
            BROKERS[broker].to_owned(),
            filter.to_owned(),
            count(expected),
            count(received.matching + received.unwanted),
            count(received.duplicates),
            if fine { "ok" } else { "WRONG" }.to_owned(),
        ]);
    }
    output.line(format_args!("{table}\n"))?;
    Ok(wrong)
}

/// The table of the links; how many are not as they should be.
fn links(outcome: &Outcome, expected: &Expected, output: &mut Output) -> Result<u32, Failure> {
    let mut wrong = 0;
    let mut total = (0, 0);
    // Every broker hands on what is new to it: each link carries each event once, or twice if both ends have it by then.
    let flooded = outcome.replayed.published + AIRPORTS.len() as u64;
    let mut table = Table::new(&["link", "events", "useless", "flooding", ""]);
    for (a, b) in LINKS {
        let (mut events, mut useless, mut fine) = (0, 0, true);
        for direction in [(a, b), (b, a)] {
            let sent = outcome.crossings.get(&direction).copied().unwrap_or(0);
            let needed = expected.crossings.get(&direction).copied().unwrap_or(0);
            events += sent;
            useless += sent.saturating_sub(needed);
            fine &= sent == needed;
        }
        wrong += u32::from(!fine);
        total = (total.0 + events, total.1 + useless);
        let name = format!("{} - {}", BROKERS[a], BROKERS[b]);
        let verdict = if fine { "ok" } else { "WRONG" };
        table.row([name, count(events), count(useless), count(flooded), verdict.to_owned()]);
    }
    let flooding = flooded * LINKS.len() as u64;
    table.row(["all".to_owned(), count(total.0), count(total.1), count(flooding), String::new()]);
    let share = 100.0 * total.0 as f64 / flooding as f64;
    output.line(format_args!("{table}\n"))?;
    output.line(format_args!(
        "Each airport's closing event is counted in. Flooding sends every event over every link at least once;\n\
         here the links carried {share:.1} % of that.\n"
    ))?;
    Ok(wrong)
}
