//! Interest, outgoing: what this broker tells each publishing broker that its clients want.
//!
//! The interest is the set of the roots of the covering forest over all local subscriptions. Of it, a publishing broker is
//! told what overlaps its scope. The first time, and for each new version of its scope, it is told the whole; afterwards
//! the changes. While [`STEPS`] steps are not acknowledged, changes gather and cancel out, and go as one step later.

use crate::broker::Broker;
use crate::topology::ScopeView;
use crate::{AnnouncedFilter, BrokerId, Digest, Interest, Output, Payload};
use enroute_covering::RootChange;
use enroute_filter::Conjunction;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Steps under way to one broker before further changes gather.
const STEPS: usize = 8;

/// Bytes of filters in one message; a larger step takes several.
const CHUNK: usize = 64 << 10;

/// What one publishing broker has been told.
#[derive(Debug, Default)]
struct Told {
    /// The sequence of its scope that was answered.
    scope_version: u64,
    digest: Digest,
    filters: u64,
    /// Changes not told yet (true: added), each a difference to what was told.
    gathered: BTreeMap<AnnouncedFilter, bool>,
    /// The interest version of the oldest gathered change.
    gathered_since: u64,
    /// Steps not acknowledged: the last sequence of each on the channel, and the version of the oldest change in it.
    under_way: VecDeque<(u64, u64)>,
    /// The whole is wanted, and waits because too much is under way.
    whole_due: bool,
}

/// The own interest and what others have been told of it.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    /// Counts the changes of the interest.
    pub(crate) version: u64,
    roots: BTreeMap<AnnouncedFilter, Arc<Conjunction>>,
    told: BTreeMap<BrokerId, Told>,
}

impl Announcements {
    /// How many filters a broker has been told.
    pub(crate) fn told(&self, broker: BrokerId) -> u64 {
        self.told.get(&broker).map_or(0, |told| told.filters)
    }

    /// Whether a broker holds the interest as it was at `version`, and as much of it as its present scope wants.
    pub(crate) fn holds(&self, broker: BrokerId, version: u64, scope_version: u64) -> bool {
        let Some(told) = self.told.get(&broker) else { return false };
        told.scope_version == scope_version
            && !told.whole_due
            && told.under_way.front().is_none_or(|&(_, since)| since > version)
            && (told.gathered.is_empty() || told.gathered_since > version)
    }

    pub(crate) fn forget(&mut self, broker: BrokerId) {
        self.told.remove(&broker);
    }
}

/// One step, before it is cut into messages.
struct Step {
    /// The version of the oldest change in it; 0 for a whole, which has them all.
    since: u64,
    whole: bool,
    added: Vec<AnnouncedFilter>,
    removed: Vec<AnnouncedFilter>,
}

impl Broker {
    /// Takes in a change of the roots and tells it to all whose scope it overlaps.
    pub(crate) fn announce_change(&mut self, change: &RootChange, out: &mut Vec<Output>) {
        if change.is_empty() {
            return;
        }
        self.announcements.version += 1;
        let version = self.announcements.version;
        let encode = |conjunctions: &[Arc<Conjunction>]| -> Vec<(AnnouncedFilter, Arc<Conjunction>)> {
            conjunctions.iter().map(|conjunction| (AnnouncedFilter::of(conjunction), conjunction.clone())).collect()
        };
        let (added, removed) = (encode(&change.added), encode(&change.removed));
        for (filter, conjunction) in &added {
            self.announcements.roots.insert(filter.clone(), conjunction.clone());
        }
        for (filter, _) in &removed {
            self.announcements.roots.remove(filter);
        }
        for (&broker, told) in &mut self.announcements.told {
            let scope = self.topology.scope(broker);
            for (changes, is_added) in [(&added, true), (&removed, false)] {
                for (filter, conjunction) in changes {
                    if scope.overlaps(conjunction) {
                        told.gather(filter, is_added, version);
                    }
                }
            }
        }
        let brokers: Vec<BrokerId> = self.announcements.told.keys().copied().collect();
        for broker in brokers {
            self.announce_gathered(broker, out);
        }
    }

    /// Tells a broker the changes that have gathered, if not too much is under way.
    fn announce_gathered(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        let Some(told) = self.announcements.told.get_mut(&to) else { return };
        if told.whole_due || told.gathered.is_empty() || told.under_way.len() >= STEPS {
            return;
        }
        let since = told.gathered_since;
        let (added, removed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut told.gathered).into_iter().partition(|&(_, is_added)| is_added);
        let filters = |changes: Vec<(AnnouncedFilter, bool)>| changes.into_iter().map(|(filter, _)| filter).collect();
        self.announce_step(to, Step { since, whole: false, added: filters(added), removed: filters(removed) }, out);
    }

