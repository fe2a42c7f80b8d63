//! Weaving: exact float operations of a pass become tapes, whose values stay in vector registers from the first to the last.
//!
//! Operations are put in another order: each tape takes all operations that can run by then, and what they need from others runs
//! before. Promises that nothing runs before what it reads is written, or after that is overwritten. A tape may be run again: it
//! overwrites nothing that it reads, so that `trace` finds which operation raised an event.

#![expect(unsafe_code, reason = "runs code and inner loops on computed addresses")]

use std::ffi::c_char;

use smallvec::{SmallVec, smallvec};

use super::LoopError;
use super::join::{Exact, exact};
use super::nest::{Base, Nest};
use super::plan::{Call, Kernel, Operation, Pointer, Target};
use super::status::Events;
use super::walk::invoke;
use crate::machine::{self, Code, Instruction, Tape, Value};
use crate::program::Memory;

/// What operations that follow one another become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Machine code, where it can be made; otherwise chains.
    Code,
    /// Chains of ready-made loops.
    Chains,
}

/// Elements that are traced at a time.
const TRACED: usize = 128;

/// Most operands that a tape reads, and most operations that it holds: more would not have room in registers, or be long to write.
const MOST_INPUTS: usize = 16;
const MOST_OPERATIONS: usize = 64;

/// Operations that have become one.
#[derive(Clone, Debug)]
pub(super) struct Woven {
    code: Code,
    pub(super) item_bytes: usize,
    /// The operands of the tape, and how far apart their elements are.
    pub(super) operands: Vec<Pointer>,
    strides: Vec<isize>,
    traced: Vec<Traced>,
}

/// One of the operations, for tracing.
#[derive(Clone, Debug)]
struct Traced {
    kernel: Kernel,
    inputs: SmallVec<[Place; 2]>,
    output: Place,
    flags: usize,
}

/// Where a value is while the operations run one by one.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// An operand of the tape.
    Operand(usize),
    /// The result of an operation that nobody else sees.
    Inside(usize),
}

impl Woven {
    /// Runs the operations over `count` elements; `pointers` are the addresses of everything.
    ///
    /// # Safety
    /// All operands must be there and aligned, and what is written be apart from what is read.
    pub(super) unsafe fn run(
        &self,
        pointers: &[*mut u8],
        count: usize,
        events: &mut Events<'_>,
    ) -> Result<(), LoopError> {
        let operands: SmallVec<[*mut u8; 16]> = self.operands.iter().map(|pointer| pointers[*pointer]).collect();
        // SAFETY: the caller's.
        unsafe {
            self.code.run(&operands, count);
            if events.pending() {
                events.discard();
                self.trace(&operands, count, events)?;
            }
        }
        Ok(())
    }

    /// Runs the operations again one by one, to give each its events.
    #[cold]
    unsafe fn trace(&self, operands: &[*mut u8], count: usize, events: &mut Events<'_>) -> Result<(), LoopError> {
        let dense = self.item_bytes.cast_signed();
        let mut inside = vec![[0_u64; TRACED]; self.traced.len()];
        for first in (0..count).step_by(TRACED) {
            let length = TRACED.min(count - first);
            for step in &self.traced {
                let mut data: SmallVec<[*mut c_char; 3]> = SmallVec::new();
                let mut strides: SmallVec<[isize; 3]> = SmallVec::new();
                for place in step.inputs.iter().chain([&step.output]) {
                    let (address, stride) = match *place {
                        Place::Operand(operand) => (operands[operand], self.strides[operand]),
                        Place::Inside(result) => (inside[result].as_mut_ptr().cast(), 0),
                    };
                    let is_inside = matches!(place, Place::Inside(_));
                    data.push(address.wrapping_offset(stride * first.cast_signed()).cast());
                    strides.push(if is_inside { dense } else { stride });
                }
                // SAFETY: the caller's.
                unsafe { invoke(&step.kernel, &data, length, &strides)? };
                events.take(step.flags);
            }
        }
        Ok(())
    }
}

/// What an operation reads and writes: registers, and walks of memory.
fn touched(operation: &Operation) -> (SmallVec<[Pointer; 4]>, SmallVec<[Pointer; 2]>) {
    match operation {
        Operation::Call(call) => {
            (SmallVec::from_slice(&call.pointers[..call.inputs]), SmallVec::from_slice(&call.pointers[call.inputs..]))
        }
        Operation::Load(transfer) => (smallvec![transfer.walk], smallvec![transfer.storage]),
        Operation::Store(transfer) => (smallvec![transfer.storage], smallvec![transfer.walk]),
        Operation::Index { output, .. } => (smallvec![], smallvec![output.pointer]),
        Operation::Fold(fold, _) => match fold.target {
            Target::Walk { walk, .. } => (smallvec![fold.input.pointer], smallvec![walk]),
            Target::Total { .. } => (smallvec![fold.input.pointer], smallvec![]),
        },
        Operation::Accumulate { input, output, .. } => (smallvec![input.pointer, *output], smallvec![*output]),
        // Nothing is woven where there are masks, and the others come later.
        Operation::Masked(..)
        | Operation::Enter(_)
        | Operation::Packed(_)
        | Operation::Gather(_)
        | Operation::Scatter(_)
        | Operation::Chain(_)
        | Operation::Woven(_) => (smallvec![], smallvec![]),
    }
}

