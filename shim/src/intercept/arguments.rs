//! The arguments of one call of a front: which stands where, how large a result they ask for, and how they are passed on.
//!
//! Promises that nothing is converted that NumPy would refuse: what is not plainly a number or a shape counts as unknown, with no
//! exception left set. Chooses nothing.
#![expect(unsafe_code, reason = "arguments come as CPython passes them")]

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::SmallVec;

pub(super) type Object = *mut ffi::PyObject;

type Vectorcall = unsafe extern "C" fn(Object, *const Object, usize, Object) -> Object;

/// `PyObject_Vectorcall`: in every CPython since 3.9, in the stable ABI only since 3.12.
pub(super) fn vectorcall() -> Option<Vectorcall> {
    static FOUND: OnceLock<Option<Vectorcall>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: a look-up by name among the symbols of the running interpreter, which has this function with this type.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"PyObject_Vectorcall".as_ptr());
            (!found.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, Vectorcall>(found))
        }
    })
}

/// The C function of a builtin that takes arguments as fronts do, which spares a call through CPython.
pub(super) struct Direct {
    function: ffi::PyCFunctionFastWithKeywords,
    of: Object,
}

// SAFETY: a function and the module that it is bound to, which the builtin keeps; used with the GIL only.
unsafe impl Send for Direct {}
// SAFETY: as above.
unsafe impl Sync for Direct {}

impl Direct {
    /// What there is of that in a function, which must be kept as long as this is used.
    pub(super) fn of(function: &Bound<'_, PyAny>) -> Option<Direct> {
        const CONVENTION: c_int = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
        let function = function.as_ptr();
        // SAFETY: a live builtin; a function of this convention has this type.
        unsafe {
            if ffi::PyCFunction_CheckExact(function) == 0 || ffi::PyCFunction_GetFlags(function) != CONVENTION {
                return None;
            }
            let of = ffi::PyCFunction_GetSelf(function);
            let function = ffi::PyCFunction_GetFunction(function)? as *const ();
            Some(Direct { function: std::mem::transmute::<*const (), ffi::PyCFunctionFastWithKeywords>(function), of })
        }
    }
}

/// The arguments of one call, as CPython passes them.
#[derive(Clone, Copy)]
pub(super) struct Call {
    /// The object whose method this is, or null.
    pub(super) of: Object,
    pub(super) arguments: *const Object,
    pub(super) positional: usize,
    pub(super) keywords: Object,
}

impl Call {
    /// Number of keyword arguments.
    pub(super) fn named(self) -> usize {
        // SAFETY: null or a tuple of names.
        if self.keywords.is_null() { 0 } else { unsafe { ffi::PyTuple_Size(self.keywords) as usize } }
    }

    /// The argument at `position` or of that name, or null.
    pub(super) fn get(self, position: usize, name: &str) -> Object {
        if position < self.positional {
            // SAFETY: that many arguments were given.
            return unsafe { *self.arguments.add(position) };
        }
        for index in 0..self.named() {
            // SAFETY: a tuple of `str`, and an argument for each.
            unsafe {
                let mut length: ffi::Py_ssize_t = 0;
                let text =
                    ffi::PyUnicode_AsUTF8AndSize(ffi::PyTuple_GetItem(self.keywords, index as isize), &mut length);
                if text.is_null() {
                    ffi::PyErr_Clear();
                } else if std::slice::from_raw_parts(text.cast::<u8>(), length as usize) == name.as_bytes() {
                    return *self.arguments.add(self.positional + index);
                }
            }
        }
        null_mut()
    }

    /// Is any argument of exactly this type?
    pub(super) fn any_is(self, wanted: &Py<PyType>) -> bool {
        (0..self.positional + self.named()).any(|index| {
            // SAFETY: that many live arguments were given.
            unsafe { ffi::Py_TYPE(*self.arguments.add(index)) == wanted.as_ptr().cast() }
        })
    }

    /// Calls `function` with these arguments; `direct` is its C function, if that takes them as they are.
    #[inline]
    pub(super) fn pass_to(self, direct: Option<&Direct>, function: Object) -> Object {
        match direct {
            // SAFETY: the arguments came under the same convention.
            Some(direct) if self.of.is_null() => unsafe {
                (direct.function)(direct.of, self.arguments, self.positional as isize, self.keywords)
            },
            Some(_) | None => self.pass(function),
        }
    }

    /// Calls `function` with these arguments.
    pub(super) fn pass(self, function: Object) -> Object {
        let Some(call) = vectorcall() else { return null_mut() };
        if self.of.is_null() {
            // SAFETY: live objects under the same convention; no argument slot before the first is claimed.
            return unsafe { call(function, self.arguments, self.positional, self.keywords) };
        }
        let mut all = SmallVec::<[Object; 8]>::new();
        all.push(self.of);
        // SAFETY: that many live arguments were given.
        all.extend((0..self.positional + self.named()).map(|index| unsafe { *self.arguments.add(index) }));
        // SAFETY: as above, with the object itself as first argument.
        unsafe { call(function, all.as_ptr(), self.positional + 1, self.keywords) }
    }

