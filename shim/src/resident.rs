//! Small work on resident data, done at once at about NumPy's cost.
//!
//! Python loops over elements or rows of a large matrix meet small views whose values the program has waited for. An
//! operator or ufunc on such operands is NumPy's own on their memory; reading or writing one element is a load or a store; a
//! row of a resident array is NumPy's row of its memory, in a wrapper that makes a phantom only when one is asked for. The
//! choice follows program order alone: what was waited for, never what happens to be done.
//!
//! All here is asked before anything else, for every key and operand, so `None` must come fast. It works on borrowed
//! references: the GIL is held, and NumPy's code is called last.
#![expect(unsafe_code, reason = "borrowed references, and loads and stores of elements")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use legate_runtime::Field;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use crate::array::DeferredArray;
use crate::future::future;
use crate::mapped;
use crate::numpy_api::{self, flag};
use crate::slots::{self, Object};
use crate::storage::{self, Purpose};
use crate::{prompt, state};

/// A function of CPython's number protocol (`PyNumber_Add`, ...).
pub(crate) type NumberFunction = unsafe extern "C" fn(Object, Object) -> Object;

/// Lengths of arrays below which work is small; see `Settings::min_chunk`.
fn small() -> usize {
    state::min_chunk()
}

/// The alias made before, if the program has waited for all that was issued on the field, its memory is where it was, and every
/// shard has its newest values.
pub(crate) fn alias_of<'py>(py: Python<'py>, array: &DeferredArray) -> Option<Bound<'py, PyAny>> {
    // SAFETY: an object that the array keeps, or null; a reference is taken before anybody's code runs.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ready(py, array)) }
}

/// As [`alias_of`], borrowed from the array; null if there is none.
#[inline]
fn ready(py: Python<'_>, array: &DeferredArray) -> Object {
    // SAFETY: nobody's code runs in this function.
    let (alias, storage, phantom) = unsafe { (array.alias.peek(py), array.storage.peek(py), array.phantom.peek(py)) };
    let (Some(alias), Some(storage)) = (alias, storage) else { return std::ptr::null_mut() };
    let field = storage.get().field();
    let stays = field.current_address() == array.origin.load(Ordering::Relaxed);
    // `a.flags` is the phantom's: what it says of writing may have been changed.
    let agrees = phantom.is_none_or(|phantom| {
        let told = |array: &Py<PyAny>| numpy_api::geometry(array.bind(py)).has(flag::WRITEABLE);
        told(phantom) == told(alias)
    });
    if !stays || !agrees || !state::is_synced(field.last_touch()) {
        return std::ptr::null_mut();
    }
    if state::is_several() && !field.is_whole() {
        let address = array.origin.load(Ordering::Relaxed);
        if !numpy_api::bytes_of(alias.bind(py), address).is_ok_and(|bytes| field.is_everywhere(&bytes)) {
            return std::ptr::null_mut();
        }
    }
    if field.is_settled() || settled_apart(py, field) { alias.as_ptr() } else { std::ptr::null_mut() }
}

/// With several shards: makes what is owed, which others may have stored, so that all go the same way. No other thread gets the GIL
/// meanwhile.
#[cold]
fn settled_apart(py: Python<'_>, field: &Arc<Field>) -> bool {
    if !state::is_several() {
        return false;
    }
    storage::settle(state::started(py), field, Purpose::Any);
    true
}

/// What a key of plain indices, slices, new axes and an ellipsis asks of an array; `None` for any other key.
struct Basic {
    /// Whether it names one element by one index for each axis.
    is_element: bool,
}

/// # Safety
/// The key is a live object.
#[inline]
unsafe fn basic(key: Object, axes: usize) -> Option<Basic> {
    // SAFETY: a live object; items are looked at while the tuple lives.
    unsafe {
        if slots::is_int(key) {
            return Some(Basic { is_element: axes == 1 });
        }
        if ffi::Py_TYPE(key) != &raw mut ffi::PyTuple_Type {
            return slots::is_span(key).then_some(Basic { is_element: false });
        }
        let items = ffi::PyTuple_Size(key);
        let mut indices = 0;
        for position in 0..items {
            let item = ffi::PyTuple_GetItem(key, position);
            if slots::is_int(item) {
                indices += 1;
            } else if !slots::is_span(item) {
                return None;
            }
        }
        Some(Basic { is_element: indices == items && items as usize == axes && items > 0 })
    }
}

