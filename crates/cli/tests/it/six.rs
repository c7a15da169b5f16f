//! Six brokers as processes, in a ring with two chords, on the real stream: every subscriber gets exactly what it asks for,
//! once, and does so again after each broker in turn was killed and started anew.

use crate::files::Scratch;
use crate::network::{Broker, JANUARY};
use crate::program::{Running, run};
use std::io::Write;
use std::time::{Duration, Instant};

const NAMES: [&str; 6] = ["hub", "EWR", "JFK", "LGA", "west", "south"];

/// The ring, and two chords.
const LINKS: [(usize, usize); 8] = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3), (2, 5)];

/// What is asked for: where, what, and how many events of January match it.
const SUBSCRIPTIONS: [(usize, &str, usize); 6] = [
    (0, "kind='flight' and dest='SFO' and dep_delay>=60", 31),
    (0, "kind='flight' and dep_time is null", 521),
    (4, "kind='flight' and origin='JFK' and dest in ('LAX','SFO','SEA') and arr_delay>30", 113),
    (4, "manufacturer like 'BOEING%' and seats>300", 132),
    (5, "kind='flight' and dest_lat between 24.5 and 31 and dest_lon between -87.7 and -79.9", 5_144),
    (5, "kind='weather' and (wind_gust>=40 or visib<1)", 151),
];

/// Longer than any healing takes; a test that waits for it has failed.
const DEADLINE: Duration = Duration::from_secs(60);

/// The network's processes.
struct Six {
    scratch: Scratch,
    addresses: Vec<String>,
    brokers: Vec<Option<Broker>>,
}

impl Six {
    fn start() -> Six {
        // Ports that are free now: each broker must be found at its address again after a restart.
        let reserved: Vec<_> =
            NAMES.iter().map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
        let port = |listener: &std::net::TcpListener| listener.local_addr().expect("bound").port();
        let addresses = reserved.iter().map(|it| format!("/ip4/127.0.0.1/tcp/{}", port(it))).collect();
        drop(reserved);
        let mut six = Six { scratch: Scratch::new("six"), addresses, brokers: Vec::new() };
        six.brokers.resize_with(NAMES.len(), || None);
        for index in 0..NAMES.len() {
            six.start_one(index);
        }
        six
    }

    /// Starts a broker with all its neighbours as peers, so that each link is dialled from both ends.
    fn start_one(&mut self, index: usize) {
        let data = self.scratch.path(NAMES[index]);
        let mut arguments = vec!["--no-mesh", "--data-dir", data.as_str()];
        for (a, b) in LINKS {
            if a == index || b == index {
                arguments.extend(["--peer", &self.addresses[if a == index { b } else { a }]]);
            }
        }
        self.brokers[index] = Some(Broker::start_at(&self.addresses[index], &arguments));
    }

    fn kill(&mut self, index: usize) {
        self.brokers[index].take().expect("it runs").running.kill();
    }

    /// Waits until every broker has all its links and all brokers in reach.
    fn settle(&self) {
        let deadline = Instant::now() + DEADLINE;
        let settled = |address: &String| {
            let status = run(&["status", "--json", "--broker", address], "");
            let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap_or_default();
            let all = |list: &str, field: &str, count: usize| {
                let list = status["broker"][list].as_array();
                list.is_some_and(|list| list.len() == count && list.iter().all(|it| it[field] == true))
            };
            let index = self.addresses.iter().position(|it| it == address).expect("one of six");
            let degree = LINKS.iter().filter(|(a, b)| *a == index || *b == index).count();
            all("brokers", "reachable", NAMES.len()) && all("links", "in_sync", degree)
        };
        for address in &self.addresses {
            while !settled(address) {
                assert!(Instant::now() < deadline, "the network does not settle: {address}");
            }
        }
    }
}

/// Takes a round's events from a subscriber: those before the closing one.
fn count_round(subscriber: &mut Running, round: usize) -> usize {
    let closing = format!("{{\"closing\":{round}}}");
    (0..).take_while(|_| subscriber.line() != closing).count()
}

#[test]
fn january_comes_exactly_once_whichever_broker_was_killed_before() {
    let mut six = Six::start();
    six.settle();
    let mut subscribers: Vec<Running> = SUBSCRIPTIONS
        .iter()
        .map(|(at, filter, _)| {
            let filter = format!("({filter}) OR closing IS NOT NULL");
            six.brokers[*at].as_ref().expect("it runs").subscriber(&[&filter])
        })
        .collect();
    for round in 0..=NAMES.len() {
        if let Some(killed) = round.checked_sub(1) {
            six.kill(killed);
            six.start_one(killed);
            for (subscriber, (at, _, _)) in subscribers.iter_mut().zip(SUBSCRIPTIONS) {
                if at == killed {
                    subscriber.told("subscription 1 in force at ");
                }
            }
            six.settle();
        }
        let publisher = &six.addresses[(round + 2) % NAMES.len()];
        let month = six.scratch.path("month.jsonl.gz");
        write_month(&month, round);
        let published = run(&["pub", "--broker", publisher, &month], "");
        assert_eq!(published.code, Some(0), "{}", published.stderr);
        for (subscriber, (at, filter, expected)) in subscribers.iter_mut().zip(SUBSCRIPTIONS) {
            let received = count_round(subscriber, round);
            assert_eq!(received, expected, "round {round}, {filter} at {}", NAMES[at]);
        }
    }
}

/// The month of January with a closing event behind it. Two gzip members in one file are one stream.
fn write_month(path: &str, round: usize) {
    let mut bytes = std::fs::read(JANUARY).expect("the data");
    let mut encoder = flate2::write::GzEncoder::new(&mut bytes, flate2::Compression::fast());
    writeln!(encoder, "{{\"closing\":{round}}}").expect("memory takes it");
    encoder.finish().expect("memory takes it");
    std::fs::write(path, bytes).expect("a file");
}
