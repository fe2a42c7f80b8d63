//! Lowering: a group of launches becomes a block program, and point tasks run it.
//!
//! Members of one pass share blocks; what a pass writes and reads again at the same place is handed on in a register
//! when it need not be stored. What passes hand to each other without storing goes through chunk slots. Pure arithmetic:
//! no Python, no memory is touched before the tiles run.
#![expect(unsafe_code, reason = "binds block programs to addresses")]

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use legate_kernels::execute::{self, Executable, FlagTable, Kept, Partials, Scratch};
use legate_kernels::program::{Access, Arg, Element, Loop, Memory, Pass, Program, Split, Step, Tile};
use legate_runtime::group::{self, Group, Member, Place};
use legate_runtime::transport::TransportError;
use legate_runtime::view::View;
use legate_runtime::{Backend, Cut, Effort, Exchange, From, Launch, Parallel, Privilege, Sequence, Work};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::task::{Origin, Sink, Source, Task};
use crate::{matrix, scan};

/// A floating-point event of a launch.
#[derive(Clone)]
pub(crate) struct Event {
    /// The launch.
    pub(crate) sequence: Sequence,
    /// Bits of `legate_kernels::execute` (`DIVIDE_BY_ZERO`, ...).
    pub(crate) flags: u8,
}

/// The kernels as the runtime's task table.
#[derive(Default)]
pub(crate) struct Kernels {
    events: Mutex<Vec<Event>>,
    any: AtomicBool,
    /// With several shards: what this shard alone has seen.
    unshared: Option<Mutex<Vec<Event>>>,
    /// Executables of groups that come again.
    kept: Kept,
}

impl Kernels {
    /// The task table of one of `shards` shards.
    pub(crate) fn new(shards: usize) -> Kernels {
        Kernels { unshared: (shards > 1).then(Mutex::default), ..Kernels::default() }
    }

    /// Keeps what a launch that runs alone has raised.
    fn seen(&self, launch: &Launch<Task>, flags: u8) {
        match &self.unshared {
            _ if flags == 0 => {}
            Some(unshared) => unshared.lock().push(Event { sequence: launch.sequence, flags }),
            None => self.raise(launch.sequence, flags),
        }
    }

    fn raise(&self, sequence: Sequence, flags: u8) {
        self.events.lock().push(Event { sequence, flags });
        self.any.store(true, Ordering::Release);
    }

    /// Whether [`Kernels::take_events`] would return any.
    pub(crate) fn has_events(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The floating-point events since the last call, in program order.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        self.any.store(false, Ordering::Release);
        let mut events = std::mem::take(&mut *self.events.lock());
        events.sort_by_key(|event| event.sequence);
        events
    }
}

/// A compiled group.
pub(crate) struct Compiled {
    executable: Arc<Executable>,
    flags: FlagTable,
    sequences: Vec<Sequence>,
    /// For each total: the buffer and byte offset it is stored at, and its size.
    totals: Vec<(usize, usize, usize)>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
}

impl Backend for Kernels {
    type Task = Task;
    type Compiled = Compiled;
    type Partial = Partials;

    fn effort(&self, task: &Task) -> Effort {
        task.effort()
    }

    fn lower(&self, group: &Group<Task>) -> Compiled {
        let mut draft = Draft::new(group);
        for (entry, member) in group.members.iter().enumerate() {
            draft.member(member, entry);
        }
        let sequences: Vec<Sequence> = group.members.iter().map(|m| m.launch.sequence).collect();
        let program = Program {
            rows: group.rows,
            buffers: group.buffers.len(),
            read_soon: (0..group.buffers.len()).filter(|index| group.buffers[*index].in_ring).collect(),
            slots: group.temporaries.clone(),
            constants: draft.constants,
            totals: draft.totals.iter().map(|(_, _, bytes)| *bytes).collect(),
            flags: sequences.len(),
            split: match group.split {
                group::Split::Rows => Split::Rows,
                group::Split::Inner => Split::Inner(0),
                group::Split::Single => Split::Whole,
            },
            passes: draft.passes,
        };
        Compiled {
            flags: FlagTable::new(sequences.len()),
            executable: self.kept.compile(program),
            sequences,
            totals: draft.totals,
        }
    }

