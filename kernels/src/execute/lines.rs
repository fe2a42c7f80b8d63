//! Passes over short lines: all their exact operations, and the sum of each line, as one piece of code.
//!
//! A line that is no longer than a leaf of NumPy's summation tree is computed and summed in registers; nothing is gathered into
//! blocks first. Promises the bits of the ordinary way, which runs instead where an event was raised: so nothing may be overwritten
//! that the pass reads.

#![expect(unsafe_code, reason = "runs code on computed addresses")]

use smallvec::SmallVec;

use super::fold::Rule;
use super::join::exact;
use super::nest::{Base, Nest};
use super::plan::{Fold, Operation, Pointer, Target};
use crate::machine::{self, Code, Instruction, LONGEST_LINE, LineSum, Lines, Value};
use crate::program::{Element, Float, Seed};

/// Elements after which events are looked for: what is run again if there are any.
pub(super) const LOOKED_AT: usize = 16 << 10;

/// A pass as one piece of code.
#[derive(Clone, Debug)]
pub(super) struct LinePass {
    code: Code,
    /// The walks that the code's operands are.
    walks: Vec<usize>,
}

impl LinePass {
    /// The code of a pass that has these operations, if it has one.
    pub(super) fn new(operations: &[Operation], nest: &Nest) -> Option<LinePass> {
        let (run, middle) = match nest.axes[..] {
            [_, run] => (run.length, 1),
            [_, middle, run] => (run.length, middle.length),
            _ => return None,
        };
        if run > LONGEST_LINE || !operations.iter().any(|operation| matches!(operation, Operation::Fold(..))) {
            return None;
        }
        let mut draft =
            Draft { nest, walks: Vec::new(), written: Vec::new(), values: Vec::new(), lines: Lines::default() };
        draft.lines.run = run;
        draft.lines.middle = middle;
        for operation in operations {
            draft.add(operation)?;
        }
        draft.finish()
    }

    /// Runs the pass at `outer` positions of its outermost axis; `pointers` are the addresses of the walks.
    ///
    /// # Safety
    /// All that the pass reads and writes must be there.
    pub(super) unsafe fn run(&self, pointers: &[*mut u8], outer: usize) {
        let operands: SmallVec<[*mut u8; 16]> = self.walks.iter().map(|walk| pointers[*walk]).collect();
        // SAFETY: the caller's.
        unsafe { self.code.run_lines(&operands, outer) };
    }
}

struct Draft<'a> {
    nest: &'a Nest,
    walks: Vec<usize>,
    /// The walks that are written.
    written: Vec<usize>,
    /// What is in registers.
    values: Vec<(Pointer, Value)>,
    lines: Lines,
}

impl Draft<'_> {
    fn add(&mut self, operation: &Operation) -> Option<()> {
        match operation {
            Operation::Load(transfer) => {
                let value = self.read(transfer.walk)?;
                self.values.push((transfer.storage, value));
            }
            Operation::Call(call) => {
                let exact = exact(operation)?;
                self.lines.tape.item_bytes = exact.item_bytes;
                let inputs: Option<SmallVec<[Value; 2]>> =
                    call.pointers[..call.inputs].iter().map(|pointer| self.read(*pointer)).collect();
                let (verb, operands) = exact.instruction(&inputs?);
                let output = call.pointers[call.inputs];
                let store = if output < self.nest.walks.len() { Some(self.write(output, 1)?) } else { None };
                self.values.push((output, Value::Result(self.lines.tape.instructions.len())));
                self.lines.tape.instructions.push(Instruction { verb, operands, store });
            }
            Operation::Store(transfer) if !transfer.streams => {
                let Value::Result(result) = self.read(transfer.storage)? else { return None };
                let operand = self.write(transfer.walk, 1)?;
                if self.lines.tape.instructions[result].store.replace(operand).is_some() {
                    return None;
                }
            }
            Operation::Fold(fold, _) => self.fold(fold)?,
            Operation::Store(_)
            | Operation::Chain(_)
            | Operation::Masked(..)
            | Operation::Enter(_)
            | Operation::Packed(_)
            | Operation::Gather(_)
            | Operation::Scatter(_)
            | Operation::Woven(_)
            | Operation::Index { .. }
            | Operation::Accumulate { .. } => return None,
        }
        Some(())
    }

    fn fold(&mut self, fold: &Fold) -> Option<()> {
        let (Rule::Pairwise(Float::F32 | Float::F64), Seed::Value(seed)) = (&fold.rule, fold.seed) else { return None };
        let Target::Walk { walk, folded, axes: 1 } = fold.target else { return None };
        if folded != self.lines.run {
            return None;
        }
        let known = self.lines.tape.item_bytes;
        if known != 0 && known != fold.item_bytes {
            return None;
        }
        self.lines.tape.item_bytes = fold.item_bytes;
        let input = self.read(fold.input.pointer)?;
        let output = self.write(walk, 0)?;
        self.lines.sums.push(LineSum { input, seed: bits(&seed, fold.item_bytes), output });
        Some(())
    }

    /// The value behind a pointer; none where its elements are neither side by side nor one for the line.
    fn read(&mut self, pointer: Pointer) -> Option<Value> {
        if let Some((_, value)) = self.values.iter().rev().find(|(known, _)| *known == pointer) {
            return Some(*value);
        }
        let walk = self.nest.walks.get(pointer)?;
        let stride = *walk.strides.last()?;
        if walk.base == Base::Index || !(stride == 0 || stride == walk.item_bytes.cast_signed()) {
            return None;
        }
        Some(Value::Memory(self.operand(pointer, stride == 0)))
    }

    /// The operand for a walk that is written, its elements `items` items apart.
    fn write(&mut self, walk: usize, items: isize) -> Option<usize> {
        let described = &self.nest.walks[walk];
        let stride = *described.strides.last()?;
        if stride != items * described.item_bytes.cast_signed() {
            return None;
        }
        self.written.push(walk);
        Some(self.operand(walk, items == 0))
    }

    fn operand(&mut self, walk: usize, repeats: bool) -> usize {
        self.walks.iter().position(|known| *known == walk).unwrap_or_else(|| {
            let strides = &self.nest.walks[walk].strides;
            self.walks.push(walk);
            self.lines.tape.repeats.push(repeats);
            self.lines.middle_strides.push(if strides.len() == 3 { strides[1] } else { 0 });
            self.lines.outer_strides.push(strides[0]);
            self.walks.len() - 1
        })
    }

    fn finish(self) -> Option<LinePass> {
        // What is written must be apart from everything else: the pass may be run again.
        let base = |walk: &usize| self.nest.walks[*walk].base;
        let is_apart = |walk: &usize| self.walks.iter().filter(|other| base(other) == base(walk)).count() == 1;
        let is_once = |walk: &usize| self.written.iter().filter(|other| *other == walk).count() == 1;
        if !self.written.iter().all(|walk| is_apart(walk) && is_once(walk)) {
            return None;
        }
        let same_size = self.walks.iter().all(|walk| self.nest.walks[*walk].item_bytes == self.lines.tape.item_bytes);
        let code = if same_size { machine::code_of_lines(&self.lines) } else { None };
        Some(LinePass { code: code?, walks: self.walks })
    }
}

/// The bits of a number.
fn bits(element: &Element, item_bytes: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..item_bytes].copy_from_slice(&element.0[..item_bytes]);
    u64::from_le_bytes(bytes)
}
