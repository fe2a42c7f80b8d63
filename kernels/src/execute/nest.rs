//! The loop nest of a pass: its axes with those dropped or joined that every walk allows.
//!
//! Promises that the joined nest visits the same elements in the same order. Tells whether blocks run over it flattened; decides
//! nothing else about registers or blocks.

use std::ops::Range;

use smallvec::SmallVec;

use crate::program::{Access, Memory, Pass, Step};

/// Innermost runs shorter than this are gathered into full blocks.
const SHORT_RUN: usize = 64;

/// Operands that repeat after at most this many elements are gathered once per chunk.
pub(super) const PERIOD: usize = 512;

/// One stride per axis of a nest, outermost first.
pub(super) type Strides = SmallVec<[isize; 4]>;

/// One axis of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Its length, or for an axis that holds the rows its length per row.
    pub(super) length: usize,
    /// Whether the rows of a chunk are (part of) this axis.
    pub(super) by_rows: bool,
}

impl Axis {
    /// Its length for a chunk of `rows` rows.
    pub(super) fn length(self, rows: usize) -> usize {
        if self.by_rows { self.length * rows } else { self.length }
    }
}

/// Where a walk starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Memory of the program.
    Memory(Memory),
    /// No memory: "addresses" are the numbers of the pass's elements.
    Index,
}

/// An access along the axes of a nest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Walk {
    pub(super) base: Base,
    /// Bytes from the base to row 0 (of the group; of the chunk for a slot), first inner element of the tile.
    pub(super) offset: isize,
    pub(super) row_stride: isize,
    /// Bytes along each axis of the nest.
    pub(super) strides: Strides,
    /// The one stride that walks the whole nest, if there is one.
    pub(super) whole: Option<isize>,
    pub(super) item_bytes: usize,
    pub(super) aligned: bool,
}

/// A pass as axes and walks.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    /// Outermost first; never empty. Only the first may hold the rows.
    pub(super) axes: SmallVec<[Axis; 4]>,
    /// One per access of the pass, then one that numbers the elements if an `Index` step asks for it.
    pub(super) walks: Vec<Walk>,
    /// Elements per row, within the tile's part of the inner axes.
    pub(super) row_elements: usize,
}

impl Nest {
    /// The nest of `pass`, its inner axis `part.0` narrowed to `part.1`.
    pub(super) fn new(pass: &Pass, part: Option<(usize, &Range<usize>)>) -> Nest {
        let mut lengths: SmallVec<[usize; 5]> = SmallVec::from_slice(&[pass.rows.len()]);
        lengths.extend(pass.inner.iter().copied());
        if let Some((axis, range)) = part {
            lengths[axis + 1] = range.len();
        }
        let mut walks: Vec<Walk> = pass.accesses.iter().map(|access| memory_walk(access, part)).collect();
        if pass.steps.iter().any(|step| matches!(step, Step::Index { .. })) {
            walks.push(index_walk(pass, part));
        }
        let full: Vec<SmallVec<[isize; 5]>> = walks.iter().map(full_strides).collect();

        let fixed = boundaries(pass);
        let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
        for walk in &mut walks {
            walk.strides.clear();
        }
        // From the innermost axis outwards; reversed at the end.
        let mut boundary = false;
        for axis in (0..lengths.len()).rev() {
            boundary |= fixed.contains(&(axis + 1));
            if lengths[axis] == 1 {
                continue;
            }
            let joins = !boundary
                && axes.last().is_some_and(|inner| {
                    let length = inner.length.cast_signed();
                    walks.iter().zip(&full).all(|(walk, strides)| {
                        walk.strides.last().is_some_and(|stride| strides[axis] == stride * length)
                    })
                });
            let by_rows = axis == 0;
            let length = if by_rows { 1 } else { lengths[axis] };
            match axes.last_mut() {
                Some(inner) if joins => {
                    inner.length *= length;
                    inner.by_rows |= by_rows;
                }
                _ => {
                    axes.push(Axis { length, by_rows });
                    for (walk, strides) in walks.iter_mut().zip(&full) {
                        walk.strides.push(strides[axis]);
                    }
                }
            }
            boundary = false;
        }
        if axes.is_empty() {
            axes.push(Axis { length: 1, by_rows: false });
            for walk in &mut walks {
                walk.strides.push(0);
            }
        }
        axes.reverse();
        for walk in &mut walks {
            walk.strides.reverse();
            walk.whole = whole_stride(&axes, &walk.strides);
        }
        Nest { axes, walks, row_elements: lengths[1..].iter().product() }
    }

    /// How many trailing axes hold exactly `elements` elements: the folded axes of a reduction.
    pub(super) fn trailing_axes(&self, elements: usize) -> usize {
        let mut product = 1;
        let mut count = 0;
        while product < elements {
            count += 1;
            product *= self.axes[self.axes.len() - count].length;
        }
        count
    }
}

fn memory_walk(access: &Access, part: Option<(usize, &Range<usize>)>) -> Walk {
    let shift = part.map_or(0, |(axis, range)| access.inner_strides[axis] * range.start.cast_signed());
    let constant = matches!(access.memory, Memory::Constant(_));
    let mut strides = access.inner_strides.clone();
    if constant {
        strides.iter_mut().for_each(|stride| *stride = 0);
    }
    Walk {
        base: Base::Memory(access.memory),
        offset: if constant { 0 } else { access.offset + shift },
        row_stride: if constant { 0 } else { access.row_stride },
        strides,
        whole: None,
        item_bytes: access.item_bytes,
        aligned: access.aligned,
    }
}

