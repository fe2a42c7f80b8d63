//! Which row of a group a launch's rows are: what makes rows of different walks fit together.
//!
//! Promises that a launch meets what members wrote, or write beside it, in the members' own rows. Looks at views and shapes alone;
//! whether it joins then is `fuse`'s decision.

use std::ops::Range;

use super::{Draft, Touch};
use crate::launch::{Launch, Operand, Work};
use crate::view::{View, ranges_overlap};

/// Fewest rows of a field of which a launch may write one as a row: with few, a row may be more than a cache holds.
const LEAST_ROWS: usize = 64;
/// Fewest bytes of a row of several elements for which walks over different rows join: with shorter ones, what it costs to begin
/// each row of each walk is more than a chunk in cache saves.
const LEAST_ROW_BYTES: usize = 4096;

impl<T: Clone> Draft<T> {
    /// The shift at which a launch touches what members wrote in the members' own rows, and the fields that it
    /// overwrites although members read them in other rows.
    pub(super) fn align(&self, launch: &Launch<T>) -> Result<(Option<isize>, Vec<u64>), &'static str> {
        let mut shift: Option<isize> = None;
        let mut misaligned: Vec<u64> = Vec::new();
        for after_writes in [true, false] {
            for operand in &launch.operands {
                let number = operand.field.number();
                let Some(touches) = self.touches.get(&number) else { continue };
                let extent = operand.view.extent(&launch.domain);
                let row_extent = operand.view.row_extent(&launch.domain);
                for touch in touches.iter().filter(|touch| touch.writes == after_writes) {
                    let conflicts = operand.privilege.writes() || touch.writes;
                    if !conflicts || !ranges_overlap(&extent, &touch.extent) {
                        continue;
                    }
                    let other = &self.members[touch.member].launch;
                    if touch.writes && (other.work == Work::Total || other.folds_rows()) {
                        return Err("it needs a result of the whole group");
                    }
                    let wanted = if launch.rows() == 1 && other.rows() == 1 {
                        Some(touch.shift)
                    } else {
                        row_shift(other, touch, &operand.view, &row_extent)
                    };
                    match wanted {
                        Some(wanted) if shift.is_none_or(|chosen| chosen == wanted) => shift = Some(wanted),
                        Some(_) | None if after_writes => {
                            return Err("it touches rows that other tiles of the group write");
                        }
                        Some(_) | None if !misaligned.contains(&number) => misaligned.push(number),
                        Some(_) | None => {}
                    }
                }
            }
        }
        Ok((shift, misaligned))
    }

    /// The shift at which a launch writes a field's rows where members write other rows of it, so that whoever reads all of them
    /// finds each in its place.
    pub(super) fn shift_beside_written(&self, launch: &Launch<T>) -> Option<isize> {
        let rows = launch.operands.iter().filter(|o| is_long(o.view.row_stride(), o.view.item_bytes));
        rows.filter(|operand| operand.privilege.writes()).find_map(|operand| {
            let row_extent = operand.view.row_extent(&launch.domain);
            let touches = self.touches.get(&operand.field.number())?;
            let mut written = touches.iter().filter(|touch| touch.writes);
            written.find_map(|touch| row_shift(&self.members[touch.member].launch, touch, &operand.view, &row_extent))
        })
    }

    /// The shift at which a launch writes its field's rows where a member writes those of the same number, of a field with as many
    /// rows.
    pub(super) fn shift_by_row_number(&self, launch: &Launch<T>) -> Option<isize> {
        let (rows, row) = written_row(launch)?;
        self.members.iter().find_map(|member| {
            let (known_rows, known) = written_row(&member.launch)?;
            (known_rows == rows).then_some(member.shift + row - known)
        })
    }

    /// Bytes between the rows of a field that members write, where a launch is a map that writes within one of its many rows.
    pub(super) fn row_stride_of_members(&self, launch: &Launch<T>) -> Option<isize> {
        if launch.work != Work::Map {
            return None;
        }
        launch.operands.iter().filter(|operand| operand.privilege.writes()).find_map(|operand| {
            let mut written = self.touches.get(&operand.field.number())?.iter().filter(|touch| touch.writes);
            let extent = operand.view.extent(&launch.domain);
            written.find_map(|touch| {
                let stride = self.members[touch.member].launch.operands[touch.operand].view.row_stride();
                is_one_row(operand, &extent, stride).then_some(stride)
            })
        })
    }
}

/// The number of the row that bytes lie within, of rows that are `stride` bytes apart.
pub(super) fn row_of(extent: &Range<isize>, stride: isize) -> Option<isize> {
    let row = extent.start.div_euclid(stride);
    (extent.end <= (row + 1) * stride).then_some(row)
}

/// Whether rows that are `stride` bytes apart are single elements, or worth beginning one by one.
fn is_long(stride: isize, item_bytes: usize) -> bool {
    stride > 0 && (stride as usize == item_bytes || stride as usize >= LEAST_ROW_BYTES)
}

/// Gives a launch that works on a single row an axis for it.
pub(super) fn add_row_axis<T>(launch: &mut Launch<T>, stride: isize) {
    launch.domain.insert(0, 1);
    launch.operands.iter_mut().for_each(|operand| operand.view.strides.insert(0, stride));
}

/// Whether an operand's bytes lie within one of many rows that are `stride` bytes apart, and it has no axis for them yet.
fn is_one_row(operand: &Operand, extent: &Range<isize>, stride: isize) -> bool {
    is_long(stride, operand.view.item_bytes)
        && stride as usize * LEAST_ROWS <= operand.field.bytes()
        && row_of(extent, stride).is_some()
        && operand.view.row_stride() != stride
}

/// Bytes between the rows of a field that the next launch writes, where a launch is a map that writes a single one of them.
pub(super) fn row_stride_of_next<T>(launch: &Launch<T>, next: &Launch<T>) -> Option<isize> {
    if launch.work != Work::Map || next.work != Work::Map {
        return None;
    }
    let written = next.operands.iter().find(|operand| operand.privilege.writes())?;
    let stride = written.view.row_stride();
    let number = written.field.number();
    let operand = launch.operands.iter().find(|o| o.privilege.writes() && o.field.number() == number)?;
    is_one_row(operand, &operand.view.extent(&launch.domain), stride).then_some(stride)
}

/// How many rows the field has that a launch writes, and the number of the first one that it writes.
fn written_row<T>(launch: &Launch<T>) -> Option<(usize, isize)> {
    let written = launch.operands.iter().find(|operand| operand.privilege.writes())?;
    let stride = written.view.row_stride();
    if !is_long(stride, written.view.item_bytes) {
        return None;
    }
    let extent = written.view.row_extent(&launch.domain);
    row_of(&extent, stride).map(|row| (written.field.bytes() / stride as usize, row))
}

/// The shift that makes row `g` of both walks touch the same stretch of the field, if the strides allow one.
fn row_shift<T>(other: &Launch<T>, touch: &Touch, view: &View, row_extent: &Range<isize>) -> Option<isize> {
    let stride = view.row_stride();
    if stride <= 0 || other.operands[touch.operand].view.row_stride() != stride {
        return None;
    }
    Some(touch.shift + row_of(row_extent, stride)? - row_of(&touch.row_extent, stride)?)
}
