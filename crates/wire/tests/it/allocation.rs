//! An allocator that counts, thread by thread.
//!
//! The only unsafe code: an allocator cannot be written without. Every call is passed on to the system's allocator with the
//! arguments as they came, so that its contract holds because the caller keeps ours; beside that, only thread-local integers
//! are touched, which neither allocate nor have destructors.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    let held = HELD.get() + change;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be held for a moment.
        count(size as isize);
        count(-(layout.size() as isize));
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Runs `work` and says how many bytes more than before this thread held at most.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

#[test]
fn it_counts() {
    let (_, peak) = peak_of(|| drop((vec![1u8; 1000], vec![0u8; 500])));
    assert_eq!(peak, 1500);
    let (_, peak) = peak_of(|| drop(vec![0u8; 70_000]));
    assert_eq!(peak, 70_000);
}
