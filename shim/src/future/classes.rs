//! The classes of futures: one for each dtype, with the name and the dtype of NumPy's scalar class.
//!
//! A class is made when the first future of its dtype is. Python's own texts name it as they name NumPy's class; its
//! metaclass, which Python sets, has it equal NumPy's class. Does not know what futures do.
#![expect(unsafe_code, reason = "makes types through the C interface, for names with a dot")]

use std::ffi::{CString, c_void};

use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::{Future, exact};
use crate::numpy_api;
use crate::state::Shim;

/// Classes made so far, by the dtype's letter.
static CLASSES: Mutex<Vec<(u8, Py<PyType>)>> = Mutex::new(Vec::new());
/// The metaclass.
static KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Sets the metaclass of the classes to be made: a subclass of `type` without storage of its own.
pub(crate) fn set_kind(kind: &Bound<'_, PyAny>) {
    if KIND.set(kind.py(), kind.clone().unbind()).is_ok() {
        crate::slots::note_future_kind(kind);
    }
}

/// A future as an object of the class of its dtype.
pub(super) fn instance<'py>(py: Python<'py>, shim: &Shim, future: Future) -> PyResult<Bound<'py, PyAny>> {
    let class = class(py, shim, future.native.letter)?;
    exact::look(py)?;
    let object = Bound::new(py, future)?.into_any();
    // SAFETY: `class` is a subclass of the object's own class that adds no storage.
    unsafe { numpy_api::set_class(&object, &class) };
    Ok(object)
}

/// The class of the futures of a dtype, by its letter; made when it is first asked for.
pub(crate) fn class<'py>(py: Python<'py>, shim: &Shim, letter: u8) -> PyResult<Bound<'py, PyType>> {
    if let Some((_, class)) = CLASSES.lock().iter().find(|(known, _)| *known == letter) {
        return Ok(class.bind(py).clone());
    }
    let class = made(py, shim, letter)?;
    CLASSES.lock().push((letter, class.clone().unbind()));
    exact::begin();
    Ok(class)
}

fn made<'py>(py: Python<'py>, shim: &Shim, letter: u8) -> PyResult<Bound<'py, PyType>> {
    let descr = shim.dtypes.descr(py, letter);
    let host = descr.getattr("type")?;
    let name: String = host.getattr("__name__")?.extract()?;
    let name = CString::new(format!("numpy.{name}"))?;
    let end = ffi::PyType_Slot { slot: 0, pfunc: std::ptr::null_mut() };
    let mut slots = [end, end];
    if matches!(shim.dtypes.kind(letter), Some(b'i' | b'u')) {
        slots[0] = ffi::PyType_Slot { slot: ffi::Py_nb_index, pfunc: index as *mut c_void };
    }
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as std::ffi::c_uint,
        slots: slots.as_mut_ptr(),
    };
    let bases = pyo3::types::PyTuple::new(py, [py.get_type::<Future>()])?;
    // SAFETY: CPython copies the name and reads the slots during the call; `index` has that slot's type; sizes of 0 are the base's.
    let class =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpecWithBases(&raw mut spec, bases.as_ptr()))? };
    // Some Pythons keep the text itself.
    let _ = name.into_raw();
    class.setattr("dtype", descr)?;
    class.setattr("__doc__", host.getattr("__doc__")?)?;
    if let Some(kind) = KIND.get(py) {
        numpy_api::set_metaclass(&class, kind.bind(py));
    }
    Ok(class.cast_into::<PyType>()?)
}

/// The value of a whole number as an index. Other classes have no such slot, by which Python knows them.
///
/// # Safety
/// Called by CPython on an instance of a class of futures, with the GIL.
unsafe extern "C" fn index(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    let object = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), object) };
    match super::settled(&object) {
        // SAFETY: a live object; a new reference or null with an error comes back.
        Ok(scalar) => unsafe { ffi::PyNumber_Index(scalar.as_ptr()) },
        Err(error) => {
            error.restore(object.py());
            std::ptr::null_mut()
        }
    }
}
