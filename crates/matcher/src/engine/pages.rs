//! A vector in pages, so that growing never moves what is there.

use std::mem::size_of;
use std::ops::{Index, IndexMut};

const PAGE: usize = 1024;

/// Values under small numbers; the number of a removed value goes to a later one. No operation moves more than a page.
#[derive(Clone, Debug)]
pub(super) struct Pages<T> {
    pages: Vec<Vec<T>>,
    /// In pages too; all but the last are full.
    vacant: Vec<Vec<u32>>,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages { pages: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Pages<T> {
    /// Keeps a value; says its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.vacant.last_mut().and_then(Vec::pop) {
            self.vacant.pop_if(|page| page.is_empty());
            self[number] = value;
            return number;
        }
        push(&mut self.pages, value);
        let page = self.pages.len() - 1;
        u32::try_from(page * PAGE + self.pages[page].len() - 1).expect("fewer than 2^32 values fit into memory")
    }

    /// Gives a number back; what stands there is of no use any more.
    pub(super) fn vacate(&mut self, number: u32) {
        push(&mut self.vacant, number);
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
        memory_usage(&self.pages) + memory_usage(&self.vacant)
    }
}

/// Appends a value to the last page, or to a new one if that is full.
fn push<T>(pages: &mut Vec<Vec<T>>, value: T) {
    if pages.last().is_none_or(|page| page.len() == PAGE) {
        // The first page grows as it is filled, so that a small engine is small.
        pages.push(if pages.is_empty() { Vec::new() } else { Vec::with_capacity(PAGE) });
    }
    pages.last_mut().expect("there is one now").push(value);
}

fn memory_usage<T>(pages: &Vec<Vec<T>>) -> usize {
    let values: usize = pages.iter().map(|page| page.capacity() * size_of::<T>()).sum();
    values + pages.capacity() * size_of::<Vec<T>>()
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
