//! What every oracle notes down: who wanted what from when to when, what came of it, and what is wrong.
//!
//! Moments are counted, not timed. Who keeps the book begins a new one ([`Book::tick`]) with each thing that happens, so that
//! nothing happens at the same one. An event lives from the moment its publication is asked for until its last one, which the
//! oracle knows.
//!
//! - A subscription answered before that life and not withdrawn before its end **must** get the event, once.
//! - One that stood for a part of it **may**.
//! - Any other **must not**.

use enroute_filter::{Event, Filter};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More complaints than this help nobody.
const MOST_COMPLAINTS: usize = 100;

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

    /// What is wrong, in words, if so many events were to come, each once.
    pub fn differs(&self, expected: u64) -> Option<String> {
        let (came, duplicates) = (self.received + self.optional, self.duplicates);
        let wrong = came != expected || duplicates > 0;
        wrong.then(|| format!("got {came} events ({duplicates} twice) instead of {expected}"))
    }
}

/// A subscription of a client, with its moments.
#[derive(Clone, Debug)]
pub struct Subscription {
    client: usize,
    /// What the client calls it.
    pub name: Arc<str>,
    filter: Filter,
    placed: u64,
    in_force: Option<u64>,
    /// When its withdrawal was asked for.
    pub withdrawal_asked: Option<u64>,
    /// When its withdrawal was answered.
    pub withdrawn: Option<u64>,
}

/// The clients that must get an event, and all that may, those that must among them.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    /// Those that must.
    pub must: BTreeSet<usize>,
    /// Those that may.
    pub may: BTreeSet<usize>,
}

/// How often each client has got an event, over each of its connections.
#[derive(Clone, Debug, Default)]
pub struct Copies(BTreeMap<(usize, u64), u64>);

impl Copies {
    /// A client has got one over a connection.
    pub fn add(&mut self, client: usize, connection: u64) {
        *self.0.entry((client, connection)).or_default() += 1;
    }

    /// The most that a client has got over one connection: what one has been given says nothing about the next.
    fn most(&self, client: usize) -> u64 {
        self.0.range((client, 0)..=(client, u64::MAX)).map(|(_, &copies)| copies).max().unwrap_or(0)
    }
}

/// The event of a publication: its number instead of the payload, which keeps an event within the limits that it was in.
pub fn numbered(event: &Event, number: usize) -> Event {
    let payload = number.to_le_bytes().to_vec();
    event.to_builder().payload(payload).build().unwrap_or_else(|_| event.clone())
}

