//! Sweeps: consecutive groups that write one field anew from its old values, run as one walk over memory.
//!
//! Each such group would write a second instance (see `fuse`). Joined, a tile runs all of them a few rows at a time, each
//! behind the one before it by the rows that it reads ahead, and the values between them live in rings of rows that stay in
//! cache; the last values go back in place, behind the last reader of the old ones. At a tile's ends earlier sweeps make the rows
//! that later ones need there, which the neighbour makes too; what the neighbour still reads of the field is handed over when
//! all tiles are done. With several shards, whose rows are tiles too (`shards::deep`), what is joined must not depend on what the
//! program still holds: then a shard that must store what a sweep makes on its way runs them one after the other instead. This file
//! decides; `executor::sweep` does.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::carried::Carried;
use crate::field::Field;
use crate::group::{Group, Place, Split};
use crate::launch::Work;
use crate::mapper::Mapper;
use crate::owed::Owed;

/// One sweep.
pub(crate) struct Stage<T> {
    pub(crate) group: Group<T>,
    /// Rows of the group that are one of the field.
    pub(crate) grain: isize,
    /// The field's row that row 0 of the group writes.
    pub(crate) first_row: isize,
    /// Rows of old values read before the row that is written.
    pub(crate) before: isize,
    /// Rows of old values read after it.
    pub(crate) after: isize,
    /// Whether it stores anything else, so that each row must be made once.
    ends: bool,
}

impl<T> Stage<T> {
    /// What of the old values no member writes.
    pub(crate) fn carried(&self) -> Option<&Carried> {
        self.group.buffers.iter().find(|buffer| buffer.second).and_then(|buffer| buffer.carried.as_ref())
    }

    /// The field's rows that rows of the group write.
    pub(crate) fn rows(&self) -> Range<isize> {
        self.first_row..self.first_row + self.group.rows.cast_signed() / self.grain
    }

    /// The group's rows that make some of the field's.
    pub(crate) fn group_rows(&self, rows: &Range<isize>) -> Range<usize> {
        let within = |row: isize| ((row - self.first_row) * self.grain).clamp(0, self.group.rows.cast_signed());
        within(rows.start).cast_unsigned()..within(rows.end).cast_unsigned()
    }
}

/// Sweeps over one field that run together.
pub(crate) struct Sweeps<T> {
    pub(crate) field: Arc<Field>,
    /// Bytes from one row of the field to the next.
    pub(crate) row_bytes: usize,
    /// Rows that a sweep does at a time.
    pub(crate) step: isize,
    pub(crate) stages: Vec<Stage<T>>,
}

/// What runs as one.
pub(crate) enum Walk<T> {
    Group(Group<T>),
    Sweeps(Sweeps<T>),
}

impl<T> Walk<T> {
    pub(crate) fn groups(&self) -> Vec<&Group<T>> {
        match self {
            Walk::Group(group) => vec![group],
            Walk::Sweeps(sweeps) => sweeps.stages.iter().map(|stage| &stage.group).collect(),
        }
    }

    pub(crate) fn take_owed(self) -> Vec<Owed<T>> {
        match self {
            Walk::Group(group) => group.owed,
            Walk::Sweeps(sweeps) => sweeps.stages.into_iter().flat_map(|stage| stage.group.owed).collect(),
        }
    }
}

impl<T> fmt::Display for Walk<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Walk::Sweeps(sweeps) = self {
            let (before, after) = sweeps.reach();
            let (count, number) = (sweeps.stages.len(), sweeps.field.number());
            writeln!(out, "sweeps {count} of f{number} in one walk, {before} rows before and {after} after each tile")?;
        }
        self.groups().into_iter().try_for_each(|group| group.fmt(out))
    }
}

/// Joins neighbouring sweeps.
pub(crate) fn join<T>(groups: Vec<Group<T>>, mapper: &Mapper, shards: usize) -> Vec<Walk<T>> {
    let mut walks = Vec::with_capacity(groups.len());
    let mut open: Option<Sweeps<T>> = None;
    for group in groups {
        let fresh = match Sweeps::begin(group, mapper, shards) {
            Walk::Sweeps(fresh) => fresh,
            other @ Walk::Group(_) => {
                walks.extend(open.take().into_iter().flat_map(Sweeps::close));
                walks.push(other);
                continue;
            }
        };
        open = match open.take() {
            Some(mut sweeps) if sweeps.admits(&fresh, mapper, shards) => {
                sweeps.stages.extend(fresh.stages);
                Some(sweeps)
            }
            done => {
                walks.extend(done.into_iter().flat_map(Sweeps::close));
                Some(fresh)
            }
        };
    }
    walks.extend(open.into_iter().flat_map(Sweeps::close));
    walks
}

