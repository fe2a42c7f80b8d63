//! Random programs on many shards (threads that exchange messages), against the same programs on one: what each shard holds
//! after gathering must be what one shard holds, whatever it was cut into.
#![expect(unsafe_code, reason = "looks at fields by address")]

mod interpreter;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use interpreter::{Interpreter, Numbers, Step, wait};
use legate_runtime::transport::{Alone, Stop, Threads, Transport};
use legate_runtime::view::{Axes, View};
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

const SIDE: usize = 6;
const BYTES: usize = SIDE * SIDE * 8;
const ROW: isize = SIDE as isize * 8;

fn read(handle: &Handle, view: View) -> Operand {
    Operand { field: handle.field().clone(), view, privilege: Privilege::Read }
}

fn written(handle: &Handle, view: View) -> Operand {
    Operand { field: handle.field().clone(), view, privilege: Privilege::Write }
}

fn dense() -> View {
    View { offset: 0, strides: smallvec![ROW, 8], item_bytes: 8 }
}

/// A rectangle of a SIDE x SIDE field; when it is read also turned, mirrored or with one row or column repeated.
fn rectangle(numbers: &mut Numbers, shape: &[usize; 2], reads: bool) -> View {
    let row = numbers.below(SIDE - shape[0] + 1);
    let column = numbers.below(SIDE - shape[1] + 1);
    let at = |row: usize, column: usize| (row * SIDE + column) as isize * 8;
    let plain = View { offset: at(row, column), strides: smallvec![ROW, 8], item_bytes: 8 };
    if !reads {
        return plain;
    }
    match numbers.below(8) {
        0 => View {
            offset: at(numbers.below(SIDE - shape[1] + 1), numbers.below(SIDE - shape[0] + 1)),
            strides: smallvec![8, ROW],
            item_bytes: 8,
        },
        1 => View { offset: at(row + shape[0] - 1, column), strides: smallvec![-ROW, 8], item_bytes: 8 },
        2 => View { strides: smallvec![0, 8], ..plain },
        3 => View { strides: smallvec![ROW, 0], ..plain },
        _ => plain,
    }
}

