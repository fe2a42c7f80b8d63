//! Interception by caller: who asked for `numpy`, and so which `numpy` to give.
//!
//! Lives here: a replaced `builtins.__import__` and `importlib.import_module`. `caller` judges who asks; `front` puts functions of ours
//! before NumPy's, `replica` before Python's; `array_method` looks after classes of the user's own, `lend` after
//! libraries that look at an array's class.
//!
//! Promises: an import of anything but NumPy costs a few nanoseconds more than Python's own; no frame of ours shows in a
//! traceback; the host NumPy is what `sys.modules` holds and what installed packages and the standard library get.
//!
//! Does not decide what user code sees as `numpy`: that is `legate.namespace`, called the first time it is needed.
#![expect(unsafe_code, reason = "the replaced functions are METH_FASTCALL functions over the CPython C API")]

mod arguments;
mod array_method;
mod caller;
mod front;
mod lend;
mod replica;

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyString};

use caller::{Caller, RULES, Reach, Rules, caller, caller_of_globals, caller_outward, judge_globals};
pub(crate) use caller::{called_by_user, class_shown, defers, user_frame};
pub(crate) use lend::lend;

/// Python's own `import_module`, and the Python functions that imports lead to.
struct Replaced {
    import_module: PyOnceLock<Py<PyAny>>,
    namespace: PyOnceLock<Py<PyAny>>,
    library_imported: PyOnceLock<Py<PyAny>>,
    /// Was `library_imported` called for Numba?
    numba_told: AtomicBool,
}

static REPLACED: Replaced = Replaced {
    import_module: PyOnceLock::new(),
    namespace: PyOnceLock::new(),
    library_imported: PyOnceLock::new(),
    numba_told: AtomicBool::new(false),
};

/// Is `name` a `str` that names NumPy or a module inside it?
///
/// # Safety
/// The GIL is held and `name` is a live object.
unsafe fn names(name: *mut ffi::PyObject, package: &[u8]) -> bool {
    // SAFETY: the caller's promise.
    if unsafe { ffi::PyUnicode_Check(name) } == 0 {
        return false;
    }
    let mut length: ffi::Py_ssize_t = 0;
    // SAFETY: a str; the text lives as long as it does.
    let text = unsafe { ffi::PyUnicode_AsUTF8AndSize(name, &mut length) };
    if text.is_null() {
        // SAFETY: a lone surrogate: the real import says what is wrong.
        unsafe { ffi::PyErr_Clear() };
        return false;
    }
    // SAFETY: `length` bytes that CPython just gave.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) };
    text.strip_prefix(package).is_some_and(|rest| matches!(rest.first(), None | Some(b'.')))
}

/// What user code sees instead of the host module `module` (stolen); null with an exception set on failure.
fn twin(py: Python<'_>, module: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let Some(namespace) = REPLACED.namespace.get(py) else { return module };
    // SAFETY: a new reference that the import gave.
    let module = unsafe { Bound::from_owned_ptr(py, module) };
    if is_half_imported(py, "numpy") {
        return module.into_ptr();
    }
    match namespace.bind(py).call1((module,)) {
        Ok(twin) => twin.into_ptr(),
        Err(error) => {
            error.restore(py);
            null_mut()
        }
    }
}

/// Is this package still importing itself? What it imports on the way is its own business, whoever seems to ask.
fn is_half_imported(py: Python<'_>, package: &str) -> bool {
    let initializing = || -> PyResult<bool> {
        let host = py.import("sys")?.getattr("modules")?.get_item(package)?;
        host.getattr("__spec__")?.getattr("_initializing")?.is_truthy()
    };
    initializing().unwrap_or(false)
}

const IMPORT_PARAMETERS: [&CStr; 5] = [c"name", c"globals", c"locals", c"fromlist", c"level"];