impl<T> Sweeps<T> {
    /// A group as one sweep; the group itself if it is none, or none of which a few rows fit in cache.
    fn begin(group: Group<T>, mapper: &Mapper, shards: usize) -> Walk<T> {
        let Some(buffer) = group.buffers.iter().find(|buffer| buffer.second) else { return Walk::Group(group) };
        let Some(Found { row_bytes, grain, first_row, before, after }) = sweep(&group) else {
            return Walk::Group(group);
        };
        let ends = if shards > 1 { folds_rows(&group) } else { stored(&group).next().is_some() };
        let field = buffer.field.clone();
        let step = (mapper.sweep_bytes() / row_bytes).max(1).cast_signed();
        let kept = (step + before + after).cast_unsigned().saturating_mul(row_bytes);
        if field.bytes() < mapper.min_owed() || kept > mapper.rings_bytes() {
            return Walk::Group(group);
        }
        Walk::Sweeps(Sweeps {
            field,
            row_bytes,
            step,
            stages: vec![Stage { group, grain, first_row, before, after, ends }],
        })
    }

    /// Whether another sweep, `next`, can run behind these.
    fn admits(&self, next: &Sweeps<T>, mapper: &Mapper, shards: usize) -> bool {
        let Some(stage) = next.stages.first() else { return false };
        let stores = |number: u64| stored(&stage.group).any(|stored| stored == number);
        Arc::ptr_eq(&self.field, &next.field)
            && self.row_bytes == next.row_bytes
            && self.stages.iter().all(|earlier| {
                let apart = match shards {
                    1 => !earlier.group.buffers.iter().any(|buffer| stores(buffer.field.number())),
                    _ => !self.conflict(&earlier.group, &stage.group),
                };
                !earlier.ends && apart
            })
            && self.fits(stage, mapper)
    }

    /// Whether one of two groups writes anything but the field that the other one touches, stored or not.
    fn conflict(&self, one: &Group<T>, other: &Group<T>) -> bool {
        let operands = |group| Group::operands(group).filter(|operand| !Arc::ptr_eq(&operand.field, &self.field));
        operands(one).any(|mine| {
            operands(other).any(|theirs| {
                (mine.privilege.writes() || theirs.privilege.writes()) && Arc::ptr_eq(&mine.field, &theirs.field)
            })
        })
    }

    /// Whether any sweep but the last stores something else: then each row must be made once.
    pub(crate) fn store_more(&self) -> bool {
        self.stages.iter().rev().skip(1).any(|stage| stored(&stage.group).next().is_some())
    }

    /// Has all sweeps write second instances, as groups of their own do.
    pub(crate) fn part(&mut self) {
        for buffer in self.stages.iter_mut().flat_map(|stage| &mut stage.group.buffers) {
            buffer.in_ring = false;
        }
    }

    /// Whether the rings of these sweeps, and another one, stay in cache.
    fn fits(&self, next: &Stage<T>, mapper: &Mapper) -> bool {
        let readers = self.stages.iter().chain([next]);
        let rows: isize = readers.map(|stage| self.step + stage.before + stage.after).sum();
        rows.cast_unsigned().saturating_mul(self.row_bytes) <= mapper.rings_bytes()
    }

    /// The sweeps as they are run: one alone writes a second instance, as other groups do.
    fn close(mut self) -> Vec<Walk<T>> {
        if self.stages.len() < 2 {
            return self.stages.into_iter().map(|stage| Walk::Group(stage.group)).collect();
        }
        for (index, stage) in self.stages.iter_mut().enumerate() {
            for buffer in &mut stage.group.buffers {
                buffer.in_ring = buffer.second || (index > 0 && Arc::ptr_eq(&buffer.field, &self.field));
            }
        }
        vec![Walk::Sweeps(self)]
    }

    /// Rows of the field before and after a tile that are read for it.
    pub(crate) fn reach(&self) -> (isize, isize) {
        (self.stages.iter().map(|stage| stage.before).sum(), self.stages.iter().map(|stage| stage.after).sum())
    }

    /// The field's rows that any sweep works on.
    pub(crate) fn rows(&self) -> Range<isize> {
        let starts = self.stages.iter().map(|stage| stage.rows().start);
        let ends = self.stages.iter().map(|stage| stage.rows().end);
        starts.min().unwrap_or(0)..ends.max().unwrap_or(0)
    }

