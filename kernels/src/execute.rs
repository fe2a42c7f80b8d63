//! The executor of block programs: compiles a program once, then runs it tile by tile, from any number of threads.
//!
//! Promises NumPy's bits: every loop sees the elements it would see in a serial run, sums follow NumPy's tree wherever tiles
//! cut them, and floating-point events reach the flag table. It trusts the program (its accesses lie within their buffers, no
//! pass reads what an earlier row of it has written through another access) and does not decide what is fused.

#![expect(unsafe_code, reason = "computes the addresses of a program's accesses")]

mod fold;
mod index;
mod join;
mod kept;
mod lines;
mod nest;
mod plan;
mod registers;
mod scratch;
mod selection;
mod status;
mod transfer;
mod walk;
mod weave;

use std::ffi::c_int;
use std::fmt;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::program::{Access, Element, Memory, Program, Split, Tile};
use fold::State;
pub use fold::columns::Columns;
use fold::total::{self, Part};
use fold::wire;
pub use kept::Kept;
use nest::{Base, Nest, Walk};
use plan::{Operation, Plan, Target};
pub use scratch::Scratch;
pub(crate) use status::Quiet;
pub use status::{DIVIDE_BY_ZERO, FlagTable, INVALID, OVERFLOW, UNDERFLOW, watched};
use walk::Cursor;
pub use weave::Joining;

/// Bytes that the passes of a program should touch per chunk, so that the next pass finds them in cache: a quarter of an L2
/// of 1 MiB.
const CHUNK_BYTES: usize = 256 << 10;

/// An inner loop that reported failure. What it had written by then stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopError {
    /// Name of the loop.
    pub name: Arc<str>,
    /// What it returned.
    pub code: c_int,
}

impl fmt::Display for LoopError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "inner loop {} failed with code {}", self.name, self.code)
    }
}

impl std::error::Error for LoopError {}

/// What one tile knows about the program's totals; [`Executable::finish`] joins those of all tiles.
#[derive(Clone, Debug, Default)]
pub struct Partials {
    totals: Vec<Part>,
}

impl Partials {
    /// The partials as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.totals {
            wire::write(part, &mut bytes);
        }
        bytes
    }
}

/// A program ready to run.
#[derive(Clone)]
pub struct Executable {
    program: Program,
    /// One per pass, for tiles with all of the inner axes.
    plans: Vec<Plan>,
    chunk_rows: usize,
    joining: Joining,
}

impl fmt::Debug for Executable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.program)
    }
}

impl Executable {
    /// Makes all decisions that do not depend on the tile.
    pub fn compile(program: Program) -> Executable {
        Executable::compile_with(program, Joining::Code)
    }

    /// The same, saying what operations become.
    pub fn compile_with(mut program: Program, joining: Joining) -> Executable {
        program.join_passes();
        program.share_slots();
        let passes = program.passes.iter();
        let plans = passes.map(|pass| Plan::new(&program, pass, Nest::new(pass, None), joining)).collect();
        let chunk_rows = chunk_rows(&program);
        Executable { program, plans, chunk_rows, joining }
    }

    /// What is done to each block, over all passes: the walks over memory or registers that a test may count.
    pub fn operations(&self) -> usize {
        self.plans.iter().map(|plan| if plan.lines.is_some() { 1 } else { plan.operations.len() }).sum()
    }

    /// What it was compiled from.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs one tile. Different tiles may run at the same time on different threads.
    ///
    /// # Safety
    /// `buffers` must hold the base address of every buffer, valid for the program's accesses within the tile: nobody else
    /// writes what the tile reads or writes, or reads what it writes, meanwhile. Different buffers must not overlap.
    pub unsafe fn run(
        &self,
        buffers: &[*mut u8],
        tile: &Tile,
        scratch: &mut Scratch,
        flags: &FlagTable,
    ) -> Result<Partials, LoopError> {
        debug_assert_eq!(buffers.len(), self.program.buffers);
        let narrowed: Vec<Plan>;
        let plans = match (self.program.split, &tile.inner) {
            (Split::Inner(axis), Some(range)) => {
                let nests = self.program.passes.iter().map(|pass| (pass, Nest::new(pass, Some((axis, range)))));
                narrowed = nests.map(|(pass, nest)| Plan::new(&self.program, pass, nest, self.joining)).collect();
                &narrowed
            }
            _ => &self.plans,
        };
        let mut run = TileRun::new(&self.program, plans, tile, self.chunk_rows, buffers, scratch);
        let mut events = status::Events::begin(flags);
        let mut row = tile.rows.start;
        while row < tile.rows.end {
            let end = (row + self.chunk_rows).min(tile.rows.end);
            for pass in 0..plans.len() {
                // SAFETY: the caller's.
                unsafe { run.run_pass(pass, row..end, &mut events)? };
            }
            row = end;
        }
        transfer::finish_streams();
        Ok(run.into_partials())
    }

