//! Python objects in cells that the GIL guards.
//!
//! Promises that a look or a change costs a few instructions, with no lock: access takes a Python token, so it happens only with the
//! GIL held, and nobody else's code runs meanwhile, since what was in a cell is handed back instead of being dropped there.
#![expect(unsafe_code, reason = "cells that are shared, guarded by the GIL")]

use std::cell::UnsafeCell;

use pyo3::prelude::*;

/// A place for an object, or for none.
pub(crate) struct Kept<T>(UnsafeCell<Option<Py<T>>>);

// SAFETY: every access takes a Python token, so the GIL is held (the stable ABI has no free-threaded build); `Py` may be sent.
unsafe impl<T> Sync for Kept<T> {}

impl<T> Kept<T> {
    /// A place with nothing in it.
    pub(crate) fn new() -> Kept<T> {
        Kept(UnsafeCell::new(None))
    }

    /// The object.
    #[inline]
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, T>> {
        // SAFETY: the GIL is held, and taking a reference runs nobody's code.
        unsafe { &*self.0.get() }.as_ref().map(|object| object.bind(py).clone())
    }

    /// Whether there is one.
    #[inline]
    pub(crate) fn is_taken(&self, _py: Python<'_>) -> bool {
        // SAFETY: the GIL is held.
        unsafe { &*self.0.get() }.is_some()
    }

    /// The object, borrowed.
    ///
    /// # Safety
    /// The place must not be given another object while the reference lives: nobody's code may run meanwhile.
    #[inline]
    pub(crate) unsafe fn peek(&self, _py: Python<'_>) -> Option<&Py<T>> {
        // SAFETY: the GIL is held, and the caller's promise.
        unsafe { &*self.0.get() }.as_ref()
    }

    /// Puts another object, or none, in its place, and hands back what was there.
    #[inline]
    pub(crate) fn replace<'py>(&self, py: Python<'py>, object: Option<Bound<'py, T>>) -> Option<Bound<'py, T>> {
        // SAFETY: the GIL is held, and no reference into the cell outlives a method of this type.
        let before = unsafe { std::mem::replace(&mut *self.0.get(), object.map(Bound::unbind)) };
        before.map(|before| before.into_bound(py))
    }
}
