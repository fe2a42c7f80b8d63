//! Summing one run whose values arrive in blocks of any size.
//!
//! Promises the tree's bits. A leaf that a block cuts is collected and summed when it is whole.

#![expect(unsafe_code, reason = "reads values through raw pointers")]

use std::ptr;

use smallvec::SmallVec;

use super::tree::{Summand, sum};

/// The largest leaf of any type, in values.
const LARGEST_LEAF: usize = 128;

/// Bytes of one level of the tree that are summed at a time when a block holds them.
const SUBTREE: usize = 1024;

/// A run on its way through the tree.
///
/// Invariant: `remaining` values of the node being filled are still to come, of `node` in all; the others are in
/// `collected`. `pending` leads from that node to the root.
pub(crate) struct Stream<T: Summand> {
    pending: SmallVec<[Pending<T::Sum>; 24]>,
    node: usize,
    remaining: usize,
    collected: [T; LARGEST_LEAF],
    result: Option<T::Sum>,
}

enum Pending<S> {
    /// The right sibling has this many values.
    Right(usize),
    /// The left sibling's sum.
    Left(S),
}

impl<T: Summand> Stream<T> {
    /// Ready for a run of `count` values.
    pub(crate) fn new(count: usize, any: T) -> Stream<T> {
        let mut stream =
            Stream { pending: SmallVec::new(), node: 0, remaining: 0, collected: [any; LARGEST_LEAF], result: None };
        stream.restart(count);
        stream
    }

    /// Ready for another run.
    pub(crate) fn restart(&mut self, count: usize) {
        self.pending.clear();
        self.result = None;
        if count == 0 {
            // SAFETY: a leaf without values reads none.
            self.result = Some(unsafe { T::leaf(self.collected.as_ptr().cast(), 0, 0) });
        }
        self.node = count;
        self.remaining = count;
    }

    /// The sum, once all values have come.
    pub(crate) fn result(&self) -> Option<T::Sum> {
        self.result
    }

    /// Takes the next `count` values; no more than are still to come.
    ///
    /// # Safety
    /// The values must be there and aligned.
    pub(crate) unsafe fn feed(&mut self, mut values: *const u8, stride: isize, mut count: usize) {
        let item = size_of::<T>().cast_signed();
        while count > 0 {
            let taken;
            if self.remaining == self.node && self.node <= count && self.node <= SUBTREE {
                taken = self.node;
                // SAFETY: the caller's.
                let sum = unsafe { sum::<T>(values, stride, taken) };
                self.rise(sum);
            } else if self.node > T::LEAF {
                // Not begun: nothing is collected above leaves.
                let left = T::left(self.node);
                self.pending.push(Pending::Right(self.node - left));
                self.node = left;
                self.remaining = left;
                continue;
            } else {
                taken = self.remaining.min(count);
                let first = self.node - self.remaining;
                let collected = &mut self.collected[first..first + taken];
                if stride == item {
                    // SAFETY: the caller's.
                    unsafe { ptr::copy_nonoverlapping(values.cast::<T>(), collected.as_mut_ptr(), taken) };
                } else {
                    for (index, value) in collected.iter_mut().enumerate() {
                        // SAFETY: the caller's.
                        *value = unsafe { values.offset(stride * index.cast_signed()).cast::<T>().read() };
                    }
                }
                self.remaining -= taken;
                if self.remaining == 0 {
                    // SAFETY: `node` values are collected.
                    let sum = unsafe { T::leaf(self.collected.as_ptr().cast(), item, self.node) };
                    self.rise(sum);
                }
            }
            // SAFETY: within the values or at their end.
            values = values.wrapping_offset(stride * taken.cast_signed());
            count -= taken;
        }
    }

    /// A node is summed: joins it with what waits for it, up to the next node that has values to come.
    fn rise(&mut self, mut sum: T::Sum) {
        loop {
            match self.pending.pop() {
                None => {
                    self.result = Some(sum);
                    self.node = 0;
                    self.remaining = 0;
                    return;
                }
                Some(Pending::Left(left)) => sum = T::add(left, sum),
                Some(Pending::Right(count)) => {
                    self.pending.push(Pending::Left(sum));
                    self.node = count;
                    self.remaining = count;
                    return;
                }
            }
        }
    }
}
