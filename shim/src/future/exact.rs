//! Compiled code that asks for exactly a float or an int: there a future is settled before the call.
//!
//! Lives here: how the function behind a builtin, a method or a slot of a class is replaced, in place,
//! by one that settles futures among the arguments and goes on. Promises that whoever holds the function already gets the
//! new one, and that other arguments are passed as they are. Which functions there are is `legate.scalars`' table.
#![expect(unsafe_code, reason = "replaces function pointers in CPython's method tables and type objects")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::SmallVec;

use super::{future, settled};

type Object = *mut ffi::PyObject;

/// How many functions can be replaced.
const CAPACITY: usize = 32;
/// The functions behind, by slot; 0 in a free one.
static ORIGINAL: [AtomicUsize; CAPACITY] = [const { AtomicUsize::new(0) }; CAPACITY];

/// Bytes from the start of a builtin function to the pointer to its table entry.
const BUILTIN_ENTRY: usize = 16;
/// Bytes from the start of a descriptor of a method to the pointer to its table entry.
const DESCRIPTOR_ENTRY: usize = 40;
/// Bytes from the start of a type object to `tp_init`; `tp_new` is two pointers further. The same in every CPython since 3.8.
const INIT_SLOT: usize = 296;
const NEW_SLOT: usize = 312;
/// As above, to `tp_call`.
const CALL_SLOT: usize = 128;

/// Arguments with futures settled; `None` when there are none.
///
/// # Safety
/// The GIL is held and `arguments` are live objects.
unsafe fn settled_arguments<'py>(
    py: Python<'py>,
    arguments: &[Object],
) -> Option<PyResult<SmallVec<[Bound<'py, PyAny>; 6]>>> {
    // SAFETY: the caller's promise.
    let object = |pointer: &Object| unsafe { Bound::from_borrowed_ptr(py, *pointer) };
    arguments
        .iter()
        .any(|argument| future(&object(argument)).is_some())
        .then(|| arguments.iter().map(|argument| settled(&object(argument))).collect())
}

/// A tuple and a dictionary of arguments with futures settled.
///
/// # Safety
/// The GIL is held; a live tuple, and a live dictionary or null.
unsafe fn settled_call<'py>(
    py: Python<'py>,
    args: Object,
    kwargs: Object,
) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
    // SAFETY: the caller's promise.
    let (args, kwargs) = unsafe { (Bound::from_borrowed_ptr(py, args), Bound::from_borrowed_ptr_or_opt(py, kwargs)) };
    let args = match args.cast::<PyTuple>() {
        Ok(items) if items.iter_borrowed().any(|item| future(&item).is_some()) => {
            let items = items.iter().map(|item| settled(&item)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, items)?.into_any()
        }
        Ok(_) | Err(_) => args,
    };
    let kwargs = match kwargs {
        Some(given)
            if given.cast::<PyDict>().is_ok_and(|given| given.values().iter().any(|v| future(&v).is_some())) =>
        {
            let copy = PyDict::new(py);
            for (name, value) in given.cast::<PyDict>()?.iter() {
                copy.set_item(name, settled(&value)?)?;
            }
            Some(copy.into_any())
        }
        Some(_) | None => kwargs,
    };
    Ok((args, kwargs))
}

/// The pointer to an object that may be absent.
fn pointer(object: &Option<Bound<'_, PyAny>>) -> Object {
    object.as_ref().map_or(std::ptr::null_mut(), |object| object.as_ptr())
}

/// Leaves an error for Python; null.
fn failed(py: Python<'_>, error: PyErr) -> Object {
    error.restore(py);
    std::ptr::null_mut()
}

/// The function behind a slot.
///
/// # Safety
/// The slot is taken by a function of that type.
unsafe fn original<F: Copy>(slot: usize) -> F {
    let address = ORIGINAL[slot].load(Ordering::Relaxed);
    // SAFETY: the caller's promise; function pointers are as large as addresses.
    unsafe { std::mem::transmute_copy::<usize, F>(&address) }
}

type One = unsafe extern "C" fn(Object, Object) -> Object;
type Three = unsafe extern "C" fn(Object, Object, Object) -> Object;
type Fast = unsafe extern "C" fn(Object, *const Object, isize) -> Object;
type FastNamed = unsafe extern "C" fn(Object, *const Object, isize, Object) -> Object;
type Init = unsafe extern "C" fn(Object, Object, Object) -> c_int;

