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

/// The address of the element that a key of one Python int for each axis names in an array over real memory; `None` for
/// any other key, and for indices that NumPy must refuse.
fn element_address(alias: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> Option<usize> {
    let geometry = numpy_api::geometry(alias);
    let mut address = geometry.data;
    let mut step = |axis: usize, index: &Bound<'_, PyAny>| -> Option<()> {
        if !index.is_exact_instance_of::<PyInt>() {
            return None;
        }
        let index: isize = index.extract().ok()?;
        let length = geometry.shape[axis];
        let place = if index < 0 { index + length } else { index };
        if !(0..length).contains(&place) {
            return None;
        }
        address = address.wrapping_add_signed(place * geometry.strides[axis]);
        Some(())
    };
    match key.cast_exact::<PyTuple>() {
        Ok(items) => {
            if items.len() != geometry.shape.len() || items.is_empty() {
                return None;
            }
            for (axis, item) in items.iter_borrowed().enumerate() {
                step(axis, &item)?;
            }
        }
        Err(_) => {
            if geometry.shape.len() != 1 {
                return None;
            }
            step(0, key)?;
        }
    }
    Some(address)
}

/// Whether a key may name one element: what is looked at before anything is waited for.
fn may_be_element(key: &Bound<'_, PyAny>) -> bool {
    key.is_exact_instance_of::<PyInt>() || key.is_exact_instance_of::<PyTuple>()
}

/// One element of an array that was waited for; `None` for any other key or array.
pub(crate) fn get<'py>(
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !may_be_element(key) {
        return Ok(None);
    }
    let Some(alias) = array.get().resident_alias(array.py(), shim)? else { return Ok(None) };
    if numpy_api::number_letters(&alias).is_none() {
        return Ok(None);
    }
    let Some(address) = element_address(&alias, key) else { return Ok(None) };
    // SAFETY: the element is inside the alias, all of whose launches are done.
    unsafe { numpy_api::scalar_at(&alias, address) }.map(Some)
}

/// Sets one element of an array that was waited for to a number; `false` for any other key, array or value.
pub(crate) fn set<'py>(
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    if !may_be_element(key) {
        return Ok(false);
    }
    let is_float = value.is_instance_of::<PyFloat>();
    if !is_float && !value.is_exact_instance_of::<PyInt>() && !numpy_api::is_scalar(value) {
        return Ok(false);
    }
    let Some(alias) = array.get().resident_alias(array.py(), shim)? else { return Ok(false) };
    if !numpy_api::geometry(&alias).has(numpy_api::flag::WRITEABLE) {
        return Ok(false);
    }
    let Some(address) = element_address(&alias, key) else { return Ok(false) };
    if is_float && matches!(numpy_api::number_letters(&alias), Some((b'f', b'd'))) {
        let number = value.extract::<f64>()?;
        // SAFETY: the element is eight bytes inside the alias, all of whose launches are done, and may be written.
        unsafe { (address as *mut f64).write_unaligned(number) };
        return Ok(true);
    }
    alias.set_item(key, value).map(|()| true)
}
