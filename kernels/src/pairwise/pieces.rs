//! Cutting one run across tiles: what a tile can sum alone, and how the tree is put together again.
//!
//! A tile sums the largest nodes that lie within it and keeps the values of leaves that its ends cut; `combine` walks the
//! tree over the pieces of all tiles. At most 17 nodes and 253 values per tile for a million values.

#![expect(unsafe_code, reason = "reads values through raw pointers")]

use std::collections::VecDeque;

use super::stream::Stream;
use super::tree::Summand;

/// What a tile knows about a part of the run.
#[derive(Clone, Debug)]
pub(crate) enum Piece<T: Summand> {
    /// The sum of this many values: a node of the tree.
    Node(usize, T::Sum),
    /// The values of a part of a leaf.
    Values(Vec<T>),
}

/// A tile's part of a run, on its way.
pub(crate) struct Collector<T: Summand> {
    /// What is to come: number of values, and whether they form a node.
    parts: VecDeque<(usize, bool)>,
    stream: Stream<T>,
    /// Values of the first part that are still to come.
    remaining: usize,
    pieces: Vec<Piece<T>>,
}

impl<T: Summand> Collector<T> {
    /// Ready for values `first..last` of a run of `count` values.
    pub(crate) fn new(first: usize, last: usize, count: usize, any: T) -> Collector<T> {
        let mut parts = VecDeque::new();
        list_parts::<T>(0, count, first, last, &mut parts);
        let mut collector = Collector { parts, stream: Stream::new(0, any), remaining: 0, pieces: Vec::new() };
        collector.begin();
        collector
    }

    fn begin(&mut self) {
        if let Some((count, is_node)) = self.parts.front() {
            self.remaining = *count;
            if *is_node {
                self.stream.restart(*count);
            } else {
                self.pieces.push(Piece::Values(Vec::with_capacity(*count)));
            }
        }
    }

    /// Takes the next `count` values; no more than are still to come.
    ///
    /// # Safety
    /// The values must be there and aligned.
    pub(crate) unsafe fn feed(&mut self, mut values: *const u8, stride: isize, mut count: usize) {
        while count > 0 {
            let Some((length, is_node)) = self.parts.front().copied() else { return };
            let taken = self.remaining.min(count);
            if is_node {
                // SAFETY: the caller's.
                unsafe { self.stream.feed(values, stride, taken) };
            } else if let Some(Piece::Values(list)) = self.pieces.last_mut() {
                for index in 0..taken.cast_signed() {
                    // SAFETY: the caller's.
                    list.push(unsafe { values.offset(stride * index).cast::<T>().read() });
                }
            }
            self.remaining -= taken;
            if self.remaining == 0 {
                if let (true, Some(sum)) = (is_node, self.stream.result()) {
                    self.pieces.push(Piece::Node(length, sum));
                }
                self.parts.pop_front();
                self.begin();
            }
            values = values.wrapping_offset(stride * taken.cast_signed());
            count -= taken;
        }
    }

    /// What the tile found, in order.
    pub(crate) fn into_pieces(self) -> Vec<Piece<T>> {
        self.pieces
    }
}

/// The largest nodes within `first..last` of the node `low..low + count`, and the parts of leaves at its ends.
fn list_parts<T: Summand>(low: usize, count: usize, first: usize, last: usize, parts: &mut VecDeque<(usize, bool)>) {
    let high = low + count;
    if high <= first || low >= last || count == 0 {
        return;
    }
    if first <= low && high <= last {
        parts.push_back((count, true));
    } else if count <= T::LEAF {
        parts.push_back((high.min(last) - low.max(first), false));
    } else {
        let left = T::left(count);
        list_parts::<T>(low, left, first, last, parts);
        list_parts::<T>(low + left, count - left, first, last, parts);
    }
}

/// The fewest pieces of values `first..last` of a run of `count` values, from those of neighbouring tiles in order.
pub(crate) fn merge<T: Summand>(first: usize, last: usize, count: usize, pieces: Vec<Piece<T>>) -> Vec<Piece<T>> {
    let mut parts = VecDeque::new();
    list_parts::<T>(0, count, first, last, &mut parts);
    let mut pieces = VecDeque::from(pieces);
    let merged = parts.into_iter().map(|(length, is_node)| match is_node {
        true => Piece::Node(length, join::<T>(length, &mut pieces)),
        false => Piece::Values(take_values(length, &mut pieces)),
    });
    merged.collect()
}

/// Most nodes and values that a tile's pieces of a run of `count` values hold.
pub(crate) fn piece_limits<T: Summand>(count: usize) -> (usize, usize) {
    (2 * (usize::BITS - count.leading_zeros()) as usize + 2, 2 * T::LEAF)
}

/// The next `count` values, which pieces hold one by one.
fn take_values<T: Summand>(count: usize, pieces: &mut VecDeque<Piece<T>>) -> Vec<T> {
    let mut values: Vec<T> = Vec::with_capacity(count);
    while values.len() < count {
        match pieces.pop_front() {
            Some(Piece::Values(part)) => values.extend(part),
            Some(Piece::Node(..)) | None => unreachable!("tiles cover the run and cut nodes as `list_parts` does"),
        }
    }
    values
}

/// The sum of a run of `count` values from the pieces of all its tiles, in order.
pub(crate) fn combine<T: Summand>(count: usize, pieces: Vec<Piece<T>>) -> T::Sum {
    let mut pieces = VecDeque::from(pieces);
    join(count, &mut pieces)
}

fn join<T: Summand>(count: usize, pieces: &mut VecDeque<Piece<T>>) -> T::Sum {
    if let Some(Piece::Node(length, sum)) = pieces.front()
        && *length == count
    {
        let sum = *sum;
        pieces.pop_front();
        return sum;
    }
    if count <= T::LEAF {
        let values = take_values(count, pieces);
        let item = size_of::<T>().cast_signed();
        // SAFETY: `count` values.
        return unsafe { T::leaf(values.as_ptr().cast(), item, count) };
    }
    let left = T::left(count);
    let low = join::<T>(left, pieces);
    T::add(low, join::<T>(count - left, pieces))
}