/// METH_O.
///
/// # Safety
/// As CPython calls such a function; so for all that follow.
unsafe extern "C" fn one<const SLOT: usize>(of: Object, argument: Object) -> Object {
    // SAFETY: called with the GIL and live objects; the slot holds such a function.
    unsafe {
        let py = Python::assume_attached();
        match settled(&Bound::from_borrowed_ptr(py, argument)) {
            Ok(settled) => original::<One>(SLOT)(of, settled.as_ptr()),
            Err(error) => failed(py, error),
        }
    }
}

/// METH_VARARGS.
///
/// # Safety
/// As above.
unsafe extern "C" fn several<const SLOT: usize>(of: Object, args: Object) -> Object {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match settled_call(py, args, std::ptr::null_mut()) {
            Ok((args, _)) => original::<One>(SLOT)(of, args.as_ptr()),
            Err(error) => failed(py, error),
        }
    }
}

/// METH_VARARGS | METH_KEYWORDS, `tp_new` and `tp_call`.
///
/// # Safety
/// As above.
unsafe extern "C" fn named<const SLOT: usize>(of: Object, args: Object, kwargs: Object) -> Object {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match settled_call(py, args, kwargs) {
            Ok((args, kwargs)) => original::<Three>(SLOT)(of, args.as_ptr(), pointer(&kwargs)),
            Err(error) => failed(py, error),
        }
    }
}

/// METH_FASTCALL.
///
/// # Safety
/// As above.
unsafe extern "C" fn fast<const SLOT: usize>(of: Object, arguments: *const Object, count: isize) -> Object {
    // SAFETY: as above; the convention gives `count` arguments.
    unsafe {
        let py = Python::assume_attached();
        match settled_arguments(py, given(arguments, count)) {
            None => original::<Fast>(SLOT)(of, arguments, count),
            Some(Ok(settled)) => original::<Fast>(SLOT)(of, addresses(&settled).as_ptr(), count),
            Some(Err(error)) => failed(py, error),
        }
    }
}

/// METH_FASTCALL | METH_KEYWORDS.
///
/// # Safety
/// As above.
unsafe extern "C" fn fast_named<const SLOT: usize>(
    of: Object,
    arguments: *const Object,
    count: isize,
    names: Object,
) -> Object {
    // SAFETY: as above; after the `count` arguments comes one for each name.
    unsafe {
        let py = Python::assume_attached();
        let all = count + if names.is_null() { 0 } else { ffi::PyTuple_Size(names) };
        match settled_arguments(py, given(arguments, all)) {
            None => original::<FastNamed>(SLOT)(of, arguments, count, names),
            Some(Ok(settled)) => original::<FastNamed>(SLOT)(of, addresses(&settled).as_ptr(), count, names),
            Some(Err(error)) => failed(py, error),
        }
    }
}

/// `tp_init`.
///
/// # Safety
/// As above.
unsafe extern "C" fn init<const SLOT: usize>(of: Object, args: Object, kwargs: Object) -> c_int {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        match settled_call(py, args, kwargs) {
            Ok((args, kwargs)) => original::<Init>(SLOT)(of, args.as_ptr(), pointer(&kwargs)),
            Err(error) => {
                error.restore(py);
                -1
            }
        }
    }
}

/// The arguments of a call as a slice.
///
/// # Safety
/// That many live objects are there.
unsafe fn given<'a>(arguments: *const Object, count: isize) -> &'a [Object] {
    // SAFETY: the caller's promise; with no arguments the pointer may be null.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(arguments, count as usize) } }
}

