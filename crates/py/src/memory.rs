//! Memory of the core: large buffers are of huge pages where the system gives them on request. The first touch of each
//! small page takes 2 us on a virtual machine, which is more than it takes to fill the page with records.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes from which a buffer is large: those of a huge page.
const LARGE: usize = 2 << 20;

/// The system's allocator, which is asked for huge pages.
struct HugePages;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

// SAFETY: all is the system's allocator's; the advice changes neither content nor addresses.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        advised(unsafe { System.realloc(at, layout, size) }, size)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

/// A buffer, after the kernel was asked for huge pages if it is large. A kernel without them refuses, which is no harm.
#[inline]
fn advised(at: *mut u8, size: usize) -> *mut u8 {
    if size >= LARGE && !at.is_null() {
        advise(at, size);
    }
    at
}

#[cold]
fn advise(at: *mut u8, size: usize) {
    const PAGE: usize = 4096;
    let before = at.addr() % PAGE;
    let pages = (before + size).next_multiple_of(PAGE);
    // SAFETY: an advice on the pages that hold the buffer. The first and the last are among them, because the kernel
    // moves a mapping in which the advice differs only by copying it.
    unsafe { libc::madvise(at.wrapping_sub(before).cast(), pages, libc::MADV_HUGEPAGE) };
}