    fn run(&self, compiled: &Compiled, addresses: &[usize], cut: &Cut) -> Partials {
        let tile = match cut {
            Cut::Rows(rows) => Tile { rows: rows.clone(), inner: None },
            Cut::Inner(rows, inner) => Tile { rows: rows.clone(), inner: Some(inner.clone()) },
        };
        let buffers: SmallVec<[*mut u8; 16]> = addresses.iter().map(|address| *address as *mut u8).collect();
        SCRATCH.with_borrow_mut(|scratch| {
            // SAFETY: the runtime gives each buffer an instance of its field's length, launches only name views inside
            // their fields, and tiles of one group write disjoint bytes (`legate_runtime`).
            let outcome = unsafe { compiled.executable.run(&buffers, &tile, scratch, &compiled.flags) };
            match outcome {
                Ok(partials) => partials,
                Err(error) => panic!("{error}"),
            }
        })
    }

    fn finish(&self, compiled: &Compiled, addresses: &[usize], partials: Vec<Partials>) {
        let values = match compiled.executable.finish(&partials, &compiled.flags) {
            Ok(values) => values,
            Err(error) => panic!("{error}"),
        };
        for (value, (buffer, offset, bytes)) in values.iter().zip(&compiled.totals) {
            // SAFETY: a total's operand is an element inside its field, which no tile writes.
            unsafe {
                crate::numpy_api::copy_bytes(value.0.as_ptr() as usize, addresses[*buffer] + offset, *bytes);
            }
        }
        for (entry, sequence) in compiled.sequences.iter().enumerate() {
            let flags = compiled.flags.get(entry);
            match &self.unshared {
                _ if flags == 0 => {}
                Some(unshared) => unshared.lock().push(Event { sequence: *sequence, flags }),
                None => self.raise(*sequence, flags),
            }
        }
    }

    fn part_bytes(&self, compiled: &Compiled) -> usize {
        compiled.executable.partial_bytes()
    }

    fn pack(&self, compiled: &Compiled, partials: Vec<Partials>, rows: &Range<usize>) -> Vec<u8> {
        match compiled.executable.merge(&partials, rows, &compiled.flags) {
            Ok(merged) => merged.to_bytes(),
            Err(error) => panic!("{error}"),
        }
    }

    fn unpack(&self, compiled: &Compiled, bytes: &[u8]) -> Partials {
        compiled.executable.partials_from(bytes)
    }

    fn take_events(&self, first: Sequence, bits: &mut [u8]) {
        for event in self.unshared.iter().flat_map(|unshared| std::mem::take(&mut *unshared.lock())) {
            if let Some(entry) = bits.get_mut((event.sequence - first) as usize) {
                *entry |= event.flags;
            }
        }
    }

    fn give_events(&self, first: Sequence, bits: &[u8]) {
        for (entry, flags) in bits.iter().enumerate().filter(|(_, flags)| **flags != 0) {
            self.raise(first + entry as Sequence, *flags);
        }
    }

    fn rows(&self, launch: &Launch<Task>, addresses: &[usize], rows: &Range<usize>, workers: &dyn Parallel) {
        let Task::Product(product) = &launch.task else { return };
        self.seen(launch, matrix::multiply(product, &launch.operands, addresses, rows, workers));
    }

    fn scan(&self, launch: &Launch<Task>, addresses: &[usize], cut: &Cut, from: From) {
        let Task::Scan(task) = &launch.task else { return };
        self.seen(launch, execute::watched(|| scan::run(launch, task, addresses, cut, from)));
    }

    fn joins_parts(&self, launch: &Launch<Task>) -> bool {
        matches!(&launch.task, Task::Scan(scan) if scan.joins)
    }

    fn add_parts(&self, launch: &Launch<Task>, parts: &[u8], bytes: usize, address: usize) {
        match &launch.task {
            Task::Product(product) => matrix::add_parts(product, parts, bytes, address),
            Task::Scan(task) => scan::join(task, parts, address),
            Task::Map { .. }
            | Task::Index { .. }
            | Task::Reduce { .. }
            | Task::Accumulate { .. }
            | Task::Exchange(_)
            | Task::Whole(_) => {}
        }
    }

    fn exchange(
        &self,
        launch: &Launch<Task>,
        addresses: &[usize],
        exchange: &Exchange<'_>,
    ) -> Result<(), TransportError> {
        let Task::Exchange(task) = &launch.task else { return Ok(()) };
        task(addresses, exchange)
    }

    fn whole(&self, launch: &Launch<Task>, addresses: &[usize], workers: &dyn Parallel) {
        if let Task::Whole(task) = &launch.task {
            task(addresses, workers);
        }
    }
}

/// A program being written.
struct Draft {
    passes: Vec<Pass>,
    constants: Vec<Element>,
    totals: Vec<(usize, usize, usize)>,
    /// For each temporary: whether more than one pass touches it.
    crosses: Vec<bool>,
    /// Temporaries that the current pass holds in registers.
    held: FxHashMap<(usize, ViewKey), usize>,
    current: usize,
}

