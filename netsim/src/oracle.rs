//! The oracle: what must, may and must not reach each client, by the book of all subscriptions ([`Book`]), and what explains
//! that something does not.
//!
//! Each thing that happens in the world has a moment. An event lives until the last moment that any copy of it moved, or ended
//! a wait in a broker: to go on, to go nowhere since nobody wants it, or by a crash.
//!
//! An event that must come and does not is **lost** if a fault explains it, and **missed** otherwise; a missed event is a
//! defect of the brokers. These explain it, and nothing else does:
//!
//! 1. the copy for that client's broker was under way on a link that broke, or in a broker that crashed; for a leaf's client that
//!    for the core broker that the leaf hung off when the event was published, or one on its way down to the leaf; and for every
//!    client the one that was on its way up;
//! 2. there was no path between the two brokers for some time of the event's life, or none from the broker that held the
//!    copy ([`Paths`]);
//! 3. the receipt said that the view of the publishing broker was not complete.
//!
//! Once the event has been at the client's broker, no fault explains its loss.

mod hops;

use crate::book::{Audience, Book, Copies, number_of, numbered};
use crate::custody::{Custody, Place};
use crate::paths::Paths;
use enroute_broker::{BrokerId, ClientId, Delivery, EventFrame, EventId, Receipt, Time};
use enroute_filter::{Event, Limits};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How a publication stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Not answered; for ever so if the broker crashed.
    Open,
    Refused,
    Published(Receipt),
}

/// A publication that has not been judged yet.
#[derive(Clone, Debug)]
struct Publication {
    number: usize,
    client: usize,
    host: usize,
    event: Event,
    /// Whether the network was settled, and has been since.
    calm: bool,
    asked: u64,
    asked_at: Time,
    last: u64,
    last_at: Time,
    outcome: Outcome,
    copies: Copies,
    /// Each time a copy went from one broker to another.
    crossings: Vec<[usize; 2]>,
    /// How often flooding would have sent it.
    flooding: u64,
    /// Brokers that it has come to over a link between a leaf and its parent.
    visited: BTreeSet<usize>,
    /// Whether it was lost on its way up from a leaf, or waited for that in a broker that crashed.
    lost_up: bool,
    /// Leaves that hung where a copy was lost on its way down, that one or leaves below it.
    lost_down: BTreeSet<usize>,
    /// For each leaf the core broker that it hung off when the event was published.
    tops: BTreeMap<usize, BrokerId>,
}

/// What losses are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth<'a> {
    pub(crate) paths: &'a Paths,
    /// For each client its broker.
    pub(crate) homes: &'a [(usize, BrokerId)],
    /// All brokers, in the order of their numbers.
    pub(crate) brokers: &'a [BrokerId],
    /// Those that are leaves.
    pub(crate) leaves: &'a BTreeSet<usize>,
    /// How long a broker holds an event that it has no way for.
    pub(crate) park: Duration,
}

impl Truth<'_> {
    /// Whether the publisher's broker could reach the client's all the time, and so could the broker that holds the copy.
    fn had_path(&self, publication: &Publication, home: usize, place: Option<Place>) -> bool {
        let holder = match place {
            Some(Place::At(broker)) => self.brokers.iter().position(|&known| known == broker),
            Some(Place::OnLink | Place::Arrived | Place::Lost) | None => None,
        };
        let until = publication.last_at + self.park;
        self.paths.joined(publication.host, home, publication.asked_at, publication.last_at)
            && holder.is_none_or(|holder| self.paths.joined(holder, home, publication.asked_at, until))
    }
}

/// A publication of a settled network, for the check of the links it used.
#[derive(Clone, Debug)]
pub(crate) struct Crossed {
    pub(crate) number: usize,
    pub(crate) host: usize,
    /// Brokers with clients that must get it, the publisher's own left out.
    pub(crate) interested: BTreeSet<usize>,
    pub(crate) crossings: Vec<[usize; 2]>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) book: Book,
    publications: BTreeMap<usize, Publication>,
    published: usize,
    numbers: BTreeMap<EventId, usize>,
    custody: Custody,
    pub(crate) refused: u64,
    pub(crate) unanswered: u64,
    pub(crate) flooding: u64,
}

impl Oracle {
    pub(crate) fn publications(&self) -> usize {
        self.published
    }

