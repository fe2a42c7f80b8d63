//! The array class's own slots for what Python loops do most: indexing and operators.
//!
//! CPython calls a class's operations through tables of function pointers. Those that PyO3 makes are right for everything but cost
//! some 30 ns a call; ours go before them, try what `resident` does at once, and leave the rest to PyO3's. Promises that a table
//! which does not look as it is known to look is left alone. What an operation means is decided elsewhere.
#![expect(unsafe_code, reason = "slots of a class, as CPython calls them")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::PyTypeInfo;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::array::DeferredArray;
use crate::recycle;
use crate::resident;

/// A borrowed object, as CPython hands it over.
pub(crate) type Object = *mut ffi::PyObject;

/// The array class, once its slots are ours.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// Whether an object is a deferred array.
///
/// # Safety
/// A live object.
#[inline]
pub(crate) unsafe fn is_deferred(object: Object) -> bool {
    // SAFETY: the caller's promise.
    unsafe { ffi::Py_TYPE(object) == CLASS.load(Ordering::Relaxed) }
}

/// The metaclass of the classes of futures, once there is one.
static FUTURE_KIND: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());

/// Notes the metaclass of the classes of futures.
pub(crate) fn note_future_kind(kind: &Bound<'_, PyAny>) {
    FUTURE_KIND.store(kind.as_ptr(), Ordering::Relaxed);
}

/// Whether an object is a future.
///
/// # Safety
/// A live object.
#[inline]
pub(crate) unsafe fn is_future(object: Object) -> bool {
    // SAFETY: the caller's promise; a class is an object.
    unsafe { ffi::Py_TYPE(ffi::Py_TYPE(object).cast()).cast() == FUTURE_KIND.load(Ordering::Relaxed) }
}

/// An object that is a deferred array.
///
/// # Safety
/// [`is_deferred`] said so.
#[inline]
pub(crate) unsafe fn as_deferred<'a, 'py>(py: Python<'py>, object: &'a Object) -> &'a Bound<'py, DeferredArray> {
    // SAFETY: the caller's promise.
    unsafe { Bound::ref_from_ptr(py, object).cast_unchecked() }
}

/// Whether an object is exactly a Python int.
///
/// # Safety
/// A live object.
#[inline]
pub(crate) unsafe fn is_int(object: Object) -> bool {
    // SAFETY: the caller's promise.
    unsafe { ffi::Py_TYPE(object) == &raw mut ffi::PyLong_Type }
}

/// Whether an object is a slice, a new axis or the ellipsis.
///
/// # Safety
/// A live object.
#[inline]
pub(crate) unsafe fn is_span(object: Object) -> bool {
    // SAFETY: the caller's promise; the singletons live as long as the interpreter.
    unsafe {
        ffi::Py_TYPE(object) == &raw mut ffi::PySlice_Type || object == ffi::Py_None() || object == ffi::Py_Ellipsis()
    }
}

/// Whether an object is exactly a Python float, int or complex.
///
/// # Safety
/// A live object.
#[inline]
pub(crate) unsafe fn is_number(object: Object) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let class = ffi::Py_TYPE(object);
        class == &raw mut ffi::PyFloat_Type
            || class == &raw mut ffi::PyLong_Type
            || class == &raw mut ffi::PyComplex_Type
    }
}

type Subscript = unsafe extern "C" fn(Object, Object) -> Object;
type AssignSubscript = unsafe extern "C" fn(Object, Object, Object) -> c_int;

/// PyO3's slots, which ours go before.
static SUBSCRIPT: AtomicUsize = AtomicUsize::new(0);
static ASSIGN_SUBSCRIPT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn subscript(array: Object, key: Object) -> Object {
    // SAFETY: CPython calls with the GIL and live objects, the first of this class; what was there before has this type.
    unsafe {
        let py = Python::assume_attached();
        match resident::get(py, as_deferred(py, &array), key) {
            Some(result) => result,
            None => std::mem::transmute::<usize, Subscript>(SUBSCRIPT.load(Ordering::Relaxed))(array, key),
        }
    }
}

unsafe extern "C" fn assign_subscript(array: Object, key: Object, value: Object) -> c_int {
    // SAFETY: as in `subscript`; a null value means deletion.
    unsafe {
        let py = Python::assume_attached();
        if let Err(interrupt) = crate::prompt::step() {
            interrupt.restore(py);
            return -1;
        }
        if !value.is_null()
            && let Some(status) = resident::set(py, as_deferred(py, &array), key, value)
        {
            return status;
        }
        std::mem::transmute::<usize, AssignSubscript>(ASSIGN_SUBSCRIPT.load(Ordering::Relaxed))(array, key, value)
    }
}

/// Byte offsets in a type object of its tables of slots, and of a slot of its own (the same in every CPython since 3.5).
const AS_NUMBER: usize = 96;
const AS_MAPPING: usize = 112;
pub(crate) const DEALLOC: usize = 48;

