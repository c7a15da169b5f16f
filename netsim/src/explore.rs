//! Explores: runs random schedules, one for each seed, and cuts those down that fail.

mod rhythm;
mod schedule;
mod shrink;

pub use schedule::schedule;

use crate::book::Verdict;
use crate::report::Report;
use crate::run::Run;
use crate::scenario::{Scenario, ScenarioError};
use serde::Serialize;
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

/// Far more than any schedule needs for each broker: messages that beget each other without end are found out.
const MOST_HAPPENINGS: u64 = 50_000;

thread_local! {
    /// Whether a panic on this thread will be told as what is wrong with a schedule, so that nobody else need be.
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Lets panics that are told otherwise pass in silence.
fn silence_told_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !TOLD.get() {
                hook(panic);
            }
        }));
    });
}

/// What to explore.
#[derive(Clone, Debug)]
pub struct Explore {
    /// How many seeds.
    pub seeds: u64,
    /// The first of them; the others follow.
    pub first_seed: u64,
    /// Brokers of each network, leaves among them.
    pub brokers: usize,
    /// Stop after so many seeds that fail.
    pub failures: usize,
    /// Runs that shrinking one schedule may take.
    pub shrink_runs: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explored {
    /// Brokers of each network.
    pub brokers: usize,
    /// The first seed.
    pub first_seed: u64,
    /// Seeds that were run.
    pub seeds: u64,
    /// Publications of all runs.
    pub publications: u64,
    /// What came and what did not, in all runs.
    pub total: Verdict,
    /// Virtual time of all runs, in microseconds.
    pub virtual_time_us: u64,
    /// Seeds that failed, in order.
    pub failures: Vec<Failed>,
}

/// A schedule that failed.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    /// Its seed.
    pub seed: u64,
    /// What was wrong first.
    pub complaint: String,
    /// How many steps it had.
    pub steps: usize,
    /// The shortest that was found with such a complaint.
    #[serde(skip)]
    pub shrunk: Scenario,
    /// What is wrong first with that.
    pub shrunk_complaint: String,
}

/// What one run came to.
struct Outcome {
    seed: u64,
    publications: u64,
    total: Verdict,
    virtual_time_us: u64,
    complaint: Option<String>,
}

impl Explore {
    /// Runs all seeds, on as many threads as the machine has, and says after each how many have been run and how many
    /// failed. The same seeds give the same result on any number of threads.
    ///
    /// # Errors
    /// If there cannot be so many brokers.
    pub fn run(&self, progress: impl Fn(u64, usize) + Sync) -> Result<Explored, ScenarioError> {
        schedule(self.first_seed, self.brokers)?;
        silence_told_panics();
        let outcomes = self.outcomes(progress);
        let mut explored = Explored { brokers: self.brokers, first_seed: self.first_seed, ..Explored::default() };
        for outcome in outcomes {
            explored.take(&outcome);
            if let Some(complaint) = outcome.complaint {
                let scenario = schedule(outcome.seed, self.brokers)?;
                explored.failures.push(self.cut_down(scenario, complaint));
            }
            if explored.failures.len() >= self.failures {
                break;
            }
        }
        Ok(explored)
    }

