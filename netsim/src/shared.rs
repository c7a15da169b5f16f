//! What the brokers of a large world hold of each other's interest, each distinct filter and each distinct set once.
//!
//! Of 1,000 brokers that publish, each holds the sets of filters that 10,000 others want: the same 10,000 sets, if all is well.
//! Here a set stands once for its content, whoever announced it and whoever holds it, and so does a filter; one matcher is over the
//! distinct filters, and each of these knows the sets that it is in. A broker has no more than the number of a set for each origin.
//! A set never changes: a step leads from one set to another, and a set that nobody holds any more is forgotten.
//!
//! That two brokers share a set follows from what each has been told, step by step, and not from a version that both name: a
//! broker that has missed a step holds another set than the others, and sends and loses events accordingly.

use enroute_broker::{AnnouncedFilter, BrokerId, Changes, RemoteFilters};
use enroute_filter::{Event, Filter};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of the empty set, which stands nowhere.
const EMPTY: u32 = 0;

/// See the module's page.
#[derive(Clone, Default)]
pub(crate) struct SharedFilters(Arc<Mutex<Index>>);

impl SharedFilters {
    /// A place for what one broker holds.
    pub(crate) fn place(&self) -> impl RemoteFilters + use<> {
        HeldSets { shared: self.clone(), sets: Vec::new() }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All filters, sets and origins, each kind under small numbers. Nothing that has an effect goes by the order of the hash tables.
#[derive(Default)]
struct Index {
    filters: Slots<Known>,
    filter_numbers: HashMap<AnnouncedFilter, u32>,
    /// Over the distinct filters, whose numbers are the ids.
    matcher: Enindex,
    scratch: Scratch,
    matched: Vec<SubscriptionId>,
    /// The number of a set is one more than its place.
    sets: Slots<Set>,
    set_numbers: HashMap<Arc<[u32]>, u32>,
    origins: Vec<BrokerId>,
    origin_numbers: BTreeMap<BrokerId, u32>,
    /// By the number of a set: the last turn in which an event matched one of its filters.
    marks: Vec<u64>,
    turn: u64,
}

/// A distinct filter.
struct Known {
    filter: AnnouncedFilter,
    /// The numbers of the sets that it is in.
    sets: Vec<u32>,
}

/// A distinct set.
struct Set {
    /// The numbers of its filters, sorted.
    filters: Arc<[u32]>,
    /// How often it is held.
    held: usize,
}

/// Values under numbers that go to others when they are given up.
struct Slots<T> {
    slots: Vec<Option<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { slots: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slots<T> {
    fn insert(&mut self, value: T) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[number as usize] = Some(value);
        number
    }

    fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize)?.as_ref()
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.slots.get_mut(number as usize)?.take()?;
        self.vacant.push(number);
        Some(value)
    }
}

impl Index {
    fn origin(&mut self, origin: BrokerId) -> usize {
        let Index { origins, origin_numbers, .. } = self;
        let number = *origin_numbers.entry(origin).or_insert_with(|| {
            origins.push(origin);
            origins.len() as u32 - 1
        });
        number as usize
    }

    /// The number of a filter, which is in no set yet if it is new.
    fn filter(&mut self, filter: &AnnouncedFilter) -> u32 {
        if let Some(&number) = self.filter_numbers.get(filter) {
            return number;
        }
        let number = self.filters.insert(Known { filter: filter.clone(), sets: Vec::new() });
        self.filter_numbers.insert(filter.clone(), number);
        self.matcher.insert(SubscriptionId(number.into()), Owner(0), &Filter::from(filter.or_always()));
        number
    }

    /// Forgets a filter if it is in no set.
    fn drop_if_unused(&mut self, number: u32) {
        if self.filters.get(number).is_some_and(|known| known.sets.is_empty())
            && let Some(known) = self.filters.remove(number)
        {
            self.filter_numbers.remove(&known.filter);
            self.matcher.remove(SubscriptionId(number.into()));
        }
    }

    /// The filters of a set, by their numbers.
    fn filters_of(&self, set: u32) -> Arc<[u32]> {
        set.checked_sub(1).and_then(|place| self.sets.get(place)).map(|set| set.filters.clone()).unwrap_or_default()
    }

    fn named(&self, filters: impl IntoIterator<Item = u32>) -> Vec<(AnnouncedFilter, SubscriptionId)> {
        let name = |number| Some((self.filters.get(number)?.filter.clone(), SubscriptionId(number.into())));
        filters.into_iter().filter_map(name).collect()
    }

    /// One more holds the set of these filters, sorted; its number.
    fn hold(&mut self, filters: &[u32]) -> u32 {
        if filters.is_empty() {
            return EMPTY;
        }
        let number = match self.set_numbers.get(filters) {
            Some(&number) => number,
            None => {
                let filters: Arc<[u32]> = filters.into();
                let number = self.sets.insert(Set { filters: filters.clone(), held: 0 }) + 1;
                for &filter in &*filters {
                    self.filters.get_mut(filter).expect("only what is known is put into sets").sets.push(number);
                }
                self.set_numbers.insert(filters, number);
                number
            }
        };
        self.sets.get_mut(number - 1).expect("it has a number").held += 1;
        number
    }