/// The address of the element that such a key names; `None` for an index that NumPy must refuse.
///
/// # Safety
/// `alias` is an array and the key has one Python int for each of its axes.
#[inline]
unsafe fn element_address(alias: &Bound<'_, PyAny>, key: Object) -> Option<usize> {
    let geometry = numpy_api::geometry(alias);
    let mut address = geometry.data;
    // SAFETY: a Python int, or a tuple of as many as there are axes.
    unsafe {
        let single = slots::is_int(key);
        for (axis, (length, stride)) in geometry.shape.iter().zip(geometry.strides).enumerate() {
            let index = if single { key } else { ffi::PyTuple_GetItem(key, axis as isize) };
            let index = ffi::PyLong_AsSsize_t(index);
            if index == -1 && !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            let place = if index < 0 { index + length } else { index };
            if place < 0 || place >= *length {
                return None;
            }
            address = address.wrapping_add_signed(place * stride);
        }
    }
    Some(address)
}

/// `array[key]` of an array that was waited for: a new reference, or null with an exception set; `None` when there is more to it.
///
/// # Safety
/// Live objects.
#[inline]
pub(crate) unsafe fn get(py: Python<'_>, array: &Bound<'_, DeferredArray>, key: Object) -> Option<Object> {
    let alias = ready(py, array.get());
    if alias.is_null() {
        return None;
    }
    // SAFETY: the array keeps its alias while nobody's code runs; NumPy is called last, with live objects.
    unsafe {
        let known = Bound::ref_from_ptr(py, &alias);
        let basic = basic(key, numpy_api::geometry(known).shape.len())?;
        if basic.is_element {
            numpy_api::number(known)?;
            let address = element_address(known, key)?;
            return Some(numpy_api::scalar_at(known, address));
        }
        let made = ffi::PyObject_GetItem(alias, key);
        if made.is_null() {
            return Some(made);
        }
        let made = Bound::from_owned_ptr(py, made);
        match DeferredArray::view_through(array, made) {
            Ok(view) => Some(view.into_ptr()),
            Err(error) => {
                error.restore(py);
                Some(std::ptr::null_mut())
            }
        }
    }
}

/// `array[key] = value` in an array that was waited for: 0, or -1 with an exception set; `None` when there is more to it.
///
/// # Safety
/// Live objects.
#[inline]
pub(crate) unsafe fn set(py: Python<'_>, array: &Bound<'_, DeferredArray>, key: Object, value: Object) -> Option<i32> {
    let alias = ready(py, array.get());
    if alias.is_null() {
        return None;
    }
    // SAFETY: as in `get`.
    unsafe {
        let known = Bound::ref_from_ptr(py, &alias);
        let geometry = numpy_api::geometry(known);
        if !geometry.has(flag::WRITEABLE) {
            return None;
        }
        let basic = basic(key, geometry.shape.len())?;
        if basic.is_element
            && let Some(number) = numpy_api::number(known)
            && let Some(address) = element_address(known, key)
            && numpy_api::store_number(number, address, value)
        {
            return Some(0);
        }
        let value = operand(py, value)?;
        if basic.is_element {
            return Some(ffi::PyObject_SetItem(alias, key, value.object));
        }
        let made = ffi::PyObject_GetItem(alias, key);
        if made.is_null() {
            return Some(-1);
        }
        let view = Bound::from_owned_ptr(py, made);
        if !numpy_api::is_exact_array(&view) || numpy_api::geometry(&view).size() >= small() {
            return None;
        }
        Some(numpy_api::copy_into(&view, value.object))
    }
}

/// The host form of an operand that needs no waiting: borrowed, from the operand.
struct HostForm {
    object: Object,
    size: usize,
}

/// # Safety
/// A live object.
#[inline]
unsafe fn operand(py: Python<'_>, operand: Object) -> Option<HostForm> {
    // SAFETY: a live object, and what it keeps.
    unsafe {
        let object = if slots::is_deferred(operand) {
            ready(py, slots::as_deferred(py, &operand).get())
        } else if numpy_api::is_exact_array(Bound::ref_from_ptr(py, &operand)) {
            operand
        } else if slots::is_number(operand) || numpy_api::is_scalar(Bound::ref_from_ptr(py, &operand)) {
            return Some(HostForm { object: operand, size: 1 });
        } else {
            // The scalar that a future knows is its own until it ends.
            let scalar = future(Bound::ref_from_ptr(py, &operand))?.get().known_scalar()?;
            return Some(HostForm { object: scalar, size: 1 });
        };
        if object.is_null() {
            return None;
        }
        let size = numpy_api::geometry(Bound::ref_from_ptr(py, &object)).size();
        (size < small()).then_some(HostForm { object, size })
    }
}

