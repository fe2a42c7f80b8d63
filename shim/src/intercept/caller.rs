//! Callers: whose code is running, judged by its globals (`__name__`, `__file__`), or by the code that runs it.
//!
//! Promises that a judgement costs a look into a dict and a table, since it is asked at every look at a deferred array's class.
//! The rules are data, fixed when interception is installed. Does not import or replace anything.
#![expect(unsafe_code, reason = "the look at the running frame and its globals is CPython C API")]

use std::sync::OnceLock;

use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

/// Whose code is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The script, the prompt, modules beside it, and packages named by the user.
    User,
    /// NumPy's own Python code.
    NumPy,
    /// NumPy's own Python code, rebound to run over deferred arrays.
    Rebound,
    /// Installed packages and the standard library.
    Library,
}

impl Caller {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::NumPy => "numpy",
            Self::Rebound => "rebound",
            Self::Library => "library",
        }
    }
}

/// How far interception reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// User code only.
    User,
    /// Everything but NumPy itself.
    All,
    /// Nothing.
    Nothing,
}

/// What the judgement of a caller rests on; fixed when interception is installed.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) reach: Reach,
    /// Installed packages that count as user code (of NumPy itself: its test modules).
    pub(super) packages: Vec<String>,
    /// Folders of the standard library and of installed packages, each with a slash at its end.
    pub(super) libraries: Vec<String>,
    /// First names of the standard library's modules.
    pub(super) standard: Vec<String>,
}

pub(super) static RULES: OnceLock<Rules> = OnceLock::new();

/// Modules whose globals are the user's: programs, and what runs the user's text in globals of its own.
const USER_MODULES: [&str; 3] = ["__main__", "__mp_main__", "timeit"];