    /// Tells a broker all that its scope wants, from nothing, if it publishes and not too much is under way.
    pub(crate) fn announce_whole(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        if matches!(self.topology.scope(to), ScopeView::Nobody) {
            return self.withdraw_announcement(to);
        }
        let told = self.announcements.told.entry(to).or_default();
        if told.under_way.len() >= STEPS {
            told.whole_due = true;
            told.gathered.clear();
            return;
        }
        let scope_version = self.topology.scope_version(to).sequence;
        *told = Told { scope_version, under_way: std::mem::take(&mut told.under_way), ..Told::default() };
        let scope = self.topology.scope(to);
        let wanted = self.announcements.roots.iter().filter(|(_, conjunction)| scope.overlaps(conjunction));
        let added = wanted.map(|(filter, _)| filter.clone()).collect();
        self.announce_step(to, Step { since: 0, whole: true, added, removed: Vec::new() }, out);
    }

    /// A broker does not publish any more: what is still under way to it is void.
    fn withdraw_announcement(&mut self, to: BrokerId) {
        if self.announcements.told.remove(&to).is_some_and(|told| !told.under_way.is_empty()) {
            self.restart_channel(to);
        }
    }

    /// Cuts a step into messages and sends them.
    fn announce_step(&mut self, to: BrokerId, step: Step, out: &mut Vec<Output>) {
        let version = self.announcements.version;
        let Some(told) = self.announcements.told.get_mut(&to) else { return };
        for filter in &step.added {
            told.digest = told.digest.with(filter);
        }
        for filter in &step.removed {
            told.digest = told.digest.without(filter);
        }
        // The scope of a broker's new life may come before its link state; until then a change can take away what was never
        // told. The whole that follows puts it right.
        told.filters = (told.filters + step.added.len() as u64).saturating_sub(step.removed.len() as u64);
        let (digest, scope_version) = (told.digest, told.scope_version);
        let since = step.since;
        let mut last_sequence = 0;
        let chunks = chunks(step);
        let count = chunks.len();
        for (index, Step { since: _, whole, added, removed }) in chunks.into_iter().enumerate() {
            let last = index + 1 == count;
            let interest = Interest { version, scope_version, whole, added, removed, last, digest };
            last_sequence = self.tell(to, Payload::Interest(interest), out);
        }
        if let Some(told) = self.announcements.told.get_mut(&to) {
            told.under_way.push_back((last_sequence, since));
        }
    }

    /// A broker has acknowledged something: perhaps whole steps, so that gathered changes can go and waits can end.
    pub(crate) fn on_acknowledged(&mut self, by: BrokerId, out: &mut Vec<Output>) {
        let Some(acknowledged) = self.channels.get(&by).map(|channel| channel.acknowledged()) else { return };
        let Some(told) = self.announcements.told.get_mut(&by) else { return };
        while told.under_way.front().is_some_and(|&(sequence, _)| sequence <= acknowledged) {
            told.under_way.pop_front();
        }
        if told.whole_due {
            self.announce_whole(by, out);
        } else {
            self.announce_gathered(by, out);
        }
        self.end_waits_for(by, out);
    }

    /// Tells a broker the whole if its present scope has not been answered.
    pub(crate) fn answer_scope(&mut self, of: BrokerId, out: &mut Vec<Output>) {
        let version = self.topology.scope_version(of).sequence;
        let answered = self.announcements.told.get(&of).is_some_and(|told| told.scope_version == version);
        let known = self.topology.incarnation(of) == Some(self.topology.scope_version(of).incarnation);
        if !answered && known && of != self.identity.id {
            self.announce_whole(of, out);
        }
    }
}

impl Told {
    /// Adds a change to those not told yet; a change and its opposite cancel out.
    fn gather(&mut self, filter: &AnnouncedFilter, added: bool, version: u64) {
        if self.whole_due {
            return;
        }
        if self.gathered.is_empty() {
            self.gathered_since = version;
        }
        if self.gathered.insert(filter.clone(), added).is_some_and(|before| before != added) {
            self.gathered.remove(filter);
        }
    }
}