    /// A publication is asked for, and a number given; `tops` are the core brokers that leaves hang off.
    pub(crate) fn publish(
        &mut self,
        client: usize,
        host: usize,
        now: Time,
        (calm, tops): (bool, BTreeMap<usize, BrokerId>),
        event: &Event,
    ) -> (usize, Event) {
        let number = self.published;
        self.published += 1;
        let event = numbered(event, number);
        let publication = Publication {
            number,
            client,
            host,
            event: event.clone(),
            calm,
            asked: self.book.moment(),
            asked_at: now,
            last: self.book.moment(),
            last_at: now,
            outcome: Outcome::Open,
            copies: Copies::default(),
            crossings: Vec::new(),
            flooding: 0,
            visited: BTreeSet::new(),
            lost_up: false,
            lost_down: BTreeSet::new(),
            tops,
        };
        self.publications.insert(number, publication);
        (number, event)
    }

    /// What flooding would send for a publication.
    pub(crate) fn would_flood(&mut self, number: usize, copies: u64) {
        if let Some(publication) = self.publications.get_mut(&number) {
            publication.flooding = copies;
        }
    }

    pub(crate) fn answered(&mut self, number: usize, receipt: Receipt, now: Time) {
        let known = self.numbers.insert(receipt.id, number);
        if known.is_some_and(|known| known != number) {
            self.book.complain(format!("the id {} was given to two publications", receipt.id));
        }
        if let Some(publication) = self.moved(number, now) {
            publication.outcome = Outcome::Published(receipt);
        }
    }

    /// A publication is refused, as the client's advertisements say.
    pub(crate) fn refused(&mut self, number: usize, now: Time) {
        self.refused += 1;
        if let Some(publication) = self.moved(number, now) {
            publication.outcome = Outcome::Refused;
        }
    }

    fn moved(&mut self, number: usize, now: Time) -> Option<&mut Publication> {
        let publication = self.publications.get_mut(&number)?;
        publication.last = self.book.moment();
        publication.last_at = now;
        Some(publication)
    }

    /// The publication an event belongs to, which its payload tells.
    fn number(&mut self, id: EventId, bytes: &bytes::Bytes) -> Option<usize> {
        if let Some(&number) = self.numbers.get(&id) {
            return Some(number);
        }
        let event = Event::from_bytes(bytes.clone(), &Limits::default()).ok()?;
        let number = number_of(&event)?;
        self.numbers.insert(id, number);
        Some(number)
    }

    /// A broker sends a copy to a neighbour.
    pub(crate) fn forwarded(&mut self, from: (usize, BrokerId), to: usize, frame: &EventFrame, now: Time) {
        if let Err(complaint) = self.custody.forwarded(from.1, frame) {
            self.book.complain(complaint);
        }
        let Some(number) = self.number(frame.id, &frame.event) else {
            return self.book.complain(format!("a copy of event {} that nobody published", frame.id));
        };
        if let Some(publication) = self.moved(number, now) {
            publication.crossings.push([from.0, to]);
        }
    }

    /// A copy arrives at a broker.
    pub(crate) fn arrived(&mut self, at: BrokerId, frame: &EventFrame, now: Time) {
        self.custody.arrived(at, frame);
        self.touch(frame.id, now);
    }

    /// A copy goes down with a link.
    pub(crate) fn lost(&mut self, frame: &EventFrame, now: Time) {
        self.custody.lost(frame);
        self.touch(frame.id, now);
    }

    /// A copy that a dead link had not begun to send goes back to its broker.
    pub(crate) fn returned(&mut self, to: BrokerId, frame: &EventFrame, now: Time) {
        self.custody.returned(to, frame);
        self.touch(frame.id, now);
    }

    /// A broker crashes with all copies in it, and with events that waited there on their way up.
    pub(crate) fn crashed(&mut self, (host, broker): (usize, BrokerId), waiting: &BTreeSet<EventId>, now: Time) {
        for id in self.custody.crashed((host, broker)) {
            self.touch(id, now);
        }
        for &id in waiting {
            self.lost_waiting(id, now);
        }
    }

    /// How many copies are in each broker that is not their destination.
    pub(crate) fn held(&self) -> BTreeMap<BrokerId, u64> {
        self.custody.held()
    }

    fn touch(&mut self, id: EventId, now: Time) {
        if let Some(&number) = self.numbers.get(&id) {
            self.moved(number, now);
        }
    }

    /// A client gets an event.
    pub(crate) fn delivered(&mut self, (client, session): (usize, ClientId), delivery: &Delivery, now: Time) {
        let Some(number) = self.number(delivery.id, &delivery.event) else {
            return self.book.complain(format!("client {client} got event {}, which nobody published", delivery.id));
        };
        let Some(publication) = self.moved(number, now) else {
            self.book.verdict_mut(client).wrong += 1;
            return self.book.complain(format!("client {client} got publication {number} long after it was over"));
        };
        publication.copies.add(client, session.0);
        if publication.event.as_bytes() != &delivery.event {
            self.book.complain(format!("client {client} got publication {number} in other bytes than were published"));
        }
        self.check_names(client, number, &delivery.subscriptions);
    }

