//! Lowering a pass: which operands go straight to the inner loops and which through registers, and what goes past the
//! caches.
//!
//! Promises that no loop gets an operand that is unaligned or that overlaps another in part. Where registers live and how
//! many elements they hold is `registers`' decision. It does not touch memory (see `walk`).

use smallvec::{SmallVec, smallvec};

use super::fold::Rule;
use super::fold::count::join_counts;
use super::join::{Chain, join, join_magnitudes};
use super::lines::LinePass;
use super::nest::{Nest, PERIOD, Walk, gathers, overlap_in_part, period};
use super::registers::{CROSS_BLOCK, Register, assign, block_size, crosses, for_each_pointer};
use super::selection::{Enter, Moved, Packed, ROOM, pack};
use super::weave::{Joining, Woven, weave};
use crate::loops::rows::{self, RowsFunction};
use crate::program::{Arg, Element, Loop, Memory, Number, Pass, Program, Reducer, Seed, Step};

/// Outputs of at least so many bytes are written past the caches: more than a last-level cache is likely to keep until
/// another program reads them.
const STREAM_BYTES: usize = 64 << 20;

/// Runs of fewer bytes are not: their first and last cache lines would be written in part.
const STREAM_RUN: usize = 4 << 10;

/// Bytes that keep registers off the same places within a page.
const SPACING: usize = 576;

/// An index into the table of current addresses: first the walks, then the storages.
pub(super) type Pointer = usize;

/// Something a loop reads or writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) pointer: Pointer,
    /// Bytes between elements within a block.
    pub(super) stride: isize,
}

/// Which walk of memory is copied to or from which storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) walk: usize,
    pub(super) storage: Pointer,
    /// Only in the first block of a chunk: what was gathered then serves every block.
    pub(super) once: bool,
    /// Past the caches: nothing reads it again soon.
    pub(super) streams: bool,
}

/// One loop call per block.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) kernel: Kernel,
    /// Inputs, then outputs.
    pub(super) pointers: SmallVec<[Pointer; 4]>,
    /// Number of inputs.
    pub(super) inputs: usize,
    pub(super) strides: SmallVec<[isize; 4]>,
    pub(super) flags: usize,
}

/// A loop whose text does not matter for comparing plans.
#[derive(Clone)]
pub(super) struct Kernel(pub(super) Loop);

impl std::fmt::Debug for Kernel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0.name)
    }
}

/// A reduction of all or of trailing axes.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub(super) rule: Rule,
    pub(super) seed: Seed,
    pub(super) input: Operand,
    pub(super) item_bytes: usize,
    pub(super) flags: usize,
    pub(super) target: Target,
}

/// Where a reduction's results go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// One element of this walk for each `folded` elements (the nest's `axes` trailing axes).
    Walk { walk: usize, folded: usize, axes: usize },
    /// This total; the pass walks `elements` in all its rows.
    Total { total: usize, elements: usize },
}

/// What is done to a block.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Load(Transfer),
    Store(Transfer),
    Call(Call),
    /// A call on the elements that a mask selects, until stretches are formed.
    Masked(Operand, Call),
    /// A stretch of operations on selected elements.
    Enter(Enter),
    Packed(Packed),
    Gather(Moved),
    Scatter(Moved),
    Chain(Chain),
    Woven(Woven),
    Index {
        number: Number,
        start: Element,
        delta: Element,
        output: Operand,
        walk: usize,
    },
    /// The index into the states of the run.
    Fold(Fold, usize),
    Accumulate {
        kernel: Kernel,
        /// What folds several lines at once, if there is something better than the kernel.
        rows: Option<RowsFunction>,
        seed: Seed,
        input: Operand,
        output: usize,
        flags: usize,
    },
}

impl Operation {
    /// The mask and the call, if it is on the elements that a mask selects.
    pub(super) fn masked(&self) -> Option<(&Operand, &Call)> {
        if let Operation::Masked(mask, call) = self { Some((mask, call)) } else { None }
    }
}

/// A pass ready to run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) nest: Nest,
    /// Blocks run over the whole nest flattened, and not within innermost runs.
    pub(super) gathers: bool,
    /// Blocks go down some lines before they go along them, so that the cache lines that a walk across the lines touches
    /// are used up.
    pub(super) crosses: bool,
    /// Elements per block; when gathering, a multiple of `unit`.
    pub(super) block: usize,
    pub(super) operations: Vec<Operation>,
    /// Offsets of the storages in the scratch memory.
    pub(super) storages: Vec<usize>,
    /// Bytes of scratch memory that the storages take.
    pub(super) scratch_bytes: usize,
    /// All of it as one piece of code; the operations then run only where that raised an event.
    pub(super) lines: Option<LinePass>,
}

