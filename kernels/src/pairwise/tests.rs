//! Sums that arrive in pieces against the definition, for every type.

#![expect(unsafe_code, reason = "sums values behind raw pointers")]

use std::fmt::Debug;

use super::tree::{Half, Pair, Summand, sum};
use super::{Collector, Stream, combine, sum_rows};
use crate::loops::half;

/// Numbers that look random: xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    fn unit(&mut self) -> f64 {
        self.next() as f64 / (1_u64 << 53) as f64 - 0.5
    }
}

/// NumPy's `pairwise_sum` over floats that lie `width` apart, for the first of each `width` (2 for complex numbers: the cut-offs
/// count both parts).
fn defined(values: &[f32], width: usize) -> f32 {
    let count = values.len();
    let mut parts = values.iter().step_by(width).copied();
    if count < 8 {
        return parts.fold(-0.0, |sum, value| sum + value);
    }
    if count <= 128 {
        let lanes = 8 / width;
        let mut sums: Vec<f32> = parts.by_ref().take(lanes).collect();
        for index in lanes..(count - count % 8) / width {
            sums[index % lanes] += values[index * width];
        }
        let mut joined = sums;
        while joined.len() > 1 {
            joined = joined.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        }
        return values[count - count % 8..].iter().step_by(width).fold(joined[0], |sum, value| sum + value);
    }
    let left = count / 2 - count / 2 % 8;
    defined(&values[..left], width) + defined(&values[left..], width)
}

/// The sum in one go, in random blocks, and from random tiles.
fn check<T: Summand>(values: &[T], random: &mut Random) -> T::Sum
where
    T::Sum: PartialEq + Debug,
{
    let count = values.len();
    let item = size_of::<T>().cast_signed();
    let any = values[0];
    // SAFETY: all pieces lie within `values`.
    unsafe {
        let whole = sum::<T>(values.as_ptr().cast(), item, count);
        let mut stream = Stream::new(count, any);
        let mut fed = 0;
        while fed < count {
            let block = (1 + random.below(700)).min(count - fed);
            stream.feed(values[fed..].as_ptr().cast(), item, block);
            fed += block;
        }
        assert_eq!(stream.result(), Some(whole), "{count} values in blocks");

        let mut cuts: Vec<usize> = (0..random.below(6)).map(|_| random.below(count + 1)).collect();
        cuts.extend([0, count]);
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        for tile in cuts.windows(2) {
            let mut collector = Collector::new(tile[0], tile[1], count, any);
            let mut fed = tile[0];
            while fed < tile[1] {
                let block = (1 + random.below(900)).min(tile[1] - fed);
                collector.feed(values[fed..].as_ptr().cast(), item, block);
                fed += block;
            }
            pieces.extend(collector.into_pieces());
        }
        assert_eq!(combine(count, pieces), whole, "{count} values in tiles {cuts:?}");
        whole
    }
}

#[test]
fn every_type_sums_as_defined() {
    let mut random = Random(7);
    for round in 0..600 {
        let limit = [12, 300, 5000][round % 3];
        let count = 1 + random.below(limit);
        let singles: Vec<f32> = (0..count).map(|_| random.unit() as f32).collect();
        let expected = defined(&singles, 1);
        assert_eq!(check(&singles, &mut random), expected);

        let halves: Vec<Half> = singles.iter().map(|value| Half(half::from_f32(*value))).collect();
        let widened: Vec<f32> = halves.iter().map(|value| half::to_f32(value.0)).collect();
        assert_eq!(check(&halves, &mut random), defined(&widened, 1));

        let pairs: Vec<Pair<f32>> = singles.iter().map(|value| Pair(*value, 1.0 - value)).collect();
        let flat: Vec<f32> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
        let imaginary = [&flat[1..], &[0.0]].concat();
        assert_eq!(check(&pairs, &mut random), Pair(defined(&flat, 2), defined(&imaginary, 2)));

        let doubles: Vec<f64> = singles.iter().map(|value| f64::from(*value)).collect();
        check(&doubles, &mut random);
        check(&pairs.iter().map(|pair| Pair(f64::from(pair.0), 0.1)).collect::<Vec<_>>(), &mut random);
    }
}

#[test]
fn a_run_without_values_is_negative_zero() {
    let sum = combine::<f64>(0, Vec::new());
    assert!(sum == 0.0 && sum.is_sign_negative());
}

#[test]
fn rows_are_runs_of_their_own() {
    let values: Vec<f64> = (0..60).map(|index| f64::from(index) / 7.0).collect();
    let mut sums = Vec::new();
    // SAFETY: five rows of six, every second value.
    unsafe { sum_rows::<f64>(values.as_ptr().cast(), 16, 5, 6, |row, sum| sums.push((row, sum))) };
    let expected: Vec<(usize, f64)> =
        (0..5).map(|row| (row, (0..6).fold(-0.0, |sum, index| sum + values[row * 12 + index * 2]))).collect();
    assert_eq!(sums, expected);
}
