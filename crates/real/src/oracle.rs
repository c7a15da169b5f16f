//! What must, may and must not reach each client, in real time.
//!
//! The simulator's oracle sees every copy on every link; this one sees what clients ask and get. Moments are counted, as they
//! are there. An event lives from the moment that its publication is asked for until the network has settled next.
//!
//! - A subscription answered before that life and not withdrawn within it **must** get the event, once.
//! - One that stood for a part of it **may**, and so may one whose client was connected anew within it.
//! - Any other **must not**.
//!
//! An event that must come and does not is **lost** if a fault explains it, and **missed** otherwise. A fault explains it if
//! no path joined the two brokers when the event was published, if the network had not settled by then since the last fault, or
//! if there was one before it settled again. A network that has settled and is left alone loses nothing.

use enroute_filter::{Event, Filter};
use enroute_netsim::Verdict;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A subscription of a client (numbered) with its moments.
#[derive(Debug)]
struct Subscription {
    client: usize,
    name: Arc<str>,
    filter: Filter,
    in_force: Option<u64>,
    withdrawal_asked: Option<u64>,
    withdrawn: Option<u64>,
}

/// How a publication stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Not answered; for ever so if the broker was killed.
    Open,
    Refused,
    Published {
        complete: bool,
    },
}

#[derive(Debug)]
struct Publication {
    event: Event,
    /// Whether the network was settled, and nothing has been done to it since.
    calm: bool,
    host: usize,
    /// As [`Oracle::parts`] was.
    parts: Arc<[usize]>,
    asked: u64,
    outcome: Outcome,
    /// How often each client has got it, over each of its connections.
    deliveries: BTreeMap<(usize, u64), u64>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    moment: u64,
    calm: bool,
    /// For each broker the part of the network that it is in: those that a path joins have the same.
    parts: Arc<[usize]>,
    /// For each client its broker.
    homes: Vec<usize>,
    subscriptions: BTreeMap<u64, Subscription>,
    next_subscription: u64,
    publications: BTreeMap<usize, Publication>,
    published: usize,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) refused: u64,
    pub(crate) unanswered: u64,
    pub(crate) partial: u64,
    /// What is wrong, in words; bounded.
    pub(crate) complaints: Vec<String>,
}

/// More complaints than this help nobody.
const MOST_COMPLAINTS: usize = 100;

impl Oracle {
    pub(crate) fn complain(&mut self, complaint: String) {
        if self.complaints.len() < MOST_COMPLAINTS {
            self.complaints.push(complaint);
        }
    }

    pub(crate) fn publications(&self) -> usize {
        self.published
    }

