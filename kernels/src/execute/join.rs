//! Joining exact float operations of a pass into chains, which keep the value in vector registers.
//!
//! Joined are steps whose only reader is the next one, by the names of their loops (see [`crate::program::Loop::name`]):
//! IEEE 754 fixes their results, so that it does not matter whose loop computes them. A chain runs where its last step was;
//! nothing between may write the memory that it reads, nor may it write that itself: it must be possible to run it again
//! to find the step that raised an event.

use smallvec::{SmallVec, smallvec};

use super::nest::{Base, Nest};
use super::plan::{Call, Kernel, Operand, Operation, Pointer, Target};
use crate::loops::chain::{Action, ChainFunction, function};
use crate::loops::magnitude;
use crate::machine::{Value, Verb};
use crate::program::{Element, Memory};

/// Steps joined into one, on elements of 4 or 8 bytes.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) run: ChainFunction,
    pub(super) item_bytes: usize,
    pub(super) first: Operand,
    pub(super) links: SmallVec<[ChainLink; 8]>,
    pub(super) output: Pointer,
}

/// One step of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainLink {
    pub(super) action: Action,
    pub(super) operand: Option<Operand>,
    pub(super) flags: usize,
}

/// A step that was kept, and the chain that would do the same.
struct Kept {
    operation: Operation,
    chain: Option<Chain>,
}

/// Joins what can be joined.
pub(super) fn join(operations: Vec<Operation>, nest: &Nest, registers: usize) -> Vec<Operation> {
    let first_register = nest.walks.len();
    let readers = count_readers(&operations, first_register, registers);
    let mut kept: Vec<Option<Kept>> = Vec::with_capacity(operations.len());
    // For each register the place in `kept` of what writes it.
    let mut writers: Vec<Option<usize>> = vec![None; readers.len()];
    for operation in operations {
        let mut chain = None;
        let mut replaced = None;
        if let Some(candidate) = Candidate::new(&operation) {
            for operand in &candidate.operands {
                let Some(register) = operand.pointer.checked_sub(first_register) else { continue };
                let (1, Some(writer)) = (readers[register], writers[register]) else { continue };
                let Some(Kept { chain: Some(earlier), .. }) = &kept[writer] else { continue };
                let Some(longer) = candidate.extend(earlier, first_register + register) else { continue };
                let is_longest = chain.as_ref().is_none_or(|best: &Chain| longer.links.len() > best.links.len());
                if is_longest && may_move(earlier, &kept[writer + 1..], &longer, nest) {
                    chain = Some(longer);
                    replaced = Some(writer);
                }
            }
            chain = chain.or_else(|| candidate.start());
        }
        if let Some(register) = chain.as_ref().and_then(|chain| chain.output.checked_sub(first_register)) {
            writers[register] = Some(kept.len());
        }
        if let Some(writer) = replaced {
            kept[writer] = None;
        }
        kept.push(Some(Kept { operation, chain }));
    }
    let finish = |kept: Kept| match kept.chain {
        Some(chain) if chain.links.len() > 1 => Operation::Chain(chain),
        Some(_) | None => kept.operation,
    };
    kept.into_iter().flatten().map(finish).collect()
}

/// Has comparisons of absolute values of complex numbers with a constant done by one loop, where nobody else wants the values.
pub(super) fn join_magnitudes(
    mut operations: Vec<Operation>,
    nest: &Nest,
    constants: &[Element],
    registers: usize,
) -> Vec<Operation> {
    let first_register = nest.walks.len();
    let readers = count_readers(&operations, first_register, registers);
    let constant = |pointer: Pointer| match nest.walks.get(pointer)?.base {
        Base::Memory(Memory::Constant(constant)) => constants.get(constant),
        Base::Memory(_) | Base::Index => None,
    };
    let mut place = 1;
    while place < operations.len() {
        let joined = match &operations[place - 1..=place] {
            [Operation::Call(absolute), Operation::Call(compare)] if absolute.pointers.len() == 2 => {
                let value = absolute.pointers[1];
                let is_alone = value.checked_sub(first_register).is_some_and(|register| readers[register] == 1);
                let limit = (is_alone && compare.pointers.len() == 3 && compare.pointers[0] == value)
                    .then(|| constant(compare.pointers[1]))
                    .flatten();
                limit.and_then(|limit| magnitude::joined(&absolute.kernel.0, &compare.kernel.0, *limit)).map(|kernel| {
                    Call {
                        kernel: Kernel(kernel),
                        pointers: smallvec![absolute.pointers[0], compare.pointers[2]],
                        inputs: 1,
                        strides: smallvec![absolute.strides[0], compare.strides[2]],
                        flags: absolute.flags,
                    }
                })
            }
            _ => None,
        };
        match joined {
            Some(call) => {
                operations[place - 1] = Operation::Call(call);
                operations.remove(place);
            }
            None => place += 1,
        }
    }
    operations
}