impl Plan {
    /// Its totals: how each is folded, its number, and its elements.
    pub(super) fn totals(&self) -> impl Iterator<Item = (&Fold, usize, usize)> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Fold(fold, _) => match fold.target {
                Target::Total { total, elements } => Some((fold, total, elements)),
                Target::Walk { .. } => None,
            },
            Operation::Load(_)
            | Operation::Store(_)
            | Operation::Call(_)
            | Operation::Masked(..)
            | Operation::Enter(_)
            | Operation::Packed(_)
            | Operation::Gather(_)
            | Operation::Scatter(_)
            | Operation::Chain(_)
            | Operation::Woven(_)
            | Operation::Index { .. }
            | Operation::Accumulate { .. } => None,
        })
    }

    /// Lowers a pass of `program`, whose nest is given.
    pub(super) fn new(program: &Program, pass: &Pass, nest: Nest, joining: Joining) -> Plan {
        let gathers = gathers(pass, &nest);
        let mut lowering = Lowering {
            pass,
            nest: &nest,
            gathers,
            streams: streams(program, pass, &nest, gathers),
            operations: Vec::with_capacity(pass.steps.len() + 2),
            registers: pass.registers.iter().map(|bytes| Register { item_bytes: *bytes, pinned: false }).collect(),
            loaded: vec![None; pass.accesses.len()],
            folds: 0,
        };
        for step in &pass.steps {
            lowering.lower(step);
        }
        let Lowering { operations, mut registers, .. } = lowering;
        let mut operations = join_magnitudes(operations, &nest, &program.constants, registers.len());
        join_counts(&mut operations, &nest, registers.len());
        let makes_code = joining == Joining::Code && !operations.iter().any(|operation| operation.masked().is_some());
        let lines = if makes_code { LinePass::new(&operations, &nest) } else { None };
        let woven = if makes_code { weave(&operations, &nest, registers.len()) } else { None };
        let operations = woven.unwrap_or_else(|| join(operations, &nest, registers.len()));
        let mut operations = pack(operations, &nest, &mut registers);
        let (storage_of, storage_count) = assign(&operations, &registers, nest.walks.len());
        let item_bytes = registers.iter().map(|register| register.item_bytes).max().unwrap_or(0);
        let block = block_size(&nest, gathers, storage_count, item_bytes, &operations);
        let crosses = !gathers && crosses(&nest, &operations);
        let block = if crosses { block.min(CROSS_BLOCK) } else { block };
        let spacing = (block * item_bytes).next_multiple_of(4096) + SPACING;
        const { assert!(SPACING >= ROOM, "lists of places may run over") };
        let first = nest.walks.len();
        for operation in &mut operations {
            for_each_pointer(operation, |pointer| {
                if *pointer >= first {
                    *pointer = first + storage_of[*pointer - first];
                }
            });
        }
        Plan {
            gathers,
            crosses,
            block,
            operations,
            storages: (0..storage_count).map(|storage| storage * spacing).collect(),
            scratch_bytes: storage_count * spacing,
            lines,
            nest,
        }
    }
}

struct Lowering<'a> {
    pass: &'a Pass,
    nest: &'a Nest,
    gathers: bool,
    /// For each access, whether what is written there goes past the caches.
    streams: SmallVec<[bool; 8]>,
    operations: Vec<Operation>,
    registers: Vec<Register>,
    /// The register that already holds an access's block.
    loaded: Vec<Option<usize>>,
    folds: usize,
}

