//! Sweeps that run in one walk: random ones against the same programs unfused and whole, and counts of how many are joined.
#![expect(unsafe_code, reason = "looks at fields by address")]

mod interpreter;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use interpreter::{Interpreter, Numbers, Step, settle, wait};
use legate_runtime::transport::{Alone, Stop, Threads, Transport};
use legate_runtime::view::{Axes, View};
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

const COLUMNS: usize = 12;
const ROW_BYTES: isize = COLUMNS as isize * 8;

fn runtime(fusion: bool, processors: usize, transport: Arc<dyn Transport>) -> Runtime<Interpreter> {
    let mapper = Mapper {
        cpus: processors.min(2),
        processors,
        min_tile: 1,
        most_steps: usize::MAX,
        window: 64,
        run_ahead: 2,
        fusion,
        blocks: false,
        memory_limit: 1 << 30,
        show_plan: true,
    };
    Runtime::new(Interpreter, mapper, transport)
}

fn filled(runtime: &Runtime<Interpreter>, rows: usize, first: u64) -> Handle {
    let handle = runtime.field(rows * COLUMNS * 8).expect("there is room");
    let content: Vec<u64> = (0..rows * COLUMNS).map(|index| index as u64 * 7 + first).collect();
    let start = handle.field().materialize();
    // SAFETY: the field has room for the content, and no launch touches it yet.
    unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), start as *mut u64, content.len()) };
    handle
}

fn content(runtime: &Runtime<Interpreter>, handle: &Handle) -> Vec<u64> {
    settle(runtime, handle);
    let start = handle.field().materialize() as *const u64;
    // SAFETY: everything is done, and the field has that many elements.
    unsafe { std::slice::from_raw_parts(start, handle.field().bytes() / 8) }.to_vec()
}

/// Has every shard hold all of a field.
fn gather(runtime: &Runtime<Interpreter>, handle: &Handle) {
    let view = View { offset: 0, strides: smallvec![1], item_bytes: 1 };
    let operands = smallvec![Operand { field: handle.field().clone(), view, privilege: Privilege::Read }];
    let domain = smallvec![handle.field().bytes()];
    runtime.launch("gather".into(), Work::Whole, domain, operands, Step { constant: 0, adds: false });
}

/// One assignment to a rectangle of `grid` from rectangles at other places of it and, perhaps, one of `other`.
struct Sweep {
    shape: [usize; 2],
    target: [usize; 2],
    sources: [[usize; 2]; 2],
    constant: u64,
    other: bool,
    adds: bool,
}

impl Sweep {
    /// Most of a field of `rows` rows, read at most `reach` rows away.
    fn random(numbers: &mut Numbers, rows: usize, reach: usize) -> Sweep {
        let whole_rows = numbers.below(3) == 0;
        let shape = [rows - reach - numbers.below(2), if whole_rows { COLUMNS } else { COLUMNS - numbers.below(3) }];
        let mut place = || [numbers.below((rows - shape[0]).min(reach) + 1), numbers.below(COLUMNS - shape[1] + 1)];
        let (target, sources) = (place(), [place(), place()]);
        let (constant, other, adds) = (3 + numbers.below(4) as u64, numbers.below(4) == 0, numbers.below(5) == 0);
        Sweep { shape, target, sources, constant, other, adds }
    }

