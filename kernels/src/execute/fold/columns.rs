//! The positions of the first smallest or largest elements of columns, found row after row.
//!
//! Promises the rules of `extreme`, whatever rows are looked at together: what was found in earlier and in later rows joins to what is
//! found in all of them. A column of which nothing was seen has the position -1.

#![expect(unsafe_code, reason = "reads rows at computed addresses")]

use super::extreme::Ordered;
use super::for_number;
use crate::gather::Strided;
use crate::loops::lanes::Width;
use crate::pairwise::{Half, Pair};
use crate::program::{Extreme, Number};

/// The best elements of some columns so far, and the numbers of their rows.
///
/// Invariant: `bytes` has a position and an element of the type for each column.
pub struct Columns {
    extreme: Extreme,
    number: Number,
    count: usize,
    /// Positions, then elements.
    bytes: Vec<u8>,
}

/// Bytes of a position.
const PLACE: usize = size_of::<i64>();

impl Columns {
    /// Columns of which nothing was seen.
    pub fn new(extreme: Extreme, number: Number, count: usize) -> Columns {
        let mut bytes = vec![0; count * (PLACE + number.bytes())];
        bytes[..count * PLACE].fill(0xff);
        Columns { extreme, number, count, bytes }
    }

    /// Columns from what [`Columns::bytes`] gave of as many columns of the type.
    pub fn from_bytes(extreme: Extreme, number: Number, count: usize, bytes: &[u8]) -> Columns {
        assert!(bytes.len() == count * (PLACE + number.bytes()), "bytes of other columns");
        Columns { extreme, number, count, bytes: bytes.to_vec() }
    }

    /// What is known, for another process.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The positions, as bytes of `i64`.
    pub fn places(&self) -> &[u8] {
        &self.bytes[..self.count * PLACE]
    }

    /// Takes rows `first..first + count`, the first of which begins at `rows`, after those that were taken before.
    ///
    /// # Safety
    /// Each row must hold as many elements, one after the other.
    pub unsafe fn feed(&mut self, rows: Strided, first: usize, count: usize) {
        let (places, values) = self.bytes.split_at_mut(self.count * PLACE);
        for_number!(self.number, any => for row in 0..count {
            // SAFETY: the caller's; there are as many positions and elements.
            unsafe { take(any, self.extreme, (rows.at(row), None), (first + row) as i64, places, values) }
        });
    }

    /// Takes what was found in later rows of as many columns.
    pub fn join(&mut self, later: &Columns) {
        assert!((self.count, self.number) == (later.count, later.number), "columns of one array");
        let (places, values) = self.bytes.split_at_mut(self.count * PLACE);
        let (numbers, elements) = later.bytes.split_at(self.count * PLACE);
        // SAFETY: the type's invariant, for as many columns on both sides.
        for_number!(self.number, any => unsafe {
            take(any, self.extreme, (elements.as_ptr(), Some(numbers)), 0, places, values);
        });
    }
}

/// Compares a row (its elements, and the positions of each where they are not all `place`) with the best so far.
///
/// # Safety
/// The row must hold as many elements as there are `places`, and `values` too.
#[inline(always)]
unsafe fn take<T: Ordered>(
    any: T,
    extreme: Extreme,
    row: (*const u8, Option<&[u8]>),
    place: i64,
    places: &mut [u8],
    values: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    {
        if Width::best() == Width::Avx512 {
            // SAFETY: the caller's, and the processor has the instructions.
            return unsafe { take_avx512(any, extreme, row, place, places, values) };
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the caller's, and the processor has the instructions.
            return unsafe { take_avx2(any, extreme, row, place, places, values) };
        }
    }
    // SAFETY: the caller's.
    unsafe { take_plain(any, extreme, row, place, places, values) }
}

