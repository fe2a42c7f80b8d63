//! Fronts: builtin functions that stand before NumPy's own in user code and choose between the host array and the deferred one.
//!
//! Lives here: the choice, by the size of the result or by an operand, from a rule given as data when the front is made; and
//! the way a call is passed on. Promises that a call on small input costs some 20 ns more than NumPy's own, that
//! no frame of ours shows in a traceback, and that a front looks like the function behind it (name, module, text, signature).
//!
//! Does not make arrays: `large` is what Python gave for large results, and `adopt` takes over what NumPy made.
#![expect(unsafe_code, reason = "fronts are METH_FASTCALL functions over the CPython C API")]

use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, AtomicPtr, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyString, PyType};

use super::arguments::{Call, Direct, Object, elements, is_number, plain_elements, range, vectorcall, whole};
use super::caller::defers;

/// How a front tells that its result will be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A shape at this position or by this name: `zeros`.
    Shape(usize, &'static str),
    /// As [`Rule::Shape`], times the number of dimensions: `indices`.
    Grid(usize, &'static str),
    /// Rows, then columns (absent: as many): `eye`.
    Square,
    /// `arange`.
    Range,
    /// A number of samples at this position or by this name: `linspace`.
    Number(usize, &'static str),
    /// Known only from what NumPy made, which is then adopted; a deferred operand goes to `large`: `concatenate`.
    Made,
    /// As [`Rule::Made`], of the elements of the operand at position 0: `array`.
    Taken,
    /// A host operand at position 0 that is large itself; a deferred one is NumPy's to dispatch: `zeros_like`.
    Like,
    /// A shape by the name `size` at this position, or any argument is deferred: draws of random numbers.
    Draw(usize),
    /// All positional arguments are the shape: `rand`.
    Dimensions,
    /// Any argument is deferred: functions that NumPy does not dispatch.
    Operand,
    /// `large` alone decides.
    Always,
    /// `large` is given what NumPy made, then the arguments.
    After,
}

/// The names of the rules for Python.
const RULES: [(&str, Rule); 19] = [
    ("shape", Rule::Shape(0, "shape")),
    ("second_shape", Rule::Shape(1, "shape")),
    ("grid", Rule::Grid(0, "dimensions")),
    ("square", Rule::Square),
    ("count", Rule::Number(0, "n")),
    ("window", Rule::Number(0, "M")),
    ("range", Rule::Range),
    ("samples", Rule::Number(2, "num")),
    ("made", Rule::Made),
    ("taken", Rule::Taken),
    ("like", Rule::Like),
    ("draw0", Rule::Draw(0)),
    ("draw1", Rule::Draw(1)),
    ("draw2", Rule::Draw(2)),
    ("draw3", Rule::Draw(3)),
    ("dimensions", Rule::Dimensions),
    ("operand", Rule::Operand),
    ("always", Rule::Always),
    ("after", Rule::After),
];

/// One front: NumPy's function, what serves large results (nothing, or `NotImplemented` from it: NumPy's function over aliases),
/// and the rule between them.
struct Front {
    name: String,
    host: Py<PyAny>,
    direct: Option<Direct>,
    large: Option<Py<PyAny>>,
    rule: Rule,
    /// Stands inside a function that everybody shares: acts only where user code or rebound code is at that very operation.
    shared: bool,
}

/// What fronts share; set once by Python.
struct Shared {
    deferred: Py<PyType>,
    adopt: Py<PyAny>,
    host_call: Py<PyAny>,
}

static FRONTS: [OnceLock<Front>; CAPACITY] = [const { OnceLock::new() }; CAPACITY];
static SHARED: PyOnceLock<Shared> = PyOnceLock::new();
/// The type of host arrays.
static ARRAY: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(null_mut());
/// Elements from which on a result is large.
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);

/// NumPy's array structure, as far as a size needs it: fixed by NumPy's C API.
#[repr(C)]
struct ArrayHead {
    object: ffi::PyObject,
    data: *mut u8,
    dimensions: c_int,
    shape: *const isize,
    strides: *const isize,
    base: Object,
    dtype: Object,
    flags: c_int,
}

/// NPY_ARRAY_OWNDATA.
const OWNS_DATA: c_int = 4;

/// The number of elements of a host array of the exact type, or `None` for another object.
#[inline]
fn host_size(object: Object) -> Option<isize> {
    // SAFETY: a live object; the exact type says that it has NumPy's structure.
    unsafe { (ffi::Py_TYPE(object) == ARRAY.load(Ordering::Relaxed)).then(|| elements_of(object)) }
}

/// The number of elements of an array.
///
/// # Safety
/// A live array, of `numpy.ndarray` or a subclass.
unsafe fn elements_of(array: Object) -> isize {
    // SAFETY: the caller's: such objects have NumPy's structure.
    unsafe {
        let head = &*array.cast::<ArrayHead>();
        let lengths = (0..head.dimensions as usize).map(|axis| *head.shape.add(axis));
        lengths.fold(1, isize::saturating_mul)
    }
}

impl Front {
    /// Whether a look at the positional arguments tells that the result is small: for most calls on small input all that is asked.
    ///
    /// # Safety
    /// That many live arguments.
    #[inline]
    unsafe fn is_plainly_small(&self, arguments: *const Object, positional: usize) -> bool {
        let limit = LIMIT.load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe {
            let is_small = |position: usize| plain_elements(*arguments.add(position)).is_some_and(|size| size < limit);
            if let Rule::Shape(position, _) | Rule::Number(position, _) = self.rule {
                return position < positional && is_small(position);
            }
            if self.rule == Rule::Range {
                return positional == 1 && is_small(0);
            }
            if self.rule != Rule::Taken || positional == 0 {
                return false;
            }
            let first = *arguments;
            if ffi::Py_TYPE(first) == &raw mut ffi::PyList_Type {
                return (1..limit).contains(&ffi::PyList_Size(first)) && is_number(ffi::PyList_GetItem(first, 0));
            }
            host_size(first).is_some_and(|size| size < limit)
        }
    }

    fn call(&self, py: Python<'_>, call: Call) -> Object {
        let limit = LIMIT.load(Ordering::Relaxed);
        let size = match self.rule {
            Rule::Shape(position, name) => elements(call.get(position, name)).map(|found| found.0),
            Rule::Grid(position, name) => {
                elements(call.get(position, name)).map(|(size, rank)| size.saturating_mul(rank))
            }
            Rule::Square => whole(call.get(0, "N"))
                .map(|rows| rows.max(0).saturating_mul(whole(call.get(1, "M")).unwrap_or(rows).max(0))),
            Rule::Number(position, name) => whole(call.get(position, name)),
            Rule::Range => range(call),
            Rule::Made | Rule::Taken => return self.made(py, call, limit),
            // SAFETY: at least one argument was given.
            Rule::Like if call.positional > 0 => host_size(unsafe { *call.arguments }),
            Rule::Like => None,
            Rule::Draw(position) => elements(call.get(position, "size"))
                .map(|found| found.0)
                .filter(|&size| size >= limit)
                .or_else(|| SHARED.get(py).filter(|shared| call.any_is(&shared.deferred)).map(|_| isize::MAX)),
            Rule::Dimensions => (0..call.positional).try_fold(1_isize, |product, index| {
                whole(call.get(index, "")).map(|length| product.saturating_mul(length.max(0)))
            }),
            Rule::Operand => SHARED.get(py).filter(|shared| call.any_is(&shared.deferred)).map(|_| isize::MAX),
            Rule::Always => Some(isize::MAX),
            Rule::After => return self.after(call),
        };
        let large = size.is_some_and(|size| size >= limit) && self.acts(py);
        if large { self.large(py, call) } else { self.host(call) }
    }

    /// What NumPy makes.
    #[inline]
    fn host(&self, call: Call) -> Object {
        call.pass_to(self.direct.as_ref(), self.host.as_ptr())
    }

    /// May this front make something else than the host's result for the running code? Compiled code has no frame, and what it calls
    /// stays the host's.
    fn acts(&self, py: Python<'_>) -> bool {
        crate::shards::in_program()
            && (!self.shared
                || (defers(py) && crate::frames::running_instruction_names(py, &self.name_text(py)).unwrap_or(false)))
    }

    fn name_text<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        PyString::new(py, &self.name).into_any()
    }

    /// What serves large results.
    fn large(&self, py: Python<'_>, call: Call) -> Object {
        if let Some(large) = &self.large {
            let made = call.pass(large.as_ptr());
            // SAFETY: `NotImplemented` is a live object; what `large` gave is ours to give up.
            unsafe {
                if made != ffi::Py_NotImplemented() {
                    return made;
                }
                ffi::Py_DecRef(made);
            }
        }
        let Some(shared) = SHARED.get(py) else { return self.host(call) };
        let made = call.unpacked(py).and_then(|(positional, named)| {
            shared.host_call.call1(py, (&self.host, positional, named, self.name.as_str()))
        });
        match made {
            Ok(made) => made.into_ptr(),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        }
    }

    /// Lets NumPy make something, and `large` something else of it.
    fn after(&self, call: Call) -> Object {
        let made = self.host(call);
        let Some(large) = self.large.as_ref().filter(|_| !made.is_null()) else { return made };
        let result = Call { of: made, ..call }.pass(large.as_ptr());
        // SAFETY: the reference that NumPy gave.
        unsafe { ffi::Py_DecRef(made) };
        result
    }

    /// Lets NumPy make the array, and has it adopted when it is large and nobody else holds it.
    fn made(&self, py: Python<'_>, call: Call, limit: isize) -> Object {
        let Some(shared) = SHARED.get(py) else { return self.host(call) };
        let deferred = shared.deferred.as_ptr().cast::<ffi::PyTypeObject>();
        // SAFETY: live objects given by the caller; a list or tuple is looked into while it lives.
        unsafe {
            let first = if call.positional > 0 { *call.arguments } else { null_mut() };
            if !first.is_null() {
                let inside = if ffi::PyList_Check(first) != 0 && ffi::PyList_Size(first) > 0 {
                    ffi::PyList_GetItem(first, 0)
                } else if ffi::PyTuple_Check(first) != 0 && ffi::PyTuple_Size(first) > 0 {
                    ffi::PyTuple_GetItem(first, 0)
                } else {
                    first
                };
                if ffi::Py_TYPE(inside) == deferred {
                    return self.large(py, call);
                }
            }
            // What is copied of a mapped file lives where its rows are.
            if self.rule == Rule::Taken
                && !first.is_null()
                && crate::mapped::is_mapped(Bound::ref_from_ptr(py, &first))
                && crate::state::is_several()
                && elements_of(first) >= limit
                && self.acts(py)
            {
                return self.large(py, call);
            }
            let made = self.host(call);
            if made.is_null() || host_size(made).is_none_or(|size| size < limit) || !self.acts(py) {
                return made;
            }
            let head = &*made.cast::<ArrayHead>();
            if ffi::Py_REFCNT(made) != 1 || head.flags & OWNS_DATA == 0 {
                return made;
            }
            let adopted = ffi::PyObject_CallFunctionObjArgs(shared.adopt.as_ptr(), made, null_mut::<ffi::PyObject>());
            ffi::Py_DecRef(made);
            adopted
        }
    }
}

