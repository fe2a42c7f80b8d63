//! Parts of a batch: one Python function called on each part of some operands, by all threads.
//!
//! NumPy gives up the GIL inside its loops, so that such calls run beside each other. Decides nothing: `legate.batches` knows which
//! functions may be called so, and on what parts.

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::report::How;
use crate::state::{Shim, methods, started};

/// Name of the handler of generalised ufuncs among those of methods.
const HANDLER: &str = "generalised";

/// Calls `function` on each of `parts`, on whatever threads there are; `label` names it in the report. Raises what a call raised first.
#[pyfunction]
pub(crate) fn in_parts(label: &str, function: &Bound<'_, PyAny>, parts: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
    let py = function.py();
    let shim = started(py);
    let parts: Vec<Py<PyAny>> = parts.into_iter().map(Bound::unbind).collect();
    let function = function.clone().unbind();
    let failure: Mutex<Option<PyErr>> = Mutex::new(None);
    let workers = shim.runtime.workers();
    py.detach(|| {
        workers.each(parts.len(), &|part| {
            if failure.lock().is_some() {
                return;
            }
            let done = Python::attach(|py| function.call1(py, (&parts[part],)).map(drop));
            if let Err(error) = done {
                failure.lock().get_or_insert(error);
            }
        });
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    if shim.settings.report {
        shim.report.lock().note(py, label, How::Native, 0, 0.0);
    }
    Ok(())
}

/// The call of a generalised ufunc as the Python side shares it out; `None` for other ufuncs and what is left to the host.
pub(crate) fn generalised<'py>(
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = ufunc.py();
    if shim.shards > 1 || ufunc.getattr(pyo3::intern!(py, "signature"))?.is_none() {
        return Ok(None);
    }
    let Some(handler) = methods(py).get_item(HANDLER)? else { return Ok(None) };
    let options = kwargs.cloned().unwrap_or_else(|| PyDict::new(py));
    let made = handler.call1((ufunc, inputs, options))?;
    Ok((!made.is(py.NotImplemented())).then_some(made))
}
