//! Answers that wait: a subscription is answered when every publishing broker that it concerns holds it, an
//! advertisement when every reachable broker has said what it wants of it. Either is answered in bounded time.

use crate::broker::Broker;
use crate::timers::Timer;
use crate::topology::ScopeView;
use crate::{BrokerId, ClientId, LeafMessage, LinkId, Output, Reply, RequestId, Time};
use enroute_filter::Filter;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What an answer waits for.
#[derive(Debug)]
enum Until {
    /// Every broker whose scope overlaps the filter holds the interest of this version.
    Held { filter: Arc<Filter>, version: u64, missing: BTreeSet<BrokerId> },
    /// The view of what others want is complete for this version of the own scope.
    Complete { scope_version: u64 },
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A client, for the answer to its request.
    Client(ClientId, RequestId),
    /// A leaf broker, for the acknowledgement of a step of its interest.
    Leaf { link: LinkId, step: u64 },
}

#[derive(Debug)]
struct Wait {
    asker: Asker,
    deadline: Time,
    until: Until,
}

/// All answers that wait, in the order of their requests.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    waits: BTreeMap<u64, Wait>,
    /// Waits by a broker they miss: those for a lower version end first, and they are in the order of versions.
    by_missing: BTreeMap<BrokerId, BTreeSet<u64>>,
    /// How many acknowledgements each leaf waits for.
    by_leaf: BTreeMap<LinkId, usize>,
    deadlines: BTreeSet<(Time, u64)>,
    last: u64,
}

impl Waits {
    /// How many acknowledgements a leaf waits for.
    pub(crate) fn asked_by_leaf(&self, link: LinkId) -> usize {
        self.by_leaf.get(&link).copied().unwrap_or(0)
    }

    fn insert(&mut self, wait: Wait) -> u64 {
        self.last += 1;
        if let Asker::Leaf { link, .. } = wait.asker {
            *self.by_leaf.entry(link).or_default() += 1;
        }
        self.deadlines.insert((wait.deadline, self.last));
        self.waits.insert(self.last, wait);
        self.last
    }

    fn remove(&mut self, number: u64) -> Option<Wait> {
        let wait = self.waits.remove(&number)?;
        self.deadlines.remove(&(wait.deadline, number));
        if let Asker::Leaf { link, .. } = wait.asker
            && let Entry::Occupied(mut asked) = self.by_leaf.entry(link)
        {
            *asked.get_mut() -= 1;
            if *asked.get() == 0 {
                asked.remove();
            }
        }
        if let Until::Held { missing, .. } = &wait.until {
            for &broker in missing {
                self.found(broker, number);
            }
        }
        Some(wait)
    }

    /// A wait does not miss a broker any more.
    fn found(&mut self, broker: BrokerId, number: u64) {
        if let Some(numbers) = self.by_missing.get_mut(&broker) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_missing.remove(&broker);
            }
        }
    }

    /// Replaces the set of brokers that a wait misses.
    fn set_missing(&mut self, number: u64, now_missing: BTreeSet<BrokerId>) {
        let Some(Wait { until: Until::Held { missing, .. }, .. }) = self.waits.get_mut(&number) else { return };
        let before = std::mem::replace(missing, now_missing.clone());
        for &broker in before.difference(&now_missing) {
            self.found(broker, number);
        }
        for &broker in now_missing.difference(&before) {
            self.by_missing.entry(broker).or_default().insert(number);
        }
    }
}

impl Broker {
    /// Answers a subscription when it is in force.
    pub(crate) fn await_force(&mut self, asker: Asker, filter: Arc<Filter>, out: &mut Vec<Output>) {
        let wait = match asker {
            Asker::Client(..) => self.config.subscribe_wait,
            // So that a leaf hears who is missing before its own wait runs out.
            Asker::Leaf { .. } => self.config.subscribe_wait * 3 / 4,
        };
        let deadline = self.now + wait;
        let until = Until::Held { filter, version: self.announcements.version, missing: BTreeSet::new() };
        let number = self.waits.insert(Wait { asker, deadline, until });
        self.check_wait(number, out);
        self.time_answers();
    }

    /// Answers an advertisement when others have said what they want of it.
    pub(crate) fn await_view(&mut self, asker: Asker, out: &mut Vec<Output>) {
        let deadline = self.now + self.config.publish_wait;
        let until = Until::Complete { scope_version: self.scope.version() };
        let number = self.waits.insert(Wait { asker, deadline, until });
        self.check_wait(number, out);
        self.time_answers();
    }

    fn time_answers(&mut self) {
        self.timers.set(Timer::Answer, self.waits.deadlines.first().map(|&(at, _)| at));
    }

    /// A client is gone: nobody waits for its answers.
    pub(crate) fn drop_waits_of_client(&mut self, client: ClientId) {
        self.drop_waits(|asker| matches!(asker, Asker::Client(asks, _) if asks == client));
    }

    /// A leaf is gone: nobody waits for its acknowledgements.
    pub(crate) fn drop_waits_of_leaf(&mut self, link: LinkId) {
        self.drop_waits(|asker| matches!(asker, Asker::Leaf { link: asks, .. } if asks == link));
    }

    fn drop_waits(&mut self, which: impl Fn(Asker) -> bool) {
        let numbers: Vec<u64> =
            self.waits.waits.iter().filter(|(_, wait)| which(wait.asker)).map(|(&number, _)| number).collect();
        for number in numbers {
            self.waits.remove(number);
        }
        self.time_answers();
    }