/// The walk whose addresses are the numbers of the pass's elements, row-major over its rows and (whole) inner axes.
fn index_walk(pass: &Pass, part: Option<(usize, &Range<usize>)>) -> Walk {
    let inner = &pass.inner;
    let mut strides: Strides = SmallVec::from_elem(0, inner.len());
    let mut product = 1;
    for axis in (0..inner.len()).rev() {
        strides[axis] = product;
        product *= inner[axis].cast_signed();
    }
    let first = product * pass.rows.start.cast_signed();
    let offset = part.map_or(0, |(axis, range)| strides[axis] * range.start.cast_signed()) - first;
    Walk { base: Base::Index, offset, row_stride: product, strides, whole: None, item_bytes: 0, aligned: true }
}

fn full_strides(walk: &Walk) -> SmallVec<[isize; 5]> {
    let mut strides: SmallVec<[isize; 5]> = SmallVec::from_slice(&[walk.row_stride]);
    strides.extend(walk.strides.iter().copied());
    strides
}

/// Axes (0 is the rows) that must not be joined with the one before them: the first folded axis of each reduction.
fn boundaries(pass: &Pass) -> SmallVec<[usize; 4]> {
    pass.steps
        .iter()
        .filter_map(|step| match step {
            Step::Reduce { axes, .. } => Some(1 + pass.inner.len() - axes),
            Step::Apply { .. }
            | Step::Masked { .. }
            | Step::Index { .. }
            | Step::Total { .. }
            | Step::Accumulate { .. } => None,
        })
        .collect()
}

/// The stride with which the whole nest is one run, whatever the length of the outermost axis.
fn whole_stride(axes: &[Axis], strides: &[isize]) -> Option<isize> {
    let innermost = axes.len() - 1;
    let mut expected = strides[innermost] * axes[innermost].length.cast_signed();
    for axis in (0..innermost).rev() {
        if strides[axis] != expected {
            return None;
        }
        expected *= axes[axis].length.cast_signed();
    }
    Some(strides[innermost])
}

/// Whether to run over the flattened nest: where innermost runs are short, or where it costs nothing because every operand is
/// a single run or repeats after a few elements.
pub(super) fn gathers(pass: &Pass, nest: &Nest) -> bool {
    let innermost = nest.axes[nest.axes.len() - 1];
    if nest.axes.len() == 1 || innermost.by_rows {
        return false;
    }
    let results: SmallVec<[usize; 4]> = pass
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Reduce { output, .. } => Some(*output),
            Step::Apply { .. }
            | Step::Masked { .. }
            | Step::Index { .. }
            | Step::Total { .. }
            | Step::Accumulate { .. } => None,
        })
        .collect();
    let is_ready = |(index, walk): (usize, &Walk)| {
        results.contains(&index) || walk.whole.is_some() || period(nest, walk) <= PERIOD
    };
    innermost.length < SHORT_RUN || (innermost.length <= PERIOD && nest.walks.iter().enumerate().all(is_ready))
}

/// After how many elements of the nest a walk repeats.
pub(super) fn period(nest: &Nest, walk: &Walk) -> usize {
    let outer = walk.strides.iter().position(|stride| *stride != 0).unwrap_or(walk.strides.len());
    if outer == 0 {
        return usize::MAX;
    }
    nest.axes[outer..].iter().map(|axis| axis.length).product()
}

/// Whether two walks may touch the same bytes other than element by element.
pub(super) fn overlap_in_part(input: &Walk, output: &Walk) -> bool {
    let same_memory = match (input.base, output.base) {
        (Base::Memory(Memory::Constant(_)) | Base::Index, _) | (_, Base::Index) => false,
        (Base::Memory(a), Base::Memory(b)) => a == b,
    };
    let same_walk = input.offset == output.offset
        && input.row_stride == output.row_stride
        && input.strides == output.strides
        && input.item_bytes == output.item_bytes;
    same_memory && !same_walk
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(row_stride: isize, inner: &[isize]) -> Access {
        Access {
            memory: Memory::Buffer(0),
            offset: 0,
            row_stride,
            inner_strides: SmallVec::from_slice(inner),
            item_bytes: 8,
            aligned: true,
        }
    }

    fn pass(rows: usize, inner: &[usize], accesses: Vec<Access>) -> Pass {
        Pass { rows: 0..rows, inner: SmallVec::from_slice(inner), accesses, ..Pass::default() }
    }

    #[test]
    fn contiguous_walks_become_one_axis() {
        let nest = Nest::new(&pass(5, &[3, 4], vec![access(96, &[32, 8])]), None);
        assert_eq!(nest.axes.as_slice(), [Axis { length: 12, by_rows: true }]);
        assert_eq!(nest.walks[0].whole, Some(8));
    }

    #[test]
    fn broadcast_keeps_the_axes_that_differ() {
        let nest = Nest::new(&pass(5, &[3, 1, 4], vec![access(96, &[32, 32, 8]), access(0, &[32, 0, 8])]), None);
        assert_eq!(nest.axes.as_slice(), [Axis { length: 1, by_rows: true }, Axis { length: 12, by_rows: false }]);
        assert_eq!(nest.walks[1].strides.as_slice(), [0, 8]);
        assert_eq!(nest.walks[1].whole, None);
    }

    #[test]
    fn a_single_row_is_no_axis() {
        let nest = Nest::new(&pass(1, &[1, 1], vec![access(96, &[32, 8])]), None);
        assert_eq!(nest.axes.as_slice(), [Axis { length: 1, by_rows: false }]);
        assert_eq!(nest.walks[0].whole, Some(0));
    }

    #[test]
    fn a_part_of_an_axis_shifts_the_offset() {
        let nest = Nest::new(&pass(5, &[10], vec![access(80, &[8])]), Some((0, &(2..6))));
        assert_eq!(nest.axes.len(), 2);
        assert_eq!(nest.walks[0].offset, 16);
    }
}
