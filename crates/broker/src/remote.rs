//! Interest, incoming: what other brokers want of the events published here.

use crate::broker::Broker;
use crate::filters::RemoteFilters;
use crate::received::{Changes, Received, Taken};
use crate::timers::Timer;
use crate::{AnnouncedFilter, BrokerId, Interest, Notice, Output, Payload};
use enroute_filter::{Conjunction, Event};
use enroute_matcher::Owner;
use std::collections::BTreeMap;
use std::time::Duration;

/// Full syncs that may fail before both sides rest.
const FULL_SYNCS: u32 = 2;

/// How long they rest.
const REST: Duration = Duration::from_secs(60);

/// How far what one broker announces here has come.
#[derive(Debug, Default)]
struct Table {
    interest: Received,
    /// Whether it has been asked for the whole, which has not come.
    asked: bool,
    /// Wholes that did not come out right, one after the other.
    failures: u32,
}

/// What all other brokers want.
pub(crate) struct RemoteInterest {
    tables: BTreeMap<BrokerId, Table>,
    filters: Box<dyn RemoteFilters>,
}

impl RemoteInterest {
    pub(crate) fn new(filters: Box<dyn RemoteFilters>) -> RemoteInterest {
        RemoteInterest { tables: BTreeMap::new(), filters }
    }

    /// How many filters a broker has announced.
    pub(crate) fn count(&self, of: BrokerId) -> u64 {
        self.filters.count(of) as u64
    }

    /// How many filters all brokers have announced.
    pub(crate) fn total(&self) -> u64 {
        self.tables.keys().map(|&broker| self.count(broker)).sum()
    }

    /// Whether a broker has answered this version of the own scope, and rightly.
    pub(crate) fn answered(&self, by: BrokerId, scope_version: u64) -> bool {
        let answers = |interest: &Received| interest.right && interest.scope_version == scope_version;
        self.tables.get(&by).is_some_and(|table| answers(&table.interest))
    }

    /// All filters that are announced, as often as brokers have announced them.
    pub(crate) fn filters(&self) -> impl Iterator<Item = AnnouncedFilter> {
        self.filters.filters()
    }

    /// Whether any broker wants an event.
    pub(crate) fn want(&mut self, event: &Event, owners: &mut Vec<Owner>) -> bool {
        self.interested(event, owners);
        !owners.is_empty()
    }

    /// The brokers that want an event, sorted.
    pub(crate) fn interested(&mut self, event: &Event, owners: &mut Vec<Owner>) {
        owners.clear();
        self.filters.interested(event, owners);
    }

    fn remove(&mut self, broker: BrokerId) -> Changes {
        self.tables.remove(&broker);
        self.filters.forget(broker)
    }

    /// Forgets the parts of a step whose other parts will not come: their channel has begun anew.
    pub(crate) fn unstage(&mut self, broker: BrokerId) {
        if let Some(table) = self.tables.get_mut(&broker) {
            table.interest.unstage();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.tables.clear();
        self.filters.clear();
    }
}

impl Broker {
    pub(crate) fn on_interest(&mut self, from: BrokerId, interest: Interest, out: &mut Vec<Output>) {
        // The answer to a scope that was given up while it was under way: nobody would ever take it back, and it may build on what
        // is forgotten.
        if self.scope.is_nobody() || self.scope.is_forgotten(interest.scope_version) {
            return;
        }
        let Interest { scope_version, part } = interest;
        let (version, whole, digest) = (part.version, part.whole, part.digest);
        let limit = self.config.filters_per_broker;
        let RemoteInterest { tables, filters } = &mut self.remote;
        let received = &mut tables.entry(from).or_default().interest;
        match received.take(part, limit, filters.count(from), |filter| filters.contains(from, filter)) {
            Taken::Part => return,
            Taken::Step(step) => {
                let changes = filters.change(from, step.whole, step.added, step.removed);
                received.applied(scope_version, digest, &changes);
                self.beyond_interest_changed(&changes, out);
                self.check_digest(from, version, scope_version, whole, out);
            }
            Taken::TooMany => {
                let what = format!("an interest of more than {limit} filters");
                out.push(Output::Notice(Notice::Unreadable { broker: from, what }));
                self.take_for_everything(from, scope_version, out);
            }
        }
        self.view_changed_by(from);
    }

    /// Forgets what a broker has announced.
    pub(crate) fn forget_interest(&mut self, broker: BrokerId, out: &mut Vec<Output>) {
        let changes = self.remote.remove(broker);
        self.beyond_interest_changed(&changes, out);
    }

    /// The origin arbitrates: if the digest is wrong it is asked for the whole, and after two that came out wrong both rest.
    fn check_digest(&mut self, from: BrokerId, version: u64, scope_version: u64, whole: bool, out: &mut Vec<Output>) {
        let Some(table) = self.remote.tables.get_mut(&from) else { return };
        if table.interest.right {
            (table.asked, table.failures) = (false, 0);
            self.timers.set(Timer::Resync(from), None);
            return;
        }
        // Changes that were under way before the whole that it has been asked for cannot come out right.
        if table.asked && !whole {
            return;
        }
        table.failures += u32::from(whole);
        if table.failures < FULL_SYNCS {
            table.asked = true;
            self.tell(from, Payload::Resync { version }, out);
        } else {
            out.push(Output::Notice(Notice::DigestMismatch { broker: from }));
            self.take_for_everything(from, scope_version, out);
        }
    }

