//! Running joined sweeps: each tile takes all of them through its rows, a few rows at a time (see `sweeps`).
//!
//! Promises: the field's old values stay where any tile may still read them - a tile writes rows back only behind its own first
//! sweep, and those that its neighbours read when all tiles are done. Rows that two tiles make come out alike, being made alike.
#![expect(unsafe_code, reason = "copies rows between rings and the field")]

use std::ops::Range;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::Executor;
use crate::launch::{Backend, Cut, Parallel};
use crate::partition::Partition;
use crate::ring::Ring;
use crate::sweeps::Sweeps;
use crate::transport::TransportError;

/// What a tile leaves when it is done.
struct Left<P> {
    /// The last sweep's parts of totals, in order.
    partials: Vec<P>,
    /// Rows that its neighbours may still read: where they go in the field, and their bytes.
    withheld: Vec<(usize, Vec<u8>)>,
}

/// Sweeps made ready to run.
pub(super) struct Run<'a, B: Backend> {
    backend: &'a B,
    sweeps: &'a Sweeps<B::Task>,
    compiled: Vec<B::Compiled>,
    /// For each sweep, the addresses of its buffers; those of the field change as it goes.
    addresses: Vec<Vec<usize>>,
    field: usize,
}

impl<B: Backend> Executor<B> {
    pub(super) fn run_sweeps(&self, sweeps: &mut Sweeps<B::Task>) -> Result<(), TransportError> {
        if !self.is_alone() {
            return self.run_deep(sweeps);
        }
        if let Some((run, partials)) = self.walk_sweeps(sweeps, &sweeps.rows()) {
            run.finish(partials, |_, compiled, addresses, parts| self.backend.finish(compiled, addresses, parts));
            return Ok(());
        }
        self.run_apart(sweeps)
    }

    /// Runs each sweep as a group of its own.
    pub(super) fn run_apart(&self, sweeps: &mut Sweeps<B::Task>) -> Result<(), TransportError> {
        sweeps.part();
        sweeps.stages.iter_mut().try_for_each(|stage| self.run_group(&mut stage.group, &[]))
    }

    /// Takes the field's rows `all`, which nobody else changes, through the sweeps; what is left to finish, and the last sweep's parts
    /// of totals. None, and nothing is done, where there are no rings.
    pub(super) fn walk_sweeps<'a>(
        &'a self,
        sweeps: &'a Sweeps<B::Task>,
        all: &Range<isize>,
    ) -> Option<(Run<'a, B>, Vec<B::Partial>)> {
        let tiles = self.sweep_tiles(sweeps, all);
        let rings = || sweeps.ring_bytes().into_iter().enumerate().map(|(number, bytes)| Ring::new(bytes, number));
        let sets: Option<Vec<Vec<Ring>>> =
            (0..self.workers.threads().min(tiles.len())).map(|_| rings().collect()).collect();
        let idle = Mutex::new(sets?);
        for stage in &sweeps.stages {
            self.counters.count(&stage.group);
        }
        self.counters.written_bytes.fetch_add(sweeps.bytes(all).len() as u64, Ordering::Relaxed);
        self.counters.joined_sweeps.fetch_add(sweeps.stages.len() as u64 - 1, Ordering::Relaxed);
        self.counters.tiles.fetch_add(tiles.len() as u64, Ordering::Relaxed);
        let field = sweeps.field.materialize();
        let address = |buffer: &crate::group::Buffer| if buffer.second { 0 } else { buffer.field.materialize() };
        let run = Run {
            backend: &self.backend,
            compiled: sweeps.stages.iter().map(|stage| self.backend.lower(&stage.group)).collect(),
            addresses: sweeps.stages.iter().map(|stage| stage.group.buffers.iter().map(address).collect()).collect(),
            field,
            sweeps,
        };
        let left: Vec<Mutex<Option<Left<B::Partial>>>> = tiles.iter().map(|_| Mutex::new(None)).collect();
        self.workers.each(tiles.len(), &|index| {
            // There are as many sets as threads.
            let Some(rings) = idle.lock().pop() else { return };
            *left[index].lock() = Some(run.tile(&tiles[index], all, &rings));
            idle.lock().push(rings);
        });
        let mut partials = Vec::new();
        for left in left.into_iter().filter_map(Mutex::into_inner) {
            partials.extend(left.partials);
            for (position, bytes) in left.withheld {
                // SAFETY: rows of the field, which no tile works on any more.
                unsafe { copy(bytes.as_ptr() as usize, field + position, bytes.len()) };
            }
        }
        Some((run, partials))
    }

    /// The tiles: none reaches past its neighbours.
    fn sweep_tiles(&self, sweeps: &Sweeps<B::Task>, all: &Range<isize>) -> Vec<Range<isize>> {
        let (before, after) = sweeps.reach();
        let length = (all.end - all.start).cast_unsigned();
        let launches = sweeps.stages.iter().flat_map(|stage| &stage.group.members).map(|member| &member.launch);
        let elements = launches.map(|launch| launch.domain.iter().product::<usize>()).max().unwrap_or(0);
        let most = length / (2 * before.max(after).cast_unsigned()).max(1);
        let colours = self.mapper.colours(length, elements / length.max(1)).min(most).max(1);
        let partition = Partition { length, colours };
        let row = |index: usize| all.start + index.cast_signed();
        (0..colours).map(|colour| row(partition.edge(colour))..row(partition.edge(colour + 1))).collect()
    }
}

