//! Groups: what fusion decided, as a value that prints - members, passes, where operands live, how it may be cut.
//!
//! A group is planned by [`crate::fuse`], compiled by the backend and run by the executor. This file holds its form, its
//! printed plan, and the one rewriting that changes no result: merging axes, so that few long rows can be cut finely.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::carried::Carried;
use crate::field::Field;
use crate::launch::{Launch, Operand, Privilege, Work};
use crate::owed::Owed;

/// Where an operand of a member lives while the group runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Entry of [`Group::buffers`].
    Buffer(usize),
    /// Entry of [`Group::temporaries`].
    Temporary(usize),
}

/// A field's memory as a group sees it.
pub struct Buffer {
    /// The field.
    pub field: Arc<Field>,
    /// Whether this is the second instance, which becomes the field's when the group is done.
    pub second: bool,
    /// Whether it is no instance but a few rows that stay in cache (see `sweeps`).
    pub in_ring: bool,
    /// Bytes that are copied to the second instance first, since no member writes them.
    pub carried: Option<Carried>,
}

/// A launch in its group.
pub struct Member<T> {
    /// The launch.
    pub launch: Launch<T>,
    /// Row `g` of the group is row `g - shift` of the launch's domain.
    pub shift: isize,
    /// Pass the member belongs to; passes run one after the other over each chunk.
    pub pass: usize,
    /// Where each operand lives.
    pub places: Vec<Place>,
}

/// How a group may be cut into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// By rows.
    Rows,
    /// By the first inner axis.
    Inner,
    /// Not at all.
    Single,
}

/// Launches that run as one.
pub struct Group<T> {
    /// Length of the shared row axis.
    pub rows: usize,
    /// Rows that were one row before axes were merged.
    pub grain: usize,
    /// The launches, in program order.
    pub members: Vec<Member<T>>,
    /// Memory the members touch.
    pub buffers: Vec<Buffer>,
    /// Fields that are never stored; each with the length of one of its rows in bytes.
    pub temporaries: Vec<usize>,
    /// Fields among those whose makers are to be kept.
    pub(crate) owed: Vec<Owed<T>>,
    /// How it may be cut.
    pub split: Split,
    /// Whether sums over the rows are among the members.
    pub serial: bool,
    /// Why the launch after the last member did not join; empty at the window's end.
    pub ended: &'static str,
}

impl<T> Group<T> {
    /// Bytes that the members read and write in memory, all passes over a chunk taken as one: each buffer's covered part once, rings
    /// not counted.
    pub(crate) fn touched(&self) -> (usize, usize) {
        let mut sums = (0, 0);
        for index in (0..self.buffers.len()).filter(|index| !self.buffers[*index].in_ring) {
            sums.0 += self.covered(index, |privilege| privilege != Privilege::Write);
            sums.1 += self.covered(index, Privilege::writes);
        }
        sums
    }

    /// Bytes of a buffer that operands of some privileges cover: no more than all views together, or than they span.
    fn covered(&self, buffer: usize, counts: impl Fn(Privilege) -> bool) -> usize {
        let mut span: Option<Range<isize>> = None;
        let mut sum = 0;
        for member in &self.members {
            for (place, operand) in member.places.iter().zip(&member.launch.operands) {
                if *place == Place::Buffer(buffer) && counts(operand.privilege) {
                    let extent = operand.view.extent(&member.launch.domain);
                    sum += operand.view.covered_bytes(&member.launch.domain);
                    span = Some(span.map_or(extent.clone(), |s| s.start.min(extent.start)..s.end.max(extent.end)));
                }
            }
        }
        span.map_or(0, |span| span.len().min(sum))
    }