    /// The names that a delivery gives are those of the client's subscriptions that stand and match.
    fn check_names(&mut self, client: usize, number: usize, given: &[Arc<str>]) {
        let Some(publication) = self.publications.get(&number) else { return };
        let mut must = BTreeSet::new();
        let mut may = BTreeSet::new();
        for subscription in self.book.matching(client, &publication.event) {
            if subscription.withdrawn.is_none() {
                may.insert(&subscription.name);
                if subscription.withdrawal_asked.is_none() {
                    must.insert(&subscription.name);
                }
            }
        }
        let names: BTreeSet<_> = given.iter().collect();
        if !names.is_superset(&must) || !names.is_subset(&may) || !given.is_sorted() {
            let complaint = format!("client {client} got publication {number} for {names:?} instead of {must:?}");
            self.book.complain(complaint);
        }
    }

    /// The network changes: what is published is no more in calm water.
    pub(crate) fn disturb(&mut self) {
        for publication in self.publications.values_mut() {
            publication.calm = false;
        }
    }

    /// Judges all publications, none of which is under way any more, and forgets them. Gives back those of calm times.
    ///
    /// Linear in publications x subscriptions that stood since the last judgement.
    pub(crate) fn judge(&mut self, truth: Truth<'_>) -> Vec<Crossed> {
        let mut crossed = Vec::new();
        for publication in std::mem::take(&mut self.publications).into_values() {
            self.flooding += publication.flooding;
            let audience = self.audience(&publication);
            for client in 0..self.book.clients() {
                if self.book.judge(client, publication.number, &audience, &publication.copies) {
                    self.explain(&publication, client, truth);
                }
            }
            if publication.calm {
                crossed.push(self.crossed(publication, &audience.must, truth));
            }
        }
        self.book.close();
        self.numbers.clear();
        self.custody.clear();
        crossed
    }

    fn crossed(&mut self, publication: Publication, must: &BTreeSet<usize>, truth: Truth<'_>) -> Crossed {
        let Publication { number, host, outcome, crossings, .. } = publication;
        if matches!(outcome, Outcome::Published(Receipt { complete: false, .. })) {
            self.book.complain(format!("publication {number} of a settled network has an incomplete receipt"));
        }
        let interested = must.iter().map(|&client| truth.homes[client].0).filter(|&home| home != host).collect();
        Crossed { number, host, interested, crossings }
    }

    fn audience(&mut self, publication: &Publication) -> Audience {
        let audience = self.book.audience(&publication.event, [publication.asked, publication.last]);
        match publication.outcome {
            Outcome::Refused => Audience::default(),
            Outcome::Open => {
                self.unanswered += 1;
                Audience { must: BTreeSet::new(), ..audience }
            }
            Outcome::Published(_) => audience,
        }
    }

    /// An event that must come did not: why?
    fn explain(&mut self, publication: &Publication, client: usize, truth: Truth<'_>) {
        let (home, broker) = truth.homes[client];
        let Outcome::Published(receipt) = publication.outcome else { return };
        let place = match truth.leaves.contains(&home) {
            false => self.custody.place(receipt.id, broker),
            true => publication.tops.get(&home).and_then(|&top| self.custody.place(receipt.id, top)),
        };
        let was_here = home == publication.host
            || publication.visited.contains(&home)
            || self.custody.place(receipt.id, broker) == Some(Place::Arrived);
        // What is lost on its way up is lost to all that it had not come to, on its way down to those below.
        let lost_below = publication.lost_up || publication.lost_down.contains(&home);
        let verdict = self.book.verdict_mut(client);
        if !was_here && (place == Some(Place::Lost) || lost_below) {
            verdict.lost_with_link += 1;
        } else if !was_here && !receipt.complete {
            verdict.lost_incomplete += 1;
        } else if !was_here && !truth.had_path(publication, home, place) {
            verdict.lost_without_path += 1;
        } else {
            verdict.missed += 1;
            let (number, from) = (publication.number, publication.client);
            let (asked, last, id) = (publication.asked_at.0, publication.last_at.0, receipt.id);
            self.book.complain(format!(
                "client {client} missed publication {number} of client {from}, event {id}: asked at {asked} us, last seen \
                 at {last} us, {} destinations; the copy for broker {broker} is {place:?}",
                receipt.destinations
            ));
        }
    }
}
