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
    /// Whether the processor compares many of them at a time.
    const IN_VECTORS: bool;

    /// Whether it has no place in the order.
    fn is_nan(self) -> bool;

    /// Whether it comes before; false with NaNs.
    fn is_less(self, other: Self) -> bool;
}

macro_rules! ordered_integers {
    ($($number:ty)*) => {$(
        impl Ordered for $number {
            const IN_VECTORS: bool = true;

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
            const IN_VECTORS: bool = true;

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
            const IN_VECTORS: bool = false;

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
    const IN_VECTORS: bool = false;

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

/// Elements of which the best is found at once: they are read twice, the second time from the nearest cache.
const TWICE_BYTES: usize = 16 << 10;

/// Elements that are compared side by side.
const LANES: usize = 32;

/// The position of the best of a row of at least [`GROUP`] elements: the best one first, then where it is. None with a NaN among them.
#[inline(always)]
unsafe fn position_in_row<T: Ordered>(
    values: *const T,
    count: usize,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        if Width::best() == Width::Avx512 {
            // SAFETY: the caller's, and the processor has the instructions.
            return unsafe { position_avx512(values, count, is_better) };
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the caller's, and the processor has the instructions.
            return unsafe { position_avx2(values, count, is_better) };
        }
    }
    // SAFETY: the caller's.
    unsafe { position_plain(values, count, is_better) }
}

#[inline(always)]
unsafe fn position_plain<T: Ordered>(
    values: *const T,
    count: usize,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> Option<usize> {
    // SAFETY: the caller's.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    let (vectors, _) = values.as_chunks::<LANES>();
    // The last elements once more, where they are no vector of their own.
    let (_, last) = values.as_rchunks::<LANES>();
    let all = || vectors.iter().chain(last.last());
    // Loops of one thing each, of a fixed length: what becomes vector instructions.
    for vector in all() {
        let mut has_nan = false;
        for value in vector {
            has_nan |= value.is_nan();
        }
        if has_nan {
            return None;
        }
    }
    let mut best = vectors[0];
    for vector in all() {
        for (best, value) in best.iter_mut().zip(vector) {
            *best = if is_better(*value, *best) { *value } else { *best };
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        let (lower, upper) = best.split_at_mut(width);
        for (best, value) in lower.iter_mut().zip(upper) {
            *best = if is_better(*value, *best) { *value } else { *best };
        }
        width /= 2;
    }
    // No element is better, so one that the winner is not better than is its equal.
    let winner = best[0];
    let equals = |value: &T| !is_better(winner, *value);
    for (number, vector) in all().enumerate() {
        let mut found = false;
        for value in vector {
            found |= equals(value);
        }
        if found {
            let start = (number * LANES).min(count - LANES);
            return vector.iter().position(equals).map(|index| start + index);
        }
    }
    None
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn position_avx2<T: Ordered>(
    values: *const T,
    count: usize,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe { position_plain(values, count, is_better) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn position_avx512<T: Ordered>(
    values: *const T,
    count: usize,
    is_better: impl Fn(T, T) -> bool + Copy,
) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe { position_plain(values, count, is_better) }
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
            let is_dense = input.stride == size_of::<T>().cast_signed();
            let found = (T::IN_VECTORS && is_dense && count * size_of::<T>() <= TWICE_BYTES)
                .then(|| {
                    let values = input.address.cast_const().cast::<T>();
                    // SAFETY: the caller's.
                    unsafe {
                        match self.extreme {
                            Extreme::Min => position_in_row(values, count, |new, best| new.is_less(best)),
                            Extreme::Max => position_in_row(values, count, |new, best| best.is_less(new)),
                        }
                    }
                })
                .flatten();
            return found.unwrap_or_else(|| {
                // SAFETY: the caller's.
                unsafe { self.feed(input, 0, count) };
                self.index
            });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The position in a row by the definition: the first NaN, or the first of those that no other comes before.
    fn expected(row: &[f64], extreme: Extreme) -> usize {
        let is_better = |new: f64, best: f64| if extreme == Extreme::Min { new < best } else { best < new };
        let nan = row.iter().position(|value| value.is_nan());
        nan.unwrap_or_else(|| {
            (1..row.len()).fold(0, |best, new| if is_better(row[new], row[best]) { new } else { best })
        })
    }

    #[test]
    fn positions_in_rows_are_those_of_the_first_extreme() {
        let mut state = 11_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for count in [1, 5, 63, 64, 65, 95, 96, 97, 316, 2048, 2049, 5000] {
            for range in [1, 2, 1000, 1 << 30] {
                for special in [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    let mut row: Vec<f64> = (0..count).map(|_| (next() % range) as f64).collect();
                    for _ in 0..next() % 3 {
                        row[next() as usize % count] = special;
                    }
                    let input = Elements { address: row.as_mut_ptr().cast(), stride: 8 };
                    for extreme in [Extreme::Min, Extreme::Max] {
                        // SAFETY: the row's elements are there.
                        let found = unsafe { Best::new(extreme, 0.0_f64).of_row(input, count) };
                        assert_eq!(found, expected(&row, extreme), "{count} {range} {special} {extreme:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_integers_are_found_too() {
        let mut row: Vec<u8> = (0..300_usize).map(|index| (index * 7 % 250) as u8 + 3).collect();
        row[297] = 1;
        row[299] = 255;
        let input = Elements { address: row.as_mut_ptr(), stride: 1 };
        // SAFETY: the row's elements are there.
        let found = [Extreme::Min, Extreme::Max].map(|extreme| unsafe { Best::new(extreme, 0_u8).of_row(input, 300) });
        assert_eq!(found, [297, 299]);
    }
}