/// `__import__(name, globals=None, locals=None, fromlist=(), level=0)`.
///
/// # Safety
/// Called by CPython under the METH_FASTCALL | METH_KEYWORDS convention.
unsafe extern "C" fn import(
    _module: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let mut given = [null_mut::<ffi::PyObject>(); 5];
    // SAFETY: the calling convention gives `positional` arguments, then one for each keyword.
    unsafe {
        if positional as usize > given.len() {
            PyTypeError::new_err(format!("__import__() takes at most 5 arguments ({positional} given)")).restore(py);
            return null_mut();
        }
        for (index, slot) in given.iter_mut().take(positional as usize).enumerate() {
            *slot = *arguments.add(index);
        }
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_Size(keywords) };
        for index in 0..named {
            let keyword = ffi::PyTuple_GetItem(keywords, index);
            let known = |parameter: &&CStr| ffi::PyUnicode_CompareWithASCIIString(keyword, parameter.as_ptr()) == 0;
            let Some(slot) = IMPORT_PARAMETERS.iter().position(known).filter(|&slot| given[slot].is_null()) else {
                PyTypeError::new_err("__import__() got an unexpected or repeated keyword argument").restore(py);
                return null_mut();
            };
            given[slot] = *arguments.add((positional + index) as usize);
        }
    }
    let [name, globals, locals, fromlist, level] = given;
    if name.is_null() {
        PyTypeError::new_err("__import__() missing required argument 'name' (pos 1)").restore(py);
        return null_mut();
    }
    let mut depth: c_int = 0;
    // SAFETY: live objects given by the caller; absent ones are null, which the import takes as Python's defaults.
    unsafe {
        if !level.is_null() {
            let value = ffi::PyLong_AsLong(level);
            if value == -1 && !ffi::PyErr_Occurred().is_null() {
                return null_mut();
            }
            depth = value as c_int;
        }
        let module = ffi::PyImport_ImportModuleLevelObject(name, globals, locals, fromlist, depth);
        if module.is_null() || depth != 0 {
            return module;
        }
        if names(name, b"numpy") {
            let known = !globals.is_null() && ffi::PyDict_Check(globals) != 0;
            let judged = if known { caller_of_globals(py, globals) } else { None };
            if judged.unwrap_or_else(|| if known { caller_outward(py) } else { caller(py) }) == Caller::User {
                return twin(py, module);
            }
        } else if REPLACED.import_module.get(py).is_none() && names(name, b"importlib") {
            replace_import_module(py);
        } else if names(name, b"numba") && !is_half_imported(py, "numba") {
            return tell_numba(py, module);
        }
        if let Err(error) = crate::future::exact::look(py) {
            ffi::Py_DecRef(module);
            error.restore(py);
            return null_mut();
        }
        module
    }
}

/// After the import of Numba's `module` (stolen): tells Numba of deferred arrays, once.
fn tell_numba(py: Python<'_>, module: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let Some(tell) = REPLACED.library_imported.get(py) else { return module };
    if !REPLACED.numba_told.swap(true, Ordering::Relaxed)
        && let Err(error) = tell.call1(py, ("numba",))
    {
        error.restore(py);
        // SAFETY: the reference that the import gave.
        unsafe { ffi::Py_DecRef(module) };
        return null_mut();
    }
    module
}

/// `importlib.import_module(name, package=None)`.
///
/// # Safety
/// Called by CPython under the METH_VARARGS | METH_KEYWORDS convention.
unsafe extern "C" fn import_module(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: called with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let Some(original) = REPLACED.import_module.get(py) else { return null_mut() };
    // SAFETY: live objects given by the caller.
    unsafe {
        let module = ffi::PyObject_Call(original.as_ptr(), arguments, keywords);
        if module.is_null() {
            return module;
        }
        let name = if ffi::PyTuple_Size(arguments) > 0 {
            ffi::PyTuple_GetItem(arguments, 0)
        } else {
            ffi::PyDict_GetItemString(keywords, c"name".as_ptr())
        };
        if names(name, b"numpy") && caller(py) == Caller::User { twin(py, module) } else { module }
    }
}