    /// Topology, scopes or the view have changed: every wait is judged anew.
    pub(crate) fn check_waits(&mut self, out: &mut Vec<Output>) {
        let numbers: Vec<u64> = self.waits.waits.keys().copied().collect();
        for number in numbers {
            self.check_wait(number, out);
        }
        self.time_answers();
    }

    fn check_wait(&mut self, number: u64, out: &mut Vec<Output>) {
        let Some(wait) = self.waits.waits.get(&number) else { return };
        let over = match &wait.until {
            Until::Held { filter, version, .. } => {
                let missing = self.missing(filter, *version);
                let over = self.ends_with(&missing);
                self.waits.set_missing(number, missing);
                over
            }
            Until::Complete { scope_version } => self.scope.version() >= *scope_version && self.view_is_complete(),
        };
        if over {
            self.answer(number, out);
        }
    }

    /// The brokers that might publish what the filter matches and do not hold the interest of this version yet: core brokers,
    /// leaves that rely on what they hold, and for a leaf broker the uplink, which speaks for all beyond. A leaf broker
    /// without an uplink is missing itself.
    fn missing(&self, filter: &Filter, version: u64) -> BTreeSet<BrokerId> {
        let leaves = self.leaves.iter().filter(|(_, leaf)| leaf.quenched.is_some() && leaf.scope.overlaps_any(filter));
        let above = self.uplink.as_ref().map(|uplink| uplink.attached().map_or(self.identity.id, |parent| parent.id));
        let all = self.concerned(filter).chain(leaves.map(|(_, leaf)| leaf.id)).chain(above);
        all.filter(|&broker| !self.holds(broker, version)).collect()
    }

    /// Whether a wait is over that misses these. One that misses only an uplink is over when there has been none for a while.
    fn ends_with(&self, missing: &BTreeSet<BrokerId>) -> bool {
        let cut_off = self.uplink.as_ref().is_some_and(|uplink| uplink.cut_off);
        !self.starting && missing.iter().all(|&broker| cut_off && broker == self.identity.id)
    }

    /// Whether another broker holds the interest of this version, or does not rely on what it holds.
    fn holds(&self, broker: BrokerId, version: u64) -> bool {
        if let Some(leaf) = self.leaves.to(broker).and_then(|link| self.leaves.get(link)) {
            return leaf.quenched.as_ref().is_none_or(|quenched| quenched.holds(version, self.now));
        }
        match &self.uplink {
            Some(uplink) => uplink.attached().is_some_and(|it| it.id == broker) && uplink.told.holds(version),
            None => self.announcements.holds(broker, version, self.topology.scope_version(broker).sequence),
        }
    }

    /// The brokers whose scope overlaps the filter, but for those long out of reach.
    fn concerned(&self, filter: &Filter) -> impl Iterator<Item = BrokerId> {
        let in_reach = |broker: BrokerId| match self.topology.unreachable_since(broker) {
            None => true,
            Some(since) => self.now < since + self.config.unreachable,
        };
        let concerned = move |&(broker, scope): &(BrokerId, &ScopeView)| {
            broker != self.identity.id && in_reach(broker) && scope.overlaps_any(filter)
        };
        self.topology.publishers().filter(concerned).map(|(broker, _)| broker)
    }

    /// A broker holds more than before: ends the waits that missed only it.
    pub(crate) fn end_waits_for(&mut self, broker: BrokerId, out: &mut Vec<Output>) {
        let Some(numbers) = self.waits.by_missing.get(&broker) else { return };
        let numbers: Vec<u64> = numbers.iter().copied().collect();
        for number in numbers {
            let Some(Wait { until: Until::Held { version, .. }, .. }) = self.waits.waits.get(&number) else { continue };
            if !self.holds(broker, *version) {
                break;
            }
            let Some(Wait { until: Until::Held { missing, .. }, .. }) = self.waits.waits.get_mut(&number) else {
                continue;
            };
            missing.remove(&broker);
            let missing = missing.clone();
            self.waits.found(broker, number);
            if self.ends_with(&missing) {
                self.answer(number, out);
            }
        }
        self.time_answers();
    }

    /// Ends a wait with the answer that is true now.
    fn answer(&mut self, number: u64, out: &mut Vec<Output>) {
        let Some(wait) = self.waits.remove(number) else { return };
        let here = match &wait.until {
            Until::Held { filter, .. } => self.concerned(filter).count(),
            Until::Complete { .. } => self.topology.reachable().count(),
        };
        let mut missing: Vec<BrokerId> = match wait.until {
            Until::Held { missing, .. } => missing.into_iter().collect(),
            Until::Complete { .. } => self.unanswered().into_iter().collect(),
        };
        let mut brokers = here as u32;
        if let Some(uplink) = &self.uplink {
            brokers = uplink.brokers;
            missing.extend(&uplink.missing);
        }
        match wait.asker {
            Asker::Client(client, request) => {
                let reply = if missing.is_empty() { Reply::InForce { brokers } } else { Reply::Partial { missing } };
                out.push(Output::Reply { client, request, reply });
            }
            Asker::Leaf { link, step } => self.send_to_leaf(link, LeafMessage::Held { step, brokers, missing }, out),
        }
    }

    /// Answers all whose time is up.
    pub(crate) fn on_answers_due(&mut self, out: &mut Vec<Output>) {
        while let Some(&(at, number)) = self.waits.deadlines.first()
            && at <= self.now
        {
            self.answer(number, out);
        }
        self.time_answers();
    }
}
