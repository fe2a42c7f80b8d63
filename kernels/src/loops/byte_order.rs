//! Reversing the bytes of elements.

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

use std::ffi::{c_char, c_int, c_void};

use crate::program::LoopFunction;

/// The loop for elements of `bytes` bytes.
pub(super) fn function(bytes: usize) -> LoopFunction {
    match bytes {
        2 => swap_items::<u16>,
        4 => swap_items::<u32>,
        8 => swap_items::<u64>,
        16 => swap_items::<u128>,
        _ => swap_any,
    }
}

trait Swap: Copy {
    fn swapped(self) -> Self;
}

macro_rules! swap {
    ($($number:ty)*) => {$(
        impl Swap for $number {
            fn swapped(self) -> Self {
                self.swap_bytes()
            }
        }
    )*};
}

swap!(u16 u32 u64 u128);

unsafe extern "C" fn swap_items<T: Swap>(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    _auxdata: *mut c_void,
) -> c_int {
    // SAFETY: the invariant of `Loop`: two operands of `length` elements of T's size.
    unsafe {
        let (source, target) = (*data, *data.add(1));
        let (source_stride, target_stride) = (*strides, *strides.add(1));
        for index in 0..*length {
            let value = source.offset(source_stride * index).cast::<T>().read_unaligned();
            target.offset(target_stride * index).cast::<T>().write_unaligned(value.swapped());
        }
    }
    0
}

unsafe extern "C" fn swap_any(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    auxdata: *mut c_void,
) -> c_int {
    let bytes = auxdata.addr().cast_signed();
    // SAFETY: the invariant of `Loop`: two operands of `length` elements of `bytes` bytes, the same or apart.
    unsafe {
        for index in 0..*length {
            let source = (*data).offset(*strides * index);
            let target = (*data.add(1)).offset(*strides.add(1) * index);
            for low in 0..bytes / 2 {
                let high = bytes - 1 - low;
                let (first, last) = (*source.offset(low), *source.offset(high));
                *target.offset(low) = last;
                *target.offset(high) = first;
            }
            if bytes % 2 == 1 {
                *target.offset(bytes / 2) = *source.offset(bytes / 2);
            }
        }
    }
    0
}