/// A walk, as a map key.
type ViewKey = (isize, SmallVec<[isize; 4]>, usize);

impl Draft {
    fn new(group: &Group<Task>) -> Draft {
        let mut passes: Vec<Pass> = Vec::new();
        let mut first_pass: Vec<Option<usize>> = vec![None; group.temporaries.len()];
        let mut crosses = vec![false; group.temporaries.len()];
        for member in &group.members {
            if member.pass == passes.len() {
                let start = member.shift as usize;
                passes.push(Pass {
                    rows: start..start + member.launch.rows(),
                    inner: member.launch.domain.iter().skip(1).copied().collect(),
                    ..Pass::default()
                });
            }
            for (place, operand) in member.places.iter().zip(&member.launch.operands) {
                if let Place::Temporary(index) = place {
                    let folded = operand.privilege.writes() && member.launch.work != Work::Map;
                    crosses[*index] |= folded || first_pass[*index].is_some_and(|pass| pass != member.pass);
                    first_pass[*index].get_or_insert(member.pass);
                }
            }
        }
        Draft { passes, constants: Vec::new(), totals: Vec::new(), crosses, held: FxHashMap::default(), current: 0 }
    }

    fn pass(&mut self) -> &mut Pass {
        &mut self.passes[self.current]
    }

    fn register(&mut self, item_bytes: usize) -> usize {
        let registers = &mut self.pass().registers;
        registers.push(item_bytes);
        registers.len() - 1
    }

    fn access(&mut self, access: Access) -> usize {
        let accesses = &mut self.pass().accesses;
        match accesses.iter().position(|known| *known == access) {
            Some(index) => index,
            None => {
                accesses.push(access);
                accesses.len() - 1
            }
        }
    }

    /// The walk of one operand of a member.
    fn walk(member: &Member<Task>, operand: usize) -> Access {
        let view = &member.launch.operands[operand].view;
        let row_stride = view.row_stride();
        let (memory, offset) = match member.places[operand] {
            Place::Buffer(index) => (Memory::Buffer(index), view.offset - member.shift * row_stride),
            Place::Temporary(index) => {
                let row = view.row_extent(&member.launch.domain).start.div_euclid(row_stride.max(1));
                (Memory::Slot(index), view.offset - row * row_stride)
            }
        };
        let aligned = is_aligned(view);
        Access {
            memory,
            offset,
            row_stride,
            inner_strides: view.strides.iter().skip(1).copied().collect(),
            item_bytes: view.item_bytes,
            aligned,
        }
    }

    fn key(member: &Member<Task>, operand: usize) -> Option<(usize, ViewKey)> {
        match member.places[operand] {
            Place::Temporary(index) => {
                let view = &member.launch.operands[operand].view;
                Some((index, (view.offset, view.strides.iter().copied().collect(), view.item_bytes)))
            }
            Place::Buffer(_) => None,
        }
    }

    /// A source as the loop reads it, converted for elements of the mask only.
    fn source(&mut self, member: &Member<Task>, source: &Source, mask: Option<Arg>, flags: usize) -> Arg {
        let arg = match &source.origin {
            Origin::Constant(element) => {
                let constant = match self.constants.iter().position(|known| known == element) {
                    Some(index) => index,
                    None => {
                        self.constants.push(*element);
                        self.constants.len() - 1
                    }
                };
                let inner_strides = self.pass().inner.iter().map(|_| 0).collect();
                Arg::Access(self.access(Access {
                    memory: Memory::Constant(constant),
                    offset: 0,
                    row_stride: 0,
                    inner_strides,
                    item_bytes: source.item_bytes,
                    aligned: true,
                }))
            }
            Origin::Operand(operand) => {
                let held = Draft::key(member, *operand).and_then(|key| self.held.get(&key).copied());
                match held {
                    Some(register) => Arg::Register(register),
                    None => Arg::Access(self.access(Draft::walk(member, *operand))),
                }
            }
        };
        match &source.cast {
            None => arg,
            Some(cast) => {
                let register = self.register(cast.item_bytes);
                let output = smallvec![Arg::Register(register)];
                self.apply(mask, cast.kernel.clone(), smallvec![arg], output, flags);
                Arg::Register(register)
            }
        }
    }

    /// Where a sink's values are first written, and what must follow to store them.
    fn sink(&mut self, member: &Member<Task>, operand: usize) -> Arg {
        if let Some(key) = Draft::key(member, operand)
            && !self.crosses[key.0]
        {
            let register = self.register(key.1.2);
            self.held.insert(key, register);
            return Arg::Register(register);
        }
        Arg::Access(self.access(Draft::walk(member, operand)))
    }