    /// In the order of the seeds.
    fn outcomes(&self, progress: impl Fn(u64, usize) + Sync) -> Vec<Outcome> {
        let next = AtomicU64::new(0);
        let (done, failed) = (AtomicU64::new(0), AtomicUsize::new(0));
        let outcomes = Mutex::new(Vec::new());
        let work = || {
            // Seeds are begun in order, so that with one that failed all before it are known.
            while failed.load(Ordering::Relaxed) < self.failures {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.seeds {
                    break;
                }
                let outcome = explore(self.first_seed.wrapping_add(number), self.brokers);
                failed.fetch_add(usize::from(outcome.complaint.is_some()), Ordering::Relaxed);
                outcomes.lock().expect("nobody panics with it").push((number, outcome));
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, failed.load(Ordering::Relaxed));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let mut outcomes = outcomes.into_inner().expect("nobody panics with it");
        outcomes.sort_by_key(|&(number, _)| number);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn cut_down(&self, scenario: Scenario, complaint: String) -> Failed {
        let (seed, steps, kind) = (scenario.seed, scenario.steps.len(), kind(&complaint));
        let fails = |scenario: &Scenario| complaints(scenario).iter().any(|complaint| self::kind(complaint) == kind);
        let shrunk = shrink::shrink(scenario, self.shrink_runs, fails);
        let found = complaints(&shrunk);
        let shrunk_complaint = found.into_iter().find(|complaint| self::kind(complaint) == kind).unwrap_or_default();
        Failed { seed, complaint, steps, shrunk, shrunk_complaint }
    }
}

impl Explored {
    /// Whether no seed failed.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty()
    }

    fn take(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.publications += outcome.publications;
        self.total.add(&outcome.total);
        self.virtual_time_us += outcome.virtual_time_us;
    }
}

/// Runs a scenario, and takes a panic for what it is: something wrong.
fn run(scenario: &Scenario) -> Result<Report, String> {
    let run = || {
        let mut run = Run::new(scenario.clone(), scenario.seed)?;
        let brokers = run.world_mut().broker_count() as u64;
        run.world_mut().set_most_happenings(MOST_HAPPENINGS * brokers);
        run.run()
    };
    TOLD.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    TOLD.set(false);
    match result {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(error)) => Err(format!("the scenario cannot be run: {error}")),
        Err(panic) => Err(format!("a panic: {}", words(&*panic))),
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_else(|| "without words".into())
}

fn complaints(scenario: &Scenario) -> Vec<String> {
    run(scenario).map_or_else(|complaint| vec![complaint], |report| report.complaints)
}

fn explore(seed: u64, brokers: usize) -> Outcome {
    let report = schedule(seed, brokers).map_err(|error| error.to_string()).and_then(|scenario| run(&scenario));
    let none = Outcome { seed, publications: 0, total: Verdict::default(), virtual_time_us: 0, complaint: None };
    match report {
        Err(complaint) => Outcome { complaint: Some(complaint), ..none },
        Ok(report) => Outcome {
            publications: report.publications as u64,
            total: report.total,
            virtual_time_us: report.virtual_time_us,
            complaint: match report.complaints.into_iter().next() {
                Some(complaint) => Some(complaint),
                None if report.total.duplicates + report.total.missed + report.total.wrong > 0 => {
                    Some(format!("{:?}", report.total))
                }
                None => None,
            },
            ..none
        },
    }
}

/// What a complaint is about: its first words, without numbers, names and times.
fn kind(complaint: &str) -> String {
    let text = match complaint.strip_prefix("at ").and_then(|rest| rest.split_once(" us: ")) {
        Some((_, text)) => text,
        None => complaint,
    };
    let bare =
        |word: &str| if word.contains(|letter: char| letter.is_ascii_digit()) { "#".into() } else { word.to_owned() };
    text.split_whitespace().take(6).map(bare).collect::<Vec<String>>().join(" ")
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (brokers, first, seeds) = (self.brokers, self.first_seed, self.seeds);
        let last = first.wrapping_add(seeds.saturating_sub(1));
        writeln!(f, "{seeds} schedules on {brokers} brokers, seeds {first} to {last}")?;
        let Verdict { expected, received, optional, .. } = self.total;
        let (publications, lost) = (self.publications, self.total.lost());
        writeln!(f, "{:.0} s of virtual time, {publications} publications", self.virtual_time_us as f64 / 1e6)?;
        writeln!(
            f,
            "deliveries: {expected} had to come, {received} came, {lost} were lost to faults; {optional} more came"
        )?;
        let Verdict { duplicates, missed, wrong, .. } = self.total;
        writeln!(f, "twice {duplicates}, missed {missed}, wrong {wrong}; {} seeds failed", self.failures.len())?;
        for Failed { seed, complaint, steps, shrunk, shrunk_complaint } in &self.failures {
            writeln!(f, "seed {seed}, {steps} steps: {complaint}")?;
            let brokers = shrunk.topology.names.len() + shrunk.leaf_plans.len();
            writeln!(f, "  cut down to {} steps on {brokers} brokers: {shrunk_complaint}", shrunk.steps.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_cut_down_to_a_file_with_the_same_complaint() {
        let explore = Explore { seeds: 1, first_seed: 4, brokers: 6, failures: 1, shrink_runs: 300 };
        let mut scenario = schedule(4, 6).expect("a good size");
        let client = scenario.clients[0].name.clone();
        scenario.steps.insert(60, crate::Step::Expect { client, received: 1_000_000 });
        let complaint = complaints(&scenario).remove(0);
        let failed = explore.cut_down(scenario, complaint);
        assert!(failed.shrunk.steps.len() < 20 && failed.shrunk.clients.len() == 1, "{}", failed.shrunk.to_toml());
        assert!(failed.shrunk_complaint.contains("instead of 1000000"), "{}", failed.shrunk_complaint);
        let read = Scenario::parse(&failed.shrunk.to_toml()).expect("what was written");
        assert_eq!(complaints(&read), complaints(&failed.shrunk));
    }

    #[test]
    fn complaints_of_a_kind_are_told_by_their_words() {
        let one = "at 5 us: client 3 missed publication 88 of client 1, event b#2";
        let other = "client 7 missed publication 1 of client 12, event c";
        assert_eq!(kind(one), kind(other));
        assert_ne!(kind(one), kind("client 3 got publication 88 twice"));
        assert_eq!(kind("at 99 us: b03 differs from a fresh build: x"), "# differs from a fresh build:");
    }
}
