//! Arrays over mapped files: `numpy.memmap` itself (no subclass of it) is read as the array that it is.
//!
//! What NumPy makes of one is a plain array, and so it may be an operand like any host array: each shard then touches the pages of
//! its own rows only. Does not make or write any: those are NumPy's.
#![expect(unsafe_code, reason = "compares types by address")]

use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::numpy_api;

static MEMMAP: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// Finds the type; called once NumPy's interface is known. It lives as long as NumPy.
pub(crate) fn connect(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    MEMMAP.store(numpy.getattr("memmap")?.as_ptr().cast(), Ordering::Relaxed);
    Ok(())
}

/// Whether an object is exactly a `numpy.memmap`.
pub(crate) fn is_mapped(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: reading the type of a live object.
    unsafe { ffi::Py_TYPE(object.as_ptr()) == MEMMAP.load(Ordering::Relaxed) }
}

/// Whether an object is read as a host array.
pub(crate) fn is_read_as_array(object: &Bound<'_, PyAny>) -> bool {
    numpy_api::is_exact_array(object) || is_mapped(object)
}
