//! Garbage collection with several shards: at counts of launches, so that what it frees is freed at the same place everywhere.
//!
//! Promises that it costs one load per launch where it is off, as it is with one shard. Collects no field: handles do.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// Launches between two collections of the youngest generation; 0: never.
static EVERY: AtomicU64 = AtomicU64::new(0);
/// Launches so far.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);
/// What collects: a function of the number of the collection.
static COLLECT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Counts a launch, and collects when it is time.
pub(crate) fn launched(py: Python<'_>) -> PyResult<()> {
    let every = EVERY.load(Ordering::Relaxed);
    if every == 0 {
        return Ok(());
    }
    let count = LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_multiple_of(every)
        && let Some(collect) = COLLECT.get(py)
    {
        collect.call0(py)?;
    }
    Ok(())
}

/// From now on `collect()` is called after every so many launches.
#[pyfunction]
fn collect_at_launches(py: Python<'_>, every: u64, collect: Py<PyAny>) {
    drop(COLLECT.set(py, collect));
    EVERY.store(every, Ordering::Relaxed);
}

/// Adds this file's function to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(collect_at_launches, module)?)
}