impl Lowering<'_> {
    fn lower(&mut self, step: &Step) {
        match step {
            Step::Apply { kernel, inputs, outputs, flags } => self.lower_call(kernel, inputs, outputs, *flags),
            Step::Masked { mask, kernel, inputs, outputs, flags } => {
                self.lower_masked(*mask, kernel, inputs, outputs, *flags);
            }
            Step::Index { number, start, delta, output } => {
                let (arg, (output, store)) = (*output, self.output(*output));
                let walk = self.nest.walks.len() - 1;
                self.operations.push(Operation::Index { number: *number, start: *start, delta: *delta, output, walk });
                self.store(arg, store);
            }
            Step::Reduce { reducer, seed, input, output, axes, flags } => {
                let inner = self.pass.inner.len();
                let folded = self.pass.inner[inner - axes..].iter().product();
                let target = Target::Walk { walk: *output, folded, axes: self.nest.trailing_axes(folded) };
                self.lower_fold(reducer, *seed, *input, *flags, target);
            }
            Step::Total { reducer, seed, input, total, flags } => {
                let elements = self.pass.rows.len() * self.pass.inner.iter().product::<usize>();
                self.lower_fold(reducer, *seed, *input, *flags, Target::Total { total: *total, elements });
            }
            Step::Accumulate { kernel, seed, input, output, flags } => {
                let operand = self.input(*input, &[]);
                self.operations.push(Operation::Accumulate {
                    rows: rows::function(&kernel.name),
                    kernel: Kernel(kernel.clone()),
                    seed: *seed,
                    input: operand,
                    output: *output,
                    flags: *flags,
                });
                self.written(*output);
            }
        }
    }

    fn lower_call(&mut self, kernel: &Loop, inputs: &[Arg], outputs: &[Arg], flags: usize) {
        let mut operands: SmallVec<[Operand; 4]> = inputs.iter().map(|input| self.input(*input, outputs)).collect();
        let mut stores: SmallVec<[Option<Transfer>; 2]> = smallvec![];
        for output in outputs {
            let (operand, store) = self.output(*output);
            operands.push(operand);
            stores.push(store);
        }
        self.operations.push(Operation::Call(Call {
            kernel: Kernel(kernel.clone()),
            pointers: operands.iter().map(|operand| operand.pointer).collect(),
            inputs: inputs.len(),
            strides: operands.iter().map(|operand| operand.stride).collect(),
            flags,
        }));
        for (output, store) in outputs.iter().zip(stores) {
            self.store(*output, store);
        }
    }

    fn lower_masked(&mut self, mask: Arg, kernel: &Loop, inputs: &[Arg], outputs: &[Arg], flags: usize) {
        let mask = self.input(mask, &[]);
        let mut operands: SmallVec<[Operand; 4]> = inputs.iter().map(|input| self.input(*input, outputs)).collect();
        let mut stores: SmallVec<[Option<Transfer>; 2]> = smallvec![];
        for output in outputs {
            let (operand, store) = self.partial_output(*output);
            operands.push(operand);
            stores.push(store);
        }
        let call = Call {
            kernel: Kernel(kernel.clone()),
            pointers: operands.iter().map(|operand| operand.pointer).collect(),
            inputs: inputs.len(),
            strides: operands.iter().map(|operand| operand.stride).collect(),
            flags,
        };
        self.operations.push(Operation::Masked(mask, call));
        for (output, store) in outputs.iter().zip(stores) {
            self.store(*output, store);
        }
    }

    /// The operand for writing parts of `arg`, and the transfer that must follow.
    fn partial_output(&mut self, arg: Arg) -> (Operand, Option<Transfer>) {
        match arg {
            Arg::Access(access) if self.direct_stride(&self.nest.walks[access]).is_none() => {
                let operand = self.input(arg, &[]);
                (operand, Some(Transfer { walk: access, storage: operand.pointer, once: false, streams: false }))
            }
            Arg::Access(access) => {
                let stride = self.direct_stride(&self.nest.walks[access]).unwrap_or(0);
                (Operand { pointer: access, stride }, None)
            }
            Arg::Register(register) => (self.register_operand(register), None),
        }
    }

    /// An output is computed: moves it from its register to memory if it has one, from which later steps may read it.
    fn store(&mut self, output: Arg, store: Option<Transfer>) {
        let Arg::Access(access) = output else { return };
        self.written(access);
        if let Some(transfer) = store {
            self.operations.push(Operation::Store(transfer));
            self.loaded[access] = Some(transfer.storage - self.nest.walks.len());
        }
    }

    fn lower_fold(&mut self, reducer: &Reducer, seed: Seed, input: Arg, flags: usize, target: Target) {
        let operand = self.input(input, &[]);
        let item_bytes = self.item_bytes(input);
        let fold = Fold { rule: Rule::new(reducer), seed, input: operand, item_bytes, flags, target };
        self.operations.push(Operation::Fold(fold, self.folds));
        self.folds += 1;
        if let Target::Walk { walk, .. } = target {
            self.written(walk);
        }
    }

    fn item_bytes(&self, arg: Arg) -> usize {
        match arg {
            Arg::Register(register) => self.registers[register].item_bytes,
            Arg::Access(access) => self.nest.walks[access].item_bytes,
        }
    }

    fn register_operand(&self, register: usize) -> Operand {
        Operand { pointer: self.nest.walks.len() + register, stride: self.registers[register].item_bytes.cast_signed() }
    }

    /// The stride with which a loop may walk this access within a block, if it may.
    fn direct_stride(&self, walk: &Walk) -> Option<isize> {
        if !walk.aligned {
            None
        } else if self.gathers {
            walk.whole
        } else {
            walk.strides.last().copied()
        }
    }

    /// The operand for reading `arg` in a step that writes `outputs`; loads it first where needed.
    fn input(&mut self, arg: Arg, outputs: &[Arg]) -> Operand {
        let access = match arg {
            Arg::Register(register) => return self.register_operand(register),
            Arg::Access(access) => access,
        };
        let walk = &self.nest.walks[access];
        let overlaps = outputs.iter().any(|output| match output {
            Arg::Register(_) => false,
            Arg::Access(output) => overlap_in_part(walk, &self.nest.walks[*output]),
        });
        if let Some(register) = self.loaded[access] {
            return self.register_operand(register);
        }
        if let (Some(stride), false) = (self.direct_stride(walk), overlaps) {
            return Operand { pointer: access, stride };
        }
        let once = self.gathers && period(self.nest, walk) <= PERIOD && !self.is_written(access);
        let register = self.registers.len();
        self.registers.push(Register { item_bytes: walk.item_bytes, pinned: once });
        self.loaded[access] = Some(register);
        let operand = self.register_operand(register);
        self.operations.push(Operation::Load(Transfer {
            walk: access,
            storage: operand.pointer,
            once,
            streams: false,
        }));
        operand
    }

    /// The operand for writing `arg`, and the transfer that must follow.
    fn output(&mut self, arg: Arg) -> (Operand, Option<Transfer>) {
        let access = match arg {
            Arg::Register(register) => return (self.register_operand(register), None),
            Arg::Access(access) => access,
        };
        let walk = &self.nest.walks[access];
        let streams = self.streams[access];
        if let (Some(stride), false) = (self.direct_stride(walk), streams) {
            return (Operand { pointer: access, stride }, None);
        }
        let register = self.registers.len();
        self.registers.push(Register { item_bytes: walk.item_bytes, pinned: false });
        let operand = self.register_operand(register);
        (operand, Some(Transfer { walk: access, storage: operand.pointer, once: false, streams }))
    }

    /// Whether any step of the pass writes the memory that this access reads.
    fn is_written(&self, access: usize) -> bool {
        let memory = self.pass.accesses[access].memory;
        let writes = |target: usize| self.pass.accesses[target].memory == memory;
        self.pass.steps.iter().any(|step| match step {
            Step::Apply { outputs, .. } | Step::Masked { outputs, .. } => {
                outputs.iter().any(|output| matches!(output, Arg::Access(target) if writes(*target)))
            }
            Step::Index { output, .. } => matches!(output, Arg::Access(target) if writes(*target)),
            Step::Reduce { output, .. } | Step::Accumulate { output, .. } => writes(*output),
            Step::Total { .. } => false,
        })
    }

    /// Forgets copies of what `access` may have overwritten.
    fn written(&mut self, access: usize) {
        let memory = self.pass.accesses[access].memory;
        for (loaded, other) in self.loaded.iter_mut().zip(&self.pass.accesses) {
            if other.memory == memory {
                *loaded = None;
            }
        }
    }
}

