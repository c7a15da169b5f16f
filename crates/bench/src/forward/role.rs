//! What a process is told and answers, and the loops that all systems share.
//!
//! The role is the program's only argument, as JSON. The process prints `{"ready":ADDRESS}`, then answers each [`Command`]
//! line with one line; when its standard input ends, it ends.

use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of the moment of sending, which every event carries somewhere.
pub const STAMP: usize = 8;
/// Events handed over at a time when the publisher is not paced.
const BATCH: usize = 64;
/// A paced publisher sends what is due this often.
const TICK: Duration = Duration::from_millis(1);
/// A subscriber to which nothing more has come for so long has all that will come.
const QUIET: Duration = Duration::from_millis(500);

/// What a process is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Broker, router or relay.
    Broker {
        /// Which system.
        system: String,
        /// Where to listen on 127.0.0.1.
        port: u16,
        /// The broker before it in the chain.
        upstream: Option<String>,
    },
    /// Publishes when told to.
    Publisher {
        /// Which system.
        system: String,
        /// The broker's.
        address: String,
        /// Bytes of an event.
        body: usize,
    },
    /// Subscribes, and counts.
    Subscriber {
        /// Which system.
        system: String,
        /// The broker's.
        address: String,
        /// How many connections, each of which gets every event.
        connections: usize,
    },
    /// A client whose subscriptions none of the events matches.
    Foreign {
        /// The broker's.
        address: String,
        /// How many.
        subscriptions: usize,
    },
}

/// A line to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// To a publisher; answered with [`Sent`].
    Publish {
        /// For how long.
        seconds: f64,
        /// How many events a second; as many as go if not said.
        rate: Option<f64>,
    },
    /// To a subscriber; answered with [`Arrived`] when all have come, or nothing more comes.
    Collect {
        /// How many events it should have had since the last time.
        events: u64,
    },
    /// To a broker of Enroute; answered with the number of allocations so far.
    Allocations,
}

/// The first line from a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Where a broker listens; empty for others.
    pub ready: String,
}

/// What a publisher has done.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sent {
    /// How many events.
    pub events: u64,
    /// In how long.
    pub seconds: f64,
}

/// What has come to a subscriber.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Arrived {
    /// How many events.
    pub events: u64,
    /// From the first to the last.
    pub seconds: f64,
    /// Of the events that say when they were sent: microseconds until they came, 50th, 99th and 99.9th percentile.
    pub latency_microseconds: [f64; 3],
}

/// Nanoseconds of a clock that all processes of a machine share.
pub fn nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Says that the process is ready.
pub fn tell_ready(address: &str) {
    answer(&Ready { ready: address.to_owned() });
}

/// Prints one line.
pub fn answer(line: &impl Serialize) {
    let text = serde_json::to_string(line).expect("numbers and strings");
    let mut output = io::stdout().lock();
    // Nobody may read any more: then the input ends as well.
    let _ = writeln!(output, "{text}").and_then(|()| output.flush());
}

/// The commands, until the standard input ends.
pub fn commands<T: DeserializeOwned>() -> impl Iterator<Item = T> {
    io::stdin().lock().lines().map_while(|line| serde_json::from_str(&line.ok()?).ok())
}

/// Whoever can send events.
pub trait Sender {
    /// Hands over one event for each moment, which it is to carry; zero if it is not to be timed. Waits while there is no room.
    fn send(&mut self, moments: &[u64]);

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time); // sleep: paces the publisher
    }

    /// Waits until what was handed over is out of this process' hands.
    fn finish(&mut self) {}
}

/// Publishes as told until the standard input ends.
pub fn serve_publisher(sender: &mut impl Sender) {
    for command in commands() {
        let Command::Publish { seconds, rate } = command else { continue };
        let (start, mut events) = (nanoseconds(), 0);
        let end = start + (seconds * 1e9) as u64;
        match rate {
            None => {
                while nanoseconds() < end {
                    sender.send(&[0; BATCH]);
                    events += BATCH as u64;
                }
            }
            Some(rate) => events = send_paced(sender, start, end, rate),
        }
        sender.finish();
        answer(&Sent { events, seconds: (nanoseconds() - start) as f64 / 1e9 });
    }
}

