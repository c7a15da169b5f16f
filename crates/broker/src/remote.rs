//! Interest, incoming: what other brokers want of the events published here.

use crate::broker::Broker;
use crate::timers::Timer;
use crate::{AnnouncedFilter, BrokerId, Digest, Interest, Notice, Output, Payload};
use enroute_filter::{Conjunction, Event, Filter};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};
use std::collections::BTreeMap;
use std::time::Duration;

/// Full syncs that may fail before both sides rest.
const FULL_SYNCS: u32 = 2;

/// How long they rest.
const REST: Duration = Duration::from_secs(60);

/// What one broker has announced here.
#[derive(Debug, Default)]
struct Table {
    /// The sequence of the own scope that the announcement answers.
    scope_version: u64,
    filters: BTreeMap<AnnouncedFilter, SubscriptionId>,
    digest: Digest,
    /// The parts of a step whose last part has not come: added and removed.
    staged: (Vec<AnnouncedFilter>, Vec<AnnouncedFilter>),
    /// Whether the digest came out as its origin said.
    right: bool,
    failures: u32,
}

/// What all other brokers want.
#[derive(Default)]
pub(crate) struct RemoteInterest {
    tables: BTreeMap<BrokerId, Table>,
    matcher: Enindex,
    scratch: Scratch,
    last_id: u64,
}

/// What became of a part of a step.
enum Applied {
    Staged,
    Right,
    Wrong,
    /// More filters than allowed.
    TooMany,
}

impl RemoteInterest {
    /// How many filters a broker has announced.
    pub(crate) fn filters(&self, of: BrokerId) -> u64 {
        self.tables.get(&of).map_or(0, |table| table.filters.len() as u64)
    }

    /// Whether a broker has answered this version of the own scope, and rightly.
    pub(crate) fn answered(&self, by: BrokerId, scope_version: u64) -> bool {
        self.tables.get(&by).is_some_and(|table| table.right && table.scope_version == scope_version)
    }

    /// The brokers that want an event, sorted.
    pub(crate) fn interested(&mut self, event: &Event, owners: &mut Vec<Owner>) {
        self.matcher.interested(event, &mut self.scratch, owners);
    }

    /// Forgets what a broker has announced.
    pub(crate) fn forget(&mut self, broker: BrokerId) {
        if let Some(table) = self.tables.remove(&broker) {
            for id in table.filters.into_values() {
                self.matcher.remove(id);
            }
        }
    }

    /// Forgets the parts of a step whose other parts will not come: their channel has begun anew.
    pub(crate) fn unstage(&mut self, broker: BrokerId) {
        if let Some(table) = self.tables.get_mut(&broker) {
            table.staged = Default::default();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = RemoteInterest { last_id: self.last_id, ..RemoteInterest::default() };
    }

    fn apply(&mut self, from: BrokerId, interest: Interest, limit: usize) -> Applied {
        let table = self.tables.entry(from).or_default();
        table.staged.0.extend(interest.added);
        table.staged.1.extend(interest.removed);
        if table.staged.0.len() + table.staged.1.len() > limit {
            table.staged = Default::default();
            table.right = false;
            return Applied::TooMany;
        }
        if !interest.last {
            return Applied::Staged;
        }
        let (added, removed) = std::mem::take(&mut table.staged);
        // Of a whole, what is not in it goes; adds come before removes either way.
        let gone = if interest.whole {
            let kept: std::collections::BTreeSet<&AnnouncedFilter> = added.iter().collect();
            table.filters.keys().filter(|filter| !kept.contains(filter)).cloned().collect()
        } else {
            removed
        };
        for filter in added {
            self.last_id += 1;
            table.add(filter, SubscriptionId(self.last_id), Owner(from.0), &mut self.matcher);
        }
        for filter in gone {
            table.remove(&filter, &mut self.matcher);
        }
        table.scope_version = interest.scope_version;
        table.right = table.digest == interest.digest;
        if table.filters.len() > limit {
            table.right = false;
            return Applied::TooMany;
        }
        if table.right { Applied::Right } else { Applied::Wrong }
    }
}

impl Table {
    fn add(&mut self, filter: AnnouncedFilter, id: SubscriptionId, owner: Owner, matcher: &mut Enindex) {
        if self.filters.contains_key(&filter) {
            return;
        }
        // What cannot be read may want anything: taking it for less would lose events.
        let conjunction = filter.conjunction().unwrap_or_else(|_| Conjunction::always());
        matcher.insert(id, owner, &Filter::from(conjunction));
        self.digest = self.digest.with(&filter);
        self.filters.insert(filter, id);
    }