    /// An interest that cannot be held as it is said is taken as all there is, for a while: more traffic, but nothing lost.
    fn take_for_everything(&mut self, from: BrokerId, scope_version: u64, out: &mut Vec<Output>) {
        self.forget_interest(from, out);
        let everything = vec![AnnouncedFilter::of(&Conjunction::always())];
        let changes = self.remote.filters.change(from, true, everything, Vec::new());
        let interest = Received::taken_for(scope_version, &changes);
        self.beyond_interest_changed(&changes, out);
        self.remote.tables.insert(from, Table { interest, asked: false, failures: FULL_SYNCS });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InterestPart;
    use crate::{ClientId, Command, Config, Digest, Identity, Input, RequestId, Time};
    use enroute_filter::Filter;

    /// What a broker is given by another, which need not be one that it knows.
    struct Holder {
        broker: Broker,
        other: BrokerId,
        out: Vec<Output>,
    }

    impl Holder {
        /// Its first scope is `anything`, in version 1.
        fn new() -> Holder {
            let identity = Identity {
                id: BrokerId::of_peer("a"),
                peer_id: "a".into(),
                incarnation: 1,
                start_nonce: 1,
                addresses: Vec::new(),
            };
            let broker = Broker::new(identity, Config::default(), Time(0));
            let mut holder = Holder { broker, other: BrokerId::of_peer("b"), out: Vec::new() };
            holder.advertise("all", true);
            assert_eq!(holder.broker.scope.version(), 1);
            holder
        }

        fn advertise(&mut self, name: &str, does: bool) {
            let name = name.into();
            let command = match does {
                true => Command::Advertise { name, filter: Filter::always() },
                false => Command::Unadvertise { name },
            };
            let (client, request) = (ClientId(1), RequestId(1));
            self.broker.handle(Input::Command { client, request, command }, Time(0), &mut self.out);
        }

        /// Takes a step that adds one filter, and says for how many wholes the other broker has been asked since.
        fn take(&mut self, scope_version: u64, whole: bool, filter: &str, digest: Option<Digest>) -> usize {
            let conjunction = Filter::parse(filter).expect("a filter").conjunctions()[0].clone();
            let added = vec![AnnouncedFilter::of(&conjunction)];
            let digest = digest.unwrap_or_else(|| Digest::default().with(&added[0]));
            let before = self.asked();
            let part = InterestPart { version: 1, whole, added, removed: vec![], last: true, digest };
            self.broker.on_interest(self.other, Interest::new(scope_version, part), &mut self.out);
            self.asked() - before
        }

        fn asked(&self) -> usize {
            self.broker.channels.get(&self.other).map_or(0, |channel| channel.unacknowledged())
        }

        fn gives_notice(&self) -> bool {
            self.out.iter().any(|output| matches!(output, Output::Notice(Notice::DigestMismatch { .. })))
        }
    }

    #[test]
    fn what_was_under_way_of_a_scope_that_is_forgotten_says_nothing() {
        let mut holder = Holder::new();
        assert_eq!(holder.take(1, true, "x = 1", None), 0);
        holder.advertise("all", false);
        let Config { narrowing, scope_pause, .. } = holder.broker.config;
        for span in [narrowing, narrowing + scope_pause] {
            holder.broker.handle(Input::Timer, Time(0) + span, &mut holder.out);
        }
        holder.advertise("all", true);
        assert_eq!((holder.broker.scope.version(), holder.broker.remote.count(holder.other)), (3, 0));
        for filter in ["x = 2", "x = 3", "x = 4", "x = 5"] {
            assert_eq!(holder.take(1, false, filter, Some(Digest(7))), 0);
            assert_eq!(holder.take(1, true, filter, None), 0);
        }
        assert_eq!(holder.broker.remote.count(holder.other), 0);
        assert_eq!(holder.take(3, true, "x = 2", None), 0);
        assert!(holder.broker.remote.answered(holder.other, 3) && !holder.gives_notice());
    }

    #[test]
    fn both_rest_after_two_wholes_that_do_not_come_out_right_whatever_changes_are_under_way() {
        let wrong = Some(Digest(7));
        let mut holder = Holder::new();
        assert_eq!(holder.take(1, true, "x = 1", None), 0);
        assert_eq!(holder.take(1, false, "x = 2", wrong), 1);
        for filter in ["x = 3", "x = 4", "x = 5"] {
            assert_eq!(holder.take(1, false, filter, wrong), 0);
        }
        assert!(!holder.gives_notice());
        assert_eq!(holder.take(1, true, "x = 1", wrong), 1);
        assert_eq!(holder.take(1, false, "x = 2", wrong), 0);
        assert!(!holder.gives_notice());
        assert_eq!(holder.take(1, true, "x = 1", wrong), 0);
        assert!(holder.gives_notice());
        // What is taken for everything meanwhile is an answer.
        assert!(holder.broker.remote.answered(holder.other, 1));
    }
}
