//! Loops of floats over vectors: operations that are exact by IEEE 754, where NumPy's own loops are slower.
//!
//! Promises NumPy's bits, NaN rules included, in place too (each vector is read before it is written).

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;

use super::lanes::{Lanes, Width};
use crate::execute::Quiet;
use crate::program::{LoopFunction, Number};

/// Elements from which a loop begins one by one, so that no vector that it writes lies in two cache lines.
const WORTH_ALIGNING: isize = 256;

/// Something done to one element.
pub(super) trait Unary {
    /// # Safety
    /// As for the methods of [`Lanes`].
    unsafe fn apply<V: Lanes>(value: V) -> V;
}

/// Something done to two elements.
pub(super) trait Binary {
    /// Whether NumPy hides the events of comparing NaNs.
    const QUIET: bool;

    /// # Safety
    /// As for the methods of [`Lanes`].
    unsafe fn apply<V: Lanes>(left: V, right: V) -> V;
}

macro_rules! operations {
    ($kind:ident: $($name:ident($($value:ident),*) $body:expr $(, QUIET = $quiet:literal)?;)*) => {$(
        pub(super) struct $name;

        impl $kind for $name {
            $(const QUIET: bool = $quiet;)?

            #[inline(always)]
            unsafe fn apply<V: Lanes>($($value: V),*) -> V {
                // SAFETY: the caller's.
                unsafe { $body }
            }
        }
    )*};
}

operations! {
    Unary:
    Sqrt(a) a.sqrt();
    Reciprocal(a) V::one().div(a);
    Square(a) a.mul(a);
    Sign(a) a.sign();
    Negative(a) a.neg();
    Absolute(a) a.abs();
}

operations! {
    Binary:
    Add(a, b) a.add(b), QUIET = false;
    Subtract(a, b) a.sub(b), QUIET = false;
    Multiply(a, b) a.mul(b), QUIET = false;
    Divide(a, b) a.div(b), QUIET = false;
    Maximum(a, b) a.max(b), QUIET = true;
    Minimum(a, b) a.min(b), QUIET = true;
    Fmax(a, b) a.fmax(b), QUIET = true;
    Fmin(a, b) a.fmin(b), QUIET = true;
}

macro_rules! table {
    ($ufunc:expr, $types:expr, $width:expr; unary $($unary:literal $unary_type:ident),*; binary $($binary:literal $binary_type:ident),*) => {
        match ($ufunc, $types) {
            $(
                ($unary, [Number::F32, Number::F32]) => Some(single_unary::<$unary_type>($width)),
                ($unary, [Number::F64, Number::F64]) => Some(double_unary::<$unary_type>($width)),
            )*
            $(
                ($binary, [Number::F32, Number::F32, Number::F32]) => Some(single_binary::<$binary_type>($width)),
                ($binary, [Number::F64, Number::F64, Number::F64]) => Some(double_binary::<$binary_type>($width)),
            )*
            _ => None,
        }
    };
}

/// The loop of a ufunc for these types, in vectors of this width.
pub(super) fn function(width: Width, ufunc: &str, types: &[Number]) -> Option<LoopFunction> {
    table!(ufunc, types, width;
        unary "sqrt" Sqrt, "reciprocal" Reciprocal, "square" Square, "sign" Sign, "negative" Negative, "absolute" Absolute;
        binary "add" Add, "subtract" Subtract, "multiply" Multiply, "divide" Divide, "maximum" Maximum, "minimum" Minimum,
            "fmax" Fmax, "fmin" Fmin)
}

macro_rules! by_width {
    ($choose:ident, $kind:ident, $item:ty, $avx2:ident, $avx512:ident, $plain_loop:ident, $avx2_loop:ident, $avx512_loop:ident) => {
        fn $choose<O: $kind>(width: Width) -> LoopFunction {
            match width {
                Width::Plain => $plain_loop::<O, $item>,
                #[cfg(target_arch = "x86_64")]
                Width::Avx2 => $avx2_loop::<O, super::lanes::$avx2>,
                #[cfg(target_arch = "x86_64")]
                Width::Avx512 => $avx512_loop::<O, super::lanes::$avx512>,
            }
        }
    };
}

by_width!(single_unary, Unary, f32, Single8, Single16, unary_plain, unary_avx2, unary_avx512);
by_width!(double_unary, Unary, f64, Double4, Double8, unary_plain, unary_avx2, unary_avx512);
by_width!(single_binary, Binary, f32, Single8, Single16, binary_plain, binary_avx2, binary_avx512);
by_width!(double_binary, Binary, f64, Double4, Double8, binary_plain, binary_avx2, binary_avx512);

macro_rules! loop_of_width {
    ($name:ident, $kind:ident, $body:ident, $features:literal) => {
        #[target_feature(enable = $features)]
        unsafe extern "C" fn $name<O: $kind, V: Lanes>(
            _context: *const c_void,
            data: *const *mut c_char,
            length: *const isize,
            strides: *const isize,
            _auxdata: *mut c_void,
        ) -> c_int
        where
            V::Item: Lanes<Item = V::Item>,
        {
            // SAFETY: the invariant of `Loop`; the width was found on this processor.
            unsafe { $body::<O, V>(data, *length, strides) };
            0
        }
    };
}