/// The number that [`numbered`] has put into an event; `None` if it is none of those.
pub fn number_of(event: &Event) -> Option<usize> {
    event.payload().as_ref().try_into().ok().map(usize::from_le_bytes)
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Book {
    moment: u64,
    /// By the numbers given for their answers. Those withdrawn before the last [`Book::close`] are forgotten.
    subscriptions: BTreeMap<u64, Subscription>,
    next_subscription: u64,
    /// The numbers of each client's.
    of_client: BTreeMap<usize, BTreeSet<u64>>,
    verdicts: Vec<Verdict>,
    complaints: Vec<String>,
}

impl Book {
    /// Something happens: a new moment.
    pub fn tick(&mut self) {
        self.moment += 1;
    }

    /// The present moment.
    pub fn moment(&self) -> u64 {
        self.moment
    }

    /// Something is wrong. Only the first hundred times are noted down.
    pub fn complain(&mut self, complaint: String) {
        if self.complaints.len() < MOST_COMPLAINTS {
            self.complaints.push(complaint);
        }
    }

    /// What is wrong, in words.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// There is one more client; they are numbered from 0.
    pub fn add_client(&mut self) {
        self.verdicts.push(Verdict::default());
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.verdicts.len()
    }

    /// What has been judged of each client.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// The verdict of a client, to be added to.
    pub fn verdict_mut(&mut self, client: usize) -> &mut Verdict {
        &mut self.verdicts[client]
    }

    /// All verdicts together.
    pub fn total(&self) -> Verdict {
        let mut total = Verdict::default();
        self.verdicts.iter().for_each(|verdict| total.add(verdict));
        total
    }

    /// A subscription is asked for, in place of one of the same name, and a number given for its answer.
    pub fn subscribe(&mut self, client: usize, name: Arc<str>, filter: Filter) -> u64 {
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
        self.of_client.entry(client).or_default().insert(number);
        number
    }

    /// A subscription is answered.
    pub fn in_force(&mut self, number: u64) {
        if let Some(subscription) = self.subscriptions.get_mut(&number) {
            subscription.in_force = Some(self.moment);
        }
    }

    /// What a subscription wants, while it is known.
    pub fn filter(&self, number: u64) -> Option<&Filter> {
        self.subscriptions.get(&number).map(|subscription| &subscription.filter)
    }

    /// A withdrawal is asked for.
    pub fn withdraw(&mut self, client: usize, name: &str) {
        let moment = self.moment;
        self.change_standing(client, Some(name), |subscription| {
            subscription.withdrawal_asked.get_or_insert(moment);
        });
    }

    /// A withdrawal is answered.
    pub fn withdrawn(&mut self, client: usize, name: &str) {
        let moment = self.moment;
        self.change_standing(client, Some(name), |subscription| {
            subscription.withdrawn = subscription.withdrawal_asked.map(|_| moment);
        });
    }

    /// A client's connection ends, and its subscriptions with it.
    pub fn session_ends(&mut self, client: usize) {
        let moment = self.moment;
        self.change_standing(client, None, |subscription| {
            subscription.withdrawal_asked.get_or_insert(moment);
            subscription.withdrawn = Some(moment);
        });
    }

    /// Changes the subscriptions of a client that are not withdrawn, all or those of a name.
    fn change_standing(&mut self, client: usize, name: Option<&str>, change: impl Fn(&mut Subscription)) {
        for number in self.of_client.get(&client).into_iter().flatten() {
            let subscription = self.subscriptions.get_mut(number);
            let standing = subscription.filter(|subscription| subscription.withdrawn.is_none());
            let named = |subscription: &&mut Subscription| name.is_none_or(|name| *subscription.name == *name);
            standing.filter(named).into_iter().for_each(&change);
        }
    }

    /// The subscriptions of a client that match an event, those among them that have been withdrawn since the last
    /// [`Book::close`].
    pub fn matching(&self, client: usize, event: &Event) -> impl Iterator<Item = &Subscription> {
        let numbers = self.of_client.get(&client).into_iter().flatten();
        let subscriptions = numbers.filter_map(|number| self.subscriptions.get(number));
        subscriptions.filter(move |subscription| subscription.filter.matches(event))
    }

    /// Who must and who may get an event that lives from one moment to another, if its publication is not refused.
    ///
    /// Linear in the subscriptions that stood since the last [`Book::close`].
    pub fn audience(&self, event: &Event, [asked, last]: [u64; 2]) -> Audience {
        let mut audience = Audience::default();
        for subscription in self.subscriptions.values() {
            let over = subscription.withdrawn.is_some_and(|moment| moment < asked);
            if over || subscription.placed > last || !subscription.filter.matches(event) {
                continue;
            }
            audience.may.insert(subscription.client);
            let before = subscription.in_force.is_some_and(|moment| moment < asked);
            if before && subscription.withdrawal_asked.is_none_or(|moment| moment > last) {
                audience.must.insert(subscription.client);
            }
        }
        audience
    }

    /// Judges what a client has got of a publication, and says whether an event is missing that must come: why, the oracle has
    /// to say.
    pub fn judge(&mut self, client: usize, number: usize, audience: &Audience, copies: &Copies) -> bool {
        let (must, may) = (audience.must.contains(&client), audience.may.contains(&client));
        let copies = copies.most(client);
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
            (true, _, false) => return true,
            (false, _, false) => {}
        }
        false
    }

    /// The network has settled, and all publications have been judged: forgets what has been withdrawn. A subscription whose
    /// wait ran out, and which was to follow, has done so by now.
    pub fn close(&mut self) {
        self.subscriptions.retain(|_, subscription| subscription.withdrawn.is_none());
        for numbers in self.of_client.values_mut() {
            numbers.retain(|number| self.subscriptions.contains_key(number));
        }
        for subscription in self.subscriptions.values_mut() {
            subscription.in_force.get_or_insert(self.moment);
        }
    }
}