#[inline(always)]
unsafe fn take_plain<T: Ordered>(
    _: T,
    extreme: Extreme,
    (row, numbers): (*const u8, Option<&[u8]>),
    place: i64,
    places: &mut [u8],
    values: &mut [u8],
) {
    let (row, values, count) = (row.cast::<T>(), values.as_mut_ptr().cast::<T>(), places.len() / PLACE);
    let (places, numbers) = (places.as_mut_ptr().cast::<i64>(), numbers.map(|numbers| numbers.as_ptr().cast::<i64>()));
    // SAFETY: the caller's.
    unsafe {
        match (extreme, numbers) {
            (Extreme::Min, None) => compare(row, |_| place, places, values, count, |new: T, best| new.is_less(best)),
            (Extreme::Max, None) => compare(row, |_| place, places, values, count, |new: T, best| best.is_less(new)),
            (Extreme::Min, Some(numbers)) => {
                let number = |column| numbers.add(column).read_unaligned();
                compare(row, number, places, values, count, |new: T, best| new.is_less(best));
            }
            (Extreme::Max, Some(numbers)) => {
                let number = |column| numbers.add(column).read_unaligned();
                compare(row, number, places, values, count, |new: T, best| best.is_less(new));
            }
        }
    }
}

#[inline(always)]
unsafe fn compare<T: Ordered>(
    row: *const T,
    number: impl Fn(usize) -> i64,
    places: *mut i64,
    values: *mut T,
    count: usize,
    is_better: impl Fn(T, T) -> bool,
) {
    for column in 0..count {
        // SAFETY: the caller's.
        unsafe {
            let (new, place) = (row.add(column).read_unaligned(), number(column));
            let (best, known) = (values.add(column).read_unaligned(), places.add(column).read_unaligned());
            let wins = !best.is_nan() & (is_better(new, best) | new.is_nan());
            let taken = (wins | (known < 0)) & (place >= 0);
            values.add(column).write_unaligned(if taken { new } else { best });
            places.add(column).write_unaligned(if taken { place } else { known });
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn take_avx2<T: Ordered>(
    any: T,
    extreme: Extreme,
    row: (*const u8, Option<&[u8]>),
    place: i64,
    places: &mut [u8],
    values: &mut [u8],
) {
    // SAFETY: the caller's.
    unsafe { take_plain(any, extreme, row, place, places, values) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn take_avx512<T: Ordered>(
    any: T,
    extreme: Extreme,
    row: (*const u8, Option<&[u8]>),
    place: i64,
    places: &mut [u8],
    values: &mut [u8],
) {
    // SAFETY: the caller's.
    unsafe { take_plain(any, extreme, row, place, places, values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(extreme: Extreme, rows: &[[f64; 4]], cuts: &[usize]) -> Vec<i64> {
        let mut whole = Columns::new(extreme, Number::F64, 4);
        let mut first = 0;
        for last in cuts.iter().copied().chain([rows.len()]) {
            let mut part = Columns::new(extreme, Number::F64, 4);
            let address = rows[first..].as_ptr().cast_mut().cast();
            // SAFETY: the rows are there.
            unsafe { part.feed(Strided { address, stride: 32 }, first, last - first) };
            whole.join(&Columns::from_bytes(extreme, Number::F64, 4, part.bytes()));
            first = last;
        }
        let number = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        whole.places().chunks(PLACE).map(number).collect()
    }

    #[test]
    fn parts_join_to_the_first_extreme_and_the_first_nan() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let rows = [[1.0, -0.0, 3.0, inf], [2.0, 0.0, nan, inf], [2.0, 5.0, 9.0, -inf], [0.0, -7.0, nan, 0.0]];
        for cuts in [&[][..], &[1], &[2], &[3], &[1, 2], &[0, 2, 2, 3]] {
            assert_eq!(found(Extreme::Max, &rows, cuts), [1, 2, 1, 0]);
            assert_eq!(found(Extreme::Min, &rows, cuts), [3, 3, 1, 2]);
        }
    }
}
