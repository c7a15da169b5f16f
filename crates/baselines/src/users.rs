//! Distinct predicates, each stored once, and the conjunctions that use them.

use crate::coded::Primitive;
use crate::small::SmallList;
use std::collections::HashMap;

/// The predicates of an index by number, with their users.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users {
    numbers: HashMap<(u32, Primitive), u32>,
    predicates: Vec<Used>,
    /// By predicate: the conjunctions that use it.
    users: Vec<SmallList>,
    vacant: Vec<u32>,
    /// By conjunction: its predicates, each with its place among the predicate's users.
    needs: Vec<Box<[Need]>>,
}

#[derive(Clone, Debug)]
struct Used {
    slot: u32,
    primitive: Primitive,
    /// Beside each user: which of its needs this is.
    need: SmallList,
}

#[derive(Clone, Copy, Debug)]
struct Need {
    predicate: u32,
    place: u32,
}

impl Users {
    /// Makes the conjunction a user of some predicates, no two of them equal. Calls for each that is new with its
    /// number, slot and itself.
    pub(crate) fn add(
        &mut self,
        conjunction: u32,
        predicates: &[(u32, Primitive)],
        mut new: impl FnMut(u32, u32, Primitive),
    ) {
        if self.needs.len() <= conjunction as usize {
            self.needs.resize(conjunction as usize + 1, Box::default());
        }
        let acquire = |(need, &(slot, primitive)): (usize, &(u32, Primitive))| {
            let predicate = match self.numbers.get(&(slot, primitive)) {
                Some(&predicate) => predicate,
                None => {
                    let used = Used { slot, primitive, need: SmallList::default() };
                    let predicate = match self.vacant.pop() {
                        Some(number) => {
                            self.predicates[number as usize] = used;
                            number
                        }
                        None => {
                            self.predicates.push(used);
                            self.users.push(SmallList::default());
                            self.predicates.len() as u32 - 1
                        }
                    };
                    self.numbers.insert((slot, primitive), predicate);
                    new(predicate, slot, primitive);
                    predicate
                }
            };
            self.users[predicate as usize].push(conjunction);
            self.predicates[predicate as usize].need.push(need as u32);
            Need { predicate, place: self.users[predicate as usize].as_slice().len() as u32 - 1 }
        };
        self.needs[conjunction as usize] = predicates.iter().enumerate().map(acquire).collect();
    }

    /// The conjunction uses nothing any more. Calls for each predicate that nobody else uses, as it goes.
    pub(crate) fn remove(&mut self, conjunction: u32, mut gone: impl FnMut(u32, u32, Primitive)) {
        for Need { predicate, place } in std::mem::take(&mut self.needs[conjunction as usize]) {
            let (used, users) = (&mut self.predicates[predicate as usize], &mut self.users[predicate as usize]);
            users.swap_remove(place as usize);
            used.need.swap_remove(place as usize);
            if let Some(&moved) = users.as_slice().get(place as usize) {
                let need = used.need.as_slice()[place as usize];
                self.needs[moved as usize][need as usize].place = place;
            }
            if users.as_slice().is_empty() {
                let (slot, primitive) = (used.slot, used.primitive);
                (used.need, *users) = (SmallList::default(), SmallList::default());
                self.numbers.remove(&(slot, primitive));
                self.vacant.push(predicate);
                gone(predicate, slot, primitive);
            }
        }
    }

    /// The conjunctions that use a predicate.
    #[inline]
    pub(crate) fn of(&self, predicate: u32) -> &[u32] {
        self.users[predicate as usize].as_slice()
    }

    pub(crate) fn memory_usage(&self) -> usize {
        let needs = self.predicates.iter().map(|used| used.need.memory_usage());
        self.users.iter().map(SmallList::memory_usage).chain(needs).sum::<usize>()
            + self.users.capacity() * size_of::<SmallList>()
            + self.predicates.capacity() * size_of::<Used>()
            + self.needs.iter().map(|needs| size_of_val(&**needs)).sum::<usize>()
            + self.needs.capacity() * size_of::<Box<[Need]>>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.numbers.capacity() * size_of::<((u32, Primitive), u32)>()
    }
}

#[cfg(test)]
impl Users {
    /// The slot and the predicate of a number.
    pub(crate) fn predicate(&self, predicate: u32) -> (u32, Primitive) {
        let used = &self.predicates[predicate as usize];
        (used.slot, used.primitive)
    }

    /// How many distinct predicates there are, and how many uses of them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.numbers.len(), self.needs.iter().map(|needs| needs.len()).sum())
    }
}
