//! The subscription lists L(a), and what keeps their number and their lengths in balance (section 4.1 of the paper).

use super::entry::{Entry, Keys, Posting};
use super::predicates::PredicateLists;
use super::slab::Slab;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

/// How many entries one update tries to move out of a list that is to be dissolved, and out of those that are too long.
const MOVES: usize = 4;

/// Entries under their key attributes. An attribute is a key exactly while its list holds entries.
///
/// An event costs about |A| + |L|, key attributes and mean length, which is least where both are near the root of the
/// number of entries. So an update opens a list while |A|² < |S|; empties the shortest, a few entries at a time, while
/// |A|² > 4 |S|; and moves a few entries out of lists with |L|² > 4 |S|.
#[derive(Clone, Debug, Default)]
pub(super) struct SubscriptionLists {
    /// L(a) by attribute.
    lists: Vec<Vec<u32>>,
    /// By attribute: the entries that may be listed under it.
    users: Vec<u32>,
    /// The lists that are not empty, as (length, attribute).
    by_length: BTreeSet<(usize, u32)>,
    /// Entries that no attribute can be the key of.
    unkeyed: Vec<u32>,
    /// Up to here, in the order of `by_length`, no list could be dissolved.
    stuck: Option<(usize, u32)>,
    /// The attribute of a list that was found too long, and the place in it to go on from.
    relieving: (u32, usize),
}

impl SubscriptionLists {
    /// L(a): empty if the attribute is no key.
    pub(super) fn list(&self, attribute: u32) -> &[u32] {
        self.lists.get(attribute as usize).map_or(&[], Vec::as_slice)
    }

    /// The entries to test against every event.
    pub(super) fn unkeyed(&self) -> &[u32] {
        &self.unkeyed
    }

    /// Lists a new, counted entry where the rules want it, then restores the balance a little.
    pub(super) fn add(&mut self, number: u32, entries: &mut Slab<Entry>, predicates: &PredicateLists) {
        match entries[number].keys.clone() {
            Keys::Any(candidates) => {
                let key = self.choose(&candidates, entries.len(), predicates);
                self.post(number, Some(key), entries);
            }
            Keys::All(attributes) => attributes.iter().for_each(|&key| self.post(number, Some(key), entries)),
            Keys::None => self.post(number, None, entries),
        }
        self.dissolve(entries, predicates);
        self.relieve(entries, predicates);
    }

    /// Takes an entry, no longer among the others, off its lists, then restores the balance a little.
    pub(super) fn remove(&mut self, entry: &Entry, entries: &mut Slab<Entry>, predicates: &PredicateLists) {
        if let Keys::Any(candidates) = &entry.keys {
            candidates.iter().for_each(|&attribute| self.users[attribute as usize] -= 1);
        }
        entry.postings.iter().for_each(|&posting| self.unpost(posting, entries));
        self.dissolve(entries, predicates);
        self.relieve(entries, predicates);
    }

    /// Counts an entry as a user of each attribute that it may be listed under.
    pub(super) fn count_users(&mut self, keys: &Keys) {
        let (Keys::Any(attributes) | Keys::All(attributes)) = keys else { return };
        for &attribute in attributes {
            let bound = attribute as usize + 1;
            if self.lists.len() < bound {
                self.lists.resize_with(bound, Vec::new);
                self.users.resize(bound, 0);
            }
            self.users[attribute as usize] += u32::from(matches!(keys, Keys::Any(_)));
        }
    }

    /// The list for an entry: a new one, under the attribute most entries use, while there are too few or if none of its
    /// own is open; else the shortest of those that are open. Ties go to the smaller name.
    fn choose(&self, candidates: &[u32], entries: usize, predicates: &PredicateLists) -> u32 {
        let length = |attribute: u32| self.list(attribute).len();
        let closed = candidates.iter().copied().filter(|&attribute| length(attribute) == 0);
        let open = candidates.iter().copied().filter(|&attribute| length(attribute) > 0);
        let commonest = closed
            .min_by_key(|&attribute| (Reverse(self.users[attribute as usize]), predicates.attribute_name(attribute)));
        let shortest = open.min_by_key(|&attribute| (length(attribute), predicates.attribute_name(attribute)));
        let too_few = self.by_length.len().pow(2) < entries;
        let (first, second) = if too_few { (commonest, shortest) } else { (shortest, commonest) };
        first.or(second).expect("an entry with keys has at least one")
    }

    /// Appends the entry to the list of an attribute, or to that of the entries without a key.
    pub(super) fn post(&mut self, number: u32, key: Option<u32>, entries: &mut Slab<Entry>) {
        let list = match key {
            Some(attribute) => &mut self.lists[attribute as usize],
            None => &mut self.unkeyed,
        };
        let position = u32::try_from(list.len()).expect("no list is longer than there are entries");
        list.push(number);
        let length = list.len();
        entries[number].postings.push(Posting { key, position });
        if let Some(attribute) = key {
            self.by_length.remove(&(length - 1, attribute));
            self.by_length.insert((length, attribute));
        }
    }