/// Which accesses of a pass are outputs that fill much more than the caches and that nothing in the program reads.
fn streams(program: &Program, pass: &Pass, nest: &Nest, gathers: bool) -> SmallVec<[bool; 8]> {
    let reads_nothing_back = |buffer: Memory| {
        let same = |pass: &Pass| pass.accesses.iter().filter(|access| access.memory == buffer).count();
        program.passes.iter().map(same).sum::<usize>() == 1
    };
    let is_kept_in_part = |access: usize| {
        pass.steps
            .iter()
            .any(|step| matches!(step, Step::Masked { outputs, .. } if outputs.contains(&Arg::Access(access))))
    };
    pass.accesses
        .iter()
        .zip(&nest.walks)
        .enumerate()
        .map(|(index, (access, walk))| {
            let elements = pass.rows.len() * nest.row_elements;
            let stride = if gathers { walk.whole } else { walk.strides.last().copied() };
            let innermost = nest.axes[nest.axes.len() - 1];
            let is_long = gathers || innermost.by_rows || innermost.length * walk.item_bytes >= STREAM_RUN;
            is_long
                && stride == Some(walk.item_bytes.cast_signed())
                && walk.item_bytes.is_power_of_two()
                && elements * walk.item_bytes >= STREAM_BYTES
                && matches!(access.memory, Memory::Buffer(_))
                && reads_nothing_back(access.memory)
                && !is_kept_in_part(index)
                && !program.read_soon.iter().any(|buffer| access.memory == Memory::Buffer(*buffer))
        })
        .collect()
}