    /// The bytes of some rows, as far as the field has them.
    pub(crate) fn bytes(&self, rows: &Range<isize>) -> Range<usize> {
        let edge = |row: isize| (row.max(0).cast_unsigned() * self.row_bytes).min(self.field.bytes());
        edge(rows.start)..edge(rows.end)
    }

    /// The rows that each sweep makes for a tile.
    pub(crate) fn needed(&self, tile: &Range<isize>) -> Vec<Range<isize>> {
        let mut rows = tile.clone();
        let mut needed: Vec<Range<isize>> = Vec::with_capacity(self.stages.len());
        for stage in self.stages.iter().rev() {
            needed.push(rows.clone());
            rows = rows.start - stage.before..rows.end + stage.after;
        }
        needed.reverse();
        needed
    }

    /// Bytes of what each sweep makes that are kept: until the next one has read them or, of the last, until they may go back.
    pub(crate) fn ring_bytes(&self) -> Vec<usize> {
        let kept = |index: usize| match self.stages.get(index + 1) {
            Some(reader) => reader.before + reader.after,
            None => self.stages[0].before,
        };
        let rows = (0..self.stages.len()).map(|index| self.step + kept(index));
        rows.map(|rows| rows.cast_unsigned() * self.row_bytes).collect()
    }
}

/// Whether a group folds its rows into one.
fn folds_rows<T>(group: &Group<T>) -> bool {
    group.members.iter().any(|member| member.launch.work == Work::Total || member.launch.folds_rows())
}

/// The numbers of the fields that a group stores, but for the one that it writes anew.
fn stored<T>(group: &Group<T>) -> impl Iterator<Item = u64> {
    group.members.iter().flat_map(|member| member.places.iter().zip(&member.launch.operands)).filter_map(
        |(place, operand)| match place {
            Place::Buffer(index) if operand.privilege.writes() && !group.buffers[*index].second => {
                Some(operand.field.number())
            }
            Place::Buffer(_) | Place::Temporary(_) => None,
        },
    )
}

/// What a sweep does to its field; see [`Stage`] and [`Sweeps`].
struct Found {
    row_bytes: usize,
    grain: isize,
    first_row: isize,
    before: isize,
    after: isize,
}

/// What a group does if it is a sweep.
fn sweep<T>(group: &Group<T>) -> Option<Found> {
    let mut seconds = group.buffers.iter().filter(|buffer| buffer.second);
    let (field, None) = (&seconds.next()?.field, seconds.next()) else { return None };
    if group.split != Split::Rows || group.serial || group.rows == 0 {
        return None;
    }
    let touches = || {
        group.members.iter().flat_map(|member| {
            let placed = member.places.iter().zip(&member.launch.operands);
            placed.filter_map(move |(place, operand)| match place {
                Place::Buffer(index) if Arc::ptr_eq(&operand.field, field) => {
                    let extent = operand.view.row_extent(&member.launch.domain);
                    Some((group.buffers[*index].second, operand.view.row_stride(), member, extent))
                }
                Place::Buffer(_) | Place::Temporary(_) => None,
            })
        })
    };
    let row_bytes = touches().next()?.1;
    if row_bytes <= 0
        || touches().any(|(_, stride, member, _)| stride != row_bytes || member.launch.domain.contains(&0))
    {
        return None;
    }
    let mut first_row = None;
    for (_, _, member, extent) in touches().filter(|(second, ..)| *second) {
        let row = extent.start.div_euclid(row_bytes);
        if extent.end > (row + 1) * row_bytes || first_row.is_some_and(|known| known != row - member.shift) {
            return None;
        }
        first_row = Some(row - member.shift);
    }
    let first_row = first_row?;
    let (mut before, mut after) = (0, 0);
    for (_, _, member, extent) in touches().filter(|(second, ..)| !*second) {
        let row = first_row + member.shift;
        before = before.max(row - extent.start.div_euclid(row_bytes));
        after = after.max((extent.end - 1).div_euclid(row_bytes) - row);
    }
    // Rows that were merged for finer tiles are whole again, so that all sweeps over a field count alike.
    let grain = group.grain.cast_signed();
    let grain = if first_row % grain == 0 { grain } else { 1 };
    let rows = |count: isize| (count + grain - 1) / grain;
    Some(Found {
        row_bytes: (row_bytes * grain).cast_unsigned(),
        grain,
        first_row: first_row / grain,
        before: rows(before),
        after: rows(after),
    })
}
