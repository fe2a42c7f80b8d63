//! Merging of sorted stretches, so that several threads share a sort, and ranks of values, so that several shards do.
//!
//! Promises the order of one sort over all, bit by bit, where [`is_told_apart`] says that no two different values are equal. Sorts
//! nothing itself.

/// Numbers whose sorted stretches can be merged.
pub trait Merged: Copy + PartialOrd + Send + Sync {
    /// Whether another number of other bits may be equal to this one, or this is not comparable: zeros with a sign, NaN.
    fn is_ambiguous(self) -> bool;
    /// A key with the order of the numbers, which halving an interval finds; not for ambiguous ones.
    fn key(self) -> u64;
}

macro_rules! whole_numbers {
    ($($number:ty, $lowest:expr;)*) => { $(impl Merged for $number {
        fn is_ambiguous(self) -> bool {
            false
        }

        fn key(self) -> u64 {
            i128::from(self).wrapping_sub(i128::from($lowest)) as u64
        }
    })* };
}

whole_numbers! {
    i8, i8::MIN; u8, u8::MIN; i16, i16::MIN; u16, u16::MIN; i32, i32::MIN; u32, u32::MIN; i64, i64::MIN; u64, u64::MIN;
}

impl Merged for f32 {
    fn is_ambiguous(self) -> bool {
        self.is_nan() || self.to_bits() == (-0.0f32).to_bits()
    }

    fn key(self) -> u64 {
        f64::from(self).key()
    }
}

impl Merged for f64 {
    fn is_ambiguous(self) -> bool {
        self.is_nan() || self.to_bits() == (-0.0f64).to_bits()
    }

    fn key(self) -> u64 {
        let bits = self.to_bits();
        // Negative numbers grow with smaller bits, and come before the others.
        if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    }
}

/// Whether numbers of different bits are never equal here, so that sorting has one result.
pub fn is_told_apart<T: Merged>(values: &[T]) -> bool {
    // A whole block at a time, so that the look at it has no branch.
    values.chunks(1024).all(|block| !block.iter().fold(false, |any, value| any | value.is_ambiguous()))
}

/// How many of the first `taken` elements of the merged order come from `left`.
fn from_left<T: Merged>(left: &[T], right: &[T], taken: usize) -> usize {
    let mut low = taken.saturating_sub(right.len());
    let mut high = taken.min(left.len());
    while low < high {
        let middle = low.midpoint(high);
        if right[taken - middle - 1] < left[middle] {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The merged order of two sorted stretches from position `start` on, as many elements as `out` holds.
pub fn merge<T: Merged>(left: &[T], right: &[T], start: usize, out: &mut [T]) {
    let (first, last) = (from_left(left, right, start), from_left(left, right, start + out.len()));
    let left = &left[first..last];
    let right = &right[start - first..start + out.len() - last];
    let (mut taken, mut other) = (0, 0);
    let mut filled = 0;
    for place in out.iter_mut() {
        let (Some(one), Some(two)) = (left.get(taken), right.get(other)) else { break };
        let is_right = two < one;
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
    use super::{Merged, is_told_apart, merge};

    fn merged<T: Merged + Default>(left: &[T], right: &[T], pieces: usize) -> Vec<T> {
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
    fn keys_have_the_order_of_the_numbers() {
        let reals = [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.5, f64::MAX, f64::INFINITY];
        assert!(reals.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        let reals = [f32::NEG_INFINITY, -1.5, 0.0, 1e-45, 2.5, f32::INFINITY];
        assert!(reals.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        assert!([i64::MIN, -1, 0, 1, i64::MAX].windows(2).all(|pair| pair[0].key() < pair[1].key()));
        assert!([0, 1, u64::MAX].windows(2).all(|pair| pair[0].key() < pair[1].key()));
        assert!([i8::MIN, -1, 0, i8::MAX].windows(2).all(|pair| pair[0].key() < pair[1].key()));
    }

    #[test]
    fn tells_what_is_ambiguous() {
        assert!(is_told_apart(&[0.0, 1.0, f64::INFINITY]));
        assert!(!is_told_apart(&[1.0, -0.0]));
        assert!(!is_told_apart(&[1.0f32, f32::NAN]));
        assert!(is_told_apart::<f64>(&[]));
    }
}
