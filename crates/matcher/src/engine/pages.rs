//! A vector in pages, so that growing never moves what is there.

use std::mem::size_of;
use std::ops::{Index, IndexMut};

const PAGE: usize = 1024;

/// Values under small numbers; the number of a removed value goes to a later one. No operation moves more than a page.
#[derive(Clone, Debug)]
pub(super) struct Pages<T> {
    pages: Vec<Vec<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages { pages: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Pages<T> {
    /// Keeps a value; says its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.vacant.pop() {
            self[number] = value;
            return number;
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            // The first page grows as it is filled, so that a small engine is small.
            self.pages.push(if self.pages.is_empty() { Vec::new() } else { Vec::with_capacity(PAGE) });
        }
        let page = self.pages.len() - 1;
        self.pages[page].push(value);
        u32::try_from(page * PAGE + self.pages[page].len() - 1).expect("fewer than 2^32 values fit into memory")
    }

    /// Gives a number back; what stands there is of no use any more.
    pub(super) fn vacate(&mut self, number: u32) {
        self.vacant.push(number);
    }

    /// Every number is smaller.
    pub(super) fn bound(&self) -> usize {
        self.pages.last().map_or(0, |last| (self.pages.len() - 1) * PAGE + last.len())
    }

    /// All values, those of vacant numbers too.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten()
    }

    /// Bytes of the pages, without what the values own.
    pub(super) fn memory_usage(&self) -> usize {
        let values: usize = self.pages.iter().map(|page| page.capacity() * size_of::<T>()).sum();
        values + self.pages.capacity() * size_of::<Vec<T>>() + self.vacant.capacity() * size_of::<u32>()
    }
}

impl<T> Index<u32> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.pages[number as usize / PAGE][number as usize % PAGE]
    }
}

impl<T> IndexMut<u32> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.pages[number as usize / PAGE][number as usize % PAGE]
    }
}
