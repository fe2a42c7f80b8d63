//! Counting and summing by bin, and finding the bin of a value among sorted edges.
//!
//! Promises NumPy's order: weights are added to a bin's sum one after the other, and NaN is greater than any number. Indices must
//! lie inside the bins; callers have checked.

#![expect(unsafe_code, reason = "reads elements at computed addresses")]

use crate::gather::Strided;

/// Adds one to the bin of each of `count` indices (i64).
///
/// # Safety
/// The indices must be there, and inside the bins.
pub unsafe fn count(indices: Strided, count: usize, bins: &mut [u64]) {
    for position in 0..count {
        // SAFETY: the caller's.
        let index = unsafe { indices.at(position).cast::<i64>().read_unaligned() };
        bins[index as usize] += 1;
    }
}

/// Adds each of `count` weights (f64) to the bin of its index (i64), in order.
///
/// # Safety
/// The indices and weights must be there, the indices inside the bins.
pub unsafe fn sum(indices: Strided, weights: Strided, count: usize, bins: &mut [f64]) {
    for position in 0..count {
        // SAFETY: the caller's.
        let (index, weight) = unsafe {
            (indices.at(position).cast::<i64>().read_unaligned(), weights.at(position).cast::<f64>().read_unaligned())
        };
        bins[index as usize] += weight;
    }
}

/// Adds one to the bin of each of `count` values (f64) that lies between the first and the last of the edges, which are as far apart as
/// `limits` say: the arithmetic of `numpy.histogram`, step by step.
///
/// # Safety
/// The values must be there. There is one more edge than bins, and at least one bin.
pub unsafe fn tally(values: Strided, count: usize, edges: &[f64], limits: (f64, f64), bins: &mut [u64]) {
    let (first, last) = limits;
    let (width, parts) = (last - first, bins.len() as f64);
    let most = bins.len() - 1;
    for position in 0..count {
        // SAFETY: the caller's.
        let value = unsafe { values.at(position).cast::<f64>().read_unaligned() };
        if !(value >= first && value <= last) {
            continue;
        }
        let mut place = (((value - first) / width * parts) as usize).min(most);
        place = place.saturating_sub(usize::from(value < edges[place]));
        place += usize::from(value >= edges[place + 1] && place != most);
        bins[place] += 1;
    }
}

/// A number that is searched for.
pub trait Searched: Copy {
    /// Whether it is sorted before another.
    fn is_before(self, other: Self) -> bool;
}

impl Searched for i64 {
    #[inline(always)]
    fn is_before(self, other: i64) -> bool {
        self < other
    }
}

impl Searched for f64 {
    #[inline(always)]
    fn is_before(self, other: f64) -> bool {
        self < other || (other.is_nan() && !self.is_nan())
    }
}

/// Writes, for each of `count` values, the number of sorted edges before it (`right`: and of those equal to it) as i64.
///
/// # Safety
/// The values must be there, the output have room; the output must overlap nothing.
pub unsafe fn search<T: Searched>(edges: &[T], values: Strided, count: usize, output: Strided, right: bool) {
    for position in 0..count {
        // SAFETY: the caller's.
        unsafe {
            let value = values.at(position).cast::<T>().read_unaligned();
            let place = if right {
                edges.partition_point(|edge| !value.is_before(*edge))
            } else {
                edges.partition_point(|edge| edge.is_before(value))
            };
            output.at(position).cast::<i64>().write_unaligned(place as i64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided<T>(values: &mut [T]) -> Strided {
        Strided { address: values.as_mut_ptr().cast(), stride: size_of::<T>().cast_signed() }
    }

    #[test]
    fn nan_is_behind_all_edges_that_are_numbers() {
        let edges = [-1.0, 0.0, 2.0, f64::NAN];
        let mut values = [f64::NAN, 0.0, -5.0, 9.0];
        let mut left = [0_i64; 4];
        let mut right = [0_i64; 4];
        // SAFETY: four values and places.
        unsafe {
            search(&edges, strided(&mut values), 4, strided(&mut left), false);
            search(&edges, strided(&mut values), 4, strided(&mut right), true);
        }
        assert_eq!((left, right), ([3, 1, 0, 3], [4, 2, 0, 3]));
    }

    #[test]
    fn values_outside_and_nan_are_in_no_bin() {
        let mut values = [0.0, 0.1, 0.5, 1.0, 1.1, -0.1, f64::NAN];
        let mut counts = [0; 2];
        // SAFETY: seven values; three edges of two bins.
        unsafe { tally(strided(&mut values), 7, &[0.0, 0.5, 1.0], (0.0, 1.0), &mut counts) };
        assert_eq!(counts, [2, 2]);
    }

    #[test]
    fn bins_are_counted_and_summed() {
        let mut indices = [2_i64, 0, 2];
        let mut weights = [0.5, 1.0, 0.25];
        let (mut counts, mut sums) = ([0; 3], [0.0; 3]);
        // SAFETY: three indices below three, and three weights.
        unsafe {
            count(strided(&mut indices), 3, &mut counts);
            sum(strided(&mut indices), strided(&mut weights), 3, &mut sums);
        }
        assert_eq!((counts, sums), ([1, 0, 2], [1.0, 0.0, 0.75]));
    }
}
