//! Algorithm 1 of the paper: few, long lists for subscriptions that are all known beforehand. The paper's examples are built with it;
//! elsewhere subscriptions come one by one (algorithm 5).

use super::entry::Keys;
use super::slab::Slab;
use super::{Enindex, Entry};
use enroute_filter::Filter;
use enroute_matcher::SubscriptionId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Enindex {
    /// An index of subscriptions known beforehand; of two with one id the first counts.
    ///
    /// Takes the attribute that most of them have as the first key, the one that most of the rest have as the next, and
    /// so on; ties go to the smaller name. Costs all predicates, times the logarithm of the attributes.
    pub(crate) fn build<'f>(subscriptions: impl IntoIterator<Item = (SubscriptionId, &'f Filter)>) -> Enindex {
        let mut index = Enindex::default();
        let mut waiting: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (id, filter) in subscriptions {
            for number in index.store(id, filter).unwrap_or_default() {
                match index.entries[number].keys.clone() {
                    Keys::Any(candidates) => {
                        candidates.iter().for_each(|&attribute| waiting.entry(attribute).or_default().push(number));
                    }
                    Keys::All(attributes) => {
                        attributes.iter().for_each(|&key| index.lists.post(number, Some(key), &mut index.entries));
                    }
                    Keys::None => index.lists.post(number, None, &mut index.entries),
                }
            }
        }
        index.choose_keys(&waiting);
        index
    }

    /// Lists the entries that wait under each of their candidates.
    fn choose_keys(&mut self, waiting: &BTreeMap<u32, Vec<u32>>) {
        let mut counts: BTreeMap<u32, usize> = waiting.iter().map(|(&attribute, all)| (attribute, all.len())).collect();
        let rank =
            |count: usize, attribute: u32| (Reverse(count), self.predicates.attribute_name(attribute), attribute);
        let mut ranks: BTreeSet<_> = counts.iter().map(|(&attribute, &count)| rank(count, attribute)).collect();
        while let Some((Reverse(1..), _, key)) = ranks.pop_first() {
            for &number in &waiting[&key] {
                if is_listed(number, &self.entries) {
                    continue;
                }
                self.lists.post(number, Some(key), &mut self.entries);
                let Keys::Any(candidates) = &self.entries[number].keys else { continue };
                for &other in candidates.iter().filter(|&&other| other != key) {
                    let count = counts.get_mut(&other).expect("every candidate is counted");
                    if ranks.remove(&rank(*count, other)) {
                        *count -= 1;
                        ranks.insert(rank(*count, other));
                    }
                }
            }
        }
    }
}

fn is_listed(number: u32, entries: &Slab<Entry>) -> bool {
    !entries[number].postings.is_empty()
}