/// The function of slot `SLOT`, as CPython calls it.
///
/// # Safety
/// Called by CPython under the METH_FASTCALL | METH_KEYWORDS convention.
unsafe extern "C" fn enter<const SLOT: usize>(
    of: Object,
    arguments: *const Object,
    positional: ffi::Py_ssize_t,
    keywords: Object,
) -> Object {
    // SAFETY: called with the GIL held.
    let py = unsafe { Python::assume_attached() };
    match FRONTS[SLOT].get() {
        // SAFETY: the convention gives that many live arguments.
        Some(front) if of.is_null() && unsafe { front.is_plainly_small(arguments, positional as usize) } => {
            let call = Call { of, arguments, positional: positional as usize, keywords };
            call.pass_to(front.direct.as_ref(), front.host.as_ptr())
        }
        Some(front) => front.call(py, Call { of, arguments, positional: positional as usize, keywords }),
        None => null_mut(),
    }
}

/// How many fronts there can be.
const CAPACITY: usize = 256;

macro_rules! entries {
    ($($row:literal)*) => { [$(
        enter::<{ $row }>, enter::<{ $row + 1 }>, enter::<{ $row + 2 }>, enter::<{ $row + 3 }>,
        enter::<{ $row + 4 }>, enter::<{ $row + 5 }>, enter::<{ $row + 6 }>, enter::<{ $row + 7 }>,
        enter::<{ $row + 8 }>, enter::<{ $row + 9 }>, enter::<{ $row + 10 }>, enter::<{ $row + 11 }>,
        enter::<{ $row + 12 }>, enter::<{ $row + 13 }>, enter::<{ $row + 14 }>, enter::<{ $row + 15 }>
    ),*] };
}

