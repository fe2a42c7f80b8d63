//! Replicas: builtin functions that stand before those of Python whose answers or effects would differ between shards.
//!
//! Lives here: the judgement whether a call is the program's own, and so one that all shards make in the same order; and the way it
//! is passed on. Promises that no frame of ours shows in a traceback, that a call made inside such a call reaches Python's own
//! function, and that a replica looks like the function behind it. Does not talk to other shards: `legate.replicate` does.
#![expect(unsafe_code, reason = "replicas are METH_FASTCALL functions over the CPython C API")]

use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, ThreadId};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyString, PyTuple, PyType};

use super::arguments::{Call, Object, vectorcall};
use super::caller::{Caller, caller_of_globals, frames};

/// How a call stands to the other shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// This shard's own business: imports, tracebacks, worker processes, or inside a call that is agreed already.
    Own,
    /// The program's, but not in an order that all shards share: other threads, forked children, the end of the process.
    Aside,
    /// The program's, in program order: every shard makes this call.
    Agreed,
}

/// Modules whose doings are each shard's own, by first or full name.
static OWN: OnceLock<Vec<String>> = OnceLock::new();
/// The thread that runs the program.
static MAIN: OnceLock<ThreadId> = OnceLock::new();
/// The standing of the program's calls in the main thread, as a number: own before the start, aside after the end.
static PROGRAM: AtomicU8 = AtomicU8::new(Standing::Own as u8);
/// Is the main thread inside an agreed call?
static INSIDE: AtomicBool = AtomicBool::new(false);

fn in_main_thread() -> bool {
    MAIN.get().is_some_and(|main| *main == thread::current().id())
}

/// Text under a key of a module's globals.
fn name_of(globals: &Bound<'_, PyAny>) -> Option<String> {
    globals.cast::<PyDict>().ok()?.get_item("__name__").ok()??.extract().ok()
}

/// Is this module one whose doings are each shard's own?
fn is_own(globals: &Bound<'_, PyAny>) -> bool {
    let (Some(own), Some(name)) = (OWN.get(), name_of(globals)) else { return false };
    own.iter()
        .any(|known| name.strip_prefix(known.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Judges the running call. `direct`: only what user code itself calls is the program's; else what libraries call for it, too.
fn standing(py: Python<'_>, direct: bool) -> Standing {
    let main = in_main_thread();
    if main && INSIDE.load(Ordering::Relaxed) {
        return Standing::Own;
    }
    let program = PROGRAM.load(Ordering::Relaxed);
    if program == Standing::Own as u8 {
        return Standing::Own;
    }
    for frame in frames(py) {
        let Ok(globals) = frame.getattr("f_globals") else { continue };
        // SAFETY: the globals of a frame are a dict, alive while we hold it.
        match unsafe { caller_of_globals(py, globals.as_ptr()) } {
            Some(Caller::User) if main && program == Standing::Agreed as u8 => return Standing::Agreed,
            Some(Caller::User) => return Standing::Aside,
            Some(Caller::Library) if is_own(&globals) => return Standing::Own,
            Some(Caller::Library | Caller::NumPy | Caller::Rebound)
                if direct && !name_of(&globals).is_some_and(|name| name.starts_with("legate.")) =>
            {
                return Standing::Own;
            }
            Some(Caller::Library | Caller::NumPy | Caller::Rebound) | None => {}
        }
    }
    // Nobody's in particular: a pool's thread that runs a library function, a library's own function at exit.
    Standing::Aside
}

/// Where a replica's own tuple is in the dict of the module that CPython takes it to be of.
fn row_key(py: Python<'_>) -> Object {
    static KEY: PyOnceLock<Py<PyString>> = PyOnceLock::new();
    KEY.get_or_init(py, || PyString::intern(py, "row").unbind()).as_ptr()
}

/// `replica(*args, **kwargs)`; `of` is a module that holds the tuple (host function, agreed, aside or None, direct).
///
/// # Safety
/// Called by CPython under the METH_FASTCALL | METH_KEYWORDS convention.
unsafe extern "C" fn enter(
    of: Object,
    arguments: *const Object,
    positional: ffi::Py_ssize_t,
    keywords: Object,
) -> Object {
    // SAFETY: called with the GIL held.
    let py = unsafe { Python::assume_attached() };
    let call = Call { of: null_mut(), arguments, positional: positional as usize, keywords };
    // SAFETY: the module that `make_replica` made, kept alive by the function that runs, and the tuple in it.
    let row = unsafe { ffi::PyDict_GetItemWithError(ffi::PyModule_GetDict(of), row_key(py)) };
    // SAFETY: as above.
    let [host, agreed, aside, direct] = [0, 1, 2, 3].map(|index| unsafe { ffi::PyTuple_GetItem(row, index) });
    // SAFETY: live objects.
    let (direct, has_aside) = unsafe { (direct == ffi::Py_True(), aside != ffi::Py_None()) };
    match standing(py, direct) {
        Standing::Own => call.pass(host),
        Standing::Aside => call.pass(if has_aside { aside } else { host }),
        Standing::Agreed => {
            INSIDE.store(true, Ordering::Relaxed);
            let made = call.pass(agreed);
            INSIDE.store(false, Ordering::Relaxed);
            // SAFETY: `NotImplemented` is a live object; what `agreed` gave is ours to give up.
            unsafe {
                if made == ffi::Py_NotImplemented() {
                    ffi::Py_DecRef(made);
                    return call.pass(host);
                }
            }
            if made.is_null() {
                without_our_frames(py);
            }
            made
        }
    }
}

/// Takes the frames of the functions that an agreed call ran off the exception that is set.
fn without_our_frames(py: Python<'_>) {
    if let Some(error) = PyErr::take(py) {
        error.set_traceback(py, None);
        error.restore(py);
    }
}

/// Makes a builtin function that looks like `name` of `module`, with `text` as its documentation. The program's calls go to `agreed`,
/// under an order that all shards share (what is `NotImplemented` to it, to `host` after all); those in no such order to `aside`, if
/// there is one; the rest to `host`. `direct`: only calls that user code itself makes are the program's.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what a function looks like and what it leads to")]
fn make_replica(
    py: Python<'_>,
    name: &str,
    module: &str,
    text: &str,
    host: Py<PyAny>,
    agreed: Py<PyAny>,
    aside: Py<PyAny>,
    direct: bool,
) -> PyResult<Py<PyAny>> {
    if vectorcall().is_none() {
        return Err(PyRuntimeError::new_err("this Python has no PyObject_Vectorcall"));
    }
    // CPython demands that entries are never freed.
    let entry = Box::into_raw(Box::new(ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: enter },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: CString::new(text)?.into_raw(),
    }));
    let module = PyString::intern(py, module);
    let row = PyTuple::new(py, [host, agreed, aside, direct.into_pyobject(py)?.to_owned().into_any().unbind()])?;
    // A function of a module is pickled by its name, and shown like Python's own.
    let of = PyModule::new(py, module.to_str()?)?;
    of.setattr("row", row)?;
    // SAFETY: the entry is never freed and right for its convention; the function takes its own references.
    unsafe {
        let made = ffi::PyCFunction_NewEx(entry, of.as_ptr(), module.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, made)?.unbind())
    }
}

