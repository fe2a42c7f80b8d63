//! The position of the first smallest or largest element.
//!
//! NumPy's rules: the first NaN (for complex numbers, of either part) wins; then the first extreme, complex numbers in
//! lexicographic order.

#![expect(unsafe_code, reason = "reads elements at computed addresses")]

use super::Elements;
use crate::loops::half;
use crate::pairwise::{Half, Pair};
use crate::program::Extreme;

/// A type whose elements can be compared. Any bits are a value.
pub(in crate::execute) trait Ordered: Copy + 'static {
    /// Whether it has no place in the order.
    fn is_nan(self) -> bool;

    /// Whether it comes before; false with NaNs.
    fn is_less(self, other: Self) -> bool;
}

macro_rules! ordered_integers {
    ($($number:ty)*) => {$(
        impl Ordered for $number {
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }

            #[inline(always)]
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }
    )*};
}

ordered_integers!(i8 u8 i16 u16 i32 u32 i64 u64);

macro_rules! ordered_floats {
    ($($number:ty)*) => {$(
        impl Ordered for $number {
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }

            #[inline(always)]
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }

        impl Ordered for Pair<$number> {
            fn is_nan(self) -> bool {
                self.0.is_nan() || self.1.is_nan()
            }

            fn is_less(self, other: Self) -> bool {
                self.0 < other.0 || (self.0 == other.0 && self.1 < other.1)
            }
        }
    )*};
}

ordered_floats!(f32 f64);

impl Ordered for Half {
    fn is_nan(self) -> bool {
        self.0 & 0x7fff > 0x7c00
    }

    fn is_less(self, other: Self) -> bool {
        half::to_f32(self.0) < half::to_f32(other.0)
    }
}

/// The best element so far.
pub(in crate::execute) struct Best<T: Ordered> {
    extreme: Extreme,
    value: T,
    index: usize,
}

impl<T: Ordered> Best<T> {
    pub(in crate::execute) fn new(extreme: Extreme, any: T) -> Best<T> {
        Best { extreme, value: any, index: 0 }
    }

    /// Of elements of which this is the best.
    pub(in crate::execute) fn starting(extreme: Extreme, value: T, index: usize) -> Best<T> {
        Best { extreme, value, index }
    }

    /// Takes elements `first..first + count`; the one with number 0 starts anew.
    ///
    /// # Safety
    /// The elements must be there and aligned.
    #[inline]
    pub(in crate::execute) unsafe fn feed(&mut self, input: Elements, first: usize, count: usize) {
        let mut skipped = 0;
        if first == 0 {
            // SAFETY: the caller's.
            self.value = unsafe { input.address.cast::<T>().read() };
            self.index = 0;
            skipped = 1;
        }
        if self.value.is_nan() {
            return;
        }
        match self.extreme {
            // SAFETY: the caller's.
            Extreme::Min => unsafe { self.scan(input, first, skipped, count, |new, best| new.is_less(best)) },
            // SAFETY: the caller's.
            Extreme::Max => unsafe { self.scan(input, first, skipped, count, |new, best| best.is_less(new)) },
        }
    }

    #[inline(always)]
    unsafe fn scan(
        &mut self,
        input: Elements,
        first: usize,
        skipped: usize,
        count: usize,
        is_better: impl Fn(T, T) -> bool,
    ) {
        for index in skipped..count {
            // SAFETY: the caller's.
            let value = unsafe { input.at(index).cast::<T>().read() };
            if is_better(value, self.value) || value.is_nan() {
                self.value = value;
                self.index = first + index;
                if value.is_nan() {
                    return;
                }
            }
        }
    }

    pub(in crate::execute) fn index(&self) -> usize {
        self.index
    }

    pub(in crate::execute) fn value(&self) -> T {
        self.value
    }

    /// Takes the best of later elements.
    pub(in crate::execute) fn join(&mut self, value: T, index: usize) {
        let is_better = match self.extreme {
            Extreme::Min => value.is_less(self.value),
            Extreme::Max => self.value.is_less(value),
        };
        if !self.value.is_nan() && (is_better || value.is_nan()) {
            self.value = value;
            self.index = index;
        }
    }
}
