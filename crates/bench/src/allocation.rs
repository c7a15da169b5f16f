//! A global allocator that counts blocks and the bytes in use, so that what something takes is measured and not estimated.

#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The allocator of the `enroute` program, with a count of blocks, and of the bytes asked for and not yet returned.
///
/// What it adds to each block, for its own use and by rounding up, is not counted.
pub struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// The bytes in use now; zero for ever where [`CountingAllocator`] is not the global allocator.
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// How many blocks were asked for so far, those that were only to grow or shrink included.
pub fn blocks() -> u64 {
    BLOCKS.load(Ordering::Relaxed)
}

/// Counts nothing any more: for a process of which only the time matters, as threads that count wait for each other.
pub fn stop_counting() {
    STOPPED.store(true, Ordering::Relaxed);
}

fn count(asked_for: usize, returned: usize) {
    if STOPPED.load(Ordering::Relaxed) {
        return;
    }
    if asked_for > 0 {
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        LIVE.fetch_add(asked_for, Ordering::Relaxed);
    }
    if returned > 0 {
        LIVE.fetch_sub(returned, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed to `MiMalloc` as it came, and its result returned as it is; `MiMalloc` keeps the contract of
// the trait. The counters neither allocate nor unwind.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are those of `MiMalloc`.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are those of `MiMalloc`.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promises are those of `MiMalloc`, from which every block comes.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller's promises are those of `MiMalloc`, from which every block comes.
        unsafe { MiMalloc.realloc(block, layout, size) }
    }
}
