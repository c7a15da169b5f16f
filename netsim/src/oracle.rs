//! The oracle: a flat list of every subscription, and what must, may and must not reach each client.
//!
//! Moments are counted, not timed: each thing that happens in the world has one, so that nothing happens at the same one. An
//! event lives from the moment its publication is asked for until the last moment that any copy of it moved, or ended a wait
//! in a broker: to go on, to go nowhere since nobody wants it, or by a crash.
//!
//! - A subscription answered before that life and not withdrawn before its end **must** get the event, once.
//! - One that stood for a part of it **may**.
//! - Any other **must not**.
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

use crate::custody::{Custody, Place};
use crate::paths::Paths;
use enroute_broker::{BrokerId, ClientId, Delivery, EventFrame, EventId, Receipt, Time};
use enroute_filter::{Event, Filter, Limits};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A subscription of a client (numbered in the world) with its moments.
#[derive(Clone, Debug)]
struct Subscription {
    client: usize,
    name: Arc<str>,
    filter: Filter,
    placed: u64,
    in_force: Option<u64>,
    withdrawal_asked: Option<u64>,
    withdrawn: Option<u64>,
}

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
    /// How often each client has got it, over each of its connections.
    deliveries: BTreeMap<(usize, ClientId), u64>,
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

/// What has been judged, in all or for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Events that must come.
    pub expected: u64,
    /// Of these, those that came.
    pub received: u64,
    /// Events that might come, and did.
    pub optional: u64,
    /// Copies too many.
    pub duplicates: u64,
    /// Events that must come, and went down with a link or broker.
    pub lost_with_link: u64,
    /// Events that must come, and had no path for a while.
    pub lost_without_path: u64,
    /// Events that must come, whose receipts said that not all brokers had been heard.
    pub lost_incomplete: u64,
    /// Events that must come and did not, and no fault explains it.
    pub missed: u64,
    /// Events that must not come, and did.
    pub wrong: u64,
}

impl Verdict {
    /// Adds what another one counts.
    pub fn add(&mut self, other: &Verdict) {
        self.expected += other.expected;
        self.received += other.received;
        self.optional += other.optional;
        self.duplicates += other.duplicates;
        self.lost_with_link += other.lost_with_link;
        self.lost_without_path += other.lost_without_path;
        self.lost_incomplete += other.lost_incomplete;
        self.missed += other.missed;
        self.wrong += other.wrong;
    }

