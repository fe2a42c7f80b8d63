//! Library code that asks whether a deferred array is a `numpy.ndarray` is given one, and told so.
//!
//! A library that sees an array of another class may convert it, but may also refuse it, or take a mask for labels; one that is told
//! of an ndarray may hand it to compiled code, which only a real one can enter. So at that very question the variables of the
//! library that hold the array, and the attributes of the objects they name, get its export, real memory of the same field. Promises that
//! the variables of user code, NumPy and this package keep what they have, and that the answer is no where nothing holds the array. The
//! frames are Python's own, found in `caller`.
#![expect(unsafe_code, reason = "writes the variables of a frame back through CPython's interface")]

use std::ffi::c_int;
use std::sync::OnceLock;

use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::caller::{Caller, caller_of_frame, frames};
use crate::array::DeferredArray;
use crate::frames::{instruction, running_instruction_names};

type LocalsToFast = unsafe extern "C" fn(*mut ffi::PyObject, c_int);

/// Python's function that takes over what was written to a frame's `f_locals`; until 3.12 they are a copy.
fn locals_to_fast() -> Option<LocalsToFast> {
    static FOUND: OnceLock<Option<LocalsToFast>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: a lookup by name among the loaded libraries; the function has had this signature in every Python that has it.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"PyFrame_LocalsToFast".as_ptr());
            (!found.is_null()).then(|| std::mem::transmute::<*mut std::ffi::c_void, LocalsToFast>(found))
        }
    })
}

/// Whether a frame's code is a library's that may be given real arrays: not this package's own.
fn may_be_lent(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    if caller_of_frame(frame) != Some(Caller::Library) {
        return Ok(false);
    }
    let name = frame.getattr("f_globals")?.get_item("__name__")?;
    Ok(name.extract::<&str>().is_ok_and(|name| name != "legate" && !name.starts_with("legate.")))
}

/// The attributes of an object of a class written in Python.
fn attributes<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    let py = object.py();
    // SAFETY: the GIL is held and the object is alive; the answer is a new reference, or none with an error set.
    unsafe {
        let class = object.get_type();
        if ffi::PyType_GetFlags(class.as_type_ptr()) & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
            return None;
        }
        let found =
            Bound::from_owned_ptr_or_err(py, ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut()));
        found.ok()?.cast_into::<PyDict>().ok()
    }
}

/// Puts the export of the array where a frame's variables, or attributes of what they name, hold it; whether anything does.
fn put(frame: &Bound<'_, PyAny>, array: &Bound<'_, DeferredArray>) -> PyResult<bool> {
    let locals = frame.getattr("f_locals")?;
    let mut places = Vec::new();
    for item in locals.call_method0("items")?.try_iter()? {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        if value.is(array) {
            places.push((locals.clone(), name));
        } else if let Some(attributes) = attributes(&value) {
            let held = attributes.iter().filter(|(_, held)| held.is(array));
            places.extend(held.map(|(name, _)| (attributes.clone().into_any(), name)));
        }
    }
    if places.is_empty() {
        return Ok(false);
    }
    let export = array.get().export(array.py())?;
    for (place, name) in &places {
        place.set_item(name, &export)?;
    }
    if let Some(write_back) = locals_to_fast() {
        // SAFETY: the GIL is held and the frame is alive; 0 keeps variables that the mapping lacks.
        unsafe { write_back(frame.as_ptr(), 0) };
    }
    Ok(true)
}

/// The question that was answered last: the array, and the frame and instruction that asked, by address. One question may look at the
/// class several times, once for each class that it names.
static ANSWERED: Mutex<Option<(usize, usize, usize)>> = Mutex::new(None);

/// Gives the running library code, and the library code that called it, the array's export where it asks for its class; whether it has
/// it now.
pub(crate) fn lend(array: &Bound<'_, DeferredArray>) -> PyResult<bool> {
    let py = array.py();
    if !running_instruction_names(py, pyo3::intern!(py, "ndarray"))? {
        return Ok(false);
    }
    let (Some((_, position)), Some(asking)) = (instruction(py), frames(py).next()) else { return Ok(false) };
    if !may_be_lent(&asking)? {
        return Ok(false);
    }
    let question = (array.as_ptr() as usize, asking.as_ptr() as usize, position);
    if !put(&asking, array)? {
        return Ok(*ANSWERED.lock() == Some(question));
    }
    *ANSWERED.lock() = Some(question);
    for frame in frames(py).skip(1) {
        if !may_be_lent(&frame)? {
            break;
        }
        put(&frame, array)?;
    }
    Ok(true)
}
