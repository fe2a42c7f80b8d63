//! Sums of booleans: bytes are counted many at a time, where NumPy converts each of them first.
//!
//! Whole numbers are the same in whatever order they are added, and so are fractions as long as they are whole numbers below 2^53,
//! which no memory holds as many booleans as. Which sums are of this kind is found by [`join_counts`]; it promises that nobody else
//! reads what was converted.

#![expect(unsafe_code, reason = "reads elements at computed addresses")]

use super::rule::{RowRule, element_as, element_of};
use super::{Elements, Rule};
use crate::execute::LoopError;
use crate::execute::join::count_readers;
use crate::execute::nest::Nest;
use crate::execute::plan::Operation;
use crate::program::{Element, Float, Seed};

/// What a sum of booleans is given as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) enum Counted {
    /// A 64-bit integer.
    Whole,
    /// A double.
    Fraction,
}

impl Counted {
    /// The result: what the sum starts from, and the bytes' sum.
    pub(super) fn result(self, seed: Seed, sum: u64) -> Element {
        match (self, seed) {
            (Counted::Whole, Seed::First) => element_of(sum),
            (Counted::Whole, Seed::Value(seed)) => element_of(element_as::<u64>(&seed).wrapping_add(sum)),
            (Counted::Fraction, Seed::First) => element_of(sum as f64),
            (Counted::Fraction, Seed::Value(seed)) => element_of(element_as::<f64>(&seed) + sum as f64),
        }
    }
}

/// Folds sums of booleans that are converted first without that, where nobody else wants what they are converted to.
pub(in crate::execute) fn join_counts(operations: &mut Vec<Operation>, nest: &Nest, registers: usize) {
    let first_register = nest.walks.len();
    let mut place = 1;
    while place < operations.len() {
        let found = match &operations[place - 1..=place] {
            [Operation::Call(call), Operation::Fold(fold, _)] => {
                let counted = match (&*call.kernel.0.name, &fold.rule) {
                    ("cast ?->l", Rule::Fold(kernel)) if &*kernel.0.name == "add" => Some(Counted::Whole),
                    ("cast ?->d", Rule::Pairwise(Float::F64)) => Some(Counted::Fraction),
                    _ => None,
                };
                let is_alone = fold.input.pointer == call.pointers[1]
                    && call.pointers[1]
                        .checked_sub(first_register)
                        .is_some_and(|register| count_readers(operations, first_register, registers)[register] == 1);
                counted.filter(|_| is_alone).map(|counted| (counted, call.pointers[0], call.strides[0]))
            }
            _ => None,
        };
        let Some((counted, pointer, stride)) = found else {
            place += 1;
            continue;
        };
        if let Operation::Fold(fold, _) = &mut operations[place] {
            fold.rule = Rule::Count(counted);
            fold.input.pointer = pointer;
            fold.input.stride = stride;
        }
        operations.remove(place - 1);
    }
}

/// The sum of a row of booleans.
pub(super) struct CountRows {
    counted: Counted,
    seed: Seed,
    sum: u64,
}

impl CountRows {
    pub(super) fn new(counted: Counted, seed: Seed) -> CountRows {
        CountRows { counted, seed, sum: 0 }
    }

    /// The sum so far, without what it starts from.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }
}

impl RowRule for CountRows {
    fn start(&mut self) {
        self.sum = 0;
    }

    unsafe fn feed(&mut self, input: Elements, _first: usize, count: usize) -> Result<(), LoopError> {
        // SAFETY: the caller's.
        self.sum += unsafe {
            if input.stride == 1 {
                count_bytes(std::slice::from_raw_parts(input.address, count))
            } else {
                (0..count).map(|index| u64::from(input.at(index).read() != 0)).sum()
            }
        };
        Ok(())
    }

    unsafe fn finish(&mut self, target: *mut u8) {
        let result = self.counted.result(self.seed, self.sum);
        // SAFETY: the caller's: both kinds of result have 8 bytes.
        unsafe { target.cast::<[u8; 8]>().write_unaligned(element_as(&result)) };
    }
}

/// How many bytes are not zero: each of them is a truth.
fn count_bytes(bytes: &[u8]) -> u64 {
    let (whole, rest) = bytes.as_chunks::<LANES>();
    let ends: u64 = rest.iter().map(|byte| u64::from(*byte != 0)).sum();
    count_vectors(whole) + ends
}

/// Bytes that are added up together.
const LANES: usize = 16;

#[cfg(target_arch = "x86_64")]
fn count_vectors(vectors: &[[u8; LANES]]) -> u64 {
    use std::arch::x86_64::{
        _mm_add_epi64, _mm_loadu_si128, _mm_min_epu8, _mm_sad_epu8, _mm_set1_epi8, _mm_setzero_si128,
    };
    // SAFETY: every x86-64 processor has these instructions; each load is of one vector.
    let sums: [u64; 2] = unsafe {
        let zero = _mm_setzero_si128();
        let mut sums = [zero; 2];
        for (index, vector) in vectors.iter().enumerate() {
            let truths = _mm_min_epu8(_mm_loadu_si128(vector.as_ptr().cast()), _mm_set1_epi8(1));
            let sum = _mm_sad_epu8(truths, zero);
            sums[index % 2] = _mm_add_epi64(sums[index % 2], sum);
        }
        std::mem::transmute(_mm_add_epi64(sums[0], sums[1]))
    };
    sums[0] + sums[1]
}

#[cfg(not(target_arch = "x86_64"))]
fn count_vectors(vectors: &[[u8; LANES]]) -> u64 {
    vectors.iter().flatten().map(|byte| u64::from(*byte != 0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_number_and_value_are_counted() {
        let bytes: Vec<u8> = (0..1000_usize).map(|index| (index * 37 % 251) as u8).collect();
        for (start, end) in [(0, 0), (0, 1), (3, 18), (1, 17), (0, 1000), (5, 999)] {
            let expected: u64 = bytes[start..end].iter().map(|byte| u64::from(*byte != 0)).sum();
            assert_eq!(count_bytes(&bytes[start..end]), expected);
        }
    }

    #[test]
    fn results_start_from_the_seed() {
        let (whole, fraction) = (Seed::Value(element_of(7_i64)), Seed::Value(element_of(-0.0_f64)));
        assert_eq!(element_as::<i64>(&Counted::Whole.result(whole, 5)), 12);
        assert_eq!(element_as::<i64>(&Counted::Whole.result(Seed::First, 5)), 5);
        assert_eq!(element_as::<f64>(&Counted::Fraction.result(fraction, 0)).to_bits(), 0);
        assert_eq!(element_as::<f64>(&Counted::Fraction.result(Seed::First, 5)).to_bits(), 5.0_f64.to_bits());
    }
}
