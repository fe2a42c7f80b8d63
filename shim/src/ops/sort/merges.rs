//! Merges of sorted stretches by all threads: how a shard joins what it gets from the others.
//!
//! Promises the order of one sort over all where no two different values are equal. Sorts nothing.
#![expect(unsafe_code, reason = "stretches of a field's memory as slices")]

use legate_kernels::sort::{self, Sortable};
use legate_runtime::Parallel;
use legate_runtime::partition::Partition;

/// Addresses as workers share them.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    /// Of the first number.
    pub(super) address: usize,
    /// Numbers.
    pub(super) length: usize,
}

impl Memory {
    /// A stretch.
    ///
    /// # Safety
    /// The memory holds numbers of this type, and nobody writes the stretch meanwhile.
    pub(super) unsafe fn stretch<'a, T>(self, start: usize, end: usize) -> &'a [T] {
        debug_assert!(start <= end && end <= self.length);
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts((self.address as *const T).add(start), end - start) }
    }

    /// A stretch to be written.
    ///
    /// # Safety
    /// As for [`Memory::stretch`], and nobody else reads it meanwhile.
    pub(super) unsafe fn stretch_mut<'a, T>(self, start: usize, end: usize) -> &'a mut [T] {
        debug_assert!(start <= end && end <= self.length);
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut((self.address as *mut T).add(start), end - start) }
    }
}

/// Merges sorted stretches of `values` that end at `bounds` into one, by way of `scratch`; it ends up in `result`, which is one of
/// the two.
pub(super) fn merge_all<T: Sortable>(
    workers: &dyn Parallel,
    values: Memory,
    scratch: Memory,
    bounds: &[usize],
    result: Memory,
) {
    let (mut from, mut to) = (values, scratch);
    let mut ends = bounds.to_vec();
    // Pairs of pairs: empty stretches make up for those that lack.
    ends.resize((bounds.len() - 1).next_power_of_two() + 1, values.length);
    let pieces = Partition::natural(values.length, workers.threads() * 4, 1);
    while ends.len() > 2 {
        let merged: Vec<usize> = ends.iter().copied().step_by(2).collect();
        workers.each(pieces.colours, &|piece| {
            let piece = pieces.tile(piece);
            for (pair, stretch) in merged.windows(2).enumerate() {
                let (start, end) = (piece.start.max(stretch[0]), piece.end.min(stretch[1]));
                if start >= end {
                    continue;
                }
                let middle = ends[2 * pair + 1];
                // SAFETY: the caller has both to itself: pieces are disjoint, and what is read is not written in this round.
                unsafe {
                    let (left, right) = (from.stretch::<T>(stretch[0], middle), from.stretch::<T>(middle, stretch[1]));
                    sort::merge(left, right, start - stretch[0], to.stretch_mut::<T>(start, end));
                }
            }
        });
        std::mem::swap(&mut from, &mut to);
        ends = merged;
    }
    if from.address != result.address {
        workers.each(pieces.colours, &|piece| {
            let piece = pieces.tile(piece);
            // SAFETY: the caller has both to itself.
            unsafe {
                to.stretch_mut::<T>(piece.start, piece.end).copy_from_slice(from.stretch(piece.start, piece.end))
            };
        });
    }
}
