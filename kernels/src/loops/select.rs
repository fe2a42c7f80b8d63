//! Choosing between two operands element by element.

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use crate::program::LoopFunction;

/// The loop for elements of `bytes` bytes.
pub(super) fn function(bytes: usize) -> LoopFunction {
    match bytes {
        1 => select_items::<u8>,
        2 => select_items::<u16>,
        4 => select_items::<u32>,
        8 => select_items::<u64>,
        16 => select_items::<[u64; 2]>,
        _ => select_any,
    }
}

unsafe extern "C" fn select_items<T: Copy>(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    _auxdata: *mut c_void,
) -> c_int {
    // SAFETY: the invariant of `Loop`: a byte, two operands and an output, of `length` elements of T's size.
    unsafe {
        let [condition, yes, no, target] = *data.cast::<[*mut c_char; 4]>();
        let [condition_stride, yes_stride, no_stride, target_stride] = *strides.cast::<[isize; 4]>();
        let item = size_of::<T>().cast_signed();
        let dense = |stride| stride == item;
        if condition_stride == 1 && dense(target_stride) && dense(yes_stride) && dense(no_stride) {
            for index in 0..*length {
                let a = yes.cast::<T>().offset(index).read_unaligned();
                let b = no.cast::<T>().offset(index).read_unaligned();
                let chosen = if *condition.offset(index) != 0 { a } else { b };
                target.cast::<T>().offset(index).write_unaligned(chosen);
            }
            return 0;
        }
        for index in 0..*length {
            let a = yes.offset(yes_stride * index).cast::<T>().read_unaligned();
            let b = no.offset(no_stride * index).cast::<T>().read_unaligned();
            let chosen = if *condition.offset(condition_stride * index) != 0 { a } else { b };
            target.offset(target_stride * index).cast::<T>().write_unaligned(chosen);
        }
    }
    0
}

unsafe extern "C" fn select_any(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    auxdata: *mut c_void,
) -> c_int {
    let bytes = auxdata.addr();
    // SAFETY: as in `select_items`, elements of `bytes` bytes.
    unsafe {
        let [condition, yes, no, target] = *data.cast::<[*mut c_char; 4]>();
        let [condition_stride, yes_stride, no_stride, target_stride] = *strides.cast::<[isize; 4]>();
        for index in 0..*length {
            let chosen = if *condition.offset(condition_stride * index) != 0 {
                yes.offset(yes_stride * index)
            } else {
                no.offset(no_stride * index)
            };
            ptr::copy(chosen, target.offset(target_stride * index), bytes);
        }
    }
    0
}