/// Runs the random program of a seed; the contents of all fields that are held at its end, and how many groups were run in blocks.
fn outcome(seed: u64, fusion: bool, blocks: bool, transport: Arc<dyn Transport>) -> (Vec<Vec<u64>>, u64) {
    let mapper = Mapper {
        cpus: 1,
        processors: 1 + seed as usize % 2,
        min_tile: 1,
        most_steps: usize::MAX,
        window: 16,
        run_ahead: 2,
        fusion,
        blocks,
        memory_limit: 1 << 30,
        show_plan: false,
    };
    let runtime = Runtime::new(Interpreter, mapper, transport);
    let mut numbers = Numbers(seed * 2 + 0x9E37_79B9_7F4A_7C15);
    let mut held: Vec<Handle> = Vec::new();
    for number in 0..3u64 {
        let content: Vec<u64> = (0..SIDE * SIDE).map(|index| index as u64 * 7 + number * 1000 + 1).collect();
        let handle = runtime.field(BYTES).expect("there is room");
        let start = handle.field().materialize() as *mut u8;
        // SAFETY: the field has BYTES bytes, and no launch touches it yet.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr().cast::<u8>(), start, BYTES) };
        held.push(handle);
    }
    let name: Arc<str> = "step".into();
    for _ in 0..30 {
        let shape = [1 + numbers.below(SIDE), 1 + numbers.below(SIDE)];
        let shape = if numbers.below(3) == 0 { [SIDE, SIDE] } else { shape };
        let (a, b) = (numbers.below(held.len()), numbers.below(held.len()));
        let (view_a, view_b) = (rectangle(&mut numbers, &shape, true), rectangle(&mut numbers, &shape, true));
        let domain: Axes<usize> = shape.iter().copied().collect();
        let step = Step { constant: 3 + numbers.below(5) as u64, adds: false };
        let fresh = runtime.field(BYTES).expect("there is room");
        if numbers.below(6) == 0 {
            // A total goes to one element, which is then added to a rectangle.
            let element = View { offset: 0, strides: smallvec![0, 0], item_bytes: 8 };
            let operands = smallvec![written(&fresh, element.clone()), read(&held[a], view_a)];
            runtime.launch(name.clone(), Work::Total, domain.clone(), operands, step);
            let mut output = written(&held[b], rectangle(&mut numbers, &shape, false));
            output.privilege = Privilege::ReadWrite;
            let operands = smallvec![output, read(&fresh, element)];
            runtime.launch(name.clone(), Work::Map, domain, operands, Step { constant: 1, adds: true });
            continue;
        }
        if numbers.below(6) == 0 {
            // A sum over the rows, which is then added to each of them.
            let line = View { offset: 0, strides: smallvec![0, 8], item_bytes: 8 };
            let operands = smallvec![written(&fresh, line.clone()), read(&held[a], view_a)];
            runtime.launch(name.clone(), Work::Accumulate, domain.clone(), operands, step);
            let mut output = written(&held[b], rectangle(&mut numbers, &shape, false));
            output.privilege = Privilege::ReadWrite;
            let operands = smallvec![output, read(&fresh, line)];
            runtime.launch(name.clone(), Work::Map, domain, operands, Step { constant: 1, adds: true });
            continue;
        }
        if numbers.below(6) == 0 {
            // Running totals along rows or columns, to a new field or (in parts of it) in place; or of a whole field, flat.
            let adds = numbers.below(2) == 0;
            let work = Work::Scan { along_rows: numbers.below(2) == 0 };
            let step = Step { constant: 1, adds };
            if numbers.below(3) == 0 {
                let flat = View { offset: 0, strides: smallvec![8], item_bytes: 8 };
                let operands = smallvec![written(&fresh, flat.clone()), read(&held[a], flat)];
                let work = Work::Scan { along_rows: true };
                runtime.launch(name.clone(), work, smallvec![SIDE * SIDE], operands, step);
                held[b] = fresh;
            } else if numbers.below(2) == 0 {
                let view = rectangle(&mut numbers, &shape, false);
                let operands = smallvec![written(&held[b], view.clone()), read(&held[b], view)];
                runtime.launch(name.clone(), work, domain, operands, step);
            } else if shape == [SIDE, SIDE] {
                let operands = smallvec![written(&fresh, dense()), read(&held[a], view_a)];
                runtime.launch(name.clone(), work, domain, operands, step);
                held[b] = fresh;
            }
            continue;
        }
        if numbers.below(8) == 0 {
            // Evenly spaced elements.
            let flat = |step: usize, start: usize| View {
                offset: start as isize * 8,
                strides: smallvec![step as isize * 8],
                item_bytes: 8,
            };
            let (step_a, step_b) = (1 + numbers.below(SIDE + 2), 1 + numbers.below(SIDE + 2));
            let (start_a, start_b) = (numbers.below(SIDE), numbers.below(SIDE));
            let fits = |step: usize, start: usize| (SIDE * SIDE - 1 - start) / step + 1;
            let count = fits(step_a, start_a).min(fits(step_b, start_b));
            let operands = smallvec![written(&held[b], flat(step_b, start_b)), read(&fresh, flat(1, 0))];
            let value = smallvec![written(&fresh, flat(1, 0)), read(&held[a], flat(step_a, start_a))];
            runtime.launch(name.clone(), Work::Map, smallvec![count], value, step);
            runtime.launch(name.clone(), Work::Map, smallvec![count], operands, step);
            continue;
        }
        let operands = smallvec![written(&fresh, dense()), read(&held[a], view_a), read(&held[b], view_b)];
        runtime.launch(name.clone(), Work::Map, domain.clone(), operands, step);
        match numbers.below(4) {
            0 if shape == [SIDE, SIDE] => held.push(fresh),
            1 if shape == [SIDE, SIDE] && held.len() > 3 => {
                let place = numbers.below(3);
                held[place] = fresh;
            }
            _ => {
                let target = numbers.below(held.len());
                let view = rectangle(&mut numbers, &shape, false);
                let adds = numbers.below(3) == 0;
                let mut output = written(&held[target], view);
                if adds {
                    output.privilege = Privilege::ReadWrite;
                }
                let operands = smallvec![output, read(&fresh, dense())];
                runtime.launch(name.clone(), Work::Map, domain, operands, Step { constant: 1, adds });
            }
        }
        if held.len() > 6 {
            held.remove(numbers.below(3));
        }
    }
    for handle in &held {
        let everything = View { offset: 0, strides: smallvec![8], item_bytes: 8 };
        let operands = smallvec![read(handle, everything)];
        runtime.launch(
            "gather".into(),
            Work::Whole,
            smallvec![SIDE * SIDE],
            operands,
            Step { constant: 0, adds: false },
        );
    }
    wait(&runtime);
    let contents = held
        .iter()
        .map(|handle| {
            assert!(handle.field().is_everywhere(&(0..BYTES)));
            let start = handle.field().materialize() as *const u64;
            // SAFETY: everything is done, and the field has SIDE * SIDE elements.
            unsafe { std::slice::from_raw_parts(start, SIDE * SIDE) }.to_vec()
        })
        .collect();
    (contents, runtime.counters().in_blocks.load(Ordering::Relaxed))
}

/// Runs random programs on threads for each number of shards, and on one; how many groups all of them ran in blocks.
fn compare(shards: &[usize], blocks: bool) -> u64 {
    let mut in_blocks = 0;
    for seed in 0..150 {
        let (plain, _) = outcome(seed, false, false, Arc::new(Alone));
        for shards in shards {
            let job = Threads::job(*shards, &Arc::new(Stop::default()));
            std::thread::scope(|scope| {
                let outcomes: Vec<_> = job
                    .into_iter()
                    .map(|shard| scope.spawn(move || outcome(seed, seed % 3 != 0, blocks, Arc::new(shard))))
                    .collect();
                for (shard, outcome) in outcomes.into_iter().enumerate() {
                    let (outcome, counted) = outcome.join().expect("the shard's thread does not panic");
                    assert_eq!(outcome, plain, "seed {seed}, shard {shard} of {shards}");
                    in_blocks += counted;
                }
            });
        }
    }
    in_blocks
}

#[test]
fn many_shards_give_what_one_gives() {
    assert_eq!(compare(&[2, 3, 4, 7], false), 0);
}

#[test]
fn blocks_give_what_one_shard_gives() {
    assert!(compare(&[3, 4, 6, 8, 16], true) > 10_000);
}
