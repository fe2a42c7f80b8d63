//! `__array__` methods of the user's own classes, whose result NumPy's C code takes only if it is a real array.
//!
//! Lives here: a replaced `builtins.__build_class__` that, for a class of user code with an `__array__` method, puts a descriptor
//! in the method's place; the descriptor hands out a deferred result as its host array. Promises that looking at the method
//! on the class gives the user's function, and that no frame of ours shows. Changes no other class.
#![expect(unsafe_code, reason = "the replaced function is a METH_VARARGS function over the CPython C API")]

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyType};

use super::caller::called_by_user;
use super::{Method, function};
use crate::array::deferred;

/// Python's own `__build_class__`.
static ORIGINAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The user's `__array__` function, in its class.
#[pyclass(frozen, module = "legate")]
struct ArrayMethod {
    function: Py<PyAny>,
}

#[pymethods]
impl ArrayMethod {
    fn __get__<'py>(
        &self,
        instance: Option<&Bound<'py, PyAny>>,
        owner: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = owner.py();
        let plain = self.function.bind(py).call_method1("__get__", (instance, owner))?;
        if instance.is_none() {
            return Ok(plain);
        }
        let method = plain.unbind();
        let hosted = PyCFunction::new_closure(py, Some(c"__array__"), None, move |args, kwargs| {
            let made = method.bind(args.py()).call(args, kwargs)?;
            match deferred(&made) {
                Some(array) => array.get().export(args.py()).map(Bound::unbind),
                None => Ok::<_, PyErr>(made.unbind()),
            }
        })?;
        Ok(hosted.into_any())
    }
}

/// `__build_class__(function, name, *bases, **options)`.
///
/// # Safety
/// Called by CPython under the METH_VARARGS | METH_KEYWORDS convention.
unsafe extern "C" fn build_class(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let Some(original) = ORIGINAL.get(py) else { return null_mut() };
    // SAFETY: live objects given by the caller.
    let made = unsafe { ffi::PyObject_Call(original.as_ptr(), arguments, keywords) };
    if made.is_null() {
        return made;
    }
    // SAFETY: the reference that the call gave.
    let class = unsafe { Bound::from_owned_ptr(py, made) };
    if let Ok(class) = class.cast::<PyType>() {
        // A class that takes no new attribute keeps its method as it is.
        drop(host_array_method(class));
    }
    class.into_ptr()
}

/// Puts the descriptor in the place of the class's own `__array__` function, if user code wrote one.
fn host_array_method(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let own = class.getattr("__dict__")?;
    if !own.contains("__array__")? || !called_by_user(py) {
        return Ok(());
    }
    let written = own.get_item("__array__")?;
    if written.hasattr("__code__")? {
        class.setattr("__array__", ArrayMethod { function: written.unbind() })?;
    }
    Ok(())
}

static BUILD_CLASS: Method = Method(ffi::PyMethodDef {
    ml_name: c"__build_class__".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionWithKeywords: build_class },
    ml_flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
    ml_doc: c"Make a class from the statements of its body.".as_ptr(),
});

/// Replaces `builtins.__build_class__`.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    let builtins = py.import("builtins")?;
    if ORIGINAL.set(py, builtins.getattr("__build_class__")?.unbind()).is_ok() {
        builtins.setattr("__build_class__", function(py, &BUILD_CLASS, "builtins")?)?;
    }
    Ok(())
}
