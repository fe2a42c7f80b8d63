//! Running a plan over one chunk of rows: blocks in order, and every operation of the plan over each block.
//!
//! Promises that each operation sees every element of the pass once, in row-major order. Which elements lie where was
//! decided in `plan`; what reductions do is in `fold`.

#![expect(unsafe_code, reason = "computes addresses and calls inner loops on them")]

use std::ffi::c_char;
use std::ptr;
use std::slice;

use smallvec::SmallVec;

use super::LoopError;
use super::fold::{self, Bases, State};
use super::join::Chain;
use super::nest::{Axis, Walk};
use super::plan::{Call, Kernel, Operation, Plan, Pointer, Transfer};
use super::selection::{Moved, Packed};
use super::status::Events;
use super::{index, selection, transfer};
use crate::loops::chain::{Ends, Link, trace};

/// Lines that are taken together where a walk crosses them: a cache line of doubles, twice.
const CROSSED_LINES: usize = 16;

/// What a run of a plan works on.
///
/// Invariant: `pointers` holds, for each walk of the plan, the address of its element at the start of the current block
/// (when gathering and the walk is no single run: of the chunk), then the address of each storage; all of it valid for
/// the whole chunk as the caller of `Executable::run` promised.
pub(super) struct Cursor<'a, 'b> {
    pub(super) plan: &'a Plan,
    pub(super) rows: usize,
    /// Whether the chunk begins with the pass's first row (else a fold over the rows goes on from what its output holds).
    pub(super) starts_pass: bool,
    /// Elements of the current innermost run before the current block.
    pub(super) within_run: usize,
    /// The first elements of all walks.
    pub(super) bases: Bases,
    pub(super) pointers: &'a mut [*mut u8],
    pub(super) states: &'a mut [State],
    pub(super) events: &'a mut Events<'b>,
}

impl Cursor<'_, '_> {
    /// Runs the plan over its chunk.
    ///
    /// # Safety
    /// The type's invariant, at the chunk's first element.
    pub(super) unsafe fn run(&mut self) -> Result<(), LoopError> {
        if self.plan.nest.row_elements == 0 {
            return Ok(());
        }
        // SAFETY: passed on.
        unsafe {
            if let Some(lines) = &self.plan.lines {
                lines.run(self.pointers, self.plan.nest.axes[0].length(self.rows));
                if !self.events.pending() {
                    return Ok(());
                }
                self.events.discard();
            }
            if self.plan.gathers {
                self.run_gathering()
            } else if self.plan.crosses {
                self.run_crossing()
            } else {
                self.run_direct()
            }
        }
    }

    /// As `run_direct`, but some lines together: the same block of each, then the next block.
    unsafe fn run_crossing(&mut self) -> Result<(), LoopError> {
        let plan = self.plan;
        let axes = &plan.nest.axes;
        let innermost = axes.len() - 1;
        let (lines, length) = (axes[innermost - 1].length(self.rows), axes[innermost].length(self.rows));
        let mut odometer = Odometer::new(&axes[..innermost - 1], self.rows);
        loop {
            for group in (0..lines).step_by(CROSSED_LINES) {
                for done in (0..length).step_by(plan.block) {
                    let count = plan.block.min(length - done);
                    for line in group..(group + CROSSED_LINES).min(lines) {
                        let place = |walk: &Walk| {
                            let within = walk.strides[innermost - 1] * line.cast_signed();
                            odometer.offset(walk) + within + walk.strides[innermost] * done.cast_signed()
                        };
                        for ((pointer, walk), base) in self.pointers.iter_mut().zip(&plan.nest.walks).zip(&self.bases) {
                            *pointer = base.wrapping_offset(place(walk));
                        }
                        // SAFETY: the type's invariant. No operation of the plan asks for the block's number.
                        unsafe { self.run_block(done, count, &odometer)? };
                    }
                }
            }
            if !odometer.advance(1) {
                return Ok(());
            }
        }
    }

