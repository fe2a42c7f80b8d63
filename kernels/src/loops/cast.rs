//! Conversions between numeric types, as NumPy's `astype` makes them.
//!
//! Promises the processor's own truncation for floats out of an integer's range (which is what NumPy's compiled C gives),
//! NumPy's rounding to half, and the same floating-point events. `convert` says what one value becomes; here are the loops.

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

mod convert;

use std::ffi::{c_char, c_int, c_void};

use super::copy;
use crate::pairwise::{Half, Pair};
use crate::program::{LoopFunction, Number};
use convert::{Bool, Convert};

/// The loop from one type to another.
pub(super) fn function(from: Number, to: Number) -> LoopFunction {
    if from == to {
        return copy::function(from.bytes());
    }
    match from {
        Number::Bool => from_type::<Bool>(to),
        Number::I8 => from_type::<i8>(to),
        Number::U8 => from_type::<u8>(to),
        Number::I16 => from_type::<i16>(to),
        Number::U16 => from_type::<u16>(to),
        Number::I32 => from_type::<i32>(to),
        Number::U32 => from_type::<u32>(to),
        Number::I64 => from_type::<i64>(to),
        Number::U64 => from_type::<u64>(to),
        Number::F16 => from_type::<Half>(to),
        Number::F32 => from_type::<f32>(to),
        Number::F64 => from_type::<f64>(to),
        Number::C64 => from_type::<Pair<f32>>(to),
        Number::C128 => from_type::<Pair<f64>>(to),
    }
}

/// A type that converts to every other.
trait Source:
    Convert<Bool>
    + Convert<i8>
    + Convert<u8>
    + Convert<i16>
    + Convert<u16>
    + Convert<i32>
    + Convert<u32>
    + Convert<i64>
    + Convert<u64>
    + Convert<Half>
    + Convert<f32>
    + Convert<f64>
    + Convert<Pair<f32>>
    + Convert<Pair<f64>>
{
}

impl<T> Source for T where
    T: Convert<Bool>
        + Convert<i8>
        + Convert<u8>
        + Convert<i16>
        + Convert<u16>
        + Convert<i32>
        + Convert<u32>
        + Convert<i64>
        + Convert<u64>
        + Convert<Half>
        + Convert<f32>
        + Convert<f64>
        + Convert<Pair<f32>>
        + Convert<Pair<f64>>
{
}

fn from_type<S: Source>(to: Number) -> LoopFunction {
    match to {
        Number::Bool => cast_loop::<S, Bool>,
        Number::I8 => cast_loop::<S, i8>,
        Number::U8 => cast_loop::<S, u8>,
        Number::I16 => cast_loop::<S, i16>,
        Number::U16 => cast_loop::<S, u16>,
        Number::I32 => cast_loop::<S, i32>,
        Number::U32 => cast_loop::<S, u32>,
        Number::I64 => cast_loop::<S, i64>,
        Number::U64 => cast_loop::<S, u64>,
        Number::F16 => cast_loop::<S, Half>,
        Number::F32 => cast_loop::<S, f32>,
        Number::F64 => cast_loop::<S, f64>,
        Number::C64 => cast_loop::<S, Pair<f32>>,
        Number::C128 => cast_loop::<S, Pair<f64>>,
    }
}

unsafe extern "C" fn cast_loop<S: Convert<T>, T: Copy>(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    _auxdata: *mut c_void,
) -> c_int {
    // SAFETY: the invariant of `Loop`: two operands of `length` elements of S and T.
    unsafe {
        let (source, target) = (*data, *data.add(1));
        let (source_stride, target_stride) = (*strides, *strides.add(1));
        let length = *length;
        let dense = source_stride == size_of::<S>().cast_signed() && target_stride == size_of::<T>().cast_signed();
        if dense {
            #[cfg(target_arch = "x86_64")]
            {
                if std::is_x86_feature_detected!("avx512dq") && std::is_x86_feature_detected!("avx512vl") {
                    return dense_avx512::<S, T>(source.cast(), target.cast(), length);
                }
                if std::is_x86_feature_detected!("avx2") {
                    return dense_avx2::<S, T>(source.cast(), target.cast(), length);
                }
            }
            return dense_plain::<S, T>(source.cast(), target.cast(), length);
        }
        for index in 0..length {
            let value = source.offset(source_stride * index).cast::<S>().read();
            target.offset(target_stride * index).cast::<T>().write(value.convert());
        }
    }
    0
}

#[inline(always)]
unsafe fn dense_plain<S: Convert<T>, T: Copy>(source: *const S, target: *mut T, length: isize) -> c_int {
    for index in 0..length {
        // SAFETY: the caller's.
        unsafe { target.offset(index).write(source.offset(index).read().convert()) };
    }
    0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn dense_avx2<S: Convert<T>, T: Copy>(source: *const S, target: *mut T, length: isize) -> c_int {
    // SAFETY: the caller's.
    unsafe { dense_plain(source, target, length) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,f16c")]
unsafe fn dense_avx512<S: Convert<T>, T: Copy>(source: *const S, target: *mut T, length: isize) -> c_int {
    // SAFETY: the caller's.
    unsafe { dense_plain(source, target, length) }
}
