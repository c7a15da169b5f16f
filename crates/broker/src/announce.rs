//! Interest, outgoing: what this broker tells each publishing broker that its clients want.
//!
//! The interest is the set of the roots of the covering forest over all local subscriptions, or what merging makes of them. Of
//! it, a publishing broker is told what overlaps its scope: the whole for each version of its scope, afterwards the changes ([`Told`]).

use crate::broker::Broker;
use crate::told::Told;
use crate::topology::ScopeView;
use crate::{AnnouncedFilter, BrokerId, Interest, InterestPart, Output, Payload};
use enroute_covering::RootChange;
use enroute_filter::Conjunction;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The own interest and what others have been told of it.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    /// Counts the changes of the interest.
    pub(crate) version: u64,
    /// The interest.
    filters: BTreeMap<AnnouncedFilter, Arc<Conjunction>>,
    told: BTreeMap<BrokerId, Told>,
    /// The step that was last told, while it is held for somebody.
    last: Vec<Weak<InterestPart>>,
}

impl Announcements {
    /// How many filters a broker has been told.
    pub(crate) fn told(&self, broker: BrokerId) -> u64 {
        self.told.get(&broker).map_or(0, Told::filters)
    }

    /// How many filters all brokers have been told.
    pub(crate) fn total_told(&self) -> u64 {
        self.told.values().map(Told::filters).sum()
    }

    /// Whether a broker holds the interest as it was at `version`, and as much of it as its present scope wants.
    pub(crate) fn holds(&self, broker: BrokerId, version: u64, scope_version: u64) -> bool {
        self.told.get(&broker).is_some_and(|told| told.scope_version == scope_version && told.holds(version))
    }

    /// How many filters the interest is.
    pub(crate) fn count(&self) -> usize {
        self.filters.len()
    }

    /// The whole interest.
    pub(crate) fn whole(&self) -> Vec<AnnouncedFilter> {
        self.filters.keys().cloned().collect()
    }

    /// The parts of a step, those that were last told to somebody if they are the same.
    fn share(&mut self, parts: Vec<InterestPart>) -> Vec<Arc<InterestPart>> {
        let last: Vec<_> = self.last.iter().filter_map(Weak::upgrade).collect();
        if last.iter().map(|part| &**part).eq(&parts) {
            return last;
        }
        let parts: Vec<_> = parts.into_iter().map(Arc::new).collect();
        self.last = parts.iter().map(Arc::downgrade).collect();
        parts
    }

    pub(crate) fn forget(&mut self, broker: BrokerId) {
        self.told.remove(&broker);
    }
}