    /// Takes away one place in a list; the list's last entry moves into it.
    fn unpost(&mut self, posting: Posting, entries: &mut Slab<Entry>) {
        let list = match posting.key {
            Some(attribute) => &mut self.lists[attribute as usize],
            None => &mut self.unkeyed,
        };
        list.swap_remove(posting.position as usize);
        let length = list.len();
        if let Some(&moved) = list.get(posting.position as usize) {
            let from = Posting { key: posting.key, position: length as u32 };
            let place = entries[moved].postings.iter_mut().find(|place| **place == from);
            *place.expect("a listed entry knows its place") = posting;
        }
        if list.capacity() > 4 * length {
            list.shrink_to(2 * length);
        }
        if let Some(attribute) = posting.key {
            self.by_length.remove(&(length + 1, attribute));
            if length > 0 {
                self.by_length.insert((length, attribute));
            }
        }
    }

    /// If there are too many lists, moves a few entries of the smallest into other lists that are open.
    ///
    /// A list whose entries have nowhere else to go is passed over in favour of the next smallest, and looked at again
    /// after all the others: so an update's work stays bounded and no list blocks the rest for ever.
    fn dissolve(&mut self, entries: &mut Slab<Entry>, predicates: &PredicateLists) {
        if self.by_length.len().pow(2) <= 4 * entries.len() {
            return;
        }
        let from = self.stuck.map_or(Bound::Unbounded, Bound::Excluded);
        let Some(&(length, attribute)) = self.by_length.range((from, Bound::Unbounded)).next() else {
            self.stuck = None;
            return;
        };
        let tail: Vec<u32> = self.list(attribute).iter().rev().take(MOVES).copied().collect();
        self.stuck = Some((length, attribute));
        for number in tail {
            if let Some(key) = self.elsewhere(attribute, &entries[number].keys, predicates) {
                self.relist(number, key, entries);
                self.stuck = None;
            }
        }
    }

    /// Looks at a few entries in lists that are too long, and moves those that may go to a list at most half as long.
    ///
    /// Long lists come about when entries could go nowhere else at their time. They are walked one after the other, again
    /// and again, since a list opened since may be the place for an entry that had none.
    fn relieve(&mut self, entries: &mut Slab<Entry>, predicates: &PredicateLists) {
        let bound = 4 * entries.len();
        let too_long = |length: usize| length.pow(2) > bound;
        if !self.by_length.last().is_some_and(|&(length, _)| too_long(length)) {
            return;
        }
        let (mut attribute, mut position) = self.relieving;
        for _ in 0..MOVES {
            let length = self.list(attribute).len();
            if position >= length || !too_long(length) {
                let next =
                    self.by_length.range(..(length, attribute)).next_back().filter(|&&(length, _)| too_long(length));
                let Some(&(_, found)) = next.or(self.by_length.last()) else { break };
                (attribute, position) = (found, 0);
            }
            let length = self.list(attribute).len();
            let number = self.list(attribute)[position];
            match self.elsewhere(attribute, &entries[number].keys, predicates) {
                Some(key) if self.list(key).len() * 2 <= length => self.relist(number, key, entries),
                Some(_) | None => position += 1,
            }
        }
        self.relieving = (attribute, position);
    }

    /// Moves an entry from its only list to another.
    fn relist(&mut self, number: u32, key: u32, entries: &mut Slab<Entry>) {
        let posting = entries[number].postings.pop().expect("a listed entry has a place");
        self.unpost(posting, entries);
        self.post(number, Some(key), entries);
    }

    /// The shortest other open list that an entry may move to.
    fn elsewhere(&self, attribute: u32, keys: &Keys, predicates: &PredicateLists) -> Option<u32> {
        let Keys::Any(candidates) = keys else { return None };
        let others = candidates.iter().copied().filter(|&other| other != attribute && !self.list(other).is_empty());
        others.min_by_key(|&other| (self.list(other).len(), predicates.attribute_name(other)))
    }

    /// Bytes in use.
    pub(super) fn memory_usage(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        lists
            + self.lists.capacity() * size_of::<Vec<u32>>()
            + (self.users.capacity() + self.unkeyed.capacity()) * size_of::<u32>()
            + self.by_length.len() * size_of::<(usize, u32)>()
    }
}

#[cfg(test)]
impl SubscriptionLists {
    /// The key attributes, shortest list first.
    pub(super) fn keys(&self) -> impl Iterator<Item = u32> {
        self.by_length.iter().map(|&(_, attribute)| attribute)
    }

    pub(super) fn users(&self, attribute: u32) -> u32 {
        self.users.get(attribute as usize).copied().unwrap_or_default()
    }
}