const ENTRIES: [ffi::PyCFunctionFastWithKeywords; CAPACITY] =
    entries!(0 16 32 48 64 80 96 112 128 144 160 176 192 208 224 240);

/// How a front looks, and whether it stands inside a function that everybody shares.
struct Look<'text> {
    name: &'text str,
    text: &'text str,
    shared: bool,
}

/// Puts a front into a free slot and makes CPython's entry for it, which is never freed, as CPython demands.
fn enter_front(
    py: Python<'_>,
    front: Look<'_>,
    rule: &str,
    host: Py<PyAny>,
    large: Py<PyAny>,
) -> PyResult<*mut ffi::PyMethodDef> {
    let Look { name, text, shared } = front;
    let Some(&(_, rule)) = RULES.iter().find(|row| row.0 == rule) else {
        return Err(PyValueError::new_err(format!("no rule '{rule}' for a front")));
    };
    if vectorcall().is_none() {
        return Err(PyRuntimeError::new_err("this Python has no PyObject_Vectorcall"));
    }
    let Some(slot) = FRONTS.iter().position(|slot| slot.get().is_none()) else {
        return Err(PyRuntimeError::new_err(format!(
            "no room for the front '{name}': raise the capacity of {CAPACITY}"
        )));
    };
    let large = (!large.is_none(py)).then_some(large);
    let direct = Direct::of(host.bind(py));
    // The GIL is held from the search on, so the slot is still free.
    drop(FRONTS[slot].set(Front { name: name.to_owned(), host, direct, large, rule, shared }));
    Ok(Box::into_raw(Box::new(ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: ENTRIES[slot] },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: CString::new(text)?.into_raw(),
    })))
}

