//! Small work on resident data, done at once at about NumPy's cost.
//!
//! Python loops over elements or rows of a large matrix meet small views whose values the program has waited for. An
//! operator on such operands is NumPy's own operator on their memory; reading or writing one element is NumPy's own
//! indexing. The choice follows program order alone: what was waited for, never what happens to be done.
#![expect(unsafe_code, reason = "calls CPython's number protocol")]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyTuple};

use crate::array::{DeferredArray, deferred};
use crate::numpy_api;
use crate::state::Shim;

/// A function of CPython's number protocol (`PyNumber_Add`, ...).
pub(crate) type NumberFunction = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// The host form of an operand that needs no waiting, with its number of elements; `None` for any other.
fn host_form<'py>(shim: &Shim, operand: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
    let py = operand.py();
    if let Some(array) = deferred(operand) {
        let size = array.get().count(py);
        if size >= shim.settings.min_chunk {
            return Ok(None);
        }
        return Ok(array.get().resident_alias(py, shim)?.map(|alias| (alias, size)));
    }
    if numpy_api::is_exact_array(operand) {
        let size = numpy_api::geometry(operand).size();
        return Ok((size < shim.settings.min_chunk).then(|| (operand.clone(), size)));
    }
    let number = operand.is_exact_instance_of::<PyFloat>()
        || operand.is_exact_instance_of::<PyInt>()
        || operand.is_exact_instance_of::<PyComplex>()
        || numpy_api::is_scalar(operand);
    Ok(number.then(|| (operand.clone(), 1)))
}

/// An operator on small resident operands; `None` when there is more to it.
pub(crate) fn operate<'py>(
    shim: &Shim,
    function: NumberFunction,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some((one, size)) = host_form(shim, left)? else { return Ok(None) };
    let Some((other, other_size)) = host_form(shim, right)? else { return Ok(None) };
    let may_outgrow = size > 1
        && other_size > 1
        && size * other_size >= shim.settings.min_chunk
        && numpy_api::geometry(&one).shape != numpy_api::geometry(&other).shape;
    if may_outgrow {
        return Ok(None);
    }
    // SAFETY: two live objects under the GIL; a new reference or an error comes back.
    let result = unsafe { Bound::from_owned_ptr_or_err(left.py(), function(one.as_ptr(), other.as_ptr())) }?;
    if result.is(&one) {
        return Ok(Some(left.clone()));
    }
    Ok(Some(result))
}

/// Whether a key is one Python int for each of `axes` axes.
fn is_element(key: &Bound<'_, PyAny>, axes: usize) -> bool {
    match key.cast_exact::<PyTuple>() {
        Ok(items) => items.len() == axes && items.iter_borrowed().all(|item| item.is_exact_instance_of::<PyInt>()),
        Err(_) => axes == 1 && key.is_exact_instance_of::<PyInt>(),
    }
}

/// One element of an array that was waited for; `None` for any other key or array.
pub(crate) fn get<'py>(
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = array.py();
    if !is_element(key, array.get().axes(py)) {
        return Ok(None);
    }
    array.get().resident_alias(py, shim)?.map(|alias| alias.get_item(key)).transpose()
}

/// Sets one element of an array that was waited for, or a small view of it, to a number; `false` for any other.
pub(crate) fn set<'py>(
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let py = array.py();
    let number = value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() || numpy_api::is_scalar(value);
    if !number || !is_element(key, array.get().axes(py)) {
        return Ok(false);
    }
    match array.get().resident_alias(py, shim)? {
        Some(alias) => alias.set_item(key, value).map(|()| true),
        None => Ok(false),
    }
}
