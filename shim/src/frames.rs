//! The running Python frame: the user's file and line, what the running instruction names, and the value of a context variable.
//!
//! A few functions of CPython's C interface that pyo3's stable-ABI bindings do not name; each is found by name in the
//! interpreter that loaded us.
#![expect(unsafe_code, reason = "CPython functions found by name")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
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

/// What is known of instructions, by the address of their code and their position in it. The code is kept alive, so that its address
/// stays its own; all is forgotten when there is much.
pub(crate) struct Remembered<T>(Mutex<Option<Known<T>>>);

type Known<T> = FxHashMap<(usize, usize), (Py<PyAny>, Arc<T>)>;

/// Most instructions that are remembered.
const MOST: usize = 4096;

impl<T> Remembered<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What is known of the running instruction of the innermost frame, from `find` where it is new.
    pub(crate) fn here(
        &self,
        py: Python<'_>,
        find: impl FnOnce(&Bound<'_, PyAny>, usize) -> PyResult<Option<Arc<T>>>,
    ) -> PyResult<Option<Arc<T>>> {
        let Some((code, position)) = instruction(py) else { return Ok(None) };
        let key = (code.as_ptr() as usize, position);
        if let Some((_, found)) = self.0.lock().as_ref().and_then(|known| known.get(&key)) {
            return Ok(Some(found.clone()));
        }
        let Some(found) = find(&code, position)? else { return Ok(None) };
        let mut known = self.0.lock();
        let table = known.get_or_insert_default();
        let over = if table.len() >= MOST { std::mem::take(table) } else { Known::default() };
        table.insert(key, (code.unbind(), found.clone()));
        drop(known);
        drop(over);
        Ok(Some(found))
    }
}

/// Whether the running instruction of the innermost frame was made from text that has this name.
pub(crate) fn running_instruction_names(py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
    static SAID: Remembered<Py<PyAny>> = Remembered::new();
    let names = SAID.here(py, |code, position| {
        let names = operators::named(py, "legate.calls", "names")?.call1((code, position))?;
        Ok(Some(Arc::new(names.unbind())))
    })?;
    names.map_or(Ok(false), |names| names.bind(py).contains(name))
}

/// Instructions by their names, whose numbers each Python gives anew.
pub(crate) struct Operations {
    names: &'static [&'static str],
    codes: PyOnceLock<Vec<u8>>,
}

impl Operations {
    pub(crate) const fn new(names: &'static [&'static str]) -> Self {
        Self { names, codes: PyOnceLock::new() }
    }

    /// Whether the innermost frame is at one of them.
    pub(crate) fn are_running(&self, py: Python<'_>) -> PyResult<bool> {
        let codes = self.codes.get_or_try_init(py, || {
            let table = py.import("opcode")?.getattr("opmap")?;
            let table = table.cast::<PyDict>()?;
            let found = self.names.iter().filter_map(|name| table.get_item(name).transpose());
            found.map(|code| code?.extract::<u8>()).collect::<PyResult<Vec<u8>>>()
        })?;
        let Some((code, position)) = instruction(py) else { return Ok(false) };
        let bytes = code.getattr(pyo3::intern!(py, "co_code"))?;
        Ok(bytes.cast::<PyBytes>()?.as_bytes().get(position).is_some_and(|operation| codes.contains(operation)))
    }
}

/// Which object a dictionary has under a name, as an identity; 0 for none.
pub(crate) fn identity_in(dictionary: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> usize {
    // SAFETY: live objects; a text is looked up without running anybody's code, and cannot fail.
    unsafe { ffi::PyDict_GetItemWithError(dictionary.as_ptr(), name.as_ptr()) as usize }
}

/// Length of a list and the identity of its first item, 0 for none; `None` for what is no list.
pub(crate) fn list_head(list: &Bound<'_, PyAny>) -> Option<(usize, usize)> {
    let list = list.cast_exact::<PyList>().ok()?;
    let length = list.len();
    // SAFETY: a list with the GIL held; the reference is lent, and only its address is used.
    let first = if length == 0 { 0 } else { unsafe { ffi::PyList_GetItem(list.as_ptr(), 0) as usize } };
    Some((length, first))
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