    /// One fewer holds a set.
    fn release(&mut self, number: u32) {
        let Some(place) = number.checked_sub(1) else { return };
        let set = self.sets.get_mut(place).expect("what is held is known");
        set.held -= 1;
        if set.held > 0 {
            return;
        }
        let filters = self.sets.remove(place).map(|set| set.filters).unwrap_or_default();
        self.set_numbers.remove(&filters);
        for &filter in &*filters {
            if let Some(known) = self.filters.get_mut(filter) {
                known.sets.retain(|&set| set != number);
            }
            self.drop_if_unused(filter);
        }
    }

    /// Marks the sets of which an event matches a filter, and says with what.
    fn mark(&mut self, event: &Event) -> u64 {
        self.turn += 1;
        self.marks.resize(self.sets.slots.len() + 1, 0);
        self.matcher.matches(event, &mut self.scratch, &mut self.matched);
        for &SubscriptionId(filter) in &self.matched {
            for &set in self.filters.get(filter as u32).iter().flat_map(|known| &known.sets) {
                self.marks[set as usize] = self.turn;
            }
        }
        self.turn
    }
}

/// What one broker holds: for each origin, by its number, the number of a set.
struct HeldSets {
    shared: SharedFilters,
    sets: Vec<u32>,
}

impl HeldSets {
    fn set(&self, index: &Index, origin: BrokerId) -> u32 {
        let place = index.origin_numbers.get(&origin).and_then(|&number| self.sets.get(number as usize));
        place.copied().unwrap_or(EMPTY)
    }

    /// Holds another set of an origin than before.
    fn replace(&mut self, index: &mut Index, origin: BrokerId, filters: &[u32]) {
        let number = index.origin(origin);
        if self.sets.len() <= number {
            self.sets.resize(number + 1, EMPTY);
        }
        let before = std::mem::replace(&mut self.sets[number], index.hold(filters));
        index.release(before);
    }
}

impl RemoteFilters for HeldSets {
    fn count(&self, origin: BrokerId) -> usize {
        let index = self.shared.index();
        index.filters_of(self.set(&index, origin)).len()
    }

    fn contains(&self, origin: BrokerId, filter: &AnnouncedFilter) -> bool {
        let index = self.shared.index();
        let filters = index.filters_of(self.set(&index, origin));
        index.filter_numbers.get(filter).is_some_and(|number| filters.binary_search(number).is_ok())
    }

    fn change(
        &mut self,
        origin: BrokerId,
        whole: bool,
        added: Vec<AnnouncedFilter>,
        removed: Vec<AnnouncedFilter>,
    ) -> Changes {
        let shared = self.shared.clone();
        let mut index = shared.index();
        let before = index.filters_of(self.set(&index, origin));
        let told = sorted(added.iter().map(|filter| index.filter(filter)));
        let new: Vec<u32> = without(&told, &before);
        let with_new = sorted(before.iter().chain(&new).copied());
        let (filters, gone) = if whole {
            (told.clone(), without(&with_new, &told))
        } else {
            let numbers = sorted(removed.iter().filter_map(|filter| index.filter_numbers.get(filter).copied()));
            let filters = without(&with_new, &numbers);
            let gone = without(&with_new, &filters);
            (filters, gone)
        };
        let changes = Changes { added: index.named(new), removed: index.named(gone) };
        self.replace(&mut index, origin, &filters);
        for number in told {
            index.drop_if_unused(number);
        }
        changes
    }

    fn forget(&mut self, origin: BrokerId) -> Changes {
        let shared = self.shared.clone();
        let mut index = shared.index();
        let before = index.filters_of(self.set(&index, origin));
        let changes = Changes { added: Vec::new(), removed: index.named(before.iter().copied()) };
        if !before.is_empty() {
            self.replace(&mut index, origin, &[]);
        }
        changes
    }

    fn clear(&mut self) {
        let mut index = self.shared.index();
        for set in std::mem::take(&mut self.sets) {
            index.release(set);
        }
    }

    fn filters(&self) -> Box<dyn Iterator<Item = AnnouncedFilter> + '_> {
        let index = self.shared.index();
        let all = self.sets.iter().flat_map(|&set| index.named(index.filters_of(set).iter().copied()));
        let all: Vec<AnnouncedFilter> = all.map(|(filter, _)| filter).collect();
        Box::new(all.into_iter())
    }

    fn interested(&mut self, event: &Event, origins: &mut Vec<Owner>) {
        let mut index = self.shared.index();
        let turn = index.mark(event);
        let wants = |&(_, &set): &(usize, &u32)| set != EMPTY && index.marks[set as usize] == turn;
        origins.extend(self.sets.iter().enumerate().filter(wants).map(|(number, _)| Owner(index.origins[number].0)));
        origins.sort_unstable();
    }
}

/// Numbers in order, each once.
fn sorted(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Those of the first that are not among the second, both in order.
fn without(numbers: &[u32], others: &[u32]) -> Vec<u32> {
    numbers.iter().copied().filter(|number| others.binary_search(number).is_err()).collect()
}

/// A broker that crashes holds nothing any more.
impl Drop for HeldSets {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