/// How far an operation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// On the tape that is being filled.
    OnTape,
    Done,
}

/// Weaves the operations of a pass; none where code cannot be made.
pub(super) fn weave(operations: &[Operation], nest: &Nest, registers: usize) -> Option<Vec<Operation>> {
    if !machine::is_available() {
        return None;
    }
    let exact: Vec<Option<Exact>> = operations.iter().map(exact).collect();
    let before = dependences(operations, nest, registers);
    let mut readers = vec![0; nest.walks.len() + registers];
    for operation in operations {
        touched(operation).0.iter().for_each(|pointer| readers[*pointer] += 1);
    }
    let mut stages = vec![Stage::Waiting; operations.len()];
    let mut left: Vec<usize> = (0..operations.len()).collect();
    let mut woven = Vec::with_capacity(operations.len());
    while !left.is_empty() {
        let mut loom = Loom { nest, members: Vec::new(), item_bytes: 0, inputs: SmallVec::new(), outputs: Vec::new() };
        for candidate in left.iter().copied() {
            let (Some(exact), Operation::Call(call)) = (&exact[candidate], &operations[candidate]) else { continue };
            let is_ready = before[candidate].iter().all(|needed| stages[*needed] != Stage::Waiting);
            if is_ready && loom.admits(call, exact) {
                loom.add(candidate, call, exact, &mut readers);
                stages[candidate] = Stage::OnTape;
            }
        }
        woven.extend(loom.finish(operations, &readers));
        loom.members.iter().for_each(|member| stages[*member] = Stage::Done);
        for operation in left.iter().copied().filter(|operation| exact[*operation].is_none()) {
            if before[operation].iter().all(|needed| stages[*needed] == Stage::Done) {
                touched(&operations[operation]).0.iter().for_each(|pointer| readers[*pointer] -= 1);
                stages[operation] = Stage::Done;
                woven.push(operations[operation].clone());
            }
        }
        left.retain(|operation| stages[*operation] == Stage::Waiting);
    }
    // What a run keeps of each reduction is in the order of the operations.
    let folds = woven
        .iter_mut()
        .filter_map(|operation| if let Operation::Fold(_, state) = operation { Some(state) } else { None });
    folds.enumerate().for_each(|(number, state)| *state = number);
    Some(woven)
}

/// For each operation those that must have run before it: what writes a register that it reads, and what touches memory that one
/// of both writes.
fn dependences(operations: &[Operation], nest: &Nest, registers: usize) -> Vec<SmallVec<[usize; 4]>> {
    let first_register = nest.walks.len();
    let mut writers: Vec<Option<usize>> = vec![None; registers];
    let mut touches: Vec<(usize, Base, bool)> = Vec::new();
    let mut before = Vec::with_capacity(operations.len());
    for (number, operation) in operations.iter().enumerate() {
        let (reads, writes) = touched(operation);
        let mut needed: SmallVec<[usize; 4]> = SmallVec::new();
        let known = touches.len();
        for (pointer, is_write) in reads.iter().map(|p| (*p, false)).chain(writes.iter().map(|p| (*p, true))) {
            if let Some(register) = pointer.checked_sub(first_register) {
                // A register is written by one operation, before all that read it.
                needed.extend(writers[register].filter(|_| !is_write));
                if is_write {
                    writers[register] = Some(number);
                }
                continue;
            }
            let base = nest.walks[pointer].base;
            if matches!(base, Base::Index | Base::Memory(Memory::Constant(_))) {
                continue;
            }
            let earlier = touches[..known].iter().filter(|(_, other, writes)| *other == base && (*writes || is_write));
            needed.extend(earlier.map(|(earlier, ..)| *earlier));
            touches.push((number, base, is_write));
        }
        before.push(needed);
    }
    before
}

/// A tape being filled.
struct Loom<'a> {
    nest: &'a Nest,
    members: Vec<usize>,
    item_bytes: usize,
    /// What comes from elsewhere.
    inputs: SmallVec<[Pointer; 16]>,
    /// What members make.
    outputs: Vec<Pointer>,
}