/// How many operations read each of `registers` registers.
pub(super) fn count_readers(operations: &[Operation], first_register: usize, registers: usize) -> Vec<usize> {
    let mut readers = vec![0; registers];
    let mut count = |pointers: &[Pointer]| {
        for (index, pointer) in pointers.iter().enumerate() {
            if let Some(register) = pointer.checked_sub(first_register) {
                readers[register] += usize::from(!pointers[..index].contains(pointer));
            }
        }
    };
    for operation in operations {
        match operation {
            Operation::Call(call) => count(&call.pointers[..call.inputs]),
            // What a masked call does not write, it keeps.
            Operation::Masked(mask, call) => {
                count(&[mask.pointer]);
                count(&call.pointers);
            }
            Operation::Store(transfer) => count(&[transfer.storage]),
            Operation::Fold(fold, _) => count(&[fold.input.pointer]),
            Operation::Accumulate { input, .. } => count(&[input.pointer]),
            Operation::Load(_)
            | Operation::Index { .. }
            | Operation::Chain(_)
            | Operation::Woven(_)
            | Operation::Enter(_)
            | Operation::Packed(_)
            | Operation::Gather(_)
            | Operation::Scatter(_) => {}
        }
    }
    readers
}

/// A call that could be in a chain.
struct Candidate<'a> {
    ufunc: &'a str,
    item_bytes: usize,
    operands: SmallVec<[Operand; 2]>,
    output: Pointer,
    flags: usize,
}

impl<'a> Candidate<'a> {
    fn new(operation: &'a Operation) -> Option<Candidate<'a>> {
        let Operation::Call(call) = operation else { return None };
        let Call { kernel, pointers, strides, inputs, flags, .. } = call;
        let (ufunc, types) = kernel.0.name.split_once(' ')?;
        let item_bytes: usize = match (ufunc, types) {
            ("copy", "8") | (_, "d->d" | "dd->d") => 8,
            ("copy", "4") | (_, "f->f" | "ff->f") => 4,
            _ => return None,
        };
        Action::of_ufunc(ufunc, true)?;
        let dense = item_bytes.cast_signed();
        let has_form =
            strides[..*inputs].iter().all(|stride| *stride == 0 || *stride == dense) && strides[*inputs..] == [dense];
        let operands = pointers
            .iter()
            .zip(strides)
            .take(*inputs)
            .map(|(pointer, stride)| Operand { pointer: *pointer, stride: *stride });
        has_form.then(|| Candidate {
            ufunc,
            item_bytes,
            operands: operands.collect(),
            output: pointers[*inputs],
            flags: *flags,
        })
    }

    /// The call as a chain of one.
    fn start(&self) -> Option<Chain> {
        let link = self.link(0, self.operands.get(1).copied())?;
        let (run, first) = (function(self.item_bytes), self.operands[0]);
        Some(Chain { run, item_bytes: self.item_bytes, first, links: smallvec![link], output: self.output })
    }

    /// `earlier`, whose value is in `value`, with the call at its end.
    fn extend(&self, earlier: &Chain, value: Pointer) -> Option<Chain> {
        if self.item_bytes != earlier.item_bytes {
            return None;
        }
        let place = self.operands.iter().position(|operand| operand.pointer == value)?;
        let other = self.operands.get(1 - place).copied();
        let link = match other {
            Some(other) if other.pointer == value => {
                let action = (self.ufunc == "multiply").then_some(Action::Square)?;
                ChainLink { action, operand: None, flags: self.flags }
            }
            _ => self.link(place, other)?,
        };
        let mut longer = earlier.clone();
        longer.links.push(link);
        longer.output = self.output;
        Some(longer)
    }

    fn link(&self, place: usize, operand: Option<Operand>) -> Option<ChainLink> {
        let action = Action::of_ufunc(self.ufunc, place == 0)?;
        Some(ChainLink { action, operand, flags: self.flags })
    }
}

/// An operation that a tape can hold.
pub(super) struct Exact {
    pub(super) item_bytes: usize,
    action: Action,
}

/// What an operation is on a tape.
pub(super) fn exact(operation: &Operation) -> Option<Exact> {
    let Candidate { ufunc, item_bytes, .. } = Candidate::new(operation)?;
    let action = Action::of_ufunc(ufunc, true).filter(|action| *action != Action::Sign)?;
    Some(Exact { item_bytes, action })
}

impl Exact {
    /// The instruction for these inputs.
    pub(super) fn instruction(&self, inputs: &[Value]) -> (Verb, [Value; 2]) {
        let (first, last) = (inputs[0], inputs[inputs.len() - 1]);
        match self.action {
            Action::Add | Action::AddTo => (Verb::Add, [first, last]),
            Action::Subtract | Action::SubtractFrom => (Verb::Subtract, [first, last]),
            Action::Multiply | Action::MultiplyBy | Action::Square => (Verb::Multiply, [first, last]),
            Action::Divide | Action::DivideInto => (Verb::Divide, [first, last]),
            Action::Reciprocal => (Verb::Divide, [Value::Constant(self.one()), last]),
            Action::Sqrt => (Verb::Sqrt, [first, last]),
            Action::Negative => (Verb::Negative, [first, last]),
            Action::Absolute => (Verb::Absolute, [first, last]),
            Action::Sign | Action::Copy => (Verb::Copy, [first, last]),
        }
    }