/// A method table entry that never dies, as CPython demands.
struct Method(ffi::PyMethodDef);

// SAFETY: only CPython reads it, and nobody writes it.
unsafe impl Sync for Method {}

static IMPORT: Method = Method(ffi::PyMethodDef {
    ml_name: c"__import__".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: import },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"Import a module.".as_ptr(),
});

static IMPORT_MODULE: Method = Method(ffi::PyMethodDef {
    ml_name: c"import_module".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionWithKeywords: import_module },
    ml_flags: ffi::METH_VARARGS | ffi::METH_KEYWORDS,
    ml_doc: c"Import a module.".as_ptr(),
});

/// Makes the Python function of `method`, said to be of `module`.
fn function<'py>(py: Python<'py>, method: &'static Method, module: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = PyString::intern(py, module);
    // SAFETY: the entry is static and right for its convention; CPython does not write it.
    unsafe {
        let made = ffi::PyCFunction_NewEx((&raw const method.0).cast_mut(), null_mut(), module.as_ptr());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Replaces `importlib.import_module` once `importlib` is there; what fails leaves Python's own.
fn replace_import_module(py: Python<'_>) {
    let replace = || -> PyResult<()> {
        let modules = py.import("sys")?.getattr("modules")?;
        let Ok(importlib) = modules.get_item("importlib") else { return Ok(()) };
        let Ok(original) = importlib.getattr("import_module") else { return Ok(()) };
        if REPLACED.import_module.set(py, original.unbind()).is_ok() {
            importlib.setattr("import_module", function(py, &IMPORT_MODULE, "importlib")?)?;
        }
        Ok(())
    };
    // A half-imported `importlib` has no such function yet: the next import of it tries again.
    drop(replace());
}

/// Installs interception. `reach` is "user", "all" or "none"; `packages` are installed packages that count as user code,
/// `libraries` the folders of installed code, `standard` the first names of the standard library, and `namespace` the function
/// from a host module to what user code sees instead; `library_imported` is called once with the name of a library that must be told
/// of deferred arrays. Raises ValueError for another `reach`.
#[pyfunction]
fn install_interception(
    py: Python<'_>,
    reach: &str,
    packages: Vec<String>,
    libraries: Vec<String>,
    standard: Vec<String>,
    namespace: Py<PyAny>,
    library_imported: Py<PyAny>,
) -> PyResult<()> {
    let reach = match reach {
        "user" => Reach::User,
        "all" => Reach::All,
        "none" => Reach::Nothing,
        other => return Err(PyValueError::new_err(format!("interception is 'user', 'all' or 'none', not '{other}'"))),
    };
    if RULES.set(Rules { reach, packages, libraries, standard }).is_err() || reach == Reach::Nothing {
        return Ok(());
    }
    drop(REPLACED.namespace.set(py, namespace));
    drop(REPLACED.library_imported.set(py, library_imported));
    py.import("builtins")?.setattr("__import__", function(py, &IMPORT, "builtins")?)?;
    replace_import_module(py);
    array_method::install(py)
}

/// Whose code has these globals: "user", "numpy", "rebound", "library", or None when they do not say.
#[pyfunction]
fn caller_kind(globals: &Bound<'_, PyDict>) -> Option<&'static str> {
    judge_globals(globals).map(Caller::name)
}

/// Is the calling code the user's?
#[pyfunction(name = "called_by_user")]
fn called_by_user_now(py: Python<'_>) -> bool {
    called_by_user(py)
}

/// Adds this file's functions to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(install_interception, module)?)?;
    module.add_function(wrap_pyfunction!(caller_kind, module)?)?;
    module.add_function(wrap_pyfunction!(called_by_user_now, module)?)?;
    front::register(module)?;
    replica::register(module)
}