impl Broker {
    /// Takes in a change of the interest, under the present version, and tells it to all whose scope it overlaps, and to the uplink.
    pub(crate) fn announce_change(&mut self, change: &RootChange, out: &mut Vec<Output>) {
        if change.is_empty() {
            return;
        }
        let version = self.announcements.version;
        let encode = |conjunctions: &[Arc<Conjunction>]| -> Vec<(AnnouncedFilter, Arc<Conjunction>)> {
            conjunctions.iter().map(|conjunction| (AnnouncedFilter::of(conjunction), conjunction.clone())).collect()
        };
        let (added, removed) = (encode(&change.added), encode(&change.removed));
        for (filter, conjunction) in &added {
            self.announcements.filters.insert(filter.clone(), conjunction.clone());
        }
        for (filter, _) in &removed {
            self.announcements.filters.remove(filter);
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
        if let Some(uplink) = &mut self.uplink {
            added.iter().for_each(|(filter, _)| uplink.told.gather(filter, true, version));
            removed.iter().for_each(|(filter, _)| uplink.told.gather(filter, false, version));
        }
        let brokers: Vec<BrokerId> = self.announcements.told.keys().copied().collect();
        for broker in brokers {
            self.announce_next(broker, out);
        }
        self.announce_up(out);
    }

    /// Tells a broker all that its scope wants, from nothing, if it publishes and not too much is under way.
    pub(crate) fn announce_whole(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        if matches!(self.topology.scope(to), ScopeView::Nobody) {
            return self.withdraw_announcement(to);
        }
        let scope_version = self.topology.scope_version(to).sequence;
        self.announcements.told.entry(to).or_default().tell_whole(scope_version);
        self.announce_next(to, out);
    }

    /// Sends a broker the next step, if there is one and not too much is under way.
    fn announce_next(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        let Announcements { version, filters, told, last: _ } = &mut self.announcements;
        let Some(told) = told.get_mut(&to) else { return };
        let scope = self.topology.scope(to);
        let whole = || {
            let wanted = filters.iter().filter(|(_, conjunction)| scope.overlaps(conjunction));
            wanted.map(|(filter, _)| filter.clone()).collect()
        };
        let Some(step) = told.next_step(*version, false, whole) else { return };
        let scope_version = told.scope_version;
        let mut last_sequence = 0;
        for part in self.announcements.share(step.parts) {
            last_sequence = self.tell(to, Payload::Interest(Interest { scope_version, part }), out);
        }
        if let Some(told) = self.announcements.told.get_mut(&to) {
            told.sent(last_sequence, step.since);
        }
    }

    /// A broker does not publish any more: what is still under way to it is void.
    fn withdraw_announcement(&mut self, to: BrokerId) {
        if self.announcements.told.remove(&to).is_some_and(|told| told.under_way() > 0) {
            self.restart_channel(to);
        }
    }

    /// A broker has acknowledged something: perhaps whole steps, so that gathered changes can go and waits can end.
    pub(crate) fn on_acknowledged(&mut self, by: BrokerId, out: &mut Vec<Output>) {
        let Some(acknowledged) = self.channels.get(&by).map(|channel| channel.acknowledged()) else { return };
        let Some(told) = self.announcements.told.get_mut(&by) else { return };
        told.acknowledge(acknowledged);
        self.announce_next(by, out);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::STEPS;
    use crate::{
        ClientId, Command, Config, Identity, Input, Letters, Life, LinkId, LinkState, Message, Neighbour, RequestId,
    };
    use crate::{Role, Routed, RoutedBody, Scope, ScopeRecord, Time, Version};
    use enroute_filter::Filter;

    const LINK: LinkId = LinkId(1);

    /// Broker a with a link to b, of whose life it knows, but no path.
    fn beside_b() -> (Broker, BrokerId) {
        let b = BrokerId::of_peer("b");
        let (id, peer_id) = (BrokerId::of_peer("a"), "a".into());
        let identity = Identity { id, peer_id, incarnation: 1, start_nonce: 1, addresses: Vec::new() };
        let neighbour = Neighbour {
            broker: b,
            role: Role::Core,
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
        let life = |broker| Life { broker, incarnation: 1 };
        let letter = Routed { source: life(source), destination: life(destination), passed: 0, body };
        Input::Message { link: LINK, message: Message::Routed(Letters(vec![letter])) }
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
    fn an_answer_to_a_scope_that_was_given_up_is_not_kept() {
        let (mut broker, b) = beside_b();
        let a = broker.id();
        let conjunction = Filter::parse("x = 1").expect("a filter").conjunctions()[0].clone();
        let added = vec![AnnouncedFilter::of(&conjunction)];
        let digest = crate::Digest::default().with(&added[0]);
        let (version, scope_version) = (1, 1);
        let part = InterestPart { version, whole: true, added, removed: Vec::new(), last: true, digest };
        let payload = Payload::Interest(Interest::new(scope_version, part));
        take(&mut broker, routed(b, a, RoutedBody::Data { epoch: 1, sequence: 1, payload }));
        assert_eq!(broker.remote.count(b), 0);
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
        assert_eq!((told.under_way(), told.all_sent()), (STEPS, false));
        take(&mut broker, routed(b, a, RoutedBody::Ack { epoch: 1, received: STEPS as u64 }));
        let told = &broker.announcements.told[&b];
        assert_eq!((told.under_way(), told.all_sent()), (1, true));
        // Nor does a scope that comes and goes pile anything up.
        for sequence in 2..100 {
            let scope = if sequence % 2 == 0 { Scope::Nobody } else { Scope::Anything };
            let record = ScopeRecord { origin: b, version: Version { incarnation: 1, sequence }, scope };
            take(&mut broker, Input::Message { link: LINK, message: Message::Scope(Arc::new(record)) });
            assert!(broker.channels[&b].unacknowledged() <= STEPS);
        }
    }
}