    /// Issues it: the values first go to a fresh field, which is returned.
    fn issue(&self, runtime: &Runtime<Interpreter>, grid: &Handle, other: &Handle) -> Handle {
        let fresh = runtime.field(self.shape[0] * self.shape[1] * 8).expect("there is room");
        let packed = View { offset: 0, strides: smallvec![self.shape[1] as isize * 8, 8], item_bytes: 8 };
        let at = |place: [usize; 2]| View {
            offset: place[0] as isize * ROW_BYTES + place[1] as isize * 8,
            strides: smallvec![ROW_BYTES, 8],
            item_bytes: 8,
        };
        let operand =
            |handle: &Handle, view: View, privilege| Operand { field: handle.field().clone(), view, privilege };
        let domain: Axes<usize> = self.shape.iter().copied().collect();
        let operands = smallvec![
            operand(&fresh, packed.clone(), Privilege::Write),
            operand(grid, at(self.sources[0]), Privilege::Read),
            operand(if self.other { other } else { grid }, at(self.sources[1]), Privilege::Read),
        ];
        let step = Step { constant: self.constant, adds: false };
        runtime.launch("average".into(), Work::Map, domain.clone(), operands, step);
        let copied =
            smallvec![operand(grid, at(self.target), Privilege::Write), operand(&fresh, packed, Privilege::Read)];
        runtime.launch("copy".into(), Work::Map, domain.clone(), copied, Step { constant: 1, adds: false });
        if self.adds {
            // Changes what was just written, where it was.
            let operands = smallvec![
                operand(grid, at(self.target), Privilege::ReadWrite),
                operand(other, at(self.target), Privilege::Read)
            ];
            runtime.launch("add".into(), Work::Map, domain, operands, Step { constant: 1, adds: true });
        }
        fresh
    }
}

fn total(runtime: &Runtime<Interpreter>, grid: &Handle, rows: usize) -> Handle {
    let sum = runtime.field(8).expect("there is room");
    let dense = View { offset: 0, strides: smallvec![ROW_BYTES, 8], item_bytes: 8 };
    let one = View { offset: 0, strides: smallvec![0, 0], item_bytes: 8 };
    let operands = smallvec![
        Operand { field: sum.field().clone(), view: one, privilege: Privilege::Write },
        Operand { field: grid.field().clone(), view: dense, privilege: Privilege::Read },
    ];
    runtime.launch("sum".into(), Work::Total, smallvec![rows, COLUMNS], operands, Step { constant: 1, adds: false });
    sum
}

/// Runs the random sweeps of a seed: what is left, and how many ran behind another.
fn outcome(seed: u64, fusion: bool, processors: usize, transport: Arc<dyn Transport>) -> (Vec<Vec<u64>>, u64) {
    let mut numbers = Numbers(seed * 2 + 0x9E37_79B9_7F4A_7C15);
    let (shard, shards) = (transport.shard(), transport.shards());
    let runtime = runtime(fusion, processors, transport);
    let rows = 6 + numbers.below(50);
    let reach = 1 + numbers.below(3);
    let (grid, other) = (filled(&runtime, rows, 1), filled(&runtime, rows, 1000));
    if shards > 1 {
        // From here on rows live apart, and only there.
        for handle in [&grid, &other] {
            let own = runtime.share_out(handle.field(), ROW_BYTES as usize, 8);
            let start = handle.field().materialize() as *mut u8;
            // SAFETY: the field has as many bytes, and no launch touches it yet.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, handle.field().bytes()) };
            bytes[..own.start].fill(0xA5);
            bytes[own.end..].fill(0xA5);
        }
    }
    let (mut kept, mut late) = (Vec::new(), Vec::new());
    for number in 0..2 + numbers.below(6) {
        let fresh = Sweep::random(&mut numbers, rows, reach).issue(&runtime, &grid, &other);
        if numbers.below(6) == 0 {
            kept.push(fresh);
        } else if number == shard {
            // Shards see at different moments that nobody holds it any more.
            late.push(fresh);
        }
        if numbers.below(6) == 0 {
            kept.push(total(&runtime, &grid, rows));
        }
    }
    for handle in [&grid, &other].into_iter().chain(&kept) {
        gather(&runtime, handle);
    }
    let mut left = vec![content(&runtime, &grid), content(&runtime, &other)];
    left.extend(kept.iter().map(|handle| content(&runtime, handle)));
    drop(late);
    (left, runtime.counters().joined_sweeps.load(Ordering::Relaxed))
}