    /// These arguments as Python sees them: a tuple and a dict.
    pub(super) fn unpacked<'py>(self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        // SAFETY: live objects, borrowed for the call; a tuple of names if any.
        unsafe {
            let given = |index| Bound::from_borrowed_ptr(py, *self.arguments.add(index));
            let of = Bound::from_borrowed_ptr_or_opt(py, self.of);
            let positional =
                PyTuple::new(py, of.into_iter().chain((0..self.positional).map(given)).collect::<Vec<_>>())?;
            let named = PyDict::new(py);
            for index in 0..self.named() {
                let name = Bound::from_borrowed_ptr(py, ffi::PyTuple_GetItem(self.keywords, index as isize));
                named.set_item(name, given(self.positional + index))?;
            }
            Ok((positional, named))
        }
    }
}

/// A whole number, or `None` for what is none (NumPy takes no bool for one; no exception is left set); numbers beyond the machine's
/// are clipped.
pub(super) fn whole(value: Object) -> Option<isize> {
    // SAFETY: a live object.
    unsafe {
        if !value.is_null() && ffi::Py_TYPE(value) == &raw mut ffi::PyLong_Type {
            let number = ffi::PyLong_AsSsize_t(value);
            if number != -1 || ffi::PyErr_Occurred().is_null() {
                return Some(number);
            }
            ffi::PyErr_Clear();
        }
        if value.is_null() || ffi::PyIndex_Check(value) == 0 || ffi::PyBool_Check(value) != 0 {
            return None;
        }
        let number = ffi::PyNumber_AsSsize_t(value, null_mut());
        if number == -1 && !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(number)
    }
}

/// The number of elements of a shape that is a Python int, not negative, or a tuple of such; `None` for any other.
///
/// # Safety
/// A live object.
#[inline]
pub(super) unsafe fn plain_elements(shape: Object) -> Option<isize> {
    // SAFETY: a live object, or an item of a live tuple.
    unsafe {
        let length = |item: Object| {
            // A number that is too large leaves an exception, which the usual way must not find.
            let length = if ffi::Py_TYPE(item) == &raw mut ffi::PyLong_Type { ffi::PyLong_AsSsize_t(item) } else { -2 };
            if length == -1 {
                ffi::PyErr_Clear();
            }
            (length >= 0).then_some(length)
        };
        if ffi::Py_TYPE(shape) != &raw mut ffi::PyTuple_Type {
            return length(shape);
        }
        (0..ffi::PyTuple_Size(shape)).try_fold(1isize, |product, position| {
            Some(product.saturating_mul(length(ffi::PyTuple_GetItem(shape, position))?))
        })
    }
}

/// Whether an object is exactly a Python float or int.
///
/// # Safety
/// A live object.
#[inline]
pub(super) unsafe fn is_number(object: Object) -> bool {
    // SAFETY: the caller's promise.
    let class = unsafe { ffi::Py_TYPE(object) };
    class == &raw mut ffi::PyFloat_Type || class == &raw mut ffi::PyLong_Type
}

/// The number of elements of a shape (a whole number or a tuple or list of them) and its number of dimensions.
pub(super) fn elements(shape: Object) -> Option<(isize, isize)> {
    if shape.is_null() {
        return None;
    }
    // SAFETY: a live object; items are borrowed while the container lives.
    unsafe {
        if ffi::Py_TYPE(shape) == &raw mut ffi::PyLong_Type {
            return whole(shape).map(|number| (number, 1));
        }
        let tuple = ffi::PyTuple_Check(shape) != 0;
        if !tuple && ffi::PyList_Check(shape) == 0 {
            return whole(shape).map(|number| (number, 1));
        }
        let length = if tuple { ffi::PyTuple_Size(shape) } else { ffi::PyList_Size(shape) };
        let mut product: isize = 1;
        for index in 0..length {
            let item = if tuple { ffi::PyTuple_GetItem(shape, index) } else { ffi::PyList_GetItem(shape, index) };
            product = product.saturating_mul(whole(item)?.max(0));
        }
        Some((product, length))
    }
}

/// A finite number as a float, or `None`.
pub(super) fn number(value: Object) -> Option<f64> {
    // SAFETY: a live object.
    unsafe {
        if ffi::Py_TYPE(value) == &raw mut ffi::PyLong_Type
            && let Some(number) = whole(value)
        {
            return Some(number as f64);
        }
        if ffi::PyFloat_Check(value) == 0 && ffi::PyIndex_Check(value) == 0 {
            return None;
        }
        let number = ffi::PyFloat_AsDouble(value);
        if number == -1.0 && !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        number.is_finite().then_some(number)
    }
}

/// The length of `arange`, roughly.
pub(super) fn range(call: Call) -> Option<isize> {
    if call.positional == 0 {
        return None;
    }
    let first = number(call.get(0, "start"))?;
    let stop = call.get(1, "stop");
    let step = call.get(2, "step");
    // SAFETY: `Py_None` is a live object.
    let none = unsafe { ffi::Py_None() };
    let (start, stop) = if stop.is_null() || stop == none { (0.0, first) } else { (first, number(stop)?) };
    let step = if step.is_null() || step == none { 1.0 } else { number(step)? };
    if step == 0.0 { None } else { Some(((stop - start) / step).ceil() as isize) }
}