fn addresses(objects: &[Bound<'_, PyAny>]) -> SmallVec<[Object; 6]> {
    objects.iter().map(|object| object.as_ptr()).collect()
}

macro_rules! entries {
    ($entry:ident) => {
        entries!($entry; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    ($entry:ident; $($slot:literal)*) => { [$($entry::<$slot> as *const c_void as usize),*] };
}

/// The entry of a slot for a convention of calls; `None` for one that is not known here.
fn entry(flags: c_int, slot: usize) -> Option<usize> {
    let conventions = ffi::METH_VARARGS | ffi::METH_KEYWORDS | ffi::METH_O | ffi::METH_NOARGS | ffi::METH_FASTCALL;
    let kind = flags & conventions;
    let table: [usize; CAPACITY] = if kind == ffi::METH_O {
        entries!(one)
    } else if kind == ffi::METH_VARARGS {
        entries!(several)
    } else if kind == ffi::METH_VARARGS | ffi::METH_KEYWORDS {
        entries!(named)
    } else if kind == ffi::METH_FASTCALL {
        entries!(fast)
    } else if kind == ffi::METH_FASTCALL | ffi::METH_KEYWORDS && flags & METH_METHOD == 0 {
        entries!(fast_named)
    } else {
        return None;
    };
    Some(table[slot])
}

/// The flag of functions that are told their class.
const METH_METHOD: c_int = 0x0200;

/// A free slot.
fn free_slot() -> PyResult<usize> {
    let free = ORIGINAL.iter().position(|slot| slot.load(Ordering::Relaxed) == 0);
    free.ok_or_else(|| PyRuntimeError::new_err(format!("no room: raise the capacity of {CAPACITY}")))
}

/// Has a builtin function or a method of a class written in C settle futures among its arguments, for all who hold it.
/// Raises TypeError for another object, or one that is called in a way that is not known here.
#[pyfunction]
fn settle_arguments(function: &Bound<'_, PyAny>) -> PyResult<()> {
    let class = function.get_type().name()?.to_string();
    let offset = match class.as_str() {
        "builtin_function_or_method" => BUILTIN_ENTRY,
        "method_descriptor" | "classmethod_descriptor" => DESCRIPTOR_ENTRY,
        _ => return Err(PyTypeError::new_err(format!("{class} is no function written in C"))),
    };
    let slot = free_slot()?;
    // SAFETY: objects of these types have the pointer to their table entry at that offset; entries are written once, with the
    // GIL held, by a function of the same convention.
    unsafe {
        let definition = *function.as_ptr().byte_add(offset).cast::<*mut ffi::PyMethodDef>();
        let Some(entry) = entry((*definition).ml_flags, slot) else {
            return Err(PyTypeError::new_err("it is called in a way that is not known"));
        };
        let place = (&raw mut (*definition).ml_meth).cast::<usize>();
        ORIGINAL[slot].store(*place, Ordering::Relaxed);
        *place = entry;
    }
    Ok(())
}

/// Has a class settle futures among the arguments of its `__new__` ("new"), its `__init__` ("init") or its objects' calls ("call").
/// Raises TypeError where it has no such thing.
#[pyfunction]
fn settle_slot(class: &Bound<'_, PyType>, name: &str) -> PyResult<()> {
    let slot = free_slot()?;
    let (offset, entry) = match name {
        "new" => (NEW_SLOT, entries!(named)[slot]),
        "init" => (INIT_SLOT, entries!(init)[slot]),
        "call" => (CALL_SLOT, entries!(named)[slot]),
        other => return Err(PyTypeError::new_err(format!("a slot is 'new', 'init' or 'call', not '{other}'"))),
    };
    // SAFETY: a type object has these slots at these offsets, of the types of the entries; the GIL is held.
    let before = unsafe { *class.as_ptr().byte_add(offset).cast::<usize>() };
    if before == 0 {
        return Err(PyTypeError::new_err("the class has no such slot"));
    }
    ORIGINAL[slot].store(before, Ordering::Relaxed);
    replace(class, offset, before, entry)
}

/// Replaces a slot of a class, and of those that inherited it.
fn replace(class: &Bound<'_, PyType>, offset: usize, before: usize, after: usize) -> PyResult<()> {
    // SAFETY: as in `settle_slot`.
    unsafe {
        let place = class.as_ptr().byte_add(offset).cast::<usize>();
        if *place != before {
            return Ok(());
        }
        *place = after;
    }
    for derived in class.call_method0("__subclasses__")?.try_iter()? {
        if let Ok(derived) = derived?.cast::<PyType>() {
            replace(derived, offset, before, after)?;
        }
    }
    Ok(())
}

/// Number of modules when the table was last gone through; [`NEVER`] before the first future.
static MODULES: AtomicUsize = AtomicUsize::new(NEVER);
const NEVER: usize = usize::MAX;

/// From now on there are futures.
pub(super) fn begin() {
    if MODULES.load(Ordering::Relaxed) == NEVER {
        MODULES.store(0, Ordering::Relaxed);
    }
}

/// Goes through the table when there are futures, and modules were imported since the last time.
pub(crate) fn look(py: Python<'_>) -> PyResult<()> {
    let before = MODULES.load(Ordering::Relaxed);
    if before == NEVER || before == modules() {
        return Ok(());
    }
    // What follows imports as well.
    MODULES.store(NEVER, Ordering::Relaxed);
    let early = (|| py.import("legate.scalars")?.getattr("enter")?.call0()?.is_truthy())();
    MODULES.store(if matches!(early, Ok(false)) { modules() } else { 0 }, Ordering::Relaxed);
    early.map(|_| ())
}

/// How many modules were imported.
fn modules() -> usize {
    // SAFETY: called with the GIL; a borrowed reference to the dictionary of modules.
    unsafe { ffi::PyDict_Size(ffi::PyImport_GetModuleDict()) as usize }
}

/// Adds this file's functions to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(settle_arguments, module)?)?;
    module.add_function(wrap_pyfunction!(settle_slot, module)?)
}