/// One slot: its number in the stable interface, the table it is in (none: the type itself) and its place there, ours, and where
/// PyO3's is kept.
pub(crate) struct Row {
    slot: c_int,
    table: Option<usize>,
    place: usize,
    ours: usize,
    before: &'static AtomicUsize,
}

impl Row {
    /// A slot that is in the type itself, at a byte offset.
    pub(crate) fn of_class(slot: c_int, offset: usize, ours: usize, before: &'static AtomicUsize) -> Row {
        Row { slot, table: None, place: offset / size_of::<usize>(), ours, before }
    }
}

/// The operators: CPython's function, its slot and the place in the table of numbers.
macro_rules! operators {
    ($($name:ident $function:ident $slot:ident $place:literal;)*) => {
        $(
            mod $name {
                use super::{AtomicUsize, Object, Ordering, Python, Subscript, ffi, resident};

                pub(super) static BEFORE: AtomicUsize = AtomicUsize::new(0);

                pub(super) unsafe extern "C" fn slot(left: Object, right: Object) -> Object {
                    // SAFETY: CPython calls with the GIL and live objects; what was there before has this type.
                    unsafe {
                        let py = Python::assume_attached();
                        match resident::operate(py, ffi::$function, left, right) {
                            Some(result) => result,
                            None => {
                                std::mem::transmute::<usize, Subscript>(BEFORE.load(Ordering::Relaxed))(left, right)
                            }
                        }
                    }
                }
            }
        )*

        fn operators() -> Vec<Row> {
            vec![$(Row {
                slot: ffi::$slot,
                table: Some(AS_NUMBER),
                place: $place,
                ours: $name::slot as *const () as usize,
                before: &$name::BEFORE,
            }),*]
        }
    };
}

operators! {
    add PyNumber_Add Py_nb_add 0;
    subtract PyNumber_Subtract Py_nb_subtract 1;
    multiply PyNumber_Multiply Py_nb_multiply 2;
    remainder PyNumber_Remainder Py_nb_remainder 3;
    lshift PyNumber_Lshift Py_nb_lshift 11;
    rshift PyNumber_Rshift Py_nb_rshift 12;
    and PyNumber_And Py_nb_and 13;
    xor PyNumber_Xor Py_nb_xor 14;
    or PyNumber_Or Py_nb_or 15;
    inplace_add PyNumber_InPlaceAdd Py_nb_inplace_add 19;
    inplace_subtract PyNumber_InPlaceSubtract Py_nb_inplace_subtract 20;
    inplace_multiply PyNumber_InPlaceMultiply Py_nb_inplace_multiply 21;
    inplace_remainder PyNumber_InPlaceRemainder Py_nb_inplace_remainder 22;
    inplace_lshift PyNumber_InPlaceLshift Py_nb_inplace_lshift 24;
    inplace_rshift PyNumber_InPlaceRshift Py_nb_inplace_rshift 25;
    inplace_and PyNumber_InPlaceAnd Py_nb_inplace_and 26;
    inplace_xor PyNumber_InPlaceXor Py_nb_inplace_xor 27;
    inplace_or PyNumber_InPlaceOr Py_nb_inplace_or 28;
    floor_divide PyNumber_FloorDivide Py_nb_floor_divide 29;
    true_divide PyNumber_TrueDivide Py_nb_true_divide 30;
    inplace_floor_divide PyNumber_InPlaceFloorDivide Py_nb_inplace_floor_divide 31;
    inplace_true_divide PyNumber_InPlaceTrueDivide Py_nb_inplace_true_divide 32;
    matrix_multiply PyNumber_MatrixMultiply Py_nb_matrix_multiply 34;
    inplace_matrix_multiply PyNumber_InPlaceMatrixMultiply Py_nb_inplace_matrix_multiply 35;
}

/// Puts our slots before PyO3's.
pub(crate) fn install(py: Python<'_>) {
    let class = DeferredArray::type_object_raw(py);
    CLASS.store(class, Ordering::Relaxed);
    let mut rows = operators();
    let mapping = |slot, place, ours, before| Row { slot, table: Some(AS_MAPPING), place, ours, before };
    rows.push(mapping(ffi::Py_mp_subscript, 1, subscript as *const () as usize, &SUBSCRIPT));
    rows.push(mapping(ffi::Py_mp_ass_subscript, 2, assign_subscript as *const () as usize, &ASSIGN_SUBSCRIPT));
    rows.extend(recycle::slot(py));
    for row in rows {
        // SAFETY: a live heap type, whose tables are part of it. A slot is replaced only where the table has at its place what the
        // interface says the slot is, by a function of the same type that lives as long as the process.
        unsafe {
            let known = ffi::PyType_GetSlot(class, row.slot) as usize;
            let table = match row.table {
                Some(offset) => *class.byte_add(offset).cast::<*mut usize>(),
                None => class.cast::<usize>(),
            };
            if known == 0 || table.is_null() || *table.add(row.place) != known {
                continue;
            }
            row.before.store(known, Ordering::Relaxed);
            *table.add(row.place) = row.ours;
        }
    }
}
