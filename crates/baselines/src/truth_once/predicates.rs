//! The predicate lists: every distinct predicate once, by attribute and operator (algorithm 2 of the paper).

use super::predicate::{Predicate, Reading};
use super::slab::Slab;
use enroute_filter::Event;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The distinct predicates of an engine, numbered, each with the count of its users.
#[derive(Clone, Debug, Default)]
pub(crate) struct PredicateLists {
    predicates: Slab<Stored>,
    attributes: Slab<AttributeLists>,
    by_name: HashMap<Arc<str>, u32>,
    /// The attributes with a predicate [`Predicate::Absent`].
    missed: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Stored {
    attribute: u32,
    predicate: Predicate,
    users: u32,
}

/// All predicates of one attribute. Their order makes each list P(operator) a sorted run of the map.
#[derive(Clone, Debug)]
struct AttributeLists {
    name: Arc<str>,
    predicates: BTreeMap<Predicate, u32>,
}

impl PredicateLists {
    /// The number of a predicate, stored now if it is new; one user more.
    pub(crate) fn acquire(&mut self, name: &Arc<str>, predicate: &Predicate) -> u32 {
        let attribute = match self.by_name.get(name) {
            Some(&attribute) => attribute,
            None => {
                let lists = AttributeLists { name: name.clone(), predicates: BTreeMap::new() };
                let attribute = self.attributes.insert(lists);
                self.by_name.insert(name.clone(), attribute);
                attribute
            }
        };
        if let Some(&number) = self.attributes[attribute].predicates.get(predicate) {
            self.predicates[number].users += 1;
            return number;
        }
        let number = self.predicates.insert(Stored { attribute, predicate: predicate.clone(), users: 1 });
        self.attributes[attribute].predicates.insert(predicate.clone(), number);
        if *predicate == Predicate::Absent {
            self.missed.insert(attribute);
        }
        number
    }

    /// One user less: with the last one the predicate goes, with its last predicate the attribute.
    /// Whether the predicate went.
    pub(crate) fn release(&mut self, number: u32) -> bool {
        self.predicates[number].users -= 1;
        if self.predicates[number].users > 0 {
            return false;
        }
        let Stored { attribute, predicate, .. } = self.predicates.remove(number);
        let lists = &mut self.attributes[attribute];
        lists.predicates.remove(&predicate);
        if predicate == Predicate::Absent {
            self.missed.remove(&attribute);
        }
        if lists.predicates.is_empty() {
            let lists = self.attributes.remove(attribute);
            self.by_name.remove(&lists.name);
        }
        true
    }

    /// Calls with the attribute number and reading of each of the event's attributes that some predicate is about.
    pub(crate) fn read<'e>(&self, event: &'e Event, mut each: impl FnMut(u32, Reading<'e>)) {
        for (name, value) in event.attributes() {
            if let Some(&attribute) = self.by_name.get(name) {
                each(attribute, Reading::from(value));
            }
        }
    }

    pub(crate) fn predicate(&self, number: u32) -> &Predicate {
        &self.predicates[number].predicate
    }

    /// The attribute that a predicate is about.
    pub(crate) fn attribute(&self, predicate: u32) -> u32 {
        self.predicates[predicate].attribute
    }

    pub(crate) fn attribute_name(&self, attribute: u32) -> &str {
        &self.attributes[attribute].name
    }

    /// Every predicate's number is smaller.
    pub(crate) fn predicate_bound(&self) -> usize {
        self.predicates.bound()
    }

    /// Every attribute's number is smaller.
    pub(crate) fn attribute_bound(&self) -> usize {
        self.attributes.bound()
    }

    /// How many distinct predicates there are.
    pub(crate) fn len(&self) -> usize {
        self.predicates.len()
    }

    /// An estimate of the bytes in use.
    pub(crate) fn memory_usage(&self) -> usize {
        let operands: usize = self.predicates.values().map(|stored| stored.predicate.heap()).sum();
        let names: usize = self.attributes.values().map(|lists| lists.name.len()).sum();
        self.predicates.memory_usage()
            + self.attributes.memory_usage()
            + operands
            + names
            + self.len() * size_of::<(Predicate, u32)>()
            + self.by_name.capacity() * size_of::<(Arc<str>, u32)>()
            + self.missed.len() * size_of::<u32>()
    }
}

#[cfg(test)]
impl PredicateLists {
    pub(crate) fn find(&self, attribute: &str) -> Option<u32> {
        self.by_name.get(attribute).copied()
    }

    /// Every predicate as (attribute, predicate, users), by attribute name.
    pub(crate) fn all(&self) -> Vec<(&str, &Predicate, u32)> {
        let stored = self.predicates.values();
        let mut all: Vec<_> =
            stored.map(|stored| (self.attribute_name(stored.attribute), &stored.predicate, stored.users)).collect();
        all.sort();
        all
    }
}