    /// The partials of rows `rows`, from those of all their tiles in order.
    pub fn merge(&self, partials: &[Partials], rows: &Range<usize>, flags: &FlagTable) -> Result<Partials, LoopError> {
        let mut totals = vec![Part::Nothing; self.program.totals.len()];
        let mut events = status::Events::begin(flags);
        for (plan, pass) in self.plans.iter().zip(&self.program.passes) {
            let own = pass_rows(&pass.rows, rows);
            let row_elements = plan.nest.row_elements;
            let range = (own.start - pass.rows.start) * row_elements..(own.end - pass.rows.start) * row_elements;
            for (fold, total, elements) in plan.totals() {
                let parts = partials.iter().map(|partial| partial.totals[total].clone()).collect();
                totals[total] = total::merge(fold, elements, &range, parts)?;
                events.take(fold.flags);
            }
        }
        Ok(Partials { totals })
    }

    /// What [`Partials::to_bytes`] wrote; bytes behind it are ignored.
    pub fn partials_from(&self, mut bytes: &[u8]) -> Partials {
        Partials { totals: self.program.totals.iter().map(|_| wire::read(&mut bytes)).collect() }
    }

    /// Most bytes of [`Partials::to_bytes`] for merged partials; 0 if the program has no totals.
    pub fn partial_bytes(&self) -> usize {
        let totals = self.plans.iter().flat_map(Plan::totals);
        totals.map(|(fold, _, elements)| wire::limit(&fold.rule, elements)).sum()
    }

    /// The totals, from the partials of all tiles in the order of their rows.
    pub fn finish(&self, partials: &[Partials], flags: &FlagTable) -> Result<Vec<Element>, LoopError> {
        let mut totals = vec![Element([0; 32]); self.program.totals.len()];
        let mut events = status::Events::begin(flags);
        for plan in &self.plans {
            for (fold, total, elements) in plan.totals() {
                let parts = partials.iter().map(|partial| partial.totals[total].clone()).collect();
                totals[total] = total::join(fold, elements, parts)?;
                events.take(fold.flags);
            }
        }
        Ok(totals)
    }
}

/// Rows per chunk. With one pass and no slots nothing is read again, and the whole tile is one chunk.
fn chunk_rows(program: &Program) -> usize {
    if program.passes.len() < 2 && program.slots.is_empty() {
        return usize::MAX / 2;
    }
    let slots: usize = program.slots.iter().sum();
    // What several passes touch of a buffer is there once, and so is what walks over one that begin at different rows touch.
    let mut buffers = vec![0; program.buffers];
    for pass in &program.passes {
        let mut touched = vec![(0, 0); program.buffers];
        for access in pass.accesses.iter().filter(|access| access.row_stride != 0) {
            if let Memory::Buffer(buffer) = access.memory {
                let bytes = access_row_bytes(pass, access);
                touched[buffer].0 += bytes;
                touched[buffer].1 = bytes.max(access.row_stride.unsigned_abs()).max(touched[buffer].1);
            }
        }
        buffers.iter_mut().zip(touched).for_each(|(most, (sum, row))| *most = sum.min(row).max(*most));
    }
    (CHUNK_BYTES / (slots + buffers.iter().sum::<usize>() / 2).max(1)).max(1)
}

/// Bytes that an access of a pass touches per row.
fn access_row_bytes(pass: &crate::program::Pass, access: &Access) -> usize {
    let axes = pass.inner.iter().zip(&access.inner_strides);
    access.item_bytes * axes.filter(|(_, stride)| **stride != 0).map(|(length, _)| length).product::<usize>()
}

/// The running of one tile.
struct TileRun<'a> {
    program: &'a Program,
    plans: &'a [Plan],
    buffers: &'a [*mut u8],
    /// Base addresses of the slots.
    slots: SmallVec<[*mut u8; 4]>,
    /// The registers of all passes: each pass uses them anew.
    registers: *mut u8,
    states: Vec<Vec<State>>,
    pointers: Vec<*mut u8>,
}