    /// Everything lost for a reason.
    pub fn lost(&self) -> u64 {
        self.lost_with_link + self.lost_without_path + self.lost_incomplete
    }
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
    moment: u64,
    subscriptions: BTreeMap<u64, Subscription>,
    next_subscription: u64,
    publications: BTreeMap<usize, Publication>,
    published: usize,
    numbers: BTreeMap<EventId, usize>,
    custody: Custody,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) refused: u64,
    pub(crate) unanswered: u64,
    pub(crate) flooding: u64,
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

    /// Something happens.
    pub(crate) fn tick(&mut self) {
        self.moment += 1;
    }

    pub(crate) fn add_client(&mut self) {
        self.verdicts.push(Verdict::default());
    }

    pub(crate) fn publications(&self) -> usize {
        self.published
    }

    /// A subscription is asked for, and a number given for its answer.
    pub(crate) fn subscribe(&mut self, client: usize, name: Arc<str>, filter: Filter) -> u64 {
        self.withdraw(client, &name);
        self.withdrawn(client, &name);
        let number = self.next_subscription;
        self.next_subscription += 1;
        let subscription = Subscription {
            client,
            name,
            filter,
            placed: self.moment,
            in_force: None,
            withdrawal_asked: None,
            withdrawn: None,
        };
        self.subscriptions.insert(number, subscription);
        number
    }

    pub(crate) fn in_force(&mut self, number: u64) {
        if let Some(subscription) = self.subscriptions.get_mut(&number) {
            subscription.in_force = Some(self.moment);
        }
    }

    /// What a subscription wants, while it is known.
    pub(crate) fn filter(&self, number: u64) -> Option<&Filter> {
        self.subscriptions.get(&number).map(|subscription| &subscription.filter)
    }

    /// A withdrawal is asked for.
    pub(crate) fn withdraw(&mut self, client: usize, name: &str) {
        let moment = self.moment;
        for subscription in self.standing(client, Some(name)) {
            subscription.withdrawal_asked.get_or_insert(moment);
        }
    }

    /// A withdrawal is answered.
    pub(crate) fn withdrawn(&mut self, client: usize, name: &str) {
        let moment = self.moment;
        for subscription in self.standing(client, Some(name)) {
            if subscription.withdrawal_asked.is_some() {
                subscription.withdrawn = Some(moment);
            }
        }
    }

    /// A client's connection ends, and its subscriptions with it.
    pub(crate) fn session_ends(&mut self, client: usize) {
        let moment = self.moment;
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

    /// A publication is asked for, and a number given; `tops` are the core brokers that leaves hang off.
    pub(crate) fn publish(
        &mut self,
        client: usize,
        host: usize,
        now: Time,
        (calm, tops): (bool, BTreeMap<usize, BrokerId>),
        event: impl FnOnce(usize) -> Event,
    ) -> (usize, Event) {
        let number = self.published;
        self.published += 1;
        let event = event(number);
        let publication = Publication {
            number,
            client,
            host,
            event: event.clone(),
            calm,
            asked: self.moment,
            asked_at: now,
            last: self.moment,
            last_at: now,
            outcome: Outcome::Open,
            deliveries: BTreeMap::new(),
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
            self.complain(format!("the id {} was given to two publications", receipt.id));
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
        publication.last = self.moment;
        publication.last_at = now;
        Some(publication)
    }

    /// The publication an event belongs to, which its payload tells.
    fn number(&mut self, id: EventId, bytes: &bytes::Bytes) -> Option<usize> {
        if let Some(&number) = self.numbers.get(&id) {
            return Some(number);
        }
        let event = Event::from_bytes(bytes.clone(), &Limits::default()).ok()?;
        let number = usize::from_le_bytes(event.payload().as_ref().try_into().ok()?);
        self.numbers.insert(id, number);
        Some(number)
    }

    /// A broker sends a copy to a neighbour.
    pub(crate) fn forwarded(&mut self, from: (usize, BrokerId), to: usize, frame: &EventFrame, now: Time) {
        if let Err(complaint) = self.custody.forwarded(from.1, frame) {
            self.complain(complaint);
        }
        let Some(number) = self.number(frame.id, &frame.event) else {
            return self.complain(format!("a copy of event {} that nobody published", frame.id));
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

    fn touch(&mut self, id: EventId, now: Time) {
        if let Some(&number) = self.numbers.get(&id) {
            self.moved(number, now);
        }
    }

    /// A client gets an event.
    pub(crate) fn delivered(&mut self, (client, session): (usize, ClientId), delivery: &Delivery, now: Time) {
        let Some(number) = self.number(delivery.id, &delivery.event) else {
            return self.complain(format!("client {client} got event {}, which nobody published", delivery.id));
        };
        let Some(publication) = self.moved(number, now) else {
            self.verdicts[client].wrong += 1;
            return self.complain(format!("client {client} got publication {number} long after it was over"));
        };
        *publication.deliveries.entry((client, session)).or_default() += 1;
        if publication.event.as_bytes() != &delivery.event {
            self.complain(format!("client {client} got publication {number} in other bytes than were published"));
        }
        self.check_names(client, number, &delivery.subscriptions);
    }

    /// The names that a delivery gives are those of the client's subscriptions that stand and match.
    fn check_names(&mut self, client: usize, number: usize, given: &[Arc<str>]) {
        let Some(publication) = self.publications.get(&number) else { return };
        let standing = self.subscriptions.values().filter(|subscription| subscription.client == client);
        let mut must = BTreeSet::new();
        let mut may = BTreeSet::new();
        for subscription in standing.filter(|subscription| subscription.withdrawn.is_none()) {
            if subscription.filter.matches(&publication.event) {
                may.insert(&subscription.name);
                if subscription.withdrawal_asked.is_none() {
                    must.insert(&subscription.name);
                }
            }
        }
        let names: BTreeSet<_> = given.iter().collect();
        if !names.is_superset(&must) || !names.is_subset(&may) || !given.is_sorted() {
            let complaint = format!("client {client} got publication {number} for {names:?} instead of {must:?}");
            self.complain(complaint);
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
            let (must, may) = self.audience(&publication);
            for client in 0..self.verdicts.len() {
                self.judge_client(&publication, client, must.contains(&client), may.contains(&client), truth);
            }
            if publication.calm {
                crossed.push(self.crossed(publication, &must, truth));
            }
        }
        self.subscriptions.retain(|_, subscription| subscription.withdrawn.is_none());
        // One whose wait ran out was to follow, and has by now.
        for subscription in self.subscriptions.values_mut() {
            subscription.in_force.get_or_insert(self.moment);
        }
        self.numbers.clear();
        self.custody.clear();
        crossed
    }

    fn crossed(&mut self, publication: Publication, must: &BTreeSet<usize>, truth: Truth<'_>) -> Crossed {
        let Publication { number, host, outcome, crossings, .. } = publication;
        if matches!(outcome, Outcome::Published(Receipt { complete: false, .. })) {
            self.complain(format!("publication {number} of a settled network has an incomplete receipt"));
        }
        let interested = must.iter().map(|&client| truth.homes[client].0).filter(|&home| home != host).collect();
        Crossed { number, host, interested, crossings }
    }

    /// The clients that must get an event, and those that may.
    fn audience(&mut self, publication: &Publication) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let (mut must, mut may) = (BTreeSet::new(), BTreeSet::new());
        match publication.outcome {
            Outcome::Refused => return (must, may),
            Outcome::Open => self.unanswered += 1,
            Outcome::Published(_) => {}
        }
        for subscription in self.subscriptions.values() {
            let over = subscription.withdrawn.is_some_and(|moment| moment < publication.asked);
            if over || subscription.placed > publication.last || !subscription.filter.matches(&publication.event) {
                continue;
            }
            may.insert(subscription.client);
            let before = subscription.in_force.is_some_and(|moment| moment < publication.asked);
            let until = subscription.withdrawal_asked.is_none_or(|moment| moment > publication.last);
            if before && until && publication.outcome != Outcome::Open {
                must.insert(subscription.client);
            }
        }
        (must, may)
    }

    fn judge_client(&mut self, publication: &Publication, client: usize, must: bool, may: bool, truth: Truth<'_>) {
        let number = publication.number;
        // Once over each connection: what one has been given says nothing about the next.
        let all = (client, ClientId(0))..=(client, ClientId(u64::MAX));
        let copies = publication.deliveries.range(all).map(|(_, &copies)| copies).max().unwrap_or(0);
        if copies > 1 {
            self.complain(format!("client {client} got publication {number} {copies} times"));
        }
        let verdict = &mut self.verdicts[client];
        verdict.duplicates += copies.saturating_sub(1);
        verdict.expected += u64::from(must);
        match (must, may, copies > 0) {
            (true, _, true) => verdict.received += 1,
            (false, true, true) => verdict.optional += 1,
            (false, false, true) => {
                verdict.wrong += 1;
                self.complain(format!("client {client} got publication {number} and must not"));
            }
            (true, _, false) => self.explain(publication, client, truth),
            (false, _, false) => {}
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
        let verdict = &mut self.verdicts[client];
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
            self.complain(format!(
                "client {client} missed publication {number} of client {from}, event {id}: asked at {asked} us, last seen \
                 at {last} us, {} destinations; the copy for broker {broker} is {place:?}",
                receipt.destinations
            ));
        }
    }
}
