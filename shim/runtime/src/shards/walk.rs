//! Walks: an operand of a group's member, as the shards see it - which bytes it touches in which rows.

use std::ops::Range;
use std::sync::Arc;

use super::home::{Margin, RowCut};
use super::layout::Fetched;
use crate::field::Field;
use crate::group::Member;
use crate::launch::Operand;
use crate::view::{Axes, View};

/// The bytes of an extent, as places in a field.
pub(crate) fn bytes_of(extent: &Range<isize>) -> Range<usize> {
    extent.start.max(0) as usize..extent.end.max(0) as usize
}

/// A walk of a group over a field.
pub(crate) struct Walk<'a> {
    pub(crate) operand: &'a Operand,
    pub(crate) domain: &'a Axes<usize>,
    pub(crate) shift: isize,
    /// Bytes of row 0.
    pub(crate) row: Range<isize>,
    /// All bytes.
    pub(crate) extent: Range<isize>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new<T>(member: &'a Member<T>, operand: &'a Operand) -> Walk<'a> {
        let domain = &member.launch.domain;
        let row = operand.view.row_extent(domain);
        let extent = operand.view.extent(domain);
        Walk { operand, domain, shift: member.shift, row, extent }
    }

    pub(crate) fn view(&self) -> &View {
        &self.operand.view
    }

    pub(crate) fn field(&self) -> &Arc<Field> {
        &self.operand.field
    }

    pub(crate) fn bytes(&self) -> Range<usize> {
        bytes_of(&self.extent)
    }

    /// Bytes from one row to the next; a single row has the whole field to itself.
    pub(crate) fn pitch(&self) -> isize {
        if self.length() > 1 { self.view().row_stride() } else { self.field().bytes() as isize }
    }

    pub(crate) fn length(&self) -> usize {
        self.domain.first().copied().unwrap_or(1)
    }

    /// The part of the walk in the group's rows `rows`: its view and domain.
    pub(crate) fn part(&self, rows: &Range<usize>) -> (View, Axes<usize>) {
        let own = |row: usize| (row as isize - self.shift).clamp(0, self.length() as isize) as usize;
        let (start, end) = (own(rows.start), own(rows.end));
        let mut domain = self.domain.clone();
        if let Some(length) = domain.first_mut() {
            *length = end - start;
        }
        let offset = self.view().offset + start as isize * self.view().row_stride();
        (View { offset, ..self.view().clone() }, domain)
    }

    /// The shards whose rows of the walk, with a margin, touch a range of bytes, or a range that holds them.
    pub(crate) fn shards_touching(&self, bytes: &Range<usize>, cut: &RowCut, margin: Margin) -> Range<usize> {
        let (low, high) = (bytes.start as isize, bytes.end as isize);
        let stride = self.view().row_stride();
        let ceil = |value: isize, by: isize| -(-value).div_euclid(by);
        let (first, last) = match stride {
            0 => (0, self.length() as isize),
            1.. => ((low - self.row.end).div_euclid(stride) + 1, ceil(high - self.row.start, stride)),
            _ => ((self.row.start - high).div_euclid(-stride) + 1, ceil(self.row.end - low, -stride)),
        };
        let first = first.clamp(0, self.length() as isize) + self.shift;
        let last = last.clamp(0, self.length() as isize) + self.shift;
        if first >= last {
            return 0..0;
        }
        // A row lies in the margins of those before it as far as they reach after theirs, and the other way round.
        let nearest = (first as usize).saturating_sub(margin.after);
        let farthest = (last as usize - 1 + margin.before).min(cut.rows.saturating_sub(1));
        cut.shard_of(nearest)..cut.shard_of(farthest) + 1
    }
}

impl Walk<'_> {
    /// The walk as what shards have fetched their rows of, with a margin.
    pub(crate) fn fetched(&self, cut: &RowCut, margin: Margin) -> Fetched {
        Fetched { cut: *cut, margin, shift: self.shift, view: self.view().clone(), domain: self.domain.clone() }
    }
}