impl Rules {
    /// Judges a module by its name and file; `None` when neither says anything.
    fn judge(&self, name: Option<&str>, file: Option<&str>) -> Option<Caller> {
        if name.is_some_and(|name| USER_MODULES.contains(&name)) {
            return Some(Caller::User);
        }
        if let Some(name) = name {
            let top = name.split('.').next().unwrap_or(name);
            let named = self.packages.iter().any(|package| {
                name.strip_prefix(package.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            match top {
                "numpy" if named && is_test(name) => return Some(Caller::User),
                "numpy" => return Some(Caller::NumPy),
                // `importlib` runs for whoever imports something, NumPy itself included.
                "legate" | "importlib" => return Some(Caller::Library),
                _ if named || self.reach == Reach::All => return Some(Caller::User),
                _ => {}
            }
            if file.is_none() && self.standard.iter().any(|module| module == top) {
                return Some(Caller::Library);
            }
        }
        let file = file?;
        let installed = file.contains("/site-packages/")
            || file.contains("/dist-packages/")
            || self.libraries.iter().any(|folder| file.starts_with(folder.as_str()));
        Some(if installed { Caller::Library } else { Caller::User })
    }
}

/// Is this one of NumPy's test modules?
fn is_test(name: &str) -> bool {
    name.split('.').any(|part| part == "tests") || name.ends_with(".conftest")
}

/// One remembered judgement: globals and name by address, the name kept alive so that its address stays its own.
struct Judged {
    globals: usize,
    name: usize,
    caller: Caller,
}

/// Remembered judgements, by the address of the globals. Touched only with the GIL held, so never contended.
static JUDGED: Mutex<[Option<Judged>; SLOTS]> = Mutex::new([const { None }; SLOTS]);
const SLOTS: usize = 512;

/// Judges the owner of `globals`; `None` when they name no module and no file.
///
/// # Safety
/// The GIL is held and `globals` is a live `dict`.
pub(super) unsafe fn caller_of_globals(py: Python<'_>, globals: *mut ffi::PyObject) -> Option<Caller> {
    // SAFETY: the caller's promise; a borrowed reference, or null without an exception set.
    let name = unsafe { ffi::PyDict_GetItemWithError(globals, name_key(py)) };
    let slot = (globals as usize >> 5) % SLOTS;
    if !name.is_null()
        && let Some(known) = &JUDGED.lock()[slot]
        && known.globals == globals as usize
        && known.name == name as usize
    {
        return Some(known.caller);
    }
    // SAFETY: the caller's promise.
    let dict = unsafe { Bound::from_borrowed_ptr(py, globals) };
    let caller = judge_globals(dict.cast::<PyDict>().ok()?)?;
    if !name.is_null() {
        // SAFETY: a live object; the reference is given up when the slot is taken by another.
        unsafe { ffi::Py_IncRef(name) };
        let before = JUDGED.lock()[slot].replace(Judged { globals: globals as usize, name: name as usize, caller });
        if let Some(before) = before {
            // SAFETY: the slot owned this reference.
            unsafe { ffi::Py_DecRef(before.name as *mut ffi::PyObject) };
        }
    }
    Some(caller)
}

fn name_key(py: Python<'_>) -> *mut ffi::PyObject {
    static KEY: PyOnceLock<Py<PyString>> = PyOnceLock::new();
    KEY.get_or_init(py, || PyString::intern(py, "__name__").unbind()).as_ptr()
}

fn text_of(globals: &Bound<'_, PyDict>, key: &str) -> Option<String> {
    globals.get_item(key).ok().flatten()?.extract().ok()
}

/// What `legate.rebind` puts into the globals of rebound code.
const REBOUND: &str = "__rebound__";

pub(super) fn judge_globals(globals: &Bound<'_, PyDict>) -> Option<Caller> {
    if globals.contains(REBOUND).unwrap_or(false) {
        return Some(Caller::Rebound);
    }
    let name = text_of(globals, "__name__");
    let file = text_of(globals, "__file__").or_else(|| {
        let spec = globals.get_item("__spec__").ok().flatten()?;
        let origin: String = spec.getattr("origin").ok()?.extract().ok()?;
        origin.contains('/').then_some(origin)
    });
    RULES.get()?.judge(name.as_deref(), file.as_deref())
}

/// The running Python frame and those that wait for it, innermost first.
pub(super) fn frames(py: Python<'_>) -> impl Iterator<Item = Bound<'_, PyAny>> {
    // SAFETY: the GIL is held; a borrowed reference, or null when no Python code runs.
    let innermost = unsafe { ffi::PyEval_GetFrame() };
    // SAFETY: as above.
    let innermost = unsafe { Bound::from_borrowed_ptr_or_opt(py, innermost.cast::<ffi::PyObject>()) };
    std::iter::successors(innermost, |frame| frame.getattr("f_back").ok().filter(|back| !back.is_none()))
}

/// Judges the code of a frame by its globals.
pub(super) fn caller_of_frame(frame: &Bound<'_, PyAny>) -> Option<Caller> {
    let globals = frame.getattr("f_globals").ok()?;
    judge_globals(globals.cast::<PyDict>().ok()?)
}

/// Walks outward from the running frame to the first code that says whose it is.
pub(super) fn caller_outward(py: Python<'_>) -> Caller {
    frames(py).find_map(|frame| caller_of_frame(&frame)).unwrap_or(Caller::User)
}

/// The innermost frame of user code: the line that the user wrote.
pub(crate) fn user_frame(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    frames(py).find(|frame| caller_of_frame(frame) == Some(Caller::User))
}

/// Whose code is the innermost running Python frame?
pub(crate) fn caller(py: Python<'_>) -> Caller {
    // SAFETY: the GIL is held; a borrowed reference, or null when no Python code runs.
    let globals = unsafe { ffi::PyEval_GetGlobals() };
    if globals.is_null() {
        return Caller::User;
    }
    // SAFETY: the running frame keeps its globals, a dict, alive.
    unsafe { caller_of_globals(py, globals) }.unwrap_or_else(|| caller_outward(py))
}

/// Does the running code see a deferred array as `numpy.ndarray`? User code and NumPy's own Python code do.
pub(crate) fn class_shown(py: Python<'_>) -> bool {
    caller(py) != Caller::Library
}

/// May the running code's operations on host arrays give deferred results? Those of user code and of rebound code may; NumPy's own code
/// expects of its host arrays what it made them.
pub(crate) fn defers(py: Python<'_>) -> bool {
    matches!(caller(py), Caller::User | Caller::Rebound)
}

/// Is the running code the user's?
pub(crate) fn called_by_user(py: Python<'_>) -> bool {
    caller(py) == Caller::User
}
