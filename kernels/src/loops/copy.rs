//! Copying elements of any size between strided runs.
//!
//! Promises to move bits unchanged, at any alignment.

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use crate::program::LoopFunction;

/// Copies `count` elements of `item_bytes` bytes.
///
/// # Safety
/// Both sides must hold `count` elements along their strides. They must not overlap, unless they are the same elements.
pub unsafe fn copy_strided(
    target: *mut u8,
    target_stride: isize,
    source: *const u8,
    source_stride: isize,
    count: usize,
    item_bytes: usize,
) {
    let item = item_bytes.cast_signed();
    // SAFETY: the caller's.
    unsafe {
        if source_stride == item && target_stride == item {
            ptr::copy(source, target, count * item_bytes);
            return;
        }
        match item_bytes {
            1 => copy_items::<u8>(target, target_stride, source, source_stride, count),
            2 => copy_items::<u16>(target, target_stride, source, source_stride, count),
            4 => copy_items::<u32>(target, target_stride, source, source_stride, count),
            8 => copy_items::<u64>(target, target_stride, source, source_stride, count),
            16 => copy_items::<[u64; 2]>(target, target_stride, source, source_stride, count),
            32 => copy_items::<[u64; 4]>(target, target_stride, source, source_stride, count),
            _ => {
                for index in 0..count.cast_signed() {
                    ptr::copy(source.offset(source_stride * index), target.offset(target_stride * index), item_bytes);
                }
            }
        }
    }
}

unsafe fn copy_items<T: Copy>(
    target: *mut u8,
    target_stride: isize,
    source: *const u8,
    source_stride: isize,
    count: usize,
) {
    let count = count.cast_signed();
    let item = size_of::<T>().cast_signed();
    // SAFETY: the caller's.
    unsafe {
        if source_stride == 0 {
            let value = source.cast::<T>().read_unaligned();
            if target_stride == item {
                for index in 0..count {
                    target.cast::<T>().offset(index).write_unaligned(value);
                }
            } else {
                for index in 0..count {
                    target.offset(target_stride * index).cast::<T>().write_unaligned(value);
                }
            }
        } else if target_stride == item {
            for index in 0..count {
                let value = source.offset(source_stride * index).cast::<T>().read_unaligned();
                target.cast::<T>().offset(index).write_unaligned(value);
            }
        } else {
            for index in 0..count {
                let value = source.offset(source_stride * index).cast::<T>().read_unaligned();
                target.offset(target_stride * index).cast::<T>().write_unaligned(value);
            }
        }
    }
}

/// The loop for elements of `bytes` bytes; one function serves all sizes.
pub(super) fn function(_bytes: usize) -> LoopFunction {
    copy_loop
}

unsafe extern "C" fn copy_loop(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    auxdata: *mut c_void,
) -> c_int {
    // SAFETY: the invariant of `Loop`: two operands of `length` elements; `auxdata` holds the size (see `own`).
    unsafe {
        let (source, target) = (*data, *data.add(1));
        let count = (*length).cast_unsigned();
        copy_strided(target.cast(), *strides.add(1), source.cast(), *strides, count, auxdata.addr());
    }
    0
}
