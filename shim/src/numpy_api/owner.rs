//! Arrays that count as the owners of memory which is not NumPy's to give back.
//!
//! Promises that NumPy asks a handler for the memory (NEP 49) which gives none and takes none. Whose the memory is, others know.
#![expect(unsafe_code, reason = "NumPy's C interface")]

use std::ffi::c_void;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{ArrayFields, flag};

/// `PyDataMem_Handler` (NEP 49): how NumPy asks for the memory of an array that owns it.
#[repr(C)]
struct MemoryHandler {
    name: [u8; 127],
    version: u8,
    context: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

// SAFETY: the context is null and the functions keep nothing.
unsafe impl Sync for MemoryHandler {}

/// A handler that gives no memory and takes none back.
static NO_MEMORY: MemoryHandler = MemoryHandler {
    name: {
        let mut name = [0; 127];
        let text = *b"legate";
        let mut index = 0;
        while index < text.len() {
            name[index] = text[index];
            index += 1;
        }
        name
    },
    version: 1,
    context: std::ptr::null_mut(),
    malloc: give_none,
    calloc: give_no_cells,
    realloc: give_no_more,
    free: take_none,
};

unsafe extern "C" fn give_none(_: *mut c_void, _: usize) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn give_no_cells(_: *mut c_void, _: usize, _: usize) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn give_no_more(_: *mut c_void, _: *mut c_void, _: usize) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn take_none(_: *mut c_void, _: *mut c_void, _: usize) {}

/// Has an array made by [`super::array_over`] count as the owner of its memory, as a fresh array does, so that its flags say so and
/// may be changed as an owner's may; views of it count as views. NumPy gives the memory back to a handler that does nothing.
pub(crate) fn let_own(array: &Bound<'_, PyAny>) -> PyResult<()> {
    static HANDLER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = array.py();
    let handler = HANDLER.get_or_try_init(py, || {
        let address = (&raw const NO_MEMORY).cast_mut().cast::<c_void>();
        // SAFETY: the handler and the name live as long as the process; NumPy only reads a handler.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(address, c"mem_handler".as_ptr(), None)) }
            .map(Bound::unbind)
    })?;
    // SAFETY: as in `geometry`; an array over foreign memory has no handler, and its end gives up the reference made here.
    unsafe {
        let fields = &mut *array.as_ptr().cast::<ArrayFields>();
        debug_assert!(fields.memory_handler.is_null());
        fields.memory_handler = handler.clone_ref(py).into_ptr();
        fields.flags |= flag::OWNDATA;
    }
    Ok(())
}
