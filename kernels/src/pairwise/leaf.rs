//! The sum of a leaf: eight accumulators, joined pairwise, then the values left over.
//!
//! Promises the same bits on every processor: lanes of a vector are exactly the eight accumulators.

#![expect(unsafe_code, reason = "reads values through raw pointers and uses vector instructions")]

use std::ops::Add;

use super::tree::Pair;
use crate::loops::half;

/// A real number whose runs are summed.
trait Real: Copy + Add<Output = Self> {
    /// Sum of eight accumulators in NumPy's order, raising the events of these seven sums and of no other.
    #[inline(always)]
    fn join(sums: [Self; 8]) -> Self {
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    }
}

impl Real for f64 {}

impl Real for f32 {
    /// Vectors are spelled out: the compiler's own would also sum lanes that nobody asked for, which may raise events.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn join(sums: [f32; 8]) -> f32 {
        use std::arch::x86_64::{_mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadu_ps, _mm_movehl_ps, _mm_shuffle_ps};
        // SAFETY: every x86-64 processor has these instructions, and each half of the array has four elements.
        unsafe {
            let (first, second) = (_mm_loadu_ps(sums.as_ptr()), _mm_loadu_ps(sums[4..].as_ptr()));
            let (even, odd) = (_mm_shuffle_ps::<0x88>(first, second), _mm_shuffle_ps::<0xdd>(first, second));
            let pairs = _mm_add_ps(even, odd);
            // Lanes 0 and 1 both hold the sum of the first four, lanes 2 and 3 that of the last.
            let fours = _mm_add_ps(pairs, _mm_shuffle_ps::<0xb1>(pairs, pairs));
            _mm_cvtss_f32(_mm_add_ss(fours, _mm_movehl_ps(fours, fours)))
        }
    }
}

/// The leaf as NumPy writes it, `read(i)` being value i.
#[inline(always)]
fn leaf<T: Real>(count: usize, negative_zero: T, read: impl Fn(usize) -> T) -> T {
    if count < 8 {
        return (0..count).fold(negative_zero, |sum, index| sum + read(index));
    }
    let mut sums: [T; 8] = std::array::from_fn(&read);
    let whole = count - count % 8;
    for block in (8..whole).step_by(8) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = *sum + read(block + lane);
        }
    }
    (whole..count).fold(T::join(sums), |sum, index| sum + read(index))
}

/// The complex leaf: four accumulators for each part.
#[inline(always)]
fn leaf_pairs<T: Copy + Add<Output = T>>(count: usize, negative_zero: T, read: impl Fn(usize) -> Pair<T>) -> Pair<T> {
    let add = |left: Pair<T>, right: Pair<T>| Pair(left.0 + right.0, left.1 + right.1);
    if count < 4 {
        return (0..count).fold(Pair(negative_zero, negative_zero), |sum, index| add(sum, read(index)));
    }
    let mut sums: [Pair<T>; 4] = std::array::from_fn(&read);
    let whole = count - count % 4;
    for block in (4..whole).step_by(4) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = add(*sum, read(block + lane));
        }
    }
    let joined = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
    (whole..count).fold(joined, |sum, index| add(sum, read(index)))
}

macro_rules! plain_leaf {
    ($name:ident, $value:ty, $result:ty, $body:ident, $zero:expr, $convert:expr) => {
        #[inline(always)]
        unsafe fn $name(values: *const u8, stride: isize, count: usize) -> $result {
            let convert = $convert;
            if stride == size_of::<$value>().cast_signed() {
                // SAFETY: the caller's.
                let read = |index| convert(unsafe { values.cast::<$value>().add(index).read() });
                return $body(count, $zero, read);
            }
            $body(count, $zero, |index: usize| {
                // SAFETY: the caller's.
                convert(unsafe { values.offset(stride * index.cast_signed()).cast::<$value>().read() })
            })
        }
    };
}

plain_leaf!(plain_f32, f32, f32, leaf, -0.0, |value: f32| value);
plain_leaf!(plain_f64, f64, f64, leaf, -0.0, |value: f64| value);
plain_leaf!(plain_half, u16, f32, leaf, -0.0, half::to_f32);
plain_leaf!(plain_c64, Pair<f32>, Pair<f32>, leaf_pairs, -0.0, |value: Pair<f32>| value);
plain_leaf!(plain_c128, Pair<f64>, Pair<f64>, leaf_pairs, -0.0, |value: Pair<f64>| value);

macro_rules! public_leaf {
    ($name:ident, $plain:ident, $result:ty) => {
        /// # Safety
        /// `count` aligned values, `stride` bytes apart, must be at `values`.
        #[inline]
        pub(super) unsafe fn $name(values: *const u8, stride: isize, count: usize) -> $result {
            // SAFETY: the caller's.
            unsafe { $plain(values, stride, count) }
        }
    };
}

public_leaf!(leaf_f32, plain_f32, f32);
public_leaf!(leaf_half, plain_half, f32);
public_leaf!(leaf_c64, plain_c64, Pair<f32>);
public_leaf!(leaf_c128, plain_c128, Pair<f64>);
public_leaf!(leaf_f64, plain_f64, f64);
