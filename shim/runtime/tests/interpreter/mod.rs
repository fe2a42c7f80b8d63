//! A backend that interprets 8-byte elements: what tests of the planner run their programs on.
#![expect(unsafe_code, reason = "the interpreter reads and writes fields by address")]
#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::ops::Range;
use std::time::Duration;

use legate_runtime::group::{Group, Place};
use legate_runtime::transport::TransportError;
use legate_runtime::view::View;
use legate_runtime::{Backend, Cut, Effort, Exchange, From, Handle, Launch, Parallel, Runtime, Sequence, Work};

/// `output = a * constant + b`, with what was there added if asked, or the sum of `a` over the folded axes.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) constant: u64,
    /// Whether what is there is added.
    pub(crate) adds: bool,
}

/// The constant of steps that cost about as much as storing what they make.
pub(crate) const DEAR: u64 = 1009;

pub(crate) struct Interpreter;

/// What the interpreter needs of a group: everything is kept, since nothing is compiled.
pub(crate) struct Kept {
    rows: usize,
    slots: Vec<usize>,
    members: Vec<Kind>,
}

pub(crate) struct Kind {
    step: Step,
    work: Work,
    pass: usize,
    shift: usize,
    domain: Vec<usize>,
    /// Place, view and whether it is written.
    operands: Vec<(Place, View, bool)>,
}

fn element(start: usize, view: &View, index: &[usize]) -> *mut u64 {
    let offset = view.offset + index.iter().zip(&view.strides).map(|(i, s)| *i as isize * s).sum::<isize>();
    start.wrapping_add_signed(offset) as *mut u64
}

/// Calls `visit` with every index of a domain, row-major.
pub(crate) fn each(domain: &[usize], visit: &mut dyn FnMut(&[usize])) {
    let total: usize = domain.iter().product();
    for flat in 0..total {
        let mut rest = flat;
        let mut index = vec![0; domain.len()];
        for axis in (0..domain.len()).rev() {
            index[axis] = rest % domain[axis];
            rest /= domain[axis];
        }
        visit(&index);
    }
}

impl Kind {
    /// Runs row `row` of the domain; adds the values that a total folds.
    fn row(&self, row: usize, inner: Option<&Range<usize>>, total: &mut Vec<u64>, start: &dyn Fn(usize) -> usize) {
        let mut domain = self.domain.clone();
        if let Some(first) = domain.first_mut() {
            *first = 1;
        }
        each(&domain, &mut |index| {
            let mut index = index.to_vec();
            if let Some(first) = index.first_mut() {
                *first = row;
            }
            if inner.is_some_and(|inner| !inner.contains(&index[1])) {
                return;
            }
            let at = |operand: usize| element(start(operand), &self.operands[operand].1, &index);
            // SAFETY: views lie inside their fields, and the planner promises that tiles do not race.
            unsafe {
                let value = at(1).read().wrapping_mul(self.step.constant);
                let value = if self.operands.len() > 2 { value.wrapping_add(at(2).read()) } else { value };
                match self.work {
                    Work::Map if !self.step.adds => at(0).write(value),
                    Work::Total => total.push(value),
                    Work::Accumulate if row == 0 => at(0).write(value),
                    Work::Accumulate => at(0).write(at(0).read().wrapping_mul(31).wrapping_add(value)),
                    Work::Map
                    | Work::Fold { .. }
                    | Work::Rows
                    | Work::Exchange { .. }
                    | Work::Scan { .. }
                    | Work::Whole => {
                        at(0).write(at(0).read().wrapping_add(value));
                    }
                }
            }
        });
    }
}

impl Backend for Interpreter {
    type Task = Step;
    type Compiled = Kept;
    /// The values that each member's total folds, in order.
    type Partial = Vec<Vec<u64>>;

    fn effort(&self, step: &Step) -> Effort {
        if step.constant == DEAR { Effort::Storing } else { Effort::Reading }
    }

    fn lower(&self, group: &Group<Step>) -> Kept {
        let members = group.members.iter().map(|member| Kind {
            step: member.launch.task,
            work: member.launch.work,
            pass: member.pass,
            shift: member.shift as usize,
            domain: member.launch.domain.to_vec(),
            operands: member
                .places
                .iter()
                .zip(&member.launch.operands)
                .map(|(place, operand)| (*place, operand.view.clone(), operand.privilege.writes()))
                .collect(),
        });
        Kept { rows: group.rows, slots: group.temporaries.clone(), members: members.collect() }
    }

    fn run(&self, kept: &Kept, addresses: &[usize], cut: &Cut) -> Vec<Vec<u64>> {
        let mut totals = vec![Vec::new(); kept.members.len()];
        let (rows, inner) = match cut {
            Cut::Rows(rows) => (rows.clone(), None),
            Cut::Inner(rows, inner) => (rows.clone(), Some(inner)),
        };
        // A temporary's slots hold one row at a time, filled with rubbish before each.
        for row in rows {
            let mut slots: Vec<Vec<u64>> = kept.slots.iter().map(|bytes| vec![0xDEAD; bytes.div_ceil(8)]).collect();
            let starts: Vec<usize> = slots.iter_mut().map(|slot| slot.as_mut_ptr() as usize).collect();
            let passes = kept.members.last().map_or(0, |member| member.pass + 1);
            for pass in 0..passes {
                for (number, kind) in kept.members.iter().enumerate().filter(|(_, kind)| kind.pass == pass) {
                    let length = kind.domain.first().copied().unwrap_or(1);
                    let Some(own) = row.checked_sub(kind.shift).filter(|own| *own < length) else { continue };
                    kind.row(own, inner, &mut totals[number], &|operand| match kind.operands[operand].0 {
                        Place::Buffer(index) => addresses[index],
                        Place::Temporary(index) => {
                            let view = &kind.operands[operand].1;
                            let stride = view.row_stride();
                            let field_row =
                                view.row_extent(&kind.domain).start.div_euclid(stride.max(1)) + own as isize;
                            starts[index].wrapping_add_signed(-field_row * stride)
                        }
                    });
                }
            }
        }
        totals
    }

