//! The predicates about one slot, a sorted list for each operator.

use crate::coded::Primitive;
use crate::sorted::SortedList;

/// Numbers of predicates, or of their users, by operator and operand.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperatorLists {
    pub(crate) equal: SortedList,
    pub(crate) at_least: SortedList,
    pub(crate) at_most: SortedList,
    pub(crate) not_equal: SortedList,
}

impl OperatorLists {
    pub(crate) fn insert(&mut self, primitive: Primitive, number: u32) {
        let (list, operand) = self.list(primitive);
        list.insert(operand, number);
    }

    pub(crate) fn remove(&mut self, primitive: Primitive, number: u32) {
        let (list, operand) = self.list(primitive);
        list.remove(operand, number);
    }

    fn list(&mut self, primitive: Primitive) -> (&mut SortedList, u64) {
        match primitive {
            Primitive::Equal(operand) => (&mut self.equal, operand),
            Primitive::AtLeast(operand) => (&mut self.at_least, operand),
            Primitive::AtMost(operand) => (&mut self.at_most, operand),
            Primitive::NotEqual(operand) => (&mut self.not_equal, operand),
            Primitive::Prefix(_) => unreachable!("a prefix is in a list as its two ends, or not at all"),
        }
    }

    /// Calls with the numbers of all that is true of a value, in runs: each list is entered by one binary search.
    pub(crate) fn each_true(&self, value: u64, mut each: impl FnMut(&[u32])) {
        self.equal.equal(value).for_each(&mut each);
        self.at_most.at_least(value).for_each(&mut each);
        // No value has the greatest code.
        let next = value.saturating_add(1);
        self.at_least.below(next).for_each(&mut each);
        self.not_equal.below(value).for_each(&mut each);
        self.not_equal.at_least(next).for_each(&mut each);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists().iter().all(|list| list.is_empty())
    }

    pub(crate) fn memory_usage(&self) -> usize {
        self.lists().iter().map(|list| list.memory_usage()).sum()
    }

    fn lists(&self) -> [&SortedList; 4] {
        [&self.equal, &self.at_least, &self.at_most, &self.not_equal]
    }
}
