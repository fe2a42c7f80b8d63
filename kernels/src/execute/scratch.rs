//! Memory that a worker thread keeps from one tile to the next: registers and slots.
//!
//! Promises a base address aligned to a page; what is left in it from earlier runs is arbitrary.

#![expect(unsafe_code, reason = "allocates aligned memory")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

/// Alignment of the base: a page, so that the spacing of registers against 4 KiB aliasing means something.
const ALIGNMENT: usize = 4096;

/// Working memory of one thread; grows to the largest program it has run.
///
/// Invariant: `memory` is null or an allocation of `bytes` bytes aligned to [`ALIGNMENT`].
#[derive(Debug)]
pub struct Scratch {
    memory: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its allocation.
unsafe impl Send for Scratch {}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Scratch {
    /// Empty; the first run allocates.
    pub const fn new() -> Scratch {
        Scratch { memory: null_mut(), bytes: 0 }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// At least `bytes` bytes, uninitialised.
    pub(super) fn reserve(&mut self, bytes: usize) -> *mut u8 {
        if bytes > self.bytes {
            self.release();
            let bytes = bytes.next_multiple_of(ALIGNMENT);
            let layout = Scratch::layout(bytes);
            // SAFETY: the layout has a size of at least `ALIGNMENT`.
            let memory = unsafe { alloc(layout) };
            self.memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout)).as_ptr();
            self.bytes = bytes;
        }
        self.memory
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, ALIGNMENT).expect("scratch memory of more than the address space")
    }

    fn release(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: the type's invariant.
            unsafe { dealloc(self.memory, Scratch::layout(self.bytes)) };
        }
        self.memory = null_mut();
        self.bytes = 0;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.release();
    }
}
