//! `numpy.copyto` onto a deferred array: the same launch as an assignment.
//!
//! Covered are whole copies that need no judgement of casting: `casting='unsafe'` (what `zeros_like` and its kin ask for),
//! equal dtypes, or a Python number of the dtype's kind. Masks and other casting rules go to the host.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::array::deferred;
use crate::host;
use crate::index;
use crate::state::{Shim, array_functions, shim};

/// Enters this file's function for that of the host NumPy.
pub(crate) fn register(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = numpy.py();
    array_functions(py).set_item(numpy.getattr("copyto")?, wrap_pyfunction!(copyto, py)?)
}

/// `numpy.copyto`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn copyto<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let shim = shim(py)?;
    let done = match copied(py, shim, args, kwargs) {
        // A Python number that the dtype cannot hold: the host decides what that means.
        Err(error) if error.is_instance_of::<PyOverflowError>(py) || error.is_instance_of::<PyTypeError>(py) => false,
        other => other?,
    };
    if done {
        return Ok(py.None().into_bound(py));
    }
    host::call(&shim.host(py, "copyto")?, args, kwargs, "copyto")
}

/// Launches the copy; `false` when the host must do it.
fn copied<'py>(
    py: Python<'py>,
    shim: &Shim,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<bool> {
    if args.len() != 2 {
        return Ok(false);
    }
    let (mut unsafe_casts, mut by_kind) = (false, true);
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        match name.cast::<PyString>()?.to_str()? {
            "casting" => {
                unsafe_casts = value.cast::<PyString>().is_ok_and(|rule| rule == "unsafe");
                by_kind = value.cast::<PyString>().is_ok_and(|rule| rule == "same_kind");
            }
            "where" if value.is_exact_instance_of::<PyBool>() && value.is_truthy()? => {}
            _ => return Ok(false),
        }
    }
    let (target, source) = (args.get_item(0)?, args.get_item(1)?);
    let Some(target) = deferred(&target) else { return Ok(false) };
    let same_type = deferred(&source).is_some_and(|source| source.get().descr(py).is(target.get().descr(py)));
    // Python's numbers have no dtype: they are of the same kind if there is such a number in it.
    let kind: char = target.get().descr(py).getattr("kind")?.extract()?;
    let number = (source.is_exact_instance_of::<PyInt>() && "iufc".contains(kind))
        || (source.is_exact_instance_of::<PyFloat>() && "fc".contains(kind));
    let fits = number && by_kind;
    if !(unsafe_casts || same_type || fits) || !target.get().describe(py).is_writeable() {
        return Ok(false);
    }
    index::fill(py, shim, target, &source)
}
