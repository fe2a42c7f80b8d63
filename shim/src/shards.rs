//! This process's place among the shards of the program, and what Python asks of it: `shard`, `shards`, `agree`, `collect`.
//!
//! `connect` opens the transport once, before anything is computed; without it the program has one shard. `agree` and `collect`
//! are for the main thread, and every shard must call the same ones in the same order. They wait without the GIL, and look at
//! signals meanwhile. Does not decide what is agreed on (the Python side) or what the runtime exchanges.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use legate_runtime::transport::{Alone, Plugin, Stop, Transport, TransportError, collective};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

static PLUGIN: OnceLock<Arc<Plugin>> = OnceLock::new();
/// Whether this process is a fork's child: a program of its own, with one shard.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The thread that runs the program, where there are other shards: only its launches are in an order that all shards share.
static PROGRAM: OnceLock<ThreadId> = OnceLock::new();

/// Is this the thread whose launches all shards issue in one order? With one shard, every thread's are.
pub(crate) fn in_program() -> bool {
    PROGRAM.get().is_none_or(|program| FORKED.load(Ordering::Relaxed) || *program == thread::current().id())
}

/// Refuses what another thread would launch, or fetch from other shards.
pub(crate) fn check_thread() -> PyResult<()> {
    if in_program() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "an array that is spread over several shards can be used by the main thread only: hand copies of parts to threads, \
         or run with one shard",
    ))
}

/// The connection to the other shards; [`Alone`] where there are none.
pub(crate) fn transport() -> Arc<dyn Transport> {
    match PLUGIN.get() {
        Some(plugin) if !FORKED.load(Ordering::Relaxed) => plugin.clone(),
        Some(_) | None => Arc::new(Alone),
    }
}

/// Joins the job that this process is a rank of: opens an MPI plugin, and checks that MPI sees as many ranks as whoever started
/// them. Raises ValueError with a text for the user where that is not so.
#[pyfunction]
fn connect(py: Python<'_>, plugin: PathBuf, shard: usize, shards: usize) -> PyResult<()> {
    let opened = py.detach(|| Plugin::open(&plugin, Arc::new(Stop::default()))).map_err(|why| match why {
        TransportError::Failed(why) => PyValueError::new_err(format!("MPI does not start: {why}")),
        TransportError::Stopped(why) => PyRuntimeError::new_err(why),
    })?;
    if (opened.shard(), opened.shards()) != (shard, shards) {
        let (found, description) = (opened.shards(), opened.description());
        return Err(PyValueError::new_err(format!(
            "{shards} ranks were started, but MPI sees {found} here: whatever started them does not belong to {description}"
        )));
    }
    PROGRAM.get_or_init(|| thread::current().id());
    PLUGIN.set(Arc::new(opened)).map_err(|_| PyRuntimeError::new_err("the shards are connected already"))
}

/// Leaves the job; all shards must.
#[pyfunction]
fn disconnect(py: Python<'_>) -> PyResult<()> {
    match PLUGIN.get() {
        Some(plugin) if !FORKED.load(Ordering::Relaxed) => py.detach(|| plugin.close()).map_err(failed),
        Some(_) | None => Ok(()),
    }
}

/// In a forked child: a program with one shard from here on.
#[pyfunction]
fn shards_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// This shard's number.
#[pyfunction]
fn shard() -> usize {
    transport().shard()
}

/// Number of shards.
#[pyfunction]
fn shards() -> usize {
    transport().shards()
}

/// Shard 0's bytes, on every shard. What the others give counts for nothing.
#[pyfunction]
#[pyo3(signature = (payload=None))]
fn agree<'py>(py: Python<'py>, payload: Option<&Bound<'py, PyBytes>>) -> PyResult<Bound<'py, PyBytes>> {
    let transport = transport();
    if transport.shard() == 0 {
        let payload = payload.ok_or_else(|| PyTypeError::new_err("shard 0 must give the bytes to agree on"))?;
        if transport.shards() == 1 {
            return Ok(payload.clone());
        }
    }
    let own = if transport.shard() == 0 { payload.map(|bytes| bytes.as_bytes().to_vec()) } else { None };
    let agreed = together(py, |look| collective::broadcast(&*transport, own.unwrap_or_default(), look))?;
    Ok(PyBytes::new(py, &agreed))
}

/// Every shard's bytes, in the order of the shards, on every shard.
#[pyfunction]
fn collect<'py>(py: Python<'py>, payload: &Bound<'py, PyBytes>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let transport = transport();
    if transport.shards() == 1 {
        return Ok(vec![payload.clone()]);
    }
    let own = payload.as_bytes().to_vec();
    let rows = together(py, |look| collective::gather(&*transport, &own, look))?;
    Ok(rows.iter().map(|row| PyBytes::new(py, row)).collect())
}

/// Runs a collective without the GIL. Signal handlers run while it waits; what one raises is raised after it, so that the shards
/// stay in step.
fn together<R: Send>(
    py: Python<'_>,
    collective: impl FnOnce(&mut dyn FnMut()) -> Result<R, TransportError> + Send,
) -> PyResult<R> {
    let mut raised = None;
    let outcome = py.detach(|| {
        collective(&mut || {
            if raised.is_none() {
                raised = Python::attach(|py| py.check_signals()).err();
            }
        })
    });
    match raised {
        Some(raised) => Err(raised),
        None => outcome.map_err(failed),
    }
}

fn failed(error: TransportError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Puts what Python asks for into the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(connect, module)?,
        wrap_pyfunction!(disconnect, module)?,
        wrap_pyfunction!(shards_forked, module)?,
        wrap_pyfunction!(shard, module)?,
        wrap_pyfunction!(shards, module)?,
        wrap_pyfunction!(agree, module)?,
        wrap_pyfunction!(collect, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