/// Makes a front that looks like `name` of the module `module`, with `text` as its signature and documentation in the form that
/// CPython parses. `rule` is one of the names in this file's table; `large` makes large results, `None` stands for NumPy's function
/// over aliases. Raises ValueError for another rule, RuntimeError past the capacity.
#[pyfunction]
fn make_front(
    py: Python<'_>,
    name: &str,
    module: &str,
    text: &str,
    rule: &str,
    host: Py<PyAny>,
    large: Py<PyAny>,
) -> PyResult<Py<PyAny>> {
    let entry = enter_front(py, Look { name, text, shared: false }, rule, host, large)?;
    let module = PyString::intern(py, module);
    // SAFETY: the entry is never freed and right for its convention.
    unsafe {
        let made = ffi::PyCFunction_NewEx(entry, null_mut(), module.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, made)?.unbind())
    }
}

/// As `make_front`, a method of the class `of`: `host` and `large` are called with the object first.
#[pyfunction]
fn make_front_method(
    py: Python<'_>,
    name: &str,
    of: Py<PyType>,
    text: &str,
    rule: &str,
    host: Py<PyAny>,
    large: Py<PyAny>,
) -> PyResult<Py<PyAny>> {
    let entry = enter_front(py, Look { name, text, shared: false }, rule, host, large)?;
    // SAFETY: the entry is never freed and right for its convention; the descriptor checks the type of the object.
    unsafe {
        let made = ffi::PyDescr_NewMethod(of.as_ptr().cast(), entry);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.unbind())
    }
}

/// The structure of NumPy's dispatched functions, as far as the function that serves plain operands.
#[repr(C)]
struct Dispatcher {
    object: ffi::PyObject,
    vectorcall: *mut libc::c_void,
    dictionary: Object,
    relevant: Object,
    implementation: Object,
}

/// Puts a front inside a dispatched function of NumPy, before what it does when no operand takes over: the function stays
/// itself for those who compare it. It acts only where user code or rebound code is at that very operation. Gives back NumPy's own implementation;
/// raises RuntimeError, changing nothing, where NumPy's structure is not the known one.
#[pyfunction]
fn put_inside(py: Python<'_>, dispatched: Bound<'_, PyAny>, rule: &str, large: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let name: String = dispatched.getattr("__name__")?.extract()?;
    let implementation = dispatched.getattr("_implementation")?;
    let known = dispatched.get_type().name()? == "_ArrayFunctionDispatcher"
        && dispatched.get_type().getattr("__basicsize__")?.extract::<usize>()? >= size_of::<Dispatcher>();
    let inside = dispatched.as_ptr().cast::<Dispatcher>();
    // SAFETY: an object of at least that size.
    if !known || unsafe { (*inside).implementation } != implementation.as_ptr() {
        return Err(PyRuntimeError::new_err(format!("numpy.{name} is not a dispatched function as it is known")));
    }
    let entry =
        enter_front(py, Look { name: &name, text: "", shared: true }, rule, implementation.clone().unbind(), large)?;
    let module = PyString::intern(py, "numpy");
    // SAFETY: the entry is never freed and right for its convention; the field owned a reference, which `implementation` outlives,
    // and now owns the front.
    unsafe {
        let front = Bound::from_owned_ptr_or_err(py, ffi::PyCFunction_NewEx(entry, null_mut(), module.as_ptr()))?;
        let before = std::mem::replace(&mut (*inside).implementation, front.into_ptr());
        ffi::Py_DecRef(before);
    }
    Ok(implementation.unbind())
}

/// Tells fronts what a deferred array and a host array are, how to adopt one and to call NumPy over aliases, and from how many
/// elements on a result is large.
#[pyfunction]
fn set_front_types(
    py: Python<'_>,
    deferred: Py<PyType>,
    array: Py<PyType>,
    adopt: Py<PyAny>,
    host_call: Py<PyAny>,
    limit: usize,
) {
    ARRAY.store(array.into_ptr().cast(), Ordering::Relaxed);
    drop(SHARED.set(py, Shared { deferred, adopt, host_call }));
    LIMIT.store(isize::try_from(limit).unwrap_or(isize::MAX), Ordering::Relaxed);
}

/// Adds this file's functions to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(make_front, module)?)?;
    module.add_function(wrap_pyfunction!(make_front_method, module)?)?;
    module.add_function(wrap_pyfunction!(put_inside, module)?)?;
    module.add_function(wrap_pyfunction!(set_front_types, module)?)
}
