//! Array objects made again from those that ended.
//!
//! A Python loop over rows makes and drops an array object for each; a short list of ended ones spares both calls to the allocator
//! and most of PyO3's way. Promises that an object on the list is as a new one, except for its count of references: nothing in it, no weak
//! reference to it. Does not decide what an array is.
#![expect(unsafe_code, reason = "the deallocation slot of a class, and objects without references")]

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::PyTypeInfo;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::array::DeferredArray;
use crate::slots::{self, Object, Row};

/// Ended objects at most kept.
const MOST: usize = 128;

/// The newest ended object; each names the next one as its `origin`. Touched with the GIL held.
static NEWEST: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
static KEPT: AtomicUsize = AtomicUsize::new(0);
/// PyO3's slot.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
/// Byte offset in an array object of its list of weak references.
static WEAK_REFERENCES: AtomicUsize = AtomicUsize::new(0);

/// An array object with nothing in it, if one is on the list.
#[inline]
pub(crate) fn take(py: Python<'_>) -> Option<Bound<'_, DeferredArray>> {
    let object = NEWEST.load(Ordering::Relaxed);
    if object.is_null() {
        return None;
    }
    // SAFETY: the list holds memory of array objects with nothing in them; PyObject_Init makes it one with one reference, ours.
    unsafe {
        let array = slots::as_deferred(py, &object).get();
        NEWEST.store(array.origin.load(Ordering::Relaxed) as Object, Ordering::Relaxed);
        KEPT.fetch_sub(1, Ordering::Relaxed);
        ffi::PyObject_Init(object, DeferredArray::type_object_raw(py));
        Some(Bound::from_owned_ptr(py, object).cast_into_unchecked())
    }
}

unsafe extern "C" fn dealloc(object: Object) {
    // SAFETY: CPython calls with the GIL and an array object without references; what was there before has this type. The list of
    // weak references is at that offset.
    unsafe {
        let py = Python::assume_attached();
        let weak = object.byte_add(WEAK_REFERENCES.load(Ordering::Relaxed)).cast::<Object>();
        if !(*weak).is_null() || KEPT.load(Ordering::Relaxed) >= MOST {
            std::mem::transmute::<usize, unsafe extern "C" fn(Object)>(BEFORE.load(Ordering::Relaxed))(object);
            return;
        }
        let array = slots::as_deferred(py, &object).get();
        array.empty(py);
        // Others may have come onto the list meanwhile.
        array.origin.store(NEWEST.load(Ordering::Relaxed) as usize, Ordering::Relaxed);
        NEWEST.store(object, Ordering::Relaxed);
        KEPT.fetch_add(1, Ordering::Relaxed);
        ffi::Py_DecRef(DeferredArray::type_object_raw(py).cast());
    }
}

/// The slot that puts ended objects on the list; `None` where it cannot be told whether an object has weak references.
pub(crate) fn slot(py: Python<'_>) -> Option<Row> {
    let class = DeferredArray::type_object(py);
    let offset: usize = class.getattr("__weakrefoffset__").and_then(|offset| offset.extract()).ok()?;
    if offset == 0 {
        return None;
    }
    WEAK_REFERENCES.store(offset, Ordering::Relaxed);
    Some(Row::of_class(ffi::Py_tp_dealloc, slots::DEALLOC, dealloc as *const () as usize, &BEFORE))
}
