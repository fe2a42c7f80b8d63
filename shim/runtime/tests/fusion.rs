//! Random programs through the whole runtime, fused and cut into tiles that run in reverse order, against the same programs
//! unfused and whole. The backend is a plain interpreter: what is tested is the planner's promises.
#![expect(unsafe_code, reason = "looks at fields by address")]

mod interpreter;

use std::sync::Arc;

use interpreter::{Interpreter, Numbers, Step, settle, wait};
use legate_runtime::transport::Alone;
use legate_runtime::view::{Axes, View};
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

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
        most_steps: usize::MAX,
        window: 16,
        run_ahead: 2,
        fusion,
        blocks: false,
        memory_limit: 1 << 30,
        show_plan: false,
    };
    let runtime = Runtime::new(Interpreter, mapper, Arc::new(Alone));
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
        if numbers.below(8) == 0 {
            // What the program changes in memory by itself.
            let handle = &held[numbers.below(held.len())];
            settle(&runtime, handle);
            let element = handle.field().materialize() + numbers.below(ROWS * COLUMNS) * 8;
            // SAFETY: everything is done, and the element is one of the field's.
            unsafe { *(element as *mut u64) += 5 };
        }
        if held.len() > 6 {
            held.remove(numbers.below(3));
        }
    }
    held.iter()
        .map(|handle| {
            settle(&runtime, handle);
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
        most_steps: usize::MAX,
        window: 100,
        run_ahead: 2,
        fusion: true,
        blocks: false,
        memory_limit: 1 << 30,
        show_plan: true,
    };
    let runtime = Runtime::new(Interpreter, mapper, Arc::new(Alone));
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