#[cfg(target_arch = "x86_64")]
loop_of_width!(unary_avx2, Unary, unary, "avx2");
#[cfg(target_arch = "x86_64")]
loop_of_width!(unary_avx512, Unary, unary, "avx512f,avx512dq,avx512bw,avx512vl");
#[cfg(target_arch = "x86_64")]
loop_of_width!(binary_avx2, Binary, binary, "avx2");
#[cfg(target_arch = "x86_64")]
loop_of_width!(binary_avx512, Binary, binary, "avx512f,avx512dq,avx512bw,avx512vl");

unsafe extern "C" fn unary_plain<O: Unary, V: Lanes<Item = V>>(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    _auxdata: *mut c_void,
) -> c_int {
    // SAFETY: the invariant of `Loop`.
    unsafe { unary::<O, V>(data, *length, strides) };
    0
}

unsafe extern "C" fn binary_plain<O: Binary, V: Lanes<Item = V>>(
    _context: *const c_void,
    data: *const *mut c_char,
    length: *const isize,
    strides: *const isize,
    _auxdata: *mut c_void,
) -> c_int {
    // SAFETY: the invariant of `Loop`.
    unsafe { binary::<O, V>(data, *length, strides) };
    0
}

#[inline(always)]
unsafe fn unary<O: Unary, V: Lanes>(data: *const *mut c_char, length: isize, strides: *const isize)
where
    V::Item: Lanes<Item = V::Item>,
{
    // SAFETY: the caller's.
    unsafe {
        let [input, output] = *data.cast::<[*mut c_char; 2]>();
        let [input_stride, output_stride] = *strides.cast::<[isize; 2]>();
        let item = size_of::<V::Item>().cast_signed();
        let width = V::COUNT.cast_signed();
        let mut index = 0;
        if input_stride == item && output_stride == item {
            let (input, output) = (input.cast::<V::Item>(), output.cast::<V::Item>());
            while index + 4 * width <= length {
                for part in 0..4 {
                    let at = index + part * width;
                    O::apply(V::load(input.offset(at))).store(output.offset(at));
                }
                index += 4 * width;
            }
            while index + width <= length {
                O::apply(V::load(input.offset(index))).store(output.offset(index));
                index += width;
            }
        }
        while index < length {
            let value = input.offset(input_stride * index).cast::<V::Item>().read();
            output.offset(output_stride * index).cast::<V::Item>().write(O::apply(value));
            index += 1;
        }
    }
}

#[inline(always)]
unsafe fn binary<O: Binary, V: Lanes>(data: *const *mut c_char, length: isize, strides: *const isize)
where
    V::Item: Lanes<Item = V::Item>,
{
    let events = O::QUIET.then(Quiet::begin);
    // SAFETY: the caller's.
    unsafe {
        let [left, right, output] = *data.cast::<[*mut c_char; 3]>();
        let [left_stride, right_stride, output_stride] = *strides.cast::<[isize; 3]>();
        let item = size_of::<V::Item>().cast_signed();
        let one_by_one = |indices: Range<isize>| {
            for index in indices {
                let first = left.offset(left_stride * index).cast::<V::Item>().read();
                let second = right.offset(right_stride * index).cast::<V::Item>().read();
                output.offset(output_stride * index).cast::<V::Item>().write(O::apply(first, second));
            }
        };
        let mut done = 0;
        if output_stride == item && length > 0 {
            let (left, right, output) = (left.cast::<V::Item>(), right.cast::<V::Item>(), output.cast::<V::Item>());
            let start = if length < WORTH_ALIGNING { 0 } else { output.align_offset(size_of::<V>()).cast_signed() };
            // Memory whose elements are not aligned themselves has no such start.
            let start = if (0..V::COUNT.cast_signed()).contains(&start) { start } else { 0 };
            one_by_one(0..start);
            if left_stride == item && right_stride == item {
                let load = |at: isize| (V::load(left.offset(at)), V::load(right.offset(at)));
                done = dense::<O, V>(output, start..length, load);
            } else if left_stride == item && right_stride == 0 {
                let constant = V::splat(right.read());
                done = dense::<O, V>(output, start..length, |at| (V::load(left.offset(at)), constant));
            } else if left_stride == 0 && right_stride == item {
                let constant = V::splat(left.read());
                done = dense::<O, V>(output, start..length, |at| (constant, V::load(right.offset(at))));
            } else {
                done = start;
            }
        }
        one_by_one(done..length);
    }
    drop(events);
}

/// Whole vectors of some elements; the first that is left.
#[inline(always)]
unsafe fn dense<O: Binary, V: Lanes>(
    output: *mut V::Item,
    Range { start: mut index, end: length }: Range<isize>,
    load: impl Fn(isize) -> (V, V),
) -> isize {
    let width = V::COUNT.cast_signed();
    // SAFETY: the caller's.
    unsafe {
        while index + 4 * width <= length {
            for part in 0..4 {
                let at = index + part * width;
                let (left, right) = load(at);
                O::apply(left, right).store(output.offset(at));
            }
            index += 4 * width;
        }
        while index + width <= length {
            let (left, right) = load(index);
            O::apply(left, right).store(output.offset(index));
            index += width;
        }
    }
    index
}