/// Whether an operand is one that has no say in what a ufunc does to it: a deferred or host array, a number.
///
/// # Safety
/// A live object.
pub(crate) unsafe fn is_plain(py: Python<'_>, operand: Object) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let object = Bound::ref_from_ptr(py, &operand);
        slots::is_deferred(operand)
            || slots::is_number(operand)
            || mapped::is_read_as_array(object)
            || numpy_api::is_scalar(object)
    }
}

/// Whether the shapes of two small operands may broadcast to something large.
///
/// # Safety
/// Live objects.
#[inline]
unsafe fn may_outgrow(py: Python<'_>, one: &HostForm, other: &HostForm) -> bool {
    // SAFETY: what has more than one element is an array.
    one.size > 1
        && other.size > 1
        && one.size * other.size >= small()
        && unsafe {
            numpy_api::geometry(Bound::ref_from_ptr(py, &one.object)).shape
                != numpy_api::geometry(Bound::ref_from_ptr(py, &other.object)).shape
        }
}

/// An operator on small resident operands, of which one is deferred: a new reference, or null with an exception set; `None` when
/// there is more to it.
///
/// # Safety
/// Live objects.
#[inline]
pub(crate) unsafe fn operate(py: Python<'_>, function: NumberFunction, left: Object, right: Object) -> Option<Object> {
    // SAFETY: live objects, kept by the operands until NumPy's code is called, which takes its own references.
    unsafe {
        let one = operand(py, left)?;
        let other = operand(py, right)?;
        if may_outgrow(py, &one, &other) {
            return None;
        }
        if let Err(interrupt) = prompt::step() {
            interrupt.restore(py);
            return Some(std::ptr::null_mut());
        }
        let result = function(one.object, other.object);
        Some(if result == one.object { stand_in(result, left) } else { result })
    }
}

/// A ufunc called with one or two positional arguments, small and resident, of which one is deferred: as [`operate`].
///
/// # Safety
/// Live objects.
pub(crate) unsafe fn call(
    py: Python<'_>,
    arguments: &[Object],
    ufunc: impl FnOnce(&[Object]) -> Object,
) -> Option<Object> {
    // SAFETY: as in `operate`.
    unsafe {
        let first = operand(py, *arguments.first()?)?;
        if let Err(interrupt) = prompt::step() {
            interrupt.restore(py);
            return Some(std::ptr::null_mut());
        }
        let Some(&second) = arguments.get(1) else { return Some(ufunc(&[first.object])) };
        let other = operand(py, second)?;
        if may_outgrow(py, &first, &other) {
            return None;
        }
        let result = ufunc(&[first.object, other.object]);
        // A second argument may be where the result goes.
        Some(if result == other.object { stand_in(result, second) } else { result })
    }
}

/// Gives the operand instead of its host form, which is given up.
///
/// # Safety
/// `result` is owned, `operand` is live.
unsafe fn stand_in(result: Object, operand: Object) -> Object {
    // SAFETY: the caller's promise.
    unsafe {
        ffi::Py_IncRef(operand);
        ffi::Py_DecRef(result);
        operand
    }
}

/// A method of an array of less than `most` elements that was waited for, with nothing but plain numbers as arguments, that gives a
/// new object: NumPy's own on the memory; `None` when there is more to it.
pub(crate) fn method<'py>(
    array: &Bound<'py, DeferredArray>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    most: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = array.py();
    let plain = |value: &Bound<'py, PyAny>| {
        // SAFETY: a live object.
        value.is_none() || value.is_exact_instance_of::<PyBool>() || unsafe { slots::is_number(value.as_ptr()) }
    };
    let alias = match alias_of(py, array.get()) {
        Some(alias) => alias,
        None if array.get().is_selection(py) || array.get().count(py) >= most => return Ok(None),
        None => match array.get().resident_alias(py, state::started(py))? {
            Some(alias) => alias,
            None => return Ok(None),
        },
    };
    let fits = numpy_api::geometry(&alias).size() < most
        && args.iter().all(|value| plain(&value))
        && kwargs.is_none_or(|kwargs| kwargs.iter().all(|(_, value)| plain(&value)));
    if fits { alias.call_method(name, args, kwargs).map(Some) } else { Ok(None) }
}

/// The memory of two small flat arrays that were waited for, of which one is deferred; `None` for anything else.
pub(crate) fn flat_pair<'py>(
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let py = left.py();
    let flat = |object: &Bound<'py, PyAny>| {
        // SAFETY: a live object, of whose host form a reference is taken before anybody's code runs.
        let form = unsafe { Bound::from_borrowed_ptr(py, operand(py, object.as_ptr())?.object) };
        (numpy_api::is_exact_array(&form) && numpy_api::geometry(&form).shape.len() == 1).then_some(form)
    };
    Some((flat(left)?, flat(right)?))
}
