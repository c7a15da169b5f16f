//! An allocator that counts, thread by thread.
//!
//! The only unsafe code: an allocator cannot be written without. Every call is passed on to the system's allocator with the
//! arguments as they came, so that its contract holds because the caller keeps ours; beside that, only a thread-local integer
//! is touched, which neither allocates nor has a destructor.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

fn count(asked: usize, returned: usize) {
    HELD.set(HELD.get() + asked as isize - returned as isize);
    ASKED.set(ASKED.get() + asked);
}

// SAFETY: see the module.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The bytes that this thread holds: those it asked for, less those it gave back.
pub(crate) fn held() -> isize {
    HELD.get()
}

/// The bytes that this thread has asked for so far, whether or not they were given back.
pub(crate) fn asked() -> usize {
    ASKED.get()
}

#[test]
fn it_counts() {
    let (before, asked_before) = (held(), asked());
    let mut bytes = vec![1_u8; 1_000];
    assert_eq!(held() - before, 1_000);
    bytes.reserve_exact(3_000);
    assert_eq!(held() - before, 4_000);
    assert_eq!(asked() - asked_before, 5_000);
    drop(bytes);
    assert_eq!(held(), before);
}
