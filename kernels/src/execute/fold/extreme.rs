//! The position of the first smallest or largest element.
//!
//! NumPy's rules: the first NaN (for complex numbers, of either part) wins; then the first extreme, complex numbers in
//! lexicographic order.

#![expect(unsafe_code, reason = "reads elements at computed addresses")]

use super::Elements;
use crate::loops::half;
use crate::loops::lanes::Width;
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

/// Elements that are looked at together: long enough for vectors, short enough to be searched again.
const GROUP: usize = 64;

/// How many elements, in whole groups from the first, hold neither a better one than `best` nor a NaN.
#[inline(always)]
unsafe fn barren<T: Ordered>(
    values: *const T,
    count: usize,
    best: T,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> usize {
    if count < GROUP {
        return 0;
    }
    #[cfg(target_arch = "x86_64")]
    {
        if Width::best() == Width::Avx512 {
            // SAFETY: the caller's, and the processor has the instructions.
            return unsafe { barren_avx512(values, count, best, is_better) };
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the caller's, and the processor has the instructions.
            return unsafe { barren_avx2(values, count, best, is_better) };
        }
    }
    // SAFETY: the caller's.
    unsafe { barren_plain(values, count, best, is_better) }
}

#[inline(always)]
unsafe fn barren_plain<T: Ordered>(
    values: *const T,
    count: usize,
    best: T,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> usize {
    let mut done = 0;
    while done + GROUP <= count {
        let mut found = false;
        for index in 0..GROUP {
            // SAFETY: the caller's.
            let value = unsafe { values.add(done + index).read() };
            found |= is_better(value, best) | value.is_nan();
        }
        if found {
            break;
        }
        done += GROUP;
    }
    done
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn barren_avx2<T: Ordered>(
    values: *const T,
    count: usize,
    best: T,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> usize {
    // SAFETY: the caller's.
    unsafe { barren_plain(values, count, best, is_better) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn barren_avx512<T: Ordered>(
    values: *const T,
    count: usize,
    best: T,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> usize {
    // SAFETY: the caller's.
    unsafe { barren_plain(values, count, best, is_better) }
}

/// The position of the best of a few elements, without branches that depend on them.
#[inline(always)]
unsafe fn short_row<T: Ordered>(input: Elements, count: usize, is_better: impl Fn(T, T) -> bool) -> usize {
    // SAFETY: the caller's.
    let mut best = unsafe { input.address.cast::<T>().read() };
    let mut position = 0;
    let mut nan = if best.is_nan() { 0 } else { usize::MAX };
    for index in 1..count {
        // SAFETY: the caller's.
        let value = unsafe { input.at(index).cast::<T>().read() };
        let better = is_better(value, best);
        best = if better { value } else { best };
        position = if better { index } else { position };
        nan = if value.is_nan() { nan.min(index) } else { nan };
    }
    if nan == usize::MAX { position } else { nan }
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
        let item = size_of::<T>().cast_signed();
        // SAFETY: the caller's.
        unsafe {
            match self.extreme {
                Extreme::Min if input.stride == item => {
                    self.scan_dense(input, first, skipped, count, |new, best| new.is_less(best))
                }
                Extreme::Max if input.stride == item => {
                    self.scan_dense(input, first, skipped, count, |new, best| best.is_less(new))
                }
                Extreme::Min => self.scan(input, first, skipped, count, |new, best| new.is_less(best)),
                Extreme::Max => self.scan(input, first, skipped, count, |new, best| best.is_less(new)),
            }
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

    /// Passes over groups without a better element, with as wide vectors as the processor has.
    #[inline(always)]
    unsafe fn scan_dense(
        &mut self,
        input: Elements,
        first: usize,
        skipped: usize,
        count: usize,
        is_better: impl Fn(T, T) -> bool + Copy,
    ) {
        let mut done = skipped;
        while done < count && !self.value.is_nan() {
            // SAFETY: the caller's.
            unsafe {
                let rest = input.at(done).cast::<T>();
                done += barren(rest, count - done, self.value, is_better);
                let group = GROUP.min(count - done);
                self.scan(input, first, done, done + group, is_better);
                done += group;
            }
        }
    }

    /// The position of the best of `count` elements that begin at `input`: a row of its own.
    ///
    /// # Safety
    /// As for [`Best::feed`].
    pub(in crate::execute) unsafe fn of_row(&mut self, input: Elements, count: usize) -> usize {
        if count >= GROUP {
            // SAFETY: the caller's.
            unsafe { self.feed(input, 0, count) };
            return self.index;
        }
        // SAFETY: the caller's.
        unsafe {
            match self.extreme {
                Extreme::Min => short_row(input, count, |new: T, best| new.is_less(best)),
                Extreme::Max => short_row(input, count, |new: T, best| best.is_less(new)),
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