    fn remove(&mut self, filter: &AnnouncedFilter, matcher: &mut Enindex) {
        if let Some(id) = self.filters.remove(filter) {
            matcher.remove(id);
            self.digest = self.digest.without(filter);
        }
    }
}

impl Broker {
    pub(crate) fn on_interest(&mut self, from: BrokerId, interest: Interest, out: &mut Vec<Output>) {
        let (version, scope_version) = (interest.version, interest.scope_version);
        match self.remote.apply(from, interest, self.config.filters_per_broker) {
            Applied::Staged => return,
            Applied::Right => {
                if let Some(table) = self.remote.tables.get_mut(&from) {
                    table.failures = 0;
                }
                self.timers.set(Timer::Resync(from), None);
            }
            Applied::Wrong => self.ask_again(from, version, scope_version, out),
            Applied::TooMany => {
                let what = format!("an interest of more than {} filters", self.config.filters_per_broker);
                out.push(Output::Notice(Notice::Unreadable { broker: from, what }));
                self.take_for_everything(from, scope_version);
            }
        }
        self.view_changed();
    }

    /// The origin arbitrates: it is asked for the whole, and after two that came out wrong both rest.
    fn ask_again(&mut self, from: BrokerId, version: u64, scope_version: u64, out: &mut Vec<Output>) {
        let Some(table) = self.remote.tables.get_mut(&from) else { return };
        table.failures += 1;
        if table.failures <= FULL_SYNCS {
            self.tell(from, Payload::Resync { version }, out);
        } else {
            out.push(Output::Notice(Notice::DigestMismatch { broker: from }));
            self.take_for_everything(from, scope_version);
        }
    }

    /// An interest that cannot be held as it is said is taken as all there is, for a while: more traffic, but nothing lost.
    fn take_for_everything(&mut self, from: BrokerId, scope_version: u64) {
        self.remote.forget(from);
        self.remote.last_id += 1;
        let id = SubscriptionId(self.remote.last_id);
        let mut table = Table { scope_version, right: true, failures: FULL_SYNCS, ..Table::default() };
        let everything = AnnouncedFilter::of(&Conjunction::always());
        table.add(everything, id, Owner(from.0), &mut self.remote.matcher);
        self.remote.tables.insert(from, table);
        self.timers.start(Timer::Resync(from), self.now + REST);
    }

    /// There is a path to a broker again. If it does not say soon what it wants, it is asked: it may have been forgotten
    /// here and not know it.
    pub(crate) fn expect_answer(&mut self, from: BrokerId) {
        if !self.scope.is_nobody() && !self.remote.answered(from, self.scope.version()) {
            self.timers.start(Timer::Resync(from), self.now + 2 * self.config.resend);
        }
    }

    /// The rest after failed syncs is over, or an answer has not come.
    pub(crate) fn on_resync_due(&mut self, from: BrokerId, out: &mut Vec<Output>) {
        let rested = self.remote.tables.get_mut(&from).is_some_and(|table| std::mem::take(&mut table.failures) > 0);
        let answered = self.scope.is_nobody() || self.remote.answered(from, self.scope.version());
        if rested || (!answered && self.topology.route(from).is_some()) {
            self.tell(from, Payload::Resync { version: 0 }, out);
        }
    }
}