    /// Blocks within each innermost run; walks keep their strides.
    unsafe fn run_direct(&mut self) -> Result<(), LoopError> {
        let plan = self.plan;
        let axes = &plan.nest.axes;
        let walks = &plan.nest.walks;
        let innermost = axes.len() - 1;
        let length = axes[innermost].length(self.rows);
        let mut odometer = Odometer::new(&axes[..innermost], self.rows);
        let mut first = 0;
        loop {
            let mut done = 0;
            while done < length {
                let count = plan.block.min(length - done);
                self.within_run = done;
                // SAFETY: the type's invariant.
                unsafe { self.run_block(first + done, count, &odometer)? };
                done += count;
                for (pointer, walk) in self.pointers.iter_mut().zip(walks) {
                    *pointer = pointer.wrapping_offset(walk.strides[innermost] * count.cast_signed());
                }
            }
            first += length;
            if !odometer.advance(1) {
                return Ok(());
            }
            for ((pointer, walk), start) in self.pointers.iter_mut().zip(walks).zip(&self.bases) {
                *pointer = start.wrapping_offset(odometer.offset(walk));
            }
        }
    }

    /// Blocks over the flattened nest; walks that are no single run pass through registers.
    unsafe fn run_gathering(&mut self) -> Result<(), LoopError> {
        let plan = self.plan;
        let axes = &plan.nest.axes;
        let walks = &plan.nest.walks;
        let innermost = axes.len() - 1;
        let length: usize = axes.iter().map(|axis| axis.length(self.rows)).product();
        let run = axes[innermost].length;
        let mut odometer = Odometer::new(&axes[..innermost], self.rows);
        let mut done = 0;
        while done < length {
            let count = plan.block.min(length - done);
            // SAFETY: the type's invariant.
            unsafe { self.run_block(done, count, &odometer)? };
            done += count;
            odometer.advance(count / run);
            for (pointer, walk) in self.pointers.iter_mut().zip(walks) {
                if let Some(stride) = walk.whole {
                    *pointer = pointer.wrapping_offset(stride * count.cast_signed());
                }
            }
        }
        Ok(())
    }