    fn finish(&self, kept: &Kept, addresses: &[usize], partials: Vec<Vec<Vec<u64>>>) {
        for (number, kind) in kept.members.iter().enumerate().filter(|(_, kind)| kind.work == Work::Total) {
            let values = partials.iter().flat_map(|partial| &partial[number]);
            let total = values.fold(1u64, |total, value| total.wrapping_mul(31).wrapping_add(*value));
            if let (Place::Buffer(index), view, _) = &kind.operands[0] {
                // SAFETY: a total's output is an element inside its field.
                unsafe { ((addresses[*index] as isize + view.offset) as *mut u64).write(total) };
            }
        }
    }

    fn part_bytes(&self, kept: &Kept) -> usize {
        let totals = kept.members.iter().filter(|kind| kind.work == Work::Total);
        let bytes: usize = totals.map(|kind| kind.domain.iter().product::<usize>() * 8).sum();
        if bytes == 0 { 0 } else { bytes + kept.members.len() * 8 }
    }

    fn pack(&self, kept: &Kept, partials: Vec<Vec<Vec<u64>>>, _: &Range<usize>) -> Vec<u8> {
        let mut words = Vec::new();
        for number in 0..kept.members.len() {
            let values: Vec<u64> = partials.iter().flat_map(|partial| partial[number].clone()).collect();
            words.push(values.len() as u64);
            words.extend(values);
        }
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn unpack(&self, kept: &Kept, bytes: &[u8]) -> Vec<Vec<u64>> {
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut next = || words.next().unwrap_or(0);
        (0..kept.members.len())
            .map(|_| {
                let count = next();
                (0..count).map(|_| next()).collect()
            })
            .collect()
    }

    fn take_events(&self, _: Sequence, _: &mut [u8]) {}

    fn give_events(&self, _: Sequence, _: &[u8]) {}

    fn rows(&self, _: &Launch<Step>, _: &[usize], _: &Range<usize>, _: &dyn Parallel) {}

    /// `output = output before * 31 + input` along the rows or the second axis, or (`adds`) plain sums, which join.
    fn scan(&self, launch: &Launch<Step>, addresses: &[usize], cut: &Cut, from: From) {
        let (rows, inner) = match cut {
            Cut::Rows(rows) => (rows.clone(), None),
            Cut::Inner(rows, inner) => (rows.clone(), Some(inner)),
        };
        let axis = usize::from(launch.work == Work::Scan { along_rows: false });
        let at = |operand: usize, index: &[usize]| element(addresses[operand], &launch.operands[operand].view, index);
        each(&launch.domain, &mut |index| {
            if !rows.contains(&index[0]) || inner.is_some_and(|inner| !inner.contains(&index[1])) {
                return;
            }
            let first = if axis == 0 && from == From::Nothing { rows.start } else { 0 };
            // SAFETY: views lie inside their fields, and the planner promises that tiles do not race.
            unsafe {
                let value = if from == From::Added { at(0, index).read() } else { at(1, index).read() };
                let mut before = index.to_vec();
                before[axis] = if from == From::Added { rows.start } else { index[axis] }.wrapping_sub(1);
                let factor = if launch.task.adds { 1 } else { 31 };
                let so_far = if index[axis] == first { 0 } else { at(0, &before).read().wrapping_mul(factor) };
                at(0, index).write(so_far.wrapping_add(value));
            }
        });
    }

    fn joins_parts(&self, launch: &Launch<Step>) -> bool {
        launch.task.adds
    }

    /// Sums of totals of one element each.
    fn add_parts(&self, _: &Launch<Step>, parts: &[u8], _: usize, address: usize) {
        let words = parts.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        // SAFETY: the executor names an element of the output.
        unsafe { (address as *mut u64).write_unaligned(words.fold(0, u64::wrapping_add)) };
    }

    fn exchange(&self, _: &Launch<Step>, _: &[usize], _: &Exchange<'_>) -> Result<(), TransportError> {
        Ok(())
    }

    fn whole(&self, _: &Launch<Step>, _: &[usize], _: &dyn Parallel) {}
}

/// Waits for everything that was issued.
pub(crate) fn wait(runtime: &Runtime<Interpreter>) {
    let done = runtime.wait(runtime.newest(), Duration::from_secs(40)).expect("the interpreter does not fail");
    assert!(done, "a window took more than a minute");
}

/// Waits for everything, until the memory of a field may be looked at, and changed.
pub(crate) fn settle(runtime: &Runtime<Interpreter>, handle: &Handle) {
    wait(runtime);
    while runtime.settle(handle.field(), true, Step { constant: 0, adds: false }) {
        wait(runtime);
    }
}

/// A small generator of numbers (xorshift), so that a failing seed can be run again.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