/// Sends what is due at every tick. Where sending has held up later events, they count as sent when they were due.
fn send_paced(sender: &mut impl Sender, start: u64, end: u64, rate: f64) -> u64 {
    let (mut events, mut due) = (0_u64, start);
    let mut moments = Vec::new();
    while due < end {
        due += TICK.as_nanos() as u64;
        let now = nanoseconds();
        if now < due {
            sender.pass(Duration::from_nanos(due - now));
        }
        let target = ((due - start) as f64 / 1e9 * rate) as u64;
        while events < target {
            let now = nanoseconds();
            // A sleep ends up to two ticks late; what comes later than that was held up.
            let moment = if now > due + 3 * TICK.as_nanos() as u64 { due } else { now };
            moments.clear();
            moments.resize(((target - events) as usize).min(BATCH), moment);
            sender.send(&moments);
            events += moments.len() as u64;
        }
    }
    events
}

/// Counts what comes to the connections of a subscriber.
#[derive(Debug, Default)]
pub struct Meter {
    state: Mutex<Counts>,
    /// As many have come as somebody waits for.
    reached: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    events: u64,
    first: u64,
    last: u64,
    latencies: Vec<u32>,
    /// How many somebody waits for.
    awaited: Option<u64>,
}

impl Meter {
    /// Events have come that carry these moments of sending.
    pub fn take(&self, moments: &[u64]) {
        let mut counts = self.lock();
        let before = counts.events;
        counts.events += moments.len() as u64;
        if counts.awaited.is_some_and(|awaited| counts.events >= awaited) {
            self.reached.notify_one();
        }
        // Reading the clock for each event would cost those most that are given them one by one.
        if moments.iter().all(|&moment| moment == 0)
            && before > 0
            && before / BATCH as u64 == counts.events / BATCH as u64
        {
            return;
        }
        let now = nanoseconds();
        if before == 0 {
            counts.first = now;
        }
        counts.last = now;
        let latency = |&moment: &u64| u32::try_from(now.saturating_sub(moment)).unwrap_or(u32::MAX);
        counts.latencies.extend(moments.iter().filter(|&&moment| moment != 0).map(latency));
    }

    /// Waits for so many events, or for nothing more to come, and begins anew.
    fn collect(&self, events: u64) -> Arrived {
        let mut counts = self.lock();
        counts.awaited = Some(events);
        while counts.events < events {
            let before = counts.events;
            let (woken, wait) = self.reached.wait_timeout(counts, QUIET).unwrap_or_else(PoisonError::into_inner);
            counts = woken;
            if wait.timed_out() && counts.events == before {
                break;
            }
        }
        let mut counts = std::mem::take(&mut *counts);
        counts.latencies.sort_unstable();
        let percentile = |share: f64| {
            let index = (counts.latencies.len() as f64 * share) as usize;
            counts.latencies.get(index).map_or(0.0, |&latency| f64::from(latency) / 1e3)
        };
        Arrived {
            events: counts.events,
            seconds: counts.last.saturating_sub(counts.first) as f64 / 1e9,
            latency_microseconds: [0.5, 0.99, 0.999].map(percentile),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers for a subscriber, whose connections are served elsewhere, until the standard input ends.
pub fn serve_subscriber(meter: &Meter) {
    for command in commands() {
        if let Command::Collect { events } = command {
            answer(&meter.collect(events));
        }
    }
}

/// The moment of sending that a peer's message begins with.
pub fn moment_of(message: &[u8]) -> u64 {
    message.first_chunk().map_or(0, |stamp| u64::from_le_bytes(*stamp))
}
