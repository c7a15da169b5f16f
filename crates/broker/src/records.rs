//! The link states that are held, and the links that they make.

use crate::numbers::Numbers;
use crate::paths::Distance;
use crate::{BrokerId, LinkEnd, LinkState};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Link states by the numbers of their origins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    pub(crate) numbers: Numbers,
    held: Vec<Option<Arc<Node>>>,
    count: usize,
    /// What one broker lists and no link is, since the other end does not list it, or speaks of other lives: the other end,
    /// and who lists it.
    half: BTreeSet<(BrokerId, BrokerId)>,
}

/// A broker as the link states make it. Immutable, so that copies of all records share it.
#[derive(Debug)]
struct Node {
    record: Arc<LinkState>,
    /// Its links, each with the number of the neighbour, in order of the neighbours' ids.
    links: Box<[(u32, Distance)]>,
}

impl Records {
    pub(crate) fn get(&self, origin: BrokerId) -> Option<&Arc<LinkState>> {
        self.at(self.numbers.get(origin)?)
    }

    /// The link state of the broker with a number.
    pub(crate) fn at(&self, number: u32) -> Option<&Arc<LinkState>> {
        self.node(number).map(|node| &node.record)
    }

    fn node(&self, number: u32) -> Option<&Node> {
        self.held.get(number as usize)?.as_deref()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All of them with the numbers of their origins, in order of the ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<LinkState>)> {
        self.numbers.iter().filter_map(|(_, number)| Some((number, self.at(number)?)))
    }

    /// Puts a link state in the place of an earlier one, and gives the number of its origin and the earlier one.
    pub(crate) fn insert(&mut self, record: Arc<LinkState>) -> (u32, Option<Arc<LinkState>>) {
        let origin = record.origin;
        let number = self.numbers.take(origin);
        let place = number as usize;
        if self.held.len() <= place {
            self.held.resize(place + 1, None);
        }
        let old = self.held[place].take();
        // Its links are what they were, until they are judged.
        let (old, links) = match &old {
            Some(node) => (Some(node.record.clone()), node.links.clone()),
            None => (None, Box::default()),
        };
        self.held[place] = Some(Arc::new(Node { record: record.clone(), links }));
        self.count += usize::from(old.is_none());
        self.judge_links(old.as_deref(), Some(&record));
        self.judge_links(Some(&record), old.as_deref());
        (number, old)
    }

    /// Forgets the link state of a broker.
    pub(crate) fn remove(&mut self, origin: BrokerId) {
        let place = self.numbers.get(origin).and_then(|number| self.held.get_mut(number as usize));
        if let Some(old) = place.and_then(Option::take) {
            self.count -= 1;
            self.judge_links(Some(&old.record), None);
        }
    }

    /// Judges anew those links of a listing that another listing of the same broker has not, or not so: which are links, how long
    /// they are, and which are halves.
    fn judge_links(&mut self, listing: Option<&LinkState>, other: Option<&LinkState>) {
        let Some(listing) = listing else { return };
        let mut judged = false;
        for link in listing.links.iter().filter(|link| other.and_then(|it| it.link_to(link.neighbour)) != Some(link)) {
            judged = true;
            self.judge_link(link.neighbour, listing.origin);
            for (from, to) in [(listing.origin, link.neighbour), (link.neighbour, listing.origin)] {
                let lists = self.get(from).is_some_and(|record| record.link_to(to).is_some());
                if lists && self.link(from, to).is_none() {
                    self.half.insert((to, from));
                } else {
                    self.half.remove(&(to, from));
                }
            }
        }
        if judged {
            self.find_links(listing.origin);
        }
    }

