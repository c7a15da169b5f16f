//! Which links a core broker makes and which it gives up: a function of what it knows, and of chance.
//!
//! 1. With fewer links than the least, it dials members at random that have room. One of the links it has chosen is a far one:
//!    chosen by chance alone and left alone by rule 3, so that near brokers do not end as an island.
//! 2. A member that is known and out of reach is dialled: that heals partitions, and brings back who was away. Of a crowd of
//!    brokers about [`HEALERS`] do so at a time, so that whoever comes back is not run over.
//! 3. Now and then, with room for one more, the way to a member is measured. If it is nearer than the farthest of the links
//!    chosen before, a link to it takes that one's place.
//! 4. With more links than the most, the costliest goes that was not configured. Its other end must still be within reach
//!    without it, and keep its own least number of links or be able to find another one.

use enroute_broker::BrokerId;
use rand::seq::IteratorRandom;
use rand::{Rng, RngExt};
use std::collections::{BTreeMap, BTreeSet};

/// How many of the brokers that are out of reach of a member look for it at a time.
const HEALERS: f64 = 3.0;

/// How many links a broker wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// What is known of another broker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    /// Whether there is a path to it.
    pub(crate) reachable: bool,
    /// Whether it can be dialled now: its addresses are known, it may be a neighbour, and no try has just failed.
    pub(crate) dialable: bool,
    /// The neighbours that it lists.
    pub(crate) neighbours: BTreeSet<BrokerId>,
}

/// Why there is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Somebody has said so.
    Configured,
    /// This broker has chosen it.
    Chosen {
        /// By chance, and to be kept for that.
        far: bool,
    },
    /// The other end has dialled.
    Accepted,
}

/// A link of this broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnLink {
    /// None until it is in sync.
    pub(crate) cost: Option<u32>,
    pub(crate) reason: Reason,
}

/// What a dial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To have enough links.
    Grow {
        /// See [`Reason::Chosen`].
        far: bool,
    },
    /// To reach who is out of reach.
    Heal,
    /// To see how near it is.
    Measure,
}

/// All that a decision follows from.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) me: BrokerId,
    /// All that are known, this broker not among them.
    pub(crate) members: BTreeMap<BrokerId, Member>,
    pub(crate) links: BTreeMap<BrokerId, OwnLink>,
    /// Dials under way.
    pub(crate) dials: BTreeMap<BrokerId, Purpose>,
    /// A new neighbour, and the one whose place it takes.
    pub(crate) swap: Option<(BrokerId, BrokerId)>,
    /// Whether it is time to measure the way to somebody.
    pub(crate) measure: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Dial(BrokerId, Purpose),
    Drop(BrokerId),
}

/// What becomes of a member to which the way has been measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No link.
    Leave,
    /// A link, because there is none yet that was chosen by chance.
    KeepAsFar,
    /// A link in the place of another.
    Replace(BrokerId),
}

/// Applies the rules. O(members) and, where a link is to go, O(links of all members).
pub(crate) fn decide(bounds: Bounds, view: &View, random: &mut impl Rng) -> Vec<Action> {
    let mut actions = grow(bounds, view, random);
    actions.extend(heal(bounds, view, random));
    if view.measure && actions.is_empty() && view.links.len() < bounds.max {
        actions.extend(view.choices(bounds).choose(random).map(|to| Action::Dial(to, Purpose::Measure)));
    }
    actions.extend(give_up(bounds, view).map(Action::Drop));
    actions
}

/// Rule 1.
fn grow(bounds: Bounds, view: &View, random: &mut impl Rng) -> Vec<Action> {
    let growing = view.dials.values().filter(|purpose| matches!(purpose, Purpose::Grow { .. })).count();
    let wanted = bounds.min.saturating_sub(view.links.len() + growing);
    let mut far = !view.has_far();
    let chosen = view.choices(bounds).sample(random, wanted);
    chosen.into_iter().map(|to| Action::Dial(to, Purpose::Grow { far: std::mem::take(&mut far) })).collect()
}

/// Rule 2.
fn heal(bounds: Bounds, view: &View, random: &mut impl Rng) -> Vec<Action> {
    let healing = view.dials.values().filter(|purpose| **purpose == Purpose::Heal).count();
    // Whoever has no link at all depends on nobody else's finding it.
    let at_a_time = if view.links.is_empty() { bounds.min.max(1) } else { 1 };
    let together = view.members.values().filter(|member| member.reachable).count() + 1;
    if !random.random_bool((HEALERS / together as f64).min(1.0)) {
        return Vec::new();
    }
    let lost = view.candidates().filter(|(_, member)| !member.reachable).map(|(to, _)| to);
    let chosen = lost.sample(random, at_a_time.saturating_sub(healing));
    chosen.into_iter().map(|to| Action::Dial(to, Purpose::Heal)).collect()
}