impl<'a> TileRun<'a> {
    fn new(
        program: &'a Program,
        plans: &'a [Plan],
        tile: &'a Tile,
        chunk_rows: usize,
        buffers: &'a [*mut u8],
        scratch: &mut Scratch,
    ) -> TileRun<'a> {
        let register_bytes = plans.iter().map(|plan| plan.scratch_bytes).max().unwrap_or(0).next_multiple_of(64);
        let rows = chunk_rows.min(tile.rows.len());
        let mut bytes = register_bytes;
        let mut offsets: SmallVec<[usize; 4]> = SmallVec::new();
        for row_bytes in &program.slots {
            offsets.push(bytes);
            // Off a page's multiple, for the same reason as registers.
            bytes += (row_bytes * rows).next_multiple_of(4096) + 576;
        }
        let registers = scratch.reserve(bytes.max(1));
        let states = plans
            .iter()
            .zip(&program.passes)
            .map(|(plan, pass)| {
                let rows = pass_rows(&pass.rows, &tile.rows);
                let elements = plan.nest.row_elements;
                let first = (rows.start - pass.rows.start) * elements;
                if rows.is_empty() { Vec::new() } else { State::for_plan(plan, first, first + rows.len() * elements) }
            })
            .collect();
        TileRun {
            program,
            plans,
            buffers,
            slots: offsets.iter().map(|offset| registers.wrapping_add(*offset)).collect(),
            registers,
            states,
            pointers: Vec::new(),
        }
    }

    /// # Safety
    /// As for [`Executable::run`]; `chunk` lies within the tile.
    unsafe fn run_pass(
        &mut self,
        pass: usize,
        chunk: Range<usize>,
        events: &mut status::Events<'_>,
    ) -> Result<(), LoopError> {
        let plan = &self.plans[pass];
        let rows = pass_rows(&self.program.passes[pass].rows, &chunk);
        let together = match &plan.lines {
            Some(_) => (lines::LOOKED_AT / plan.nest.row_elements.max(1)).max(1),
            None => rows.len().max(1),
        };
        for start in rows.clone().step_by(together) {
            let part = start..(start + together).min(rows.end);
            // SAFETY: the caller's.
            unsafe { self.run_rows(pass, part, chunk.start, events)? };
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Executable::run`]; `rows` are rows of the pass in the chunk that begins with `chunk_row`.
    unsafe fn run_rows(
        &mut self,
        pass: usize,
        rows: Range<usize>,
        chunk_row: usize,
        events: &mut status::Events<'_>,
    ) -> Result<(), LoopError> {
        let plan = &self.plans[pass];
        let pass_range = &self.program.passes[pass].rows;
        self.pointers.clear();
        for walk in &plan.nest.walks {
            let address = self.walk_start(walk, rows.start, chunk_row);
            self.pointers.push(address);
        }
        let bases = SmallVec::from_slice(&self.pointers);
        self.pointers.extend(plan.storages.iter().map(|offset| self.registers.wrapping_add(*offset)));
        for state in &mut self.states[pass] {
            state.begin_chunk();
        }
        let mut cursor = Cursor {
            plan,
            rows: rows.len(),
            starts_pass: rows.start == pass_range.start,
            within_run: 0,
            bases,
            pointers: &mut self.pointers,
            states: &mut self.states[pass],
            events,
        };
        // SAFETY: the caller's: the pointers are those of the chunk's first elements.
        unsafe { cursor.run() }
    }

    /// The address of a walk's first element in `row`, in a chunk that begins with `chunk_row`.
    fn walk_start(&self, walk: &Walk, row: usize, chunk_row: usize) -> *mut u8 {
        let (base, row) = match walk.base {
            Base::Memory(Memory::Buffer(buffer)) => (self.buffers[buffer], row),
            Base::Memory(Memory::Slot(slot)) => (self.slots[slot], row - chunk_row),
            Base::Memory(Memory::Constant(constant)) => {
                (ptr::from_ref(&self.program.constants[constant]).cast_mut().cast(), 0)
            }
            Base::Index => (ptr::null_mut(), row),
        };
        base.wrapping_offset(walk.offset + walk.row_stride * row.cast_signed())
    }

    fn into_partials(self) -> Partials {
        let mut totals = vec![Part::Nothing; self.program.totals.len()];
        for (plan, states) in self.plans.iter().zip(self.states) {
            let mut states: Vec<Option<State>> = states.into_iter().map(Some).collect();
            for operation in &plan.operations {
                let Operation::Fold(fold, state) = operation else { continue };
                let Target::Total { total, .. } = fold.target else { continue };
                if let Some(State::Total(rule)) = states.get_mut(*state).and_then(Option::take) {
                    totals[total] = rule.into_part();
                }
            }
        }
        Partials { totals }
    }
}

/// The rows of a pass that lie in `within`; empty at the pass's start if there are none.
fn pass_rows(pass: &Range<usize>, within: &Range<usize>) -> Range<usize> {
    let start = pass.start.max(within.start);
    let end = pass.end.min(within.end);
    if start < end { start..end } else { pass.start..pass.start }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared<T: Send + Sync>() {}

    #[test]
    fn executables_are_shared_between_threads() {
        shared::<Executable>();
        shared::<FlagTable>();
        shared::<Partials>();
    }
}
