//! What a prompt over several shards needs beneath Python: rest between inputs, interrupts, and what tells arrays apart on every shard.
//!
//! Promises that an interrupt is raised where nothing of an operation has been done: before a launch, before an agreement, before
//! work that is done at once on arrays' memory. Without a prompt that costs a load. Which shard raises where is the watch's to say.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::array::DeferredArray;
use crate::future::future;
use crate::shards::{connection, in_program};
use crate::{ending, state};

/// Whether there is a prompt over several shards.
static PROMPTED: AtomicBool = AtomicBool::new(false);
/// Whether it is between two inputs.
static RESTS: AtomicBool = AtomicBool::new(false);

/// To be called by the program's thread before a launch: refuses it between two inputs; an interrupt takes effect.
pub(crate) fn before_operation() -> PyResult<()> {
    if RESTS.load(Ordering::Relaxed) {
        return Err(PyRuntimeError::new_err(
            "an array that is spread over several shards can be used by inputs and cells only, which run on all of them",
        ));
    }
    pass_gate()
}

/// Stands still while the shards agree on an interrupt, and raises it.
pub(crate) fn pass_gate() -> PyResult<()> {
    let Some(connection) = connection().filter(|connection| connection.gate.is_minded()) else { return Ok(()) };
    let done = connection.digest.now().0 + connection.gate.steps();
    if Python::attach(|py| py.detach(|| connection.gate.stand(done))) {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    Ok(())
}

/// To be called before work that is done at once on arrays' memory, which no digest knows of: an interrupt takes effect.
#[inline]
pub(crate) fn step() -> PyResult<()> {
    if PROMPTED.load(Ordering::Relaxed) && in_program() { count_step() } else { Ok(()) }
}

#[cold]
fn count_step() -> PyResult<()> {
    pass_gate()?;
    if let Some(connection) = connection() {
        connection.gate.step();
    }
    Ok(())
}

/// Whether the program's thread is to come to its next operation soon, without waiting for anything.
pub(crate) fn is_in_haste() -> bool {
    PROMPTED.load(Ordering::Relaxed) && connection().is_some_and(|connection| connection.gate.is_minded())
}

/// Says that a prompt is between two inputs, or no longer: what happens there is no part of the program.
#[pyfunction]
fn at_rest(rests: bool) {
    PROMPTED.store(true, Ordering::Relaxed);
    RESTS.store(rests, Ordering::Relaxed);
    if let Some(connection) = connection() {
        connection.watch.rest(rests);
    }
}

/// Shard 0's: has KeyboardInterrupt raised on all shards, at one place of the program.
#[pyfunction]
fn interrupt() {
    if let Some(connection) = connection() {
        connection.watch.interrupt();
    }
}

/// A handler for SIGINT that raises KeyboardInterrupt where `decides()` says so, with no frame of ours in its traceback.
#[pyfunction]
fn interrupt_handler(py: Python<'_>, decides: Py<PyAny>) -> PyResult<Bound<'_, PyCFunction>> {
    let handle = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        if decides.bind(args.py()).call0()?.is_truthy()? { Err(PyKeyboardInterrupt::new_err(())) } else { Ok(()) }
    };
    PyCFunction::new_closure(py, Some(c"interrupt"), None, handle)
}

/// Takes the order to raise KeyboardInterrupt, if there is one.
#[pyfunction]
fn take_interrupt() -> bool {
    connection().is_some_and(|connection| connection.gate.take())
}

/// Whether the watch has sent a signal since this was last asked.
#[pyfunction]
fn was_poked() -> bool {
    ending::POKED.swap(false, Ordering::AcqRel)
}

/// Tells whoever started the job that a prompt has dealt with all interrupts so far.
#[pyfunction]
fn interrupts_served() {
    ending::say_served(connection().and_then(|connection| connection.line));
}

/// Number of the latest launch that the program has waited for; or, given the largest number of any shard, waits for that one, so
/// that all shards take the same values for known.
#[pyfunction]
#[pyo3(signature = (known_to=None))]
fn known(py: Python<'_>, known_to: Option<u64>) -> PyResult<u64> {
    if let Some(sequence) = known_to {
        state::shim(py)?.wait(py, sequence)?;
    }
    Ok(state::known())
}

/// What is the same on every shard for the same deferred array, or future that was not looked at, and no other: numbers. None for
/// anything else.
#[pyfunction]
fn token<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = object.py();
    if let Some(field) = future(object).and_then(|future| future.get().pending_field(py)) {
        return ("future", field.last_write()).into_pyobject(py).map(Some);
    }
    let Ok(array) = object.cast::<DeferredArray>() else { return Ok(None) };
    let shape = array.get().describe(py);
    let (written, bytes) = {
        let storage = array.get().storage(py);
        let field = storage.get().field();
        (field.last_write(), field.bytes())
    };
    let view = (shape.offset, shape.shape.to_vec(), shape.strides.to_vec(), array.get().descr(py).str()?);
    ("array", written, bytes, view.0, view.1, view.2, view.3).into_pyobject(py).map(Some)
}

/// Adds this file's functions to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(at_rest, module)?,
        wrap_pyfunction!(interrupt, module)?,
        wrap_pyfunction!(interrupt_handler, module)?,
        wrap_pyfunction!(take_interrupt, module)?,
        wrap_pyfunction!(was_poked, module)?,
        wrap_pyfunction!(interrupts_served, module)?,
        wrap_pyfunction!(known, module)?,
        wrap_pyfunction!(token, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