    fn tick(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    pub(crate) fn add_client(&mut self, home: usize) {
        self.homes.push(home);
        self.verdicts.push(Verdict::default());
    }

    /// A subscription is asked for, and a number given for its answer.
    pub(crate) fn subscribe(&mut self, client: usize, name: &str, filter: Filter) -> u64 {
        self.withdraw(client, name);
        self.withdrawn(client, name);
        self.tick();
        let number = self.next_subscription;
        self.next_subscription += 1;
        let subscription =
            Subscription { client, name: name.into(), filter, in_force: None, withdrawal_asked: None, withdrawn: None };
        self.subscriptions.insert(number, subscription);
        number
    }

    pub(crate) fn in_force(&mut self, number: u64) {
        let moment = self.tick();
        if let Some(subscription) = self.subscriptions.get_mut(&number) {
            subscription.in_force = Some(moment);
        }
    }

    /// A withdrawal is asked for.
    pub(crate) fn withdraw(&mut self, client: usize, name: &str) {
        let moment = self.tick();
        for subscription in self.standing(client, Some(name)) {
            subscription.withdrawal_asked.get_or_insert(moment);
        }
    }

    /// A withdrawal is answered.
    pub(crate) fn withdrawn(&mut self, client: usize, name: &str) {
        let moment = self.tick();
        for subscription in self.standing(client, Some(name)) {
            if subscription.withdrawal_asked.is_some() {
                subscription.withdrawn = Some(moment);
            }
        }
    }

    /// A client's connection ends, and its subscriptions with it.
    pub(crate) fn session_ends(&mut self, client: usize) {
        let moment = self.tick();
        for subscription in self.standing(client, None) {
            subscription.withdrawal_asked.get_or_insert(moment);
            subscription.withdrawn = Some(moment);
        }
    }

    fn standing(&mut self, client: usize, name: Option<&str>) -> impl Iterator<Item = &mut Subscription> {
        let named = move |subscription: &Subscription| name.is_none_or(|name| *subscription.name == *name);
        self.subscriptions
            .values_mut()
            .filter(move |subscription| subscription.client == client && subscription.withdrawn.is_none())
            .filter(move |subscription| named(subscription))
    }

    /// A publication is asked for, and a number given, which becomes the event's payload.
    pub(crate) fn publish(&mut self, client: usize, event: &Event) -> (usize, Event) {
        let asked = self.tick();
        let number = self.published;
        self.published += 1;
        // A number instead of the payload keeps an event within the limits that it was in.
        let numbered = event.to_builder().payload(number.to_le_bytes().to_vec()).build();
        let event = numbered.unwrap_or_else(|_| event.clone());
        let publication = Publication {
            event: event.clone(),
            calm: self.calm,
            host: self.homes[client],
            parts: Arc::clone(&self.parts),
            asked,
            outcome: Outcome::Open,
            deliveries: BTreeMap::new(),
        };
        self.publications.insert(number, publication);
        (number, event)
    }

    pub(crate) fn answered(&mut self, number: usize, complete: bool) {
        if let Some(publication) = self.publications.get_mut(&number) {
            publication.outcome = Outcome::Published { complete };
        }
    }

    /// A publication is refused, as the client's advertisements say.
    pub(crate) fn refused(&mut self, number: usize) {
        self.refused += 1;
        if let Some(publication) = self.publications.get_mut(&number) {
            publication.outcome = Outcome::Refused;
        }
    }

    /// A client gets an event.
    pub(crate) fn delivered(&mut self, client: usize, session: u64, event: &Event, given: &[Arc<str>]) {
        self.tick();
        let number = event.payload().as_ref().try_into().map(usize::from_le_bytes);
        let Ok(number) = number else {
            return self.complain(format!("client {client} got an event that nobody published: {event:?}"));
        };
        let Some(publication) = self.publications.get_mut(&number) else {
            self.verdicts[client].wrong += 1;
            return self.complain(format!("client {client} got publication {number} long after it was over"));
        };
        *publication.deliveries.entry((client, session)).or_default() += 1;
        let same = publication.event.as_bytes() == event.as_bytes();
        let mut names = BTreeSet::new();
        for subscription in self.subscriptions.values().filter(|subscription| subscription.client == client) {
            if subscription.filter.matches(&publication.event) {
                names.insert(&subscription.name);
            }
        }
        let fits = given.iter().all(|name| names.contains(name));
        if !fits || given.is_empty() || !given.is_sorted() {
            let complaint = format!("client {client} got publication {number} for {given:?} instead of {names:?}");
            self.complain(complaint);
        }
        if !same {
            self.complain(format!("client {client} got publication {number} in other bytes than were published"));
        }
    }

    /// Something is done to the network, which may cost events that are under way or come before it has settled. For each
    /// broker the part of the network that it is in now.
    pub(crate) fn disturb(&mut self, parts: Vec<usize>) {
        self.calm = false;
        self.parts = parts.into();
        for publication in self.publications.values_mut() {
            publication.calm = false;
        }
    }

    /// The network has settled, or not in time: judges all publications and forgets them.
    ///
    /// Linear in publications x (subscriptions + clients).
    pub(crate) fn judge(&mut self, settled: bool) {
        self.tick();
        for (number, publication) in std::mem::take(&mut self.publications) {
            let (must, may) = self.audience(&publication);
            for client in 0..self.verdicts.len() {
                self.judge_client((number, &publication), client, must.contains(&client), may.contains(&client));
            }
        }
        self.calm = settled;
        self.subscriptions.retain(|_, subscription| subscription.withdrawn.is_none());
        if settled {
            // One whose wait ran out was to follow, and has by now.
            for subscription in self.subscriptions.values_mut() {
                subscription.in_force.get_or_insert(self.moment);
            }
        }
    }

    /// The clients that must get an event, and those that may.
    fn audience(&mut self, publication: &Publication) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let (mut must, mut may) = (BTreeSet::new(), BTreeSet::new());
        match publication.outcome {
            Outcome::Refused => return (must, may),
            Outcome::Open => self.unanswered += 1,
            Outcome::Published { .. } => {}
        }
        for subscription in self.subscriptions.values() {
            let over = subscription.withdrawn.is_some_and(|moment| moment < publication.asked);
            if over || !subscription.filter.matches(&publication.event) {
                continue;
            }
            may.insert(subscription.client);
            let before = subscription.in_force.is_some_and(|moment| moment < publication.asked);
            if before && subscription.withdrawal_asked.is_none() && publication.outcome != Outcome::Open {
                must.insert(subscription.client);
            }
        }
        (must, may)
    }

