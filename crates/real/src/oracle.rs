//! What must, may and must not reach each client, in real time.
//!
//! The simulator's oracle sees every copy on every link; this one sees what clients ask and get. Both keep the same book
//! ([`Book`]); here an event lives until the network has settled next.
//!
//! An event that must come and does not is **lost** if a fault explains it, and **missed** otherwise. A fault explains it if
//! no path joined the two brokers when the event was published, if the network had not settled by then since the last fault, or
//! if there was one before it settled again. A network that has settled and is left alone loses nothing.

use enroute_filter::Event;
use enroute_netsim::book::{Audience, Book, Copies, number_of, numbered};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    copies: Copies,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) book: Book,
    calm: bool,
    /// For each broker the part of the network that it is in: those that a path joins have the same.
    parts: Arc<[usize]>,
    /// For each client its broker.
    homes: Vec<usize>,
    publications: BTreeMap<usize, Publication>,
    published: usize,
    pub(crate) refused: u64,
    pub(crate) unanswered: u64,
    pub(crate) partial: u64,
}

impl Oracle {
    pub(crate) fn publications(&self) -> usize {
        self.published
    }

    pub(crate) fn add_client(&mut self, home: usize) {
        self.homes.push(home);
        self.book.add_client();
    }

    /// A publication is asked for, and a number given, which becomes the event's payload.
    pub(crate) fn publish(&mut self, client: usize, event: &Event) -> (usize, Event) {
        let number = self.published;
        self.published += 1;
        let event = numbered(event, number);
        let publication = Publication {
            event: event.clone(),
            calm: self.calm,
            host: self.homes[client],
            parts: Arc::clone(&self.parts),
            asked: self.book.moment(),
            outcome: Outcome::Open,
            copies: Copies::default(),
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
        let Some(number) = number_of(event) else {
            return self.book.complain(format!("client {client} got an event that nobody published: {event:?}"));
        };
        let Some(publication) = self.publications.get_mut(&number) else {
            self.book.verdict_mut(client).wrong += 1;
            return self.book.complain(format!("client {client} got publication {number} long after it was over"));
        };
        publication.copies.add(client, session);
        let same = publication.event.as_bytes() == event.as_bytes();
        let matching = self.book.matching(client, &publication.event);
        let names: BTreeSet<Arc<str>> = matching.map(|subscription| Arc::clone(&subscription.name)).collect();
        let fits = given.iter().all(|name| names.contains(name));
        if !fits || given.is_empty() || !given.is_sorted() {
            let complaint = format!("client {client} got publication {number} for {given:?} instead of {names:?}");
            self.book.complain(complaint);
        }
        if !same {
            self.book.complain(format!("client {client} got publication {number} in other bytes than were published"));
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

    /// The network has settled: judges all publications and forgets them.
    ///
    /// Linear in publications x (subscriptions + clients).
    pub(crate) fn judge(&mut self) {
        for (number, publication) in std::mem::take(&mut self.publications) {
            let audience = self.audience(&publication);
            for client in 0..self.book.clients() {
                if self.book.judge(client, number, &audience, &publication.copies) {
                    self.explain(number, &publication, client);
                }
            }
        }
        self.calm = true;
        self.book.close();
    }

    fn audience(&mut self, publication: &Publication) -> Audience {
        let audience = self.book.audience(&publication.event, [publication.asked, self.book.moment()]);
        match publication.outcome {
            Outcome::Refused => Audience::default(),
            Outcome::Open => {
                self.unanswered += 1;
                Audience { must: BTreeSet::new(), ..audience }
            }
            Outcome::Published { .. } => audience,
        }
    }

    /// An event that must come did not: why?
    fn explain(&mut self, number: usize, publication: &Publication, client: usize) {
        let verdict = self.book.verdict_mut(client);
        if publication.parts[publication.host] != publication.parts[self.homes[client]] {
            verdict.lost_without_path += 1;
        } else if publication.calm {
            verdict.missed += 1;
            let outcome = publication.outcome;
            self.book.complain(format!("client {client} missed publication {number}, which is {outcome:?}"));
        } else if publication.outcome == (Outcome::Published { complete: false }) {
            verdict.lost_incomplete += 1;
        } else {
            verdict.lost_with_link += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_filter::Filter;

    /// Something happens to the oracle, at a moment of its own.
    fn then(oracle: &mut Oracle) -> &mut Oracle {
        oracle.book.tick();
        oracle
    }

    /// Client 0 publishes at broker 0; client 1 has subscribed at broker 1, and been answered; the network has settled.
    fn settled() -> Oracle {
        let mut oracle = Oracle::default();
        then(&mut oracle).disturb(vec![0, 0]);
        oracle.add_client(0);
        oracle.add_client(1);
        let number = then(&mut oracle).book.subscribe(1, "s".into(), Filter::parse("a = 1").expect("a filter"));
        then(&mut oracle).book.in_force(number);
        then(&mut oracle).judge();
        oracle
    }

    /// An event that matches is published, answered, and comes so many times.
    fn publish(oracle: &mut Oracle, complete: bool, copies: usize) -> usize {
        let event = Event::builder().attribute("a", 1).build().expect("an event");
        let (number, event) = then(oracle).publish(0, &event);
        then(oracle).answered(number, complete);
        (0..copies).for_each(|_| deliver(oracle, &event));
        number
    }

    fn deliver(oracle: &mut Oracle, event: &Event) {
        then(oracle).delivered(1, 1, event, &[Arc::from("s")]);
    }

    #[test]
    fn what_comes_once_is_right_and_all_else_is_told() {
        let mut oracle = settled();
        publish(&mut oracle, true, 1);
        then(&mut oracle).judge();
        assert_eq!((oracle.book.verdicts()[1].expected, oracle.book.verdicts()[1].received), (1, 1));
        assert_eq!(oracle.book.complaints(), [""; 0]);
        publish(&mut oracle, true, 2);
        publish(&mut oracle, true, 0);
        then(&mut oracle).judge();
        assert_eq!(
            (oracle.book.verdicts()[1].duplicates, oracle.book.verdicts()[1].missed, oracle.book.complaints().len()),
            (1, 1, 2)
        );
    }

    #[test]
    fn faults_excuse_what_they_may_have_cost_until_the_network_has_settled() {
        let mut oracle = settled();
        publish(&mut oracle, true, 0);
        then(&mut oracle).disturb(vec![0, 0]);
        publish(&mut oracle, true, 0);
        publish(&mut oracle, false, 0);
        then(&mut oracle).judge();
        let verdict = oracle.book.verdicts()[1];
        assert_eq!((verdict.lost_with_link, verdict.lost_incomplete, verdict.missed), (2, 1, 0));
        publish(&mut oracle, true, 0);
        then(&mut oracle).judge();
        assert_eq!(oracle.book.verdicts()[1].missed, 1);
        then(&mut oracle).disturb(vec![0, 1]);
        then(&mut oracle).judge();
        publish(&mut oracle, true, 0);
        then(&mut oracle).judge();
        assert_eq!((oracle.book.verdicts()[1].lost_without_path, oracle.book.verdicts()[1].missed), (1, 1));
    }

    #[test]
    fn a_subscription_that_ends_or_begins_meanwhile_may_get_the_event_and_an_earlier_one_must_not() {
        let mut oracle = settled();
        publish(&mut oracle, true, 1);
        publish(&mut oracle, true, 0);
        then(&mut oracle).book.withdraw(1, "s");
        then(&mut oracle).book.withdrawn(1, "s");
        publish(&mut oracle, true, 1);
        then(&mut oracle).judge();
        let verdict = oracle.book.verdicts()[1];
        assert_eq!((verdict.expected, verdict.optional, verdict.wrong), (0, 1, 1));
        then(&mut oracle).book.subscribe(1, "s".into(), Filter::parse("a = 1").expect("a filter"));
        publish(&mut oracle, true, 0);
        then(&mut oracle).judge();
        assert_eq!((oracle.book.verdicts()[1].expected, oracle.book.verdicts()[1].missed), (0, 0));
    }
}
