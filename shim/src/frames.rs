//! The running Python frame: the user's file and line, what the running instruction names, and the value of a context variable.
//!
//! A few functions of CPython's C interface that pyo3's stable-ABI bindings do not name; each is found by name in the
//! interpreter that loaded us.
#![expect(unsafe_code, reason = "CPython functions found by name")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyTuple};
use rustc_hash::FxHashMap;

use crate::operators;

/// A place in the user's program. Its line is looked up when it is asked for, which takes longer than all else.
pub(crate) struct Place {
    /// Globals of the frame.
    pub(crate) globals: Py<PyAny>,
    code: Py<PyAny>,
    instruction: c_int,
}

impl Place {
    /// File name.
    pub(crate) fn file<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.code.bind(py).getattr(pyo3::intern!(py, "co_filename"))
    }

    /// Line number.
    pub(crate) fn line(&self, _py: Python<'_>) -> c_int {
        // SAFETY: the GIL is held; a code object and the position of an instruction in it.
        unsafe { (functions().code_line)(self.code.as_ptr(), self.instruction) }
    }
}

type Object = *mut ffi::PyObject;

/// The interpreter's functions that are used here.
struct Functions {
    get_globals: unsafe extern "C" fn() -> Object,
    get_frame: unsafe extern "C" fn() -> Object,
    code_line: unsafe extern "C" fn(Object, c_int) -> c_int,
    frame_code: unsafe extern "C" fn(Object) -> Object,
    frame_instruction: unsafe extern "C" fn(Object) -> c_int,
    context_get: unsafe extern "C" fn(Object, Object, *mut Object) -> c_int,
}

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a lookup by name among the loaded libraries.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!found.is_null(), "this Python lacks {name:?}");
    found
}

fn functions() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    // SAFETY: each name has had this signature in every Python since 3.9.
    FUNCTIONS.get_or_init(|| unsafe {
        Functions {
            get_globals: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Object>(symbol(
                c"PyEval_GetGlobals",
            )),
            get_frame: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Object>(symbol(c"PyEval_GetFrame")),
            code_line: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Object, c_int) -> c_int>(symbol(
                c"PyCode_Addr2Line",
            )),
            frame_code: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Object) -> Object>(symbol(
                c"PyFrame_GetCode",
            )),
            frame_instruction: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Object) -> c_int>(symbol(
                c"PyFrame_GetLasti",
            )),
            context_get: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Object, Object, *mut Object) -> c_int>(
                symbol(c"PyContextVar_Get"),
            ),
        }
    })
}

/// Where Python is now; `None` outside of any frame.
pub(crate) fn place(py: Python<'_>) -> Option<Place> {
    let functions = functions();
    // SAFETY: the GIL is held; `get_frame` and `get_globals` lend references, `frame_code` gives one.
    unsafe {
        let frame = (functions.get_frame)();
        if frame.is_null() {
            return None;
        }
        let instruction = (functions.frame_instruction)(frame);
        let globals = Bound::from_borrowed_ptr_or_opt(py, (functions.get_globals)())?;
        let code = Bound::from_owned_ptr_or_opt(py, (functions.frame_code)(frame))?;
        Some(Place { globals: globals.unbind(), code: code.unbind(), instruction })
    }
}

/// The code that runs in the innermost frame, and the byte position of its current instruction.
pub(crate) fn instruction(py: Python<'_>) -> Option<(Bound<'_, PyAny>, usize)> {
    let functions = functions();
    // SAFETY: the GIL is held; `get_frame` lends a reference, `frame_code` gives one.
    unsafe {
        let frame = (functions.get_frame)();
        if frame.is_null() {
            return None;
        }
        let position = (functions.frame_instruction)(frame);
        let code = Bound::from_owned_ptr_or_opt(py, (functions.frame_code)(frame))?;
        Some((code, usize::try_from(position).ok()?))
    }
}

/// Whether the code of the innermost frame mentions one of some names, as a name or a text.
pub(crate) fn running_code_mentions(py: Python<'_>, names: &[&str]) -> PyResult<bool> {
    let Some((code, _)) = instruction(py) else { return Ok(false) };
    for words in [code.getattr(pyo3::intern!(py, "co_names"))?, code.getattr(pyo3::intern!(py, "co_consts"))?] {
        for word in words.cast::<PyTuple>()?.iter_borrowed() {
            if let Ok(word) = word.cast::<PyString>()
                && word.to_str().is_ok_and(|word| names.contains(&word))
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Names by the address of a code and the position of an instruction in it. The code is kept alive, so that its address stays its own.
type Said = FxHashMap<(usize, usize), (Py<PyAny>, Py<PyAny>)>;

/// Most instructions whose names are remembered; the table is emptied when it is full.
const MOST_SAID: usize = 4096;

/// Whether the running instruction of the innermost frame was made from text that has this name.
pub(crate) fn running_instruction_names(py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
    static SAID: Mutex<Option<Said>> = Mutex::new(None);
    let Some((code, position)) = instruction(py) else { return Ok(false) };
    let key = (code.as_ptr() as usize, position);
    let known = SAID.lock().as_ref().and_then(|said| Some(said.get(&key)?.1.clone_ref(py)));
    let names = match known {
        Some(names) => names,
        None => {
            let names = operators::named(py, "legate.calls", "names")?.call1((&code, position))?.unbind();
            let mut said = SAID.lock();
            let table = said.get_or_insert_default();
            let over = if table.len() >= MOST_SAID { std::mem::take(table) } else { Said::default() };
            table.insert(key, (code.unbind(), names.clone_ref(py)));
            drop(said);
            drop(over);
            names
        }
    };
    names.bind(py).contains(name)
}

/// Whether the innermost frame is at an assignment to an element: `target[key] = value`.
pub(crate) fn assigns_an_element(py: Python<'_>) -> PyResult<bool> {
    static CODE: PyOnceLock<u8> = PyOnceLock::new();
    let store =
        CODE.get_or_try_init(py, || py.import("opcode")?.getattr("opmap")?.get_item("STORE_SUBSCR")?.extract())?;
    let Some((code, position)) = instruction(py) else { return Ok(false) };
    let bytes = code.getattr(pyo3::intern!(py, "co_code"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().get(position) == Some(store))
}

/// The value of a context variable that has a default.
pub(crate) fn context_value<'py>(variable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = variable.py();
    let mut value: Object = std::ptr::null_mut();
    // SAFETY: the GIL is held; on success a new reference is given.
    unsafe {
        if (functions().context_get)(variable.as_ptr(), std::ptr::null_mut(), &raw mut value) != 0 {
            return Err(PyErr::fetch(py));
        }
        Bound::from_owned_ptr_or_err(py, value)
    }
}
