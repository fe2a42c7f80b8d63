//! Merging of sorted stretches, so that several shards share a sort.
//!
//! Promises the order of one sort over all, bit by bit, where [`Survey::is_plain`](super::Survey::is_plain) says that no two different
//! values are equal. Sorts nothing itself.

use super::words::Sortable;

/// How many of the first `taken` elements of the merged order come from `left`.
fn from_left<T: Sortable>(left: &[T], right: &[T], taken: usize) -> usize {
    let mut low = taken.saturating_sub(right.len());
    let mut high = taken.min(left.len());
    while low < high {
        let middle = low.midpoint(high);
        if right[taken - middle - 1].word() < left[middle].word() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The merged order of two sorted stretches from position `start` on, as many elements as `out` holds.
pub fn merge<T: Sortable>(left: &[T], right: &[T], start: usize, out: &mut [T]) {
    let (first, last) = (from_left(left, right, start), from_left(left, right, start + out.len()));
    let left = &left[first..last];
    let right = &right[start - first..start + out.len() - last];
    let (mut taken, mut other) = (0, 0);
    let mut filled = 0;
    for place in out.iter_mut() {
        let (Some(one), Some(two)) = (left.get(taken), right.get(other)) else { break };
        let is_right = two.word() < one.word();
        *place = if is_right { *two } else { *one };
        taken += usize::from(!is_right);
        other += usize::from(is_right);
        filled += 1;
    }
    let rest = &mut out[filled..];
    let (ones, twos) = rest.split_at_mut(left.len() - taken);
    ones.copy_from_slice(&left[taken..]);
    twos.copy_from_slice(&right[other..]);
}

#[cfg(test)]
mod tests {
    use super::{Sortable, merge};

    fn merged<T: Sortable + Default>(left: &[T], right: &[T], pieces: usize) -> Vec<T> {
        let length = left.len() + right.len();
        let mut out = vec![T::default(); length];
        for piece in 0..pieces {
            let (start, end) = (piece * length / pieces, (piece + 1) * length / pieces);
            merge(left, right, start, &mut out[start..end]);
        }
        out
    }

    #[test]
    fn merges_in_pieces_as_in_one() {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i64
        };
        for (ones, twos, range) in
            [(0, 0, 9), (0, 5, 9), (5, 0, 9), (1, 1, 2), (100, 3, 5), (64, 81, 1000), (37, 37, 1)]
        {
            let mut left: Vec<i64> = (0..ones).map(|_| next() % range).collect();
            let mut right: Vec<i64> = (0..twos).map(|_| next() % range).collect();
            let mut all: Vec<i64> = left.iter().chain(&right).copied().collect();
            left.sort_unstable();
            right.sort_unstable();
            all.sort_unstable();
            for pieces in [1, 2, 3, 7] {
                assert_eq!(merged(&left, &right, pieces), all);
            }
        }
    }

    #[test]
    fn what_is_not_a_number_comes_last() {
        let nan = -f64::NAN;
        let all = merged(&[-1.0, f64::INFINITY, nan], &[f64::NEG_INFINITY, -0.0, 2.0, nan], 2);
        let bits: Vec<u64> = all.iter().map(|value| value.to_bits()).collect();
        assert_eq!(bits, [f64::NEG_INFINITY, -1.0, -0.0, 2.0, f64::INFINITY, nan, nan].map(f64::to_bits));
    }
}