    fn judge_client(&mut self, (number, publication): (usize, &Publication), client: usize, must: bool, may: bool) {
        // Once over each connection: what one has been given says nothing about the next.
        let all = (client, 0)..=(client, u64::MAX);
        let copies = publication.deliveries.range(all).map(|(_, &copies)| copies).max().unwrap_or(0);
        let verdict = &mut self.verdicts[client];
        verdict.duplicates += copies.saturating_sub(1);
        verdict.expected += u64::from(must);
        if copies > 1 {
            self.complain(format!("client {client} got publication {number} {copies} times"));
        }
        let verdict = &mut self.verdicts[client];
        match (must, may, copies > 0) {
            (true, _, true) => verdict.received += 1,
            (false, true, true) => verdict.optional += 1,
            (false, false, true) => {
                verdict.wrong += 1;
                self.complain(format!("client {client} got publication {number} and must not"));
            }
            (true, _, false) if publication.parts[publication.host] != publication.parts[self.homes[client]] => {
                verdict.lost_without_path += 1;
            }
            (true, _, false) if !publication.calm => match publication.outcome {
                Outcome::Published { complete: false } => verdict.lost_incomplete += 1,
                Outcome::Published { complete: true } | Outcome::Open | Outcome::Refused => verdict.lost_with_link += 1,
            },
            (true, _, false) => {
                verdict.missed += 1;
                let outcome = publication.outcome;
                self.complain(format!("client {client} missed publication {number}, which is {outcome:?}"));
            }
            (false, _, false) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Client 0 publishes at broker 0; client 1 has subscribed at broker 1, and been answered; the network has settled.
    fn settled() -> Oracle {
        let mut oracle = Oracle::default();
        oracle.disturb(vec![0, 0]);
        oracle.add_client(0);
        oracle.add_client(1);
        let number = oracle.subscribe(1, "s", Filter::parse("a = 1").expect("a filter"));
        oracle.in_force(number);
        oracle.judge(true);
        oracle
    }

    /// An event that matches is published, answered, and comes so many times.
    fn publish(oracle: &mut Oracle, complete: bool, copies: usize) -> usize {
        let event = Event::builder().attribute("a", 1).build().expect("an event");
        let (number, event) = oracle.publish(0, &event);
        oracle.answered(number, complete);
        (0..copies).for_each(|_| deliver(oracle, &event));
        number
    }

    fn deliver(oracle: &mut Oracle, event: &Event) {
        oracle.delivered(1, 1, event, &[Arc::from("s")]);
    }

    #[test]
    fn what_comes_once_is_right_and_all_else_is_told() {
        let mut oracle = settled();
        publish(&mut oracle, true, 1);
        oracle.judge(true);
        assert_eq!((oracle.verdicts[1].expected, oracle.verdicts[1].received), (1, 1));
        assert_eq!(oracle.complaints, [""; 0]);
        publish(&mut oracle, true, 2);
        publish(&mut oracle, true, 0);
        oracle.judge(true);
        assert_eq!((oracle.verdicts[1].duplicates, oracle.verdicts[1].missed, oracle.complaints.len()), (1, 1, 2));
    }

    #[test]
    fn faults_excuse_what_they_may_have_cost_until_the_network_has_settled() {
        let mut oracle = settled();
        publish(&mut oracle, true, 0);
        oracle.disturb(vec![0, 0]);
        publish(&mut oracle, true, 0);
        publish(&mut oracle, false, 0);
        oracle.judge(true);
        let verdict = oracle.verdicts[1];
        assert_eq!((verdict.lost_with_link, verdict.lost_incomplete, verdict.missed), (2, 1, 0));
        publish(&mut oracle, true, 0);
        oracle.judge(true);
        assert_eq!(oracle.verdicts[1].missed, 1);
        oracle.disturb(vec![0, 1]);
        oracle.judge(true);
        publish(&mut oracle, true, 0);
        oracle.judge(true);
        assert_eq!((oracle.verdicts[1].lost_without_path, oracle.verdicts[1].missed), (1, 1));
    }

    #[test]
    fn a_subscription_that_ends_or_begins_meanwhile_may_get_the_event_and_an_earlier_one_must_not() {
        let mut oracle = settled();
        publish(&mut oracle, true, 1);
        publish(&mut oracle, true, 0);
        oracle.withdraw(1, "s");
        oracle.withdrawn(1, "s");
        publish(&mut oracle, true, 1);
        oracle.judge(true);
        let verdict = oracle.verdicts[1];
        assert_eq!((verdict.expected, verdict.optional, verdict.wrong), (0, 1, 1));
        oracle.subscribe(1, "s", Filter::parse("a = 1").expect("a filter"));
        publish(&mut oracle, true, 0);
        oracle.judge(true);
        assert_eq!((oracle.verdicts[1].expected, oracle.verdicts[1].missed), (0, 0));
    }
}
