//! Reading single elements of host memory, what becomes of freed memory of the host's, and refusing what does not fit.
#![expect(unsafe_code, reason = "reads elements of live host arrays, and tells the C library what to keep")]

use legate_runtime::{Handle, RuntimeError};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::state::Shim;

/// The bytes of one element of a live host array, the address and size of which its geometry told.
pub(crate) fn bytes_at(address: usize, bytes: usize) -> SmallVec<[u8; 32]> {
    // SAFETY: callers pass the data address of an array with at least one element of that size.
    unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.into()
}

/// Bytes from which on an array of the host's has a mapping of its own, and bytes of freed memory that the process keeps: what the C
/// library comes to by itself in a process that has freed large arrays.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_MAPPING_BYTES: i32 = 32 << 20;

/// Has the process keep freed memory of the host's arrays for the next ones. Left to itself the C library gives it back as soon as a
/// few arrays end at once, and each new one costs its first touches again. What the user's environment says of that stands.
pub(crate) fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"]
        .iter()
        .all(|name| std::env::var_os(name).is_none())
    {
        // SAFETY: sets two numbers of the allocator's.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * OWN_MAPPING_BYTES);
        }
    }
}

/// A field for a new array, or NumPy's MemoryError with what is in use.
pub(crate) fn field(
    py: Python<'_>,
    shim: &Shim,
    bytes: usize,
    shape: &[usize],
    descr: &Bound<'_, PyAny>,
) -> PyResult<Handle> {
    if !shim.runtime.pool().has_room(bytes) {
        // Temporaries of what is in flight may end.
        shim.flush(py)?;
    }
    match shim.runtime.field(bytes) {
        Ok(handle) => Ok(handle),
        Err(RuntimeError::OutOfMemory { used, limit, .. }) => {
            let class = py.import("numpy._core._exceptions")?.getattr("_ArrayMemoryError")?;
            let error = PyErr::from_value(class.call1((PyTuple::new(py, shape)?, descr))?);
            let reason = format!("arrays hold {used} of {limit} bytes; --sysmem sets the limit");
            error.set_cause(py, Some(PyMemoryError::new_err(reason)));
            Err(error)
        }
        Err(RuntimeError::Failed(text)) => Err(PyRuntimeError::new_err(text)),
    }
}
