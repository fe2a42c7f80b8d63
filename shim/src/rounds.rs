//! Rounds: what all shards do after every so many launches, after the same ones.
//!
//! Promises that it costs one load per launch where it is off, as it is with one shard. The number of a launch in program order
//! decides, so the place is the same on every shard. Does not know what is done: `legate.replicate` does.

use std::sync::atomic::{AtomicU64, Ordering};

use legate_runtime::Sequence;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyTraceback};

/// Launches between two rounds; 0: never.
static EVERY: AtomicU64 = AtomicU64::new(0);
/// Number of the last round.
static LAST: AtomicU64 = AtomicU64::new(0);
/// What is called.
static CALL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// After a launch: begins a round when it is time.
pub(crate) fn launched(py: Python<'_>, sequence: Sequence) -> PyResult<()> {
    let every = EVERY.load(Ordering::Relaxed);
    if every == 0 || !crate::shards::in_program() {
        return Ok(());
    }
    let round = sequence / every;
    if LAST.swap(round, Ordering::Relaxed) != round
        && let Some(call) = CALL.get(py)
    {
        call.call0(py).map_err(|error| as_the_programs(py, error))?;
    }
    Ok(())
}

/// What a handler of the program raised, without the frames that led to the handler.
fn as_the_programs(py: Python<'_>, error: PyErr) -> PyErr {
    let mut traceback = error.traceback(py);
    while let Some(entry) = traceback.as_ref().filter(|entry| is_ours(entry).unwrap_or(false)) {
        traceback = entry.getattr("tb_next").ok().and_then(|next| next.cast_into().ok());
    }
    error.set_traceback(py, traceback);
    error
}

/// Whether a traceback begins in a module of this package.
fn is_ours(traceback: &Bound<'_, PyTraceback>) -> PyResult<bool> {
    let name = traceback.getattr("tb_frame")?.getattr("f_globals")?.get_item("__name__")?;
    Ok(name.extract::<&str>()?.starts_with("legate."))
}

/// From now on `call()` is called by the main thread after every so many launches.
#[pyfunction]
fn at_launches(py: Python<'_>, every: u64, call: Py<PyAny>) {
    drop(CALL.set(py, call));
    EVERY.store(every, Ordering::Relaxed);
}

/// Adds this file's function to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(at_launches, module)?)
}
