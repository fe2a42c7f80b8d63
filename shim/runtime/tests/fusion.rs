//! Random programs through the whole runtime, fused and cut into tiles that run in reverse order, against the same programs
//! unfused and whole. The backend is a plain interpreter of 8-byte elements: what is tested is the planner's promises.
#![expect(unsafe_code, reason = "the interpreter reads and writes fields by address")]

use std::sync::Arc;
use std::time::Duration;

use legate_runtime::group::{Group, Place};
use legate_runtime::view::{Axes, View};
use legate_runtime::{Backend, Cut, Handle, Launch, Mapper, Operand, Parallel, Privilege, Runtime, Work};
use smallvec::smallvec;

/// `output = a * constant + b`, with what was there added if asked, or the sum of `a` over the folded axes.
#[derive(Clone, Copy)]
struct Step {
    constant: u64,
    /// Whether what is there is added.
    adds: bool,
}

struct Interpreter;

/// What the interpreter needs of a group: everything is kept, since nothing is compiled.
struct Kept {
    rows: usize,
    slots: Vec<usize>,
    members: Vec<Kind>,
}

struct Kind {
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
fn each(domain: &[usize], visit: &mut dyn FnMut(&[usize])) {
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
    /// Runs row `row` of the domain.
    fn row(&self, row: usize, start: &dyn Fn(usize) -> usize) {
        let mut domain = self.domain.clone();
        if let Some(first) = domain.first_mut() {
            *first = 1;
        }
        each(&domain, &mut |index| {
            let mut index = index.to_vec();
            if let Some(first) = index.first_mut() {
                *first = row;
            }
            let at = |operand: usize| element(start(operand), &self.operands[operand].1, &index);
            // SAFETY: views lie inside their fields, and the planner promises that tiles do not race.
            unsafe {
                let value = at(1).read().wrapping_mul(self.step.constant);
                let value = if self.operands.len() > 2 { value.wrapping_add(at(2).read()) } else { value };
                match self.work {
                    Work::Map if !self.step.adds => at(0).write(value),
                    Work::Map | Work::Fold { .. } | Work::Accumulate | Work::Total | Work::Whole => {
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
    type Partial = ();

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

    fn run(&self, kept: &Kept, addresses: &[usize], cut: &Cut) {
        let rows = match cut {
            Cut::Rows(rows) => rows.clone(),
            Cut::Inner(_) => 0..kept.rows,
        };
        // A temporary's slots hold one row at a time, filled with rubbish before each.
        for row in rows {
            let mut slots: Vec<Vec<u64>> = kept.slots.iter().map(|bytes| vec![0xDEAD; bytes.div_ceil(8)]).collect();
            let starts: Vec<usize> = slots.iter_mut().map(|slot| slot.as_mut_ptr() as usize).collect();
            let passes = kept.members.last().map_or(0, |member| member.pass + 1);
            for pass in 0..passes {
                for kind in kept.members.iter().filter(|kind| kind.pass == pass) {
                    let length = kind.domain.first().copied().unwrap_or(1);
                    let Some(own) = row.checked_sub(kind.shift).filter(|own| *own < length) else { continue };
                    kind.row(own, &|operand| match kind.operands[operand].0 {
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
    }

    fn finish(&self, _: &Kept, _: &[usize], _: Vec<()>) {}

    fn whole(&self, _: &Launch<Step>, _: &[usize], _: &dyn Parallel) {}
}

/// Waits for everything that was issued.
fn wait(runtime: &Runtime<Interpreter>) {
    let done = runtime.wait(runtime.newest(), Duration::from_secs(60)).expect("the interpreter does not fail");
    assert!(done, "a window took more than a minute");
}

/// A small generator of numbers (xorshift), so that a failing seed can be run again.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const ROWS: usize = 6;
const COLUMNS: usize = 5;

/// A rectangle of a ROWS x COLUMNS field.
fn rectangle(numbers: &mut Numbers, shape: &[usize; 2]) -> View {
    let row = numbers.below(ROWS - shape[0] + 1);
    let column = numbers.below(COLUMNS - shape[1] + 1);
    View { offset: ((row * COLUMNS + column) * 8) as isize, strides: smallvec![COLUMNS as isize * 8, 8], item_bytes: 8 }
}

/// Runs the random program of a seed; the contents of all fields that are held at its end.
fn outcome(seed: u64, fusion: bool, processors: usize) -> Vec<Vec<u64>> {
    let mapper = Mapper {
        cpus: 1,
        processors,
        min_tile: 1,
        window: 16,
        run_ahead: 2,
        fusion,
        memory_limit: 1 << 30,
        show_plan: false,
    };
    let runtime = Runtime::new(Interpreter, mapper);
    let mut numbers = Numbers(seed * 2 + 0x9E37_79B9_7F4A_7C15);
    let mut held: Vec<Handle> = Vec::new();
    let bytes = ROWS * COLUMNS * 8;
    for number in 0..3u64 {
        let content: Vec<u64> = (0..ROWS * COLUMNS).map(|index| index as u64 * 7 + number * 1000 + 1).collect();
        let handle = runtime.field(bytes).expect("there is room");
        // SAFETY: the field has `bytes` bytes, and no launch touches it yet.
        unsafe {
            std::ptr::copy_nonoverlapping(content.as_ptr().cast::<u8>(), handle.field().materialize() as *mut u8, bytes)
        };
        held.push(handle);
    }
    for _ in 0..40 {
        let shape = [1 + numbers.below(ROWS), 1 + numbers.below(COLUMNS)];
        let shape = if numbers.below(3) == 0 { [ROWS, COLUMNS] } else { shape };
        let a = numbers.below(held.len());
        let b = numbers.below(held.len());
        let (view_a, view_b) = (rectangle(&mut numbers, &shape), rectangle(&mut numbers, &shape));
        // Values first go to a fresh field, as the shim's detour does; then perhaps into a rectangle of an old one.
        let fresh = runtime.field(bytes).expect("there is room");
        let dense = View { offset: 0, strides: smallvec![COLUMNS as isize * 8, 8], item_bytes: 8 };
        let read =
            |handle: &Handle, view: View| Operand { field: handle.field().clone(), view, privilege: Privilege::Read };
        let written =
            |handle: &Handle, view: View| Operand { field: handle.field().clone(), view, privilege: Privilege::Write };
        let domain: Axes<usize> = shape.iter().copied().collect();
        let step = Step { constant: 3 + numbers.below(5) as u64, adds: false };
        let name: Arc<str> = "step".into();
        let operands = smallvec![written(&fresh, dense.clone()), read(&held[a], view_a), read(&held[b], view_b)];
        runtime.launch(name.clone(), Work::Map, domain.clone(), operands, step);
        match numbers.below(4) {
            0 if shape == [ROWS, COLUMNS] => held.push(fresh),
            1 if shape == [ROWS, COLUMNS] && held.len() > 3 => held[numbers.below(3)] = fresh,
            _ => {
                let target = numbers.below(held.len());
                let view = rectangle(&mut numbers, &shape);
                let adds = numbers.below(3) == 0;
                let mut output = written(&held[target], view);
                if adds {
                    output.privilege = Privilege::ReadWrite;
                }
                let operands = smallvec![output, read(&fresh, dense)];
                runtime.launch(name, Work::Map, domain, operands, Step { constant: 1, adds });
            }
        }
        if held.len() > 6 {
            held.remove(numbers.below(3));
        }
    }
    wait(&runtime);
    held.iter()
        .map(|handle| {
            let start = handle.field().materialize() as *const u64;
            // SAFETY: everything is done, and the field has ROWS * COLUMNS elements.
            unsafe { std::slice::from_raw_parts(start, ROWS * COLUMNS) }.to_vec()
        })
        .collect()
}

#[test]
fn fused_and_tiled_programs_give_what_unfused_ones_give() {
    for seed in 0..400 {
        let plain = outcome(seed, false, 1);
        for processors in [1, 2, 3, 7] {
            assert_eq!(outcome(seed, true, processors), plain, "seed {seed}, {processors} processors");
        }
    }
}

/// The plan of a window, as text.
fn plan(build: impl FnOnce(&Runtime<Interpreter>) -> Vec<Handle>) -> String {
    let mapper = Mapper {
        cpus: 1,
        processors: 2,
        min_tile: 1,
        window: 100,
        run_ahead: 2,
        fusion: true,
        memory_limit: 1 << 30,
        show_plan: true,
    };
    let runtime = Runtime::new(Interpreter, mapper);
    let held = build(&runtime);
    wait(&runtime);
    drop(held);
    runtime.plan_text()
}

fn square(offset: isize) -> View {
    View { offset, strides: smallvec![80, 8], item_bytes: 8 }
}

fn launch(runtime: &Runtime<Interpreter>, domain: &[usize], output: (&Handle, View), inputs: &[(&Handle, View)]) {
    let mut operands =
        smallvec![Operand { field: output.0.field().clone(), view: output.1, privilege: Privilege::Write }];
    for (handle, view) in inputs {
        operands.push(Operand { field: handle.field().clone(), view: view.clone(), privilege: Privilege::Read });
    }
    let domain = domain.iter().copied().collect();
    runtime.launch("step".into(), Work::Map, domain, operands, Step { constant: 1, adds: false });
}

#[test]
fn a_stencil_sweep_is_one_group_that_writes_a_second_instance() {
    let text = plan(|runtime| {
        let grid = runtime.field(800).expect("there is room");
        grid.field().materialize();
        let average = runtime.field(8 * 64).expect("there is room");
        let packed = View { offset: 0, strides: smallvec![64, 8], item_bytes: 8 };
        launch(runtime, &[8, 8], (&average, packed.clone()), &[(&grid, square(8)), (&grid, square(160 + 8))]);
        launch(runtime, &[8, 8], (&grid, square(80 + 8)), &[(&average, packed)]);
        vec![grid]
    });
    let expected = "\
group rows 8 cut by rows
  pass 0 step [8, 8] ->f1 <-f0+8[80, 8] <-f0+168[80, 8]
  pass 0 step [8, 8] ->f0+88[80, 8] <-f1
  not stored: 1
  second instance: f0
";
    assert_eq!(text, expected);
}

#[test]
fn what_reads_other_rows_of_a_fresh_result_starts_a_group_and_says_why() {
    let text = plan(|runtime| {
        let grid = runtime.field(800).expect("there is room");
        grid.field().materialize();
        let copy = runtime.field(800).expect("there is room");
        launch(runtime, &[10, 10], (&copy, square(0)), &[(&grid, square(0))]);
        let shifted = runtime.field(720).expect("there is room");
        launch(runtime, &[9, 10], (&shifted, square(0)), &[(&copy, square(80))]);
        launch(runtime, &[9, 10], (&grid, square(0)), &[(&copy, square(80)), (&copy, square(0))]);
        vec![grid, copy]
    });
    assert!(text.contains("ends: it touches rows that other tiles of the group write"), "{text}");
    assert_eq!(text.matches("group rows").count(), 2, "{text}");
}