    /// The operands of all members.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.members.iter().flat_map(|member| &member.launch.operands)
    }

    /// Elements of the largest domain.
    pub(crate) fn elements(&self) -> usize {
        self.members.iter().map(|member| member.launch.domain.iter().product::<usize>()).max().unwrap_or(0)
    }

    /// Elements of the largest field that operands are views of.
    pub(crate) fn largest(&self) -> usize {
        let of = |launch: &Launch<T>, index: usize| {
            let item_bytes = match launch.work {
                // Its other operands are viewed as one item.
                Work::Exchange { along, unit } if index >= along => unit,
                Work::Map
                | Work::Fold { .. }
                | Work::Total
                | Work::Accumulate
                | Work::Rows
                | Work::Exchange { .. }
                | Work::Scan { .. }
                | Work::Whole => launch.operands[index].view.item_bytes,
            };
            launch.operands[index].field.bytes() / item_bytes.max(1)
        };
        let all = self.members.iter().map(|member| &member.launch);
        all.flat_map(|launch| (0..launch.operands.len()).map(move |index| of(launch, index))).max().unwrap_or(0)
    }

    /// Elements of all domains together.
    pub(crate) fn work(&self) -> usize {
        self.members.iter().map(|member| member.launch.domain.iter().product::<usize>()).sum()
    }

    /// Has a field among the temporaries stored after all.
    pub(crate) fn store(&mut self, field: &Arc<Field>) {
        let place = Place::Buffer(self.buffers.len());
        self.buffers.push(Buffer { field: field.clone(), second: false, in_ring: false, carried: None });
        for member in &mut self.members {
            for (operand, own) in member.launch.operands.iter().zip(&mut member.places) {
                if operand.field.number() == field.number() {
                    *own = place;
                }
            }
        }
    }

    /// Merges the row axis with the next one as long as every walk is unbroken across it, so that few long rows can be
    /// cut as finely as many short ones.
    pub(crate) fn merge_axes(&mut self) {
        loop {
            let domain = &self.members[0].launch.domain;
            if domain.len() < 2 {
                return;
            }
            let inner = domain[1] as isize;
            let unbroken = self.members.iter().all(|member| {
                member.shift == 0
                    && member.launch.domain == *domain
                    && match member.launch.work {
                        Work::Map | Work::Total => true,
                        Work::Fold { axes } => axes + 2 <= domain.len(),
                        Work::Accumulate | Work::Rows | Work::Exchange { .. } | Work::Scan { .. } | Work::Whole => {
                            false
                        }
                    }
                    && member.launch.operands.iter().all(|o| o.view.strides[0] == o.view.strides[1] * inner)
            });
            if !unbroken {
                return;
            }
            for member in &mut self.members {
                let rows = member.launch.domain.remove(0);
                member.launch.domain[0] *= rows;
                for operand in &mut member.launch.operands {
                    operand.view.strides.remove(0);
                }
                for (place, operand) in member.places.iter().zip(&member.launch.operands) {
                    if let Place::Temporary(index) = place {
                        self.temporaries[*index] = operand.view.row_stride().unsigned_abs();
                    }
                }
            }
            self.rows = self.members[0].launch.domain[0];
            self.grain *= inner as usize;
        }
    }
}

impl<T> fmt::Display for Group<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let split = match self.split {
            Split::Rows => "rows",
            Split::Inner => "columns",
            Split::Single => "nothing",
        };
        writeln!(out, "group rows {} cut by {split}", self.rows)?;
        for member in &self.members {
            write!(out, "  pass {}", member.pass)?;
            if member.shift != 0 {
                write!(out, " shift {}", member.shift)?;
            }
            writeln!(out, " {}", member.launch)?;
        }
        if !self.temporaries.is_empty() {
            writeln!(out, "  not stored: {}", self.temporaries.len())?;
        }
        for buffer in self.buffers.iter().filter(|b| b.second) {
            let kind = if buffer.in_ring { "few rows at a time" } else { "second instance" };
            writeln!(out, "  {kind}: f{}", buffer.field.number())?;
        }
        if !self.ended.is_empty() {
            writeln!(out, "  ends: {}", self.ended)?;
        }
        Ok(())
    }
}