/// Rule 4, and the end of rule 3.
fn give_up(bounds: Bounds, view: &View) -> Option<BrokerId> {
    if let Some((new, old)) = view.swap
        && view.links.get(&new).is_some_and(|link| link.cost.is_some())
        && view.can_spare(old, |member| member.neighbours.len() > bounds.min)
    {
        return Some(old);
    }
    if view.links.len() <= bounds.max {
        return None;
    }
    let mut costliest: Vec<BrokerId> = view.links.keys().copied().collect();
    costliest.sort_by_key(|neighbour| {
        let neighbours = view.members.get(neighbour).map_or(0, |member| member.neighbours.len());
        std::cmp::Reverse((view.links[neighbour].cost, neighbours, *neighbour))
    });
    let keeps_enough = |member: &Member| member.neighbours.len() > bounds.min;
    let first = costliest.iter().copied().find(|&neighbour| view.can_spare(neighbour, keeps_enough));
    first.or_else(|| {
        let finds_another = |(neighbour, member): (BrokerId, &Member)| {
            let has_room = |(other, there): (&BrokerId, &Member)| {
                *other != neighbour
                    && there.reachable
                    && there.neighbours.len() < bounds.max
                    && !member.neighbours.contains(other)
            };
            view.members.iter().any(has_room)
        };
        costliest.iter().copied().find(|&to| view.can_spare(to, |member| finds_another((to, member))))
    })
}

/// Rule 3: what becomes of a member that a link would cost so much to.
pub(crate) fn judge(bounds: Bounds, view: &View, candidate: BrokerId, cost: u32) -> Verdict {
    if view.links.contains_key(&candidate) || view.links.len() >= bounds.max {
        return Verdict::Leave;
    }
    if !view.has_far() {
        return Verdict::KeepAsFar;
    }
    let chosen = view.links.iter().filter(|(_, link)| link.reason == Reason::Chosen { far: false });
    let farthest = chosen.max_by_key(|(neighbour, link)| (link.cost, **neighbour));
    match farthest {
        Some((&old, link))
            if link.cost.is_some_and(|old| cost < old)
                && view.can_spare(old, |member| member.neighbours.len() > bounds.min) =>
        {
            Verdict::Replace(old)
        }
        Some(_) | None => Verdict::Leave,
    }
}

impl View {
    /// Members that can be dialled and are neither linked nor being dialled.
    fn candidates(&self) -> impl Iterator<Item = (BrokerId, &Member)> {
        let free = |to: &BrokerId| !self.links.contains_key(to) && !self.dials.contains_key(to);
        self.members.iter().map(|(&to, member)| (to, member)).filter(move |(to, member)| member.dialable && free(to))
    }

    /// Those of them that are within reach and have room for a link more, as far as is known.
    fn choices(&self, bounds: Bounds) -> impl Iterator<Item = BrokerId> {
        let has_room = move |member: &Member| member.reachable && member.neighbours.len() < bounds.max;
        self.candidates().filter(move |(_, member)| has_room(member)).map(|(to, _)| to)
    }

    /// Whether there is, or is going to be, a link that was chosen by chance.
    fn has_far(&self) -> bool {
        self.links.values().any(|link| link.reason == Reason::Chosen { far: true })
            || self.dials.values().any(|purpose| *purpose == Purpose::Grow { far: true })
    }

    /// Whether a link can go: nobody has configured it, what its other end keeps will do, and there is another path.
    fn can_spare(&self, neighbour: BrokerId, will_do: impl Fn(&Member) -> bool) -> bool {
        let Some(link) = self.links.get(&neighbour) else { return false };
        let Some(member) = self.members.get(&neighbour) else { return false };
        link.reason != Reason::Configured && link.cost.is_some() && will_do(member) && self.is_joined_without(neighbour)
    }

    /// Whether a neighbour can be reached without the link to it.
    fn is_joined_without(&self, neighbour: BrokerId) -> bool {
        let mine = self.links.iter().filter(|(other, link)| **other != neighbour && link.cost.is_some());
        let mut to_visit: Vec<BrokerId> = mine.map(|(&other, _)| other).collect();
        let mut seen = BTreeSet::from([self.me]);
        while let Some(broker) = to_visit.pop() {
            if broker == neighbour {
                return true;
            }
            let Some(member) = self.members.get(&broker).filter(|_| seen.insert(broker)) else { continue };
            let both_list =
                |other: &&BrokerId| self.members.get(*other).is_some_and(|member| member.neighbours.contains(&broker));
            to_visit.extend(member.neighbours.iter().filter(both_list));
        }
        false
    }
}

#[cfg(test)]
mod tests;