    /// Every operation over `count` elements from element `first` of the chunk.
    unsafe fn run_block(&mut self, first: usize, count: usize, odometer: &Odometer) -> Result<(), LoopError> {
        let plan = self.plan;
        // Of the stretch of selected elements: how many they are, and whether that is all of the block.
        let (mut selected, mut is_whole) = (0, false);
        let mut next = 0;
        while let Some(operation) = plan.operations.get(next) {
            next += 1;
            // SAFETY: the pointers are those of this block by the type's invariant, and `plan` promises operands that a
            // loop may have.
            unsafe {
                match operation {
                    Operation::Call(call) => self.call(call, count)?,
                    Operation::Chain(chain) => self.chain(chain, count),
                    Operation::Enter(enter) => {
                        let places = self.pointers[enter.places].cast();
                        let (mask, lists_all) = (enter.mask, !enter.is_dense);
                        selected = selection::find(self.pointers[mask.pointer], mask.stride, count, places, lists_all);
                        is_whole = selected == count && enter.is_dense;
                        if selected == 0 {
                            next = enter.until;
                        }
                    }
                    Operation::Packed(packed) if is_whole => self.call(&packed.whole, count)?,
                    Operation::Packed(Packed { whole, pointers, strides }) => {
                        self.invoke_at(&whole.kernel, pointers, strides, selected)?;
                        self.events.take(whole.flags);
                    }
                    Operation::Gather(_) | Operation::Scatter(_) if is_whole => {}
                    Operation::Gather(Moved { block, packed, places, item_bytes }) => {
                        let places = slice::from_raw_parts(self.pointers[*places].cast::<u32>(), selected);
                        let block = (self.pointers[block.pointer].cast_const(), block.stride);
                        selection::gather(block, places, self.pointers[packed.pointer], *item_bytes);
                    }
                    Operation::Scatter(Moved { block, packed, places, item_bytes }) => {
                        let places = slice::from_raw_parts(self.pointers[*places].cast::<u32>(), selected);
                        let block = (self.pointers[block.pointer], block.stride);
                        selection::scatter(self.pointers[packed.pointer], places, block, *item_bytes);
                    }
                    // Stretches have been formed of them.
                    Operation::Masked(..) => {}
                    Operation::Woven(woven) => woven.run(self.pointers, count, self.events)?,
                    Operation::Load(Transfer { walk, storage, once, .. }) => {
                        if !once || first == 0 {
                            let source = self.block_walk(*walk, odometer);
                            transfer::load(self.pointers[*storage], &source, count);
                        }
                    }
                    Operation::Store(Transfer { walk, storage, streams: true, .. }) => {
                        let bytes = count * self.plan.nest.walks[*walk].item_bytes;
                        transfer::stream(self.pointers[*walk], self.pointers[*storage], bytes);
                    }
                    Operation::Store(Transfer { walk, storage, .. }) => {
                        let target = self.block_walk(*walk, odometer);
                        transfer::store(&target, self.pointers[*storage], count);
                    }
                    Operation::Index { number, start, delta, output, walk } => {
                        let numbers = self.block_walk(*walk, odometer);
                        index::fill(
                            *number,
                            start,
                            delta,
                            self.pointers[output.pointer],
                            output.stride,
                            &numbers,
                            count,
                        );
                    }
                    Operation::Fold(fold, state) => fold::feed(self, fold, *state, count)?,
                    Operation::Accumulate { kernel, rows, seed, input, output, flags } => {
                        let target = self.block_walk(*output, odometer);
                        let source = (self.pointers[input.pointer], input.stride);
                        transfer::accumulate((kernel, *rows), *seed, source, &target, count)?;
                        self.events.take(*flags);
                    }
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn call(&mut self, call: &Call, count: usize) -> Result<(), LoopError> {
        // SAFETY: the caller's.
        unsafe { self.invoke_at(&call.kernel, &call.pointers, &call.strides, count)? };
        if !call.kernel.0.is_quiet {
            self.events.take(call.flags);
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn invoke_at(
        &self,
        kernel: &Kernel,
        pointers: &[Pointer],
        strides: &[isize],
        count: usize,
    ) -> Result<(), LoopError> {
        let mut data: SmallVec<[*mut c_char; 8]> = SmallVec::new();
        for pointer in pointers {
            data.push(self.pointers[*pointer].cast());
        }
        // SAFETY: the caller's.
        unsafe { invoke(kernel, &data, count, strides) }
    }

    unsafe fn chain(&mut self, chain: &Chain, count: usize) {
        let ends = Ends {
            first: self.pointers[chain.first.pointer],
            first_repeats: chain.first.stride == 0,
            output: self.pointers[chain.output],
            count,
        };
        let links: SmallVec<[Link; 12]> = chain
            .links
            .iter()
            .map(|link| Link {
                action: link.action,
                operand: link.operand.map_or(ptr::null(), |operand| self.pointers[operand.pointer].cast_const()),
                repeats: link.operand.is_some_and(|operand| operand.stride == 0),
            })
            .collect();
        // SAFETY: the caller's; `join` promises contiguous operands and an output that is apart from them.
        unsafe {
            (chain.run)(&ends, &links);
            if self.events.pending() {
                self.events.discard();
                trace(chain.item_bytes, &ends, &links, |link| self.events.take(chain.links[link].flags));
            }
        }
    }

    /// A walk as seen from the current block.
    fn block_walk<'c>(&self, walk: usize, odometer: &'c Odometer) -> BlockWalk<'c>
    where
        Self: 'c,
    {
        let described = &self.plan.nest.walks[walk];
        let address = self.pointers[walk];
        let innermost = self.plan.nest.axes.len() - 1;
        let starts_rows = self.starts_pass || described.row_stride != 0;
        let is_first = starts_rows
            && (self.within_run == 0 || described.strides[innermost] != 0)
            && odometer.is_first(&described.strides);
        let (address, stride, lines) = if !self.plan.gathers {
            (address, described.strides[innermost], None)
        } else if let Some(stride) = described.whole {
            (address, stride, None)
        } else {
            let strides = SmallVec::from_slice(&described.strides[..innermost]);
            let lines = Lines { odometer, strides, starts_rows, run: self.plan.nest.axes[innermost].length };
            (address.wrapping_offset(odometer.offset(described)), described.strides[innermost], Some(lines))
        };
        BlockWalk { address, stride, lines, item_bytes: described.item_bytes, is_first }
    }
}

/// The elements of one walk in one block.
pub(super) struct BlockWalk<'a> {
    /// Of the first element.
    pub(super) address: *mut u8,
    /// Bytes between elements, within a line.
    pub(super) stride: isize,
    /// None: one line holds them all.
    pub(super) lines: Option<Lines<'a>>,
    pub(super) item_bytes: usize,
    /// Whether the block's first line is the first to reach its addresses (no outer axis repeats them before it).
    pub(super) is_first: bool,
}

/// How a walk goes from one innermost run to the next.
pub(super) struct Lines<'a> {
    odometer: &'a Odometer,
    strides: SmallVec<[isize; 4]>,
    /// Whether no earlier chunk reached the same addresses.
    starts_rows: bool,
    /// Elements in a line.
    pub(super) run: usize,
}

/// Lines of one length, at equal distances.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    /// Of the first line.
    pub(super) address: *mut u8,
    /// Bytes from one line to the next.
    pub(super) line_stride: isize,
    pub(super) lines: usize,
    /// Elements in a line.
    pub(super) run: usize,
    /// Elements of the block before the batch.
    pub(super) before: usize,
    /// Whether no line before the batch had its addresses.
    pub(super) is_first: bool,
}

impl BlockWalk<'_> {
    /// Calls `visit` for the lines of the block's `count` elements, as many at a time as one axis has.
    #[inline(always)]
    pub(super) fn for_each_batch(&self, count: usize, mut visit: impl FnMut(Batch)) {
        let Some(lines) = &self.lines else {
            let is_first = self.is_first;
            visit(Batch { address: self.address, line_stride: 0, lines: 1, run: count, before: 0, is_first });
            return;
        };
        let mut position = lines.odometer.clone();
        let mut address = self.address;
        let mut before = 0;
        let Some(last) = lines.strides.len().checked_sub(1) else { return };
        let line_stride = lines.strides[last];
        while before < count {
            // As many lines as the axis next to the innermost has left.
            let left = position.lengths[last] - position.indices[last];
            let batch = left.min((count - before) / lines.run);
            let is_first = lines.starts_rows
                && position.is_first(&lines.strides[..last])
                && (line_stride != 0 || position.indices[last] == 0);
            visit(Batch { address, line_stride, lines: batch, run: lines.run, before, is_first });
            before += batch * lines.run;
            let offset = position.offset_by(&lines.strides);
            position.advance(batch);
            address = address.wrapping_offset(position.offset_by(&lines.strides) - offset);
        }
    }

    /// Calls `visit` for each line: address, number of elements, elements before it, and whether it is the first line at
    /// its address.
    pub(super) fn for_each_line(&self, count: usize, mut visit: impl FnMut(*mut u8, usize, usize, bool)) {
        self.for_each_batch(count, |batch| {
            for line in 0..batch.lines {
                let address = batch.address.wrapping_offset(batch.line_stride * line.cast_signed());
                let is_first = batch.is_first && (line == 0 || batch.line_stride != 0);
                visit(address, batch.run, batch.before + line * batch.run, is_first);
            }
        });
    }
}

/// Calls a loop.
///
/// # Safety
/// The addresses must be those of `count` elements along `strides`, aligned, without partial overlap.
#[inline(always)]
pub(super) unsafe fn invoke(
    kernel: &Kernel,
    data: &[*mut c_char],
    count: usize,
    strides: &[isize],
) -> Result<(), LoopError> {
    let length = count.cast_signed();
    let inner = &kernel.0;
    // SAFETY: the caller's, and the invariant of `Loop`.
    let code =
        unsafe { (inner.function)(inner.context, data.as_ptr(), &raw const length, strides.as_ptr(), inner.auxdata) };
    if code == 0 { Ok(()) } else { Err(LoopError { name: inner.name.clone(), code }) }
}

/// The position along the outer axes of a nest.
#[derive(Clone)]
pub(super) struct Odometer {
    lengths: SmallVec<[usize; 4]>,
    indices: SmallVec<[usize; 4]>,
}

impl Odometer {
    fn new(axes: &[Axis], rows: usize) -> Odometer {
        Odometer {
            lengths: axes.iter().map(|axis| axis.length(rows)).collect(),
            indices: SmallVec::from_elem(0, axes.len()),
        }
    }

    /// Goes on by `steps` positions; false when that is past the end.
    fn advance(&mut self, steps: usize) -> bool {
        let mut carry = steps;
        for axis in (0..self.indices.len()).rev() {
            let index = self.indices[axis] + carry;
            if index < self.lengths[axis] {
                self.indices[axis] = index;
                return true;
            }
            let over = index - self.lengths[axis];
            if over < self.lengths[axis] {
                self.indices[axis] = over;
                carry = 1;
            } else {
                self.indices[axis] = index % self.lengths[axis];
                carry = index / self.lengths[axis];
            }
        }
        carry == 0
    }

    fn offset(&self, walk: &Walk) -> isize {
        self.offset_by(&walk.strides)
    }

    fn offset_by(&self, strides: &[isize]) -> isize {
        self.indices.iter().zip(strides).map(|(index, stride)| index.cast_signed() * stride).sum()
    }

    /// Whether no position before this one has the same address along `strides`.
    fn is_first(&self, strides: &[isize]) -> bool {
        self.indices.iter().zip(strides).all(|(index, stride)| *stride != 0 || *index == 0)
    }
}