impl Loom<'_> {
    /// Whether an operation may be added to the members.
    fn admits(&self, call: &Call, exact: &Exact) -> bool {
        let (reads, writes) = call.pointers.split_at(call.inputs);
        // Memory that one reads and another writes would make it impossible to run the tape again.
        let base = |pointer: &Pointer| self.nest.walks.get(*pointer).map(|walk| walk.base);
        let meets = |writes: &[Pointer], touches: &[Pointer]| {
            writes.iter().filter_map(base).any(|written| touches.iter().filter_map(base).any(|read| read == written))
        };
        let foreign: SmallVec<[Pointer; 2]> =
            reads.iter().copied().filter(|pointer| !self.outputs.contains(pointer)).collect();
        let overwrites = meets(writes, reads)
            || meets(writes, &self.inputs)
            || meets(writes, &self.outputs)
            || meets(&self.outputs, &foreign);
        // An operation in place stays alone.
        let is_closed = meets(&self.outputs, &self.inputs);
        self.members.is_empty()
            || exact.item_bytes == self.item_bytes
                && !overwrites
                && !is_closed
                && self.inputs.len() + call.inputs <= MOST_INPUTS
                && self.outputs.len() < MOST_OPERATIONS
    }

    fn add(&mut self, member: usize, call: &Call, exact: &Exact, readers: &mut [usize]) {
        self.item_bytes = exact.item_bytes;
        for pointer in &call.pointers[..call.inputs] {
            readers[*pointer] -= 1;
            if !self.outputs.contains(pointer) && !self.inputs.contains(pointer) {
                self.inputs.push(*pointer);
            }
        }
        self.outputs.push(call.pointers[call.inputs]);
        self.members.push(member);
    }

    /// The operations that do what the members do; `readers` are left for what they make.
    fn finish(&self, operations: &[Operation], readers: &[usize]) -> Vec<Operation> {
        // The longest beginning that has code, then the next.
        let mut woven = Vec::new();
        let mut first = 0;
        while first < self.members.len() {
            let mut end = self.members.len();
            let made = loop {
                if end - first < 2 {
                    break None;
                }
                let later = |pointer: Pointer| {
                    let read = |member: &usize| touched(&operations[*member]).0.contains(&pointer);
                    readers[pointer] > 0 || self.members[end..].iter().any(read)
                };
                let draft = Draft::new(operations, &self.members[first..end], self.nest, later);
                match draft.and_then(Draft::finish) {
                    Some(made) => break Some(made),
                    None => end -= (end - first).div_ceil(4),
                }
            };
            match made {
                Some(made) => woven.push(Operation::Woven(made)),
                None => {
                    end = first + 1;
                    woven.push(operations[self.members[first]].clone());
                }
            }
            first = end;
        }
        woven
    }
}

/// Operations as a tape.
#[derive(Default)]
struct Draft {
    tape: Tape,
    operands: Vec<Pointer>,
    /// For each register that they fill, the number of the instruction.
    results: Vec<(Pointer, usize)>,
    traced: Vec<Traced>,
}

impl Draft {
    /// The tape of these operations; the registers of which `is_seen` holds are stored for others.
    fn new(
        operations: &[Operation],
        members: &[usize],
        nest: &Nest,
        is_seen: impl Fn(Pointer) -> bool,
    ) -> Option<Draft> {
        let mut draft = Draft::default();
        for (number, member) in members.iter().enumerate() {
            let Operation::Call(call) = &operations[*member] else { return None };
            let exact = exact(&operations[*member])?;
            draft.tape.item_bytes = exact.item_bytes;
            let inputs = call.pointers[..call.inputs].iter().zip(&call.strides);
            let values: SmallVec<[Value; 2]> = inputs.map(|(pointer, stride)| draft.read(*pointer, *stride)).collect();
            let output = call.pointers[call.inputs];
            let is_stored = output < nest.walks.len() || is_seen(output);
            let store = is_stored.then(|| draft.operand(output, false));
            let (verb, operands) = exact.instruction(&values);
            draft.tape.instructions.push(Instruction { verb, operands, store });
            draft.results.push((output, number));
            draft.trace(call, number, store);
        }
        Some(draft)
    }

    fn finish(self) -> Option<Woven> {
        let code = machine::code_of_tape(&self.tape)?;
        let item_bytes = self.tape.item_bytes;
        let stride = |repeats: &bool| if *repeats { 0 } else { item_bytes.cast_signed() };
        let strides = self.tape.repeats.iter().map(stride).collect();
        Some(Woven { code, item_bytes, operands: self.operands, strides, traced: self.traced })
    }

    /// The value behind a pointer.
    fn read(&mut self, pointer: Pointer, stride: isize) -> Value {
        match self.results.iter().rev().find(|(known, _)| *known == pointer) {
            Some((_, result)) => Value::Result(*result),
            None => Value::Memory(self.operand(pointer, stride == 0)),
        }
    }

    fn operand(&mut self, pointer: Pointer, repeats: bool) -> usize {
        self.operands.iter().position(|known| *known == pointer).unwrap_or_else(|| {
            self.operands.push(pointer);
            self.tape.repeats.push(repeats);
            self.operands.len() - 1
        })
    }

    fn trace(&mut self, call: &Call, number: usize, store: Option<usize>) {
        let place = |pointer: &Pointer| match self.results.iter().rev().find(|(known, _)| known == pointer) {
            Some((_, result)) => self.tape.instructions[*result].store.map_or(Place::Inside(*result), Place::Operand),
            None => Place::Operand(self.operands.iter().position(|known| known == pointer).unwrap_or_default()),
        };
        let inputs = call.pointers[..call.inputs].iter().map(place).collect();
        let output = store.map_or(Place::Inside(number), Place::Operand);
        self.traced.push(Traced { kernel: call.kernel.clone(), inputs, output, flags: call.flags });
    }
}
