//! The shape of the summation tree, and its leaves for each floating-point type.
//!
//! Where numbers come from: `pairwise_sum` in NumPy's `loops_utils.h.src`: a leaf has at most 128 values and eight
//! accumulators; a longer run is halved at a multiple of eight. Complex runs count floats, real and imaginary apart.

#![expect(unsafe_code, reason = "reads values through raw pointers")]

use super::leaf;
use crate::loops::half;

/// A half, as bits.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Half(pub(crate) u16);

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Pair<T>(pub(crate) T, pub(crate) T);

/// A type with a pairwise sum.
///
/// Invariant for implementors: any bits are a value.
pub(crate) trait Summand: Copy + std::fmt::Debug + Send + 'static {
    /// What partial sums are kept in.
    type Sum: Copy + std::fmt::Debug + Send + 'static;

    /// Values in the largest leaf.
    const LEAF: usize;

    /// The sum of a leaf: `count <= LEAF` values, `stride` bytes apart.
    ///
    /// # Safety
    /// The values must be there and aligned.
    unsafe fn leaf(values: *const u8, stride: isize, count: usize) -> Self::Sum;

    /// Sum of two partial sums.
    fn add(left: Self::Sum, right: Self::Sum) -> Self::Sum;

    /// `seed` plus a sum, in the type itself.
    fn finish(seed: Self, sum: Self::Sum) -> Self;

    /// Values in the left part of a run that is longer than a leaf.
    fn left(count: usize) -> usize;
}

/// The sum of `count` values, `stride` bytes apart.
///
/// # Safety
/// The values must be there and aligned.
pub(crate) unsafe fn sum<T: Summand>(values: *const u8, stride: isize, count: usize) -> T::Sum {
    // SAFETY: the caller's; both parts lie within the run.
    unsafe {
        if count <= T::LEAF {
            return T::leaf(values, stride, count);
        }
        let left = T::left(count);
        let right = values.offset(stride * left.cast_signed());
        T::add(sum::<T>(values, stride, left), sum::<T>(right, stride, count - left))
    }
}

fn left_real(count: usize) -> usize {
    let half = count / 2;
    half - half % 8
}

/// For complex values, whose floats are counted: half of the floats is as many as there are values.
fn left_complex(count: usize) -> usize {
    (count - count % 8) / 2
}

macro_rules! real_summand {
    ($number:ty, $sum:ty, $leaf:path, $finish:expr) => {
        impl Summand for $number {
            type Sum = $sum;
            const LEAF: usize = 128;

            #[inline]
            unsafe fn leaf(values: *const u8, stride: isize, count: usize) -> $sum {
                // SAFETY: the caller's.
                unsafe { $leaf(values, stride, count) }
            }

            #[inline(always)]
            fn add(left: $sum, right: $sum) -> $sum {
                left + right
            }

            #[inline(always)]
            fn finish(seed: $number, sum: $sum) -> $number {
                $finish(seed, sum)
            }

            fn left(count: usize) -> usize {
                left_real(count)
            }
        }
    };
}

real_summand!(f32, f32, leaf::leaf_f32, |seed: f32, sum: f32| seed + sum);
real_summand!(f64, f64, leaf::leaf_f64, |seed: f64, sum: f64| seed + sum);
real_summand!(Half, f32, leaf::leaf_half, |seed: Half, sum: f32| Half(half::round_f32(half::to_f32(seed.0) + sum)));

macro_rules! complex_summand {
    ($part:ty, $leaf:path) => {
        impl Summand for Pair<$part> {
            type Sum = Pair<$part>;
            const LEAF: usize = 64;

            #[inline]
            unsafe fn leaf(values: *const u8, stride: isize, count: usize) -> Self {
                // SAFETY: the caller's.
                unsafe { $leaf(values, stride, count) }
            }

            #[inline(always)]
            fn add(left: Self, right: Self) -> Self {
                Pair(left.0 + right.0, left.1 + right.1)
            }

            #[inline(always)]
            fn finish(seed: Self, sum: Self) -> Self {
                Self::add(seed, sum)
            }

            fn left(count: usize) -> usize {
                left_complex(count)
            }
        }
    };
}

complex_summand!(f32, leaf::leaf_c64);
complex_summand!(f64, leaf::leaf_c128);