/// From now on the calls of the thread that calls this, the main one, are "agreed" or "aside". `own`: names of modules whose
/// doings are each shard's own.
#[pyfunction]
fn set_standing(standing: &str, own: Vec<String>) -> PyResult<()> {
    let standing = match standing {
        "agreed" => Standing::Agreed,
        "aside" => Standing::Aside,
        other => return Err(PyValueError::new_err(format!("the program is 'agreed' or 'aside', not '{other}'"))),
    };
    if !own.is_empty() {
        drop(OWN.set(own));
        MAIN.get_or_init(|| thread::current().id());
    }
    INSIDE.store(false, Ordering::Relaxed);
    PROGRAM.store(standing as u8, Ordering::Relaxed);
    Ok(())
}

/// How the running call stands: "own", "aside" or "agreed". `direct` as for `make_replica`.
#[pyfunction(name = "standing")]
fn standing_now(py: Python<'_>, direct: bool) -> &'static str {
    match standing(py, direct) {
        Standing::Own => "own",
        Standing::Aside => "aside",
        Standing::Agreed => "agreed",
    }
}

/// Whether the main thread is inside an agreed call from now on; gives back whether it was.
#[pyfunction]
fn set_inside(inside: bool) -> bool {
    INSIDE.swap(inside, Ordering::Relaxed)
}

/// The user's line that runs now: its file and number, or None.
#[pyfunction]
fn user_line(py: Python<'_>) -> PyResult<Option<(String, usize)>> {
    let Some(frame) = super::user_frame(py) else { return Ok(None) };
    let file = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
    Ok(Some((file, frame.getattr("f_lineno")?.extract().unwrap_or(0))))
}

/// Tells Python that the attributes of a class were changed behind its back.
#[pyfunction]
fn class_changed(class: &Bound<'_, PyType>) {
    // SAFETY: a live class, and the GIL is held.
    unsafe { ffi::PyType_Modified(class.as_type_ptr()) }
}

/// Adds this file's functions to the extension module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(make_replica, module)?)?;
    module.add_function(wrap_pyfunction!(set_standing, module)?)?;
    module.add_function(wrap_pyfunction!(standing_now, module)?)?;
    module.add_function(wrap_pyfunction!(set_inside, module)?)?;
    module.add_function(wrap_pyfunction!(user_line, module)?)?;
    module.add_function(wrap_pyfunction!(class_changed, module)?)
}