    /// Where a sink's values go that are written in part: to what holds the others, if those count.
    fn partial_sink(&mut self, member: &Member<Task>, operand: usize) -> Arg {
        let keeps = member.launch.operands[operand].privilege == Privilege::ReadWrite;
        let held = Draft::key(member, operand).filter(|key| keeps && !self.crosses[key.0]);
        match held.and_then(|key| self.held.get(&key).copied()) {
            Some(register) => Arg::Register(register),
            None => self.sink(member, operand),
        }
    }

    /// Appends a member's steps; its floating-point events go to entry `flags` of the flag table.
    fn member(&mut self, member: &Member<Task>, flags: usize) {
        if member.pass != self.current {
            self.current = member.pass;
            self.held.clear();
        }
        match &member.launch.task {
            Task::Map { kernel, inputs, outputs, mask } => {
                let mask = mask.as_ref().map(|source| self.source(member, source, None, flags));
                let inputs = inputs.iter().map(|source| self.source(member, source, mask, flags)).collect();
                self.map(member, kernel, inputs, outputs, mask, flags);
            }
            Task::Index { number, start, delta, output } => {
                let output = self.sink(member, *output);
                let step = Step::Index { number: *number, start: *start, delta: *delta, output };
                self.pass().steps.push(step);
            }
            Task::Reduce { reducer, seed, input, output, result_bytes } => {
                let input = self.source(member, input, None, flags);
                let (reducer, seed) = (reducer.clone(), *seed);
                let step = match member.launch.work {
                    Work::Fold { axes } => {
                        let output = self.access(Draft::walk(member, *output));
                        Step::Reduce { reducer, seed, input, output, axes, flags }
                    }
                    Work::Map
                    | Work::Total
                    | Work::Accumulate
                    | Work::Rows
                    | Work::Exchange { .. }
                    | Work::Scan { .. }
                    | Work::Whole => {
                        let buffer = match member.places[*output] {
                            Place::Buffer(index) | Place::Temporary(index) => index,
                        };
                        let offset = member.launch.operands[*output].view.offset as usize;
                        self.totals.push((buffer, offset, *result_bytes));
                        Step::Total { reducer, seed, input, total: self.totals.len() - 1, flags }
                    }
                };
                self.pass().steps.push(step);
            }
            Task::Accumulate { kernel, seed, input, output } => {
                let input = self.source(member, input, None, flags);
                let output = self.access(Draft::walk(member, *output));
                let step = Step::Accumulate { kernel: kernel.clone(), seed: *seed, input, output, flags };
                self.pass().steps.push(step);
            }
            Task::Product(_) | Task::Exchange(_) | Task::Scan(_) | Task::Whole(_) => {}
        }
    }

    fn map(
        &mut self,
        member: &Member<Task>,
        kernel: &Loop,
        inputs: SmallVec<[Arg; 3]>,
        outputs: &[Sink],
        mask: Option<Arg>,
        flags: usize,
    ) {
        let mut written: SmallVec<[Arg; 2]> = SmallVec::new();
        let mut casts: SmallVec<[(Loop, Arg, Arg); 1]> = SmallVec::new();
        for sink in outputs {
            let value = sink.cast.as_ref().map(|cast| Arg::Register(self.register(cast.item_bytes)));
            let target = match mask {
                Some(_) => self.partial_sink(member, sink.operand),
                None => self.sink(member, sink.operand),
            };
            if let (Some(cast), Some(value)) = (&sink.cast, value) {
                casts.push((cast.kernel.clone(), value, target));
            }
            written.push(value.unwrap_or(target));
        }
        self.apply(mask, kernel.clone(), inputs, written, flags);
        for (cast, value, target) in casts {
            self.apply(mask, cast, smallvec![value], smallvec![target], flags);
        }
    }

    /// Appends a step, for some elements only where there is a mask.
    fn apply(
        &mut self,
        mask: Option<Arg>,
        kernel: Loop,
        inputs: SmallVec<[Arg; 3]>,
        outputs: SmallVec<[Arg; 2]>,
        flags: usize,
    ) {
        self.pass().steps.push(match mask {
            Some(mask) => Step::Masked { mask, kernel, inputs, outputs, flags },
            None => Step::Apply { kernel, inputs, outputs, flags },
        });
    }
}

/// Whether all elements of a walk are aligned for a number of their size (fields start on 16-byte boundaries).
fn is_aligned(view: &View) -> bool {
    let unit = if view.item_bytes.is_power_of_two() { view.item_bytes.min(16) as isize } else { 1 };
    view.offset % unit == 0 && view.strides.iter().all(|stride| stride % unit == 0)
}