#[test]
fn joined_sweeps_give_what_single_ones_give() {
    let mut joined = 0;
    for seed in 0..600 {
        let plain = outcome(seed, false, 1, Arc::new(Alone)).0;
        for processors in [1, 2, 3, 7] {
            let (left, count) = outcome(seed, true, processors, Arc::new(Alone));
            assert_eq!(left, plain, "seed {seed}, {processors} processors");
            joined += count;
        }
    }
    assert!(joined > 500, "only {joined} sweeps were joined");
}

#[test]
fn sweeps_on_many_shards_give_what_one_gives() {
    let mut joined = 0;
    for seed in 0..400 {
        let plain = outcome(seed, false, 1, Arc::new(Alone)).0;
        for shards in [2, 3, 4] {
            let job = Threads::job(shards, &Arc::new(Stop::default()));
            std::thread::scope(|scope| {
                let outcomes: Vec<_> = job
                    .into_iter()
                    .map(|shard| scope.spawn(move || outcome(seed, true, 1 + seed as usize % 3, Arc::new(shard))))
                    .collect();
                for (shard, outcome) in outcomes.into_iter().enumerate() {
                    let (left, count) = outcome.join().expect("the shard's thread does not panic");
                    assert_eq!(left, plain, "seed {seed}, shard {shard} of {shards}");
                    joined += count;
                }
            });
        }
    }
    assert!(joined > 500, "only {joined} sweeps were joined");
}

/// How many of the sweeps that `build` issues run behind another, and the plan.
fn joined(build: impl FnOnce(&Runtime<Interpreter>) -> Vec<Handle>) -> (u64, String) {
    let runtime = runtime(true, 2, Arc::new(Alone));
    let held = build(&runtime);
    wait(&runtime);
    drop(held);
    (runtime.counters().joined_sweeps.load(Ordering::Relaxed), runtime.plan_text())
}

fn down(numbers: usize) -> Sweep {
    let sources = [[0, 1], [2, numbers]];
    Sweep { shape: [8, 10], target: [1, 1], sources, constant: 3, other: false, adds: false }
}

#[test]
fn sweeps_over_one_field_are_one_walk_without_a_second_instance() {
    let (count, plan) = joined(|runtime| {
        let (grid, other) = (filled(runtime, 10, 1), filled(runtime, 10, 2));
        for _ in 0..5 {
            down(0).issue(runtime, &grid, &other);
        }
        vec![grid, other]
    });
    assert_eq!(count, 4, "{plan}");
    assert!(plan.starts_with("sweeps 5 of f0 in one walk, 5 rows before and 5 after each tile\n"), "{plan}");
    assert!(!plan.contains("second instance"), "{plan}");
}

#[test]
fn a_sweep_whose_values_are_kept_ends_the_walk() {
    let (count, plan) = joined(|runtime| {
        let (grid, other) = (filled(runtime, 10, 1), filled(runtime, 10, 2));
        let mut held: Vec<Handle> = Vec::new();
        for number in 0..4 {
            let fresh = down(0).issue(runtime, &grid, &other);
            held.extend((number == 1).then_some(fresh));
        }
        held.extend([grid, other]);
        held
    });
    assert_eq!(count, 2, "{plan}");
    assert_eq!(plan.matches("sweeps 2 of f0").count(), 2, "{plan}");
}

#[test]
fn a_pinned_field_is_swept_where_it_is() {
    let (count, plan) = joined(|runtime| {
        let (grid, other) = (filled(runtime, 10, 1), filled(runtime, 10, 2));
        grid.field().pin();
        for _ in 0..2 {
            down(0).issue(runtime, &grid, &other);
        }
        wait(runtime);
        grid.field().unpin();
        vec![grid, other]
    });
    assert_eq!(count, 0, "{plan}");
    assert!(!plan.contains("second instance"), "{plan}");
}