    fn one(&self) -> u64 {
        if self.item_bytes == 8 { 1.0_f64.to_bits() } else { u64::from(1.0_f32.to_bits()) }
    }
}

/// Whether `earlier` may run later, after `between`, as a part of `longer`.
fn may_move(earlier: &Chain, between: &[Option<Kept>], longer: &Chain, nest: &Nest) -> bool {
    let reads = |chain: &Chain, base| {
        let operands = chain.links.iter().filter_map(|link| link.operand).chain([chain.first]);
        operands.filter_map(|operand| nest.walks.get(operand.pointer)).any(|walk| walk.base == base)
    };
    let overwrites =
        |kept: &Kept| written_walks(&kept.operation, nest).any(|walk| reads(earlier, nest.walks[walk].base));
    let is_read = |pointer: &Pointer| {
        earlier.first.pointer == *pointer
            || earlier.links.iter().filter_map(|link| link.operand).any(|operand| operand.pointer == *pointer)
    };
    // Registers are written once, except in part.
    let overwrites_part =
        |kept: &Kept| kept.operation.masked().is_some_and(|(_, call)| call.pointers[call.inputs..].iter().any(is_read));
    let is_in_place = nest.walks.get(longer.output).is_some_and(|output| reads(longer, output.base));
    !is_in_place && !between.iter().flatten().any(|kept| overwrites(kept) || overwrites_part(kept))
}

/// The walks that an operation writes.
fn written_walks(operation: &Operation, nest: &Nest) -> impl Iterator<Item = usize> {
    let written: SmallVec<[usize; 2]> = match operation {
        Operation::Call(call) | Operation::Masked(_, call) => call.pointers[call.inputs..].iter().copied().collect(),
        Operation::Store(transfer) => smallvec![transfer.walk],
        Operation::Index { output, .. } => smallvec![output.pointer],
        Operation::Fold(fold, _) => match fold.target {
            Target::Walk { walk, .. } => smallvec![walk],
            Target::Total { .. } => smallvec![],
        },
        Operation::Accumulate { output, .. } => smallvec![*output],
        Operation::Chain(chain) => smallvec![chain.output],
        Operation::Load(_)
        | Operation::Woven(_)
        | Operation::Enter(_)
        | Operation::Packed(_)
        | Operation::Gather(_)
        | Operation::Scatter(_) => smallvec![],
    };
    let walks = nest.walks.len();
    written.into_iter().filter(move |pointer| *pointer < walks)
}