impl<B: Backend> Run<'_, B> {
    /// Finishes each sweep: what `finish` does with its buffers and its parts of totals.
    pub(super) fn finish<R>(
        &self,
        mut partials: Vec<B::Partial>,
        mut finish: impl FnMut(usize, &B::Compiled, &[usize], Vec<B::Partial>) -> R,
    ) -> Vec<R> {
        let last = self.compiled.len() - 1;
        let each = self.compiled.iter().enumerate().map(|(index, compiled)| {
            let parts = if index == last { std::mem::take(&mut partials) } else { Vec::new() };
            finish(index, compiled, &self.addresses[index], parts)
        });
        each.collect()
    }

    fn tile(&self, tile: &Range<isize>, all: &Range<isize>, rings: &[Ring]) -> Left<B::Partial> {
        let stages = &self.sweeps.stages;
        let (before, after) = self.sweeps.reach();
        let read_by_previous = if tile.start == all.start { tile.start } else { tile.start + after };
        let read_by_next = if tile.end == all.end { tile.end } else { tile.end - before };
        let needed = self.sweeps.needed(tile);
        let mut done: Vec<isize> = needed.iter().map(|rows| rows.start).collect();
        let mut left = Left { partials: Vec::new(), withheld: Vec::new() };
        let mut returned = tile.start;
        while returned < tile.end {
            for index in 0..stages.len() {
                let ready = match index.checked_sub(1) {
                    Some(earlier) if done[earlier] < needed[earlier].end => done[earlier] - stages[index].after,
                    Some(_) | None => needed[index].end,
                };
                let end = ready.min(needed[index].end).min(done[index] + self.sweeps.step);
                if end > done[index] {
                    left.partials.extend(self.stage(index, done[index]..end, rings));
                    done[index] = end;
                }
            }
            let last = done[stages.len() - 1];
            let end = if done[0] < needed[0].end { last.min(done[0] - stages[0].before) } else { last };
            if end > returned {
                let cuts = [returned, read_by_previous, read_by_next.max(read_by_previous), end];
                let edges = cuts.map(|cut| cut.clamp(returned, end));
                for (part, edge) in edges.windows(2).enumerate() {
                    self.put_back(edge[0]..edge[1], part == 1, &rings[stages.len() - 1], &mut left.withheld);
                }
                returned = end;
            }
        }
        left
    }

    /// One sweep over some rows; its parts of totals if it is the last.
    fn stage(&self, index: usize, rows: Range<isize>, rings: &[Ring]) -> Option<B::Partial> {
        let (sweeps, stage) = (self.sweeps, &self.sweeps.stages[index]);
        let old = |position: usize| match index.checked_sub(1) {
            Some(earlier) => rings[earlier].at(position),
            None => self.field + position,
        };
        let carried = stage.carried().map(|carried| carried.within(&sweeps.bytes(&rows)));
        for part in carried.into_iter().flatten() {
            // SAFETY: the part lies in rows that the sweep before has made, or in the field, and in this sweep's window.
            unsafe { copy(old(part.start), rings[index].at(part.start), part.len()) };
        }
        let own = stage.group_rows(&rows);
        if own.is_empty() {
            return None;
        }
        let first = own.start.cast_signed() / stage.grain + stage.first_row;
        let based = |row: isize, place: &dyn Fn(usize) -> usize| {
            let position = sweeps.bytes(&(row..row)).start;
            place(position).wrapping_sub(position)
        };
        let mut addresses = self.addresses[index].clone();
        for (address, buffer) in addresses.iter_mut().zip(&stage.group.buffers) {
            if buffer.second {
                *address = based(first, &|position| rings[index].at(position));
            } else if buffer.in_ring {
                *address = based(first - stage.before, &old);
            }
        }
        let partial = self.backend.run(&self.compiled[index], &addresses, &Cut::Rows(own));
        (index + 1 == sweeps.stages.len()).then_some(partial)
    }

    /// Writes the last values of some rows to the field, or withholds them.
    fn put_back(&self, rows: Range<isize>, now: bool, ring: &Ring, withheld: &mut Vec<(usize, Vec<u8>)>) {
        let bytes = self.sweeps.bytes(&rows);
        if bytes.is_empty() {
            return;
        }
        let from = ring.at(bytes.start);
        if now {
            // SAFETY: rows of this tile, in the window and in the field, that no other tile reads.
            unsafe { copy(from, self.field + bytes.start, bytes.len()) };
        } else {
            // SAFETY: the window holds the rows.
            let values = unsafe { std::slice::from_raw_parts(from as *const u8, bytes.len()) };
            withheld.push((bytes.start, values.to_vec()));
        }
    }
}

/// Copies bytes between addresses.
///
/// # Safety
/// Both must hold `bytes` bytes, which are different memory and nobody else's meanwhile.
unsafe fn copy(from: usize, to: usize, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
}