    /// Judges anew what a broker has for a link to one other. Its other links are left as they are: a hub has very many, and
    /// each of its neighbours comes to this.
    fn judge_link(&mut self, broker: BrokerId, neighbour: BrokerId) {
        let numbers = &self.numbers;
        let (Some(number), Some(neighbours_number)) = (numbers.get(broker), numbers.get(neighbour)) else { return };
        let Some(node) = self.node(number) else { return };
        let place = node.links.binary_search_by_key(&Some(neighbour), |&(it, _)| numbers.id(it));
        let mut links = node.links.to_vec();
        match (place, self.link(broker, neighbour)) {
            (Ok(place), Some(length)) => links[place].1 = length,
            (Ok(place), None) => drop(links.remove(place)),
            (Err(place), Some(length)) => links.insert(place, (neighbours_number, length)),
            (Err(_), None) => return,
        }
        self.held[number as usize] = Some(Arc::new(Node { record: node.record.clone(), links: links.into() }));
    }

    /// Finds the links of a broker anew.
    fn find_links(&mut self, broker: BrokerId) {
        let Some(number) = self.numbers.get(broker) else { return };
        let Some(record) = self.at(number).cloned() else { return };
        let link = |end: &LinkEnd| {
            let neighbour = self.numbers.get(end.neighbour)?;
            Some((neighbour, length(&record, self.at(neighbour)?)?))
        };
        let links = record.links.iter().filter_map(link).collect();
        self.held[number as usize] = Some(Arc::new(Node { record, links }));
    }

    /// The ends of half links, each with the broker that lists it.
    pub(crate) fn half_links(&self) -> impl Iterator<Item = (BrokerId, BrokerId)> {
        self.half.iter().copied()
    }

    /// The length of the link between two brokers, if both list it and speak of the same lives of the two.
    pub(crate) fn link(&self, a: BrokerId, b: BrokerId) -> Option<Distance> {
        length(self.get(a)?, self.get(b)?)
    }

    /// The links of the broker with a number, each with the number of the neighbour.
    pub(crate) fn links_of(&self, number: u32) -> &[(u32, Distance)] {
        self.node(number).map_or(&[], |node| &node.links)
    }
}

/// The length of the link between two brokers, as their link states have it.
pub(crate) fn length(a: &LinkState, b: &LinkState) -> Option<Distance> {
    let (there, back) = (a.link_to(b.origin)?, b.link_to(a.origin)?);
    let cost = there.cost.max(back.cost).max(1);
    (there.nonce == back.nonce).then(|| Distance::of_link(cost, a.origin, b.origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random listings that come, change and go: the links and half links kept up to date are those
    /// found by looking through all.
    #[test]
    fn links_and_half_links_are_those_that_a_search_finds() {
        let mut random = 1_u64;
        let mut below = move |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let (mut records, mut found, mut lengths) = (Records::default(), 0, 0);
        for _ in 0..3_000 {
            let origin = BrokerId(below(6));
            if below(5) == 0 {
                records.remove(origin);
                records.numbers.give_up(origin);
            } else {
                let neighbours = (0..6).map(BrokerId).filter(|&it| it != origin && below(2) == 0).collect::<Vec<_>>();
                let end = |neighbour| LinkEnd { neighbour, cost: 1, nonce: below(2) };
                let record = LinkState::listing(origin, neighbours.into_iter().map(end).collect());
                records.insert(Arc::new(record));
            }
            let all =
                records.iter().flat_map(|(_, record)| record.links.iter().map(|link| (link.neighbour, record.origin)));
            let halves: BTreeSet<_> = all.filter(|&(to, from)| records.link(from, to).is_none()).collect();
            found += halves.len();
            assert_eq!(records.half_links().collect::<BTreeSet<_>>(), halves);
            assert_eq!(records.len(), records.iter().count());
            for (number, record) in records.iter() {
                let link = |end: &LinkEnd| {
                    Some((records.numbers.get(end.neighbour)?, records.link(record.origin, end.neighbour)?))
                };
                let links: Vec<_> = record.links.iter().filter_map(link).collect();
                lengths += links.len();
                assert_eq!(records.links_of(number), links);
            }
        }
        assert!(found > 3_000 && lengths > 3_000, "there are to be some: {found}, {lengths}");
    }
}
