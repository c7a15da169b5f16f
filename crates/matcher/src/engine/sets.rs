//! Tests that codes do not decide, each stored once: sets of several intervals or classes, strings alike in their first bytes,
//! patterns.

use super::pages::Pages;
use super::patterns::{Grams, literals};
use super::slots::{Aspect, NO_SLOT, Slots};
use super::table::Table;
use enroute_filter::{Class, Constraint, Test, ValueSet};
use std::hash::BuildHasher;
use std::mem::size_of;

/// A constraint that predicates refer to by number.
#[derive(Clone, Debug)]
pub(super) struct SetTest {
    pub(super) constraint: Constraint,
    attribute: u32,
    users: u32,
    /// The slot that says whether a string passes; [`NO_SLOT`] if the test is made entry by entry.
    pub(super) slot: u32,
    grams: Box<[u64]>,
}

/// All tests in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    tests: Pages<SetTest>,
    by_constraint: Table<u32>,
    pub(super) grams: Grams,
    hasher: foldhash::fast::RandomState,
}

impl Sets {
    /// With a secret that keeps others from making grams collide.
    pub(super) fn new(secret: u64) -> Sets {
        Sets { grams: Grams::new(secret), ..Sets::default() }
    }

    /// One use more of a test; says its number.
    pub(super) fn acquire(&mut self, constraint: &Constraint, slots: &mut Slots) -> u32 {
        let hash = self.hasher.hash_one(constraint);
        if let Some(&number) = self.by_constraint.find(hash, |&number| self.tests[number].constraint == *constraint) {
            self.tests[number].users += 1;
            return number;
        }
        let attribute = slots.acquire_attribute(constraint.attribute());
        let test =
            SetTest { constraint: constraint.clone(), attribute, users: 1, slot: NO_SLOT, grams: Box::default() };
        let number = self.tests.insert(test);
        let (tests, hasher) = (&self.tests, &self.hasher);
        self.by_constraint.insert(hash, number, |&number| hasher.hash_one(&tests[number].constraint));
        number
    }

    /// One use more of a test as a pattern: it gets a slot of its own. None, and nothing changes, if it has no literals.
    pub(super) fn acquire_pattern(
        &mut self,
        constraint: &Constraint,
        set: &ValueSet,
        slots: &mut Slots,
    ) -> Option<u32> {
        if !set.classes().eq([Class::String]) {
            return None;
        }
        let literals = literals(set.strings())?;
        let number = self.acquire(constraint, slots);
        if self.tests[number].slot == NO_SLOT {
            let attribute = self.tests[number].attribute;
            slots.attribute_mut(attribute).has_patterns = true;
            let grams: Vec<u64> = literals.iter().map(|text| self.grams.add(attribute, text, number)).collect();
            self.tests[number].grams = grams.into();
            self.tests[number].slot = slots.acquire(constraint.attribute(), Aspect::Pattern(number));
        } else {
            slots.use_again(self.tests[number].slot);
        }
        Some(number)
    }

    /// One use less of a test, after its slot, if it has one, was released.
    pub(super) fn release(&mut self, number: u32, slots: &mut Slots) {
        let test = &mut self.tests[number];
        test.users -= 1;
        if test.users > 0 {
            return;
        }
        let hash = self.hasher.hash_one(&test.constraint);
        let grams = std::mem::take(&mut test.grams);
        test.slot = NO_SLOT;
        let attribute = test.attribute;
        for &gram in &grams {
            self.grams.remove(gram, number);
        }
        self.by_constraint.remove(hash, |&other| other == number);
        // What stays in the vacant place is small.
        self.tests[number].constraint = Constraint::new("", Test::Absent);
        self.tests.vacate(number);
        slots.release_attribute(attribute);
    }

    pub(super) fn memory_usage(&self) -> usize {
        let test = |test: &SetTest| {
            let Test::In(set) = test.constraint.test() else { return 0 };
            let intervals = set.numbers().intervals().len() + set.times().intervals().len();
            let strings: usize =
                set.strings().intervals().map(|(first, end)| 64 + first.len() + end.map_or(0, str::len)).sum();
            test.grams.len() * size_of::<u64>() + intervals * 48 + strings + set.strings().terms().len() * 160
        };
        self.tests.memory_usage()
            + self.by_constraint.memory_usage()
            + self.grams.memory_usage()
            + self.tests.iter().map(test).sum::<usize>()
    }
}

impl std::ops::Index<u32> for Sets {
    type Output = SetTest;

    fn index(&self, number: u32) -> &SetTest {
        &self.tests[number]
    }
}