/// Cuts a step into parts of at most [`CHUNK`] bytes (or one filter), at least one part.
fn chunks(step: Step) -> Vec<Step> {
    let (since, whole) = (step.since, step.whole);
    let empty = || Step { since, whole, added: Vec::new(), removed: Vec::new() };
    let mut parts = vec![empty()];
    let mut bytes = 0;
    let changes = step.added.into_iter().map(|filter| (filter, true));
    for (filter, added) in changes.chain(step.removed.into_iter().map(|filter| (filter, false))) {
        if bytes > 0 && bytes + filter.0.len() > CHUNK {
            parts.push(empty());
            bytes = 0;
        }
        bytes += filter.0.len().max(1);
        let part = parts.last_mut().expect("there is always one part");
        if added { part.added.push(filter) } else { part.removed.push(filter) }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientId, Command, Config, Identity, Input, LinkId, LinkState, Message, Neighbour, RequestId};
    use crate::{Routed, RoutedBody, Scope, ScopeRecord, Time, Version};
    use enroute_filter::Filter;

    const LINK: LinkId = LinkId(1);

    /// Broker a with a link to b, of whose life it knows, but no path.
    fn beside_b() -> (Broker, BrokerId) {
        let b = BrokerId::of_peer("b");
        let (id, peer_id) = (BrokerId::of_peer("a"), "a".into());
        let identity = Identity { id, peer_id, incarnation: 1, start_nonce: 1, addresses: Vec::new() };
        let neighbour = Neighbour {
            broker: b,
            peer_id: "b".into(),
            incarnation: 1,
            start_nonce: 1,
            dialled_by: b,
            dial: 1,
            cost: 1,
            told_incarnation: 1,
        };
        let record = LinkState {
            origin: b,
            peer_id: "b".into(),
            start_nonce: 1,
            version: Version { incarnation: 1, sequence: 1 },
            starting: false,
            addresses: Vec::new(),
            links: Vec::new(),
        };
        let mut broker = Broker::new(identity, Config::default(), Time(0));
        take(&mut broker, Input::LinkUp { link: LINK, neighbour });
        take(&mut broker, Input::Message { link: LINK, message: Message::LinkState(Arc::new(record)) });
        (broker, b)
    }

    fn take(broker: &mut Broker, input: Input) {
        let mut out = Vec::new();
        broker.handle(input, Time(0), &mut out);
        assert!(!out.iter().any(|output| matches!(output, Output::CloseLink { .. })), "{out:?}");
    }

    fn scope(origin: BrokerId, incarnation: u64, scope: Scope) -> Input {
        let version = Version { incarnation, sequence: 1 };
        Input::Message { link: LINK, message: Message::Scope(Arc::new(ScopeRecord { origin, version, scope })) }
    }

    fn routed(source: BrokerId, destination: BrokerId, body: RoutedBody) -> Input {
        let (source_incarnation, destination_incarnation, hop_limit) = (1, 1, 1);
        let routed = Routed { source, source_incarnation, destination, destination_incarnation, hop_limit, body };
        Input::Message { link: LINK, message: Message::Routed(routed) }
    }

    #[test]
    fn the_scope_of_a_new_life_may_come_before_the_life() {
        let (mut broker, b) = beside_b();
        let filter = |text: &str| Filter::parse(text).expect("a filter");
        let narrow = Scope::Filters(vec![AnnouncedFilter::of(&filter("x = 1").conjunctions()[0])]);
        let command = |command| Input::Command { client: ClientId(1), request: RequestId(1), command };
        take(&mut broker, scope(b, 1, narrow));
        take(&mut broker, command(Command::Subscribe { name: "s".into(), filter: filter("x = 2") }));
        take(&mut broker, scope(b, 2, Scope::Anything));
        take(&mut broker, command(Command::Unsubscribe { name: "s".into() }));
        assert_eq!(broker.announcements.told(b), 0);
    }

    #[test]
    fn who_asks_for_the_whole_again_and_again_gets_it_when_it_acknowledges() {
        let (mut broker, b) = beside_b();
        let a = broker.id();
        take(&mut broker, scope(b, 1, Scope::Anything));
        for sequence in 1..=100 {
            let payload = Payload::Resync { version: 1 };
            take(&mut broker, routed(b, a, RoutedBody::Data { epoch: 1, sequence, payload }));
        }
        let told = &broker.announcements.told[&b];
        assert_eq!((told.under_way.len(), told.whole_due), (STEPS, true));
        take(&mut broker, routed(b, a, RoutedBody::Ack { epoch: 1, received: STEPS as u64 }));
        let told = &broker.announcements.told[&b];
        assert_eq!((told.under_way.len(), told.whole_due), (1, false));
        // Nor does a scope that comes and goes pile anything up.
        for sequence in 2..100 {
            let scope = if sequence % 2 == 0 { Scope::Nobody } else { Scope::Anything };
            let record = ScopeRecord { origin: b, version: Version { incarnation: 1, sequence }, scope };
            take(&mut broker, Input::Message { link: LINK, message: Message::Scope(Arc::new(record)) });
            assert!(broker.channels[&b].unacknowledged() <= STEPS);
        }
    }
}
