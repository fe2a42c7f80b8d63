//! Results that the program holds and a group need not store: when they are left out, and when they are made after all.
#![expect(unsafe_code, reason = "looks at fields by address")]

mod interpreter;

use std::sync::Arc;

use interpreter::{DEAR, Interpreter, Step, settle, wait};
use legate_runtime::transport::{Alone, Stop, Threads, Transport};
use legate_runtime::view::View;
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

const LENGTH: usize = 10;

fn runtime() -> Runtime<Interpreter> {
    runtime_with(100)
}

fn runtime_with(window: usize) -> Runtime<Interpreter> {
    runtime_on(window, Arc::new(Alone))
}

fn runtime_on(window: usize, transport: Arc<dyn Transport>) -> Runtime<Interpreter> {
    let mapper = Mapper {
        cpus: 1,
        processors: 1,
        min_tile: 1,
        most_steps: usize::MAX,
        window,
        run_ahead: 2,
        fusion: true,
        blocks: false,
        memory_limit: 1 << 30,
        show_plan: true,
    };
    Runtime::new(Interpreter, mapper, transport)
}

fn field(runtime: &Runtime<Interpreter>) -> Handle {
    runtime.field(LENGTH * 8).expect("there is room")
}

/// A field whose elements are `value`, with memory.
fn filled(runtime: &Runtime<Interpreter>, value: u64) -> Handle {
    let handle = field(runtime);
    // SAFETY: the field has LENGTH elements, and no launch touches it yet.
    unsafe { std::slice::from_raw_parts_mut(handle.field().materialize() as *mut u64, LENGTH) }.fill(value);
    handle
}

/// `output = input * constant`.
fn multiply(runtime: &Runtime<Interpreter>, output: &Handle, input: &Handle, constant: u64) {
    let operand = |handle: &Handle, privilege| {
        let view = View { offset: 0, strides: smallvec![8], item_bytes: 8 };
        Operand { field: handle.field().clone(), view, privilege }
    };
    let operands = smallvec![operand(output, Privilege::Write), operand(input, Privilege::Read)];
    runtime.launch("step".into(), Work::Map, smallvec![LENGTH], operands, Step { constant, adds: false });
}

fn first(runtime: &Runtime<Interpreter>, handle: &Handle) -> u64 {
    settle(runtime, handle);
    // SAFETY: everything is done, and the field was stored.
    unsafe { *(handle.field().address().expect("it was stored") as *const u64) }
}

/// A source, a held result that is not stored, and what was made from it; all has run.
fn owing(runtime: &Runtime<Interpreter>) -> [Handle; 3] {
    let (source, held, used) = (filled(runtime, 5), field(runtime), field(runtime));
    multiply(runtime, &held, &source, 3);
    multiply(runtime, &used, &held, 2);
    wait(runtime);
    [source, held, used]
}

#[test]
fn a_held_result_that_was_used_is_not_stored() {
    let runtime = runtime();
    let [source, held, used] = owing(&runtime);
    assert!(held.field().is_owed() && held.field().address().is_none());
    assert!(!source.field().is_settled());
    assert!(used.field().is_settled());
    assert_eq!(first(&runtime, &used), 30);
}

#[test]
fn it_joins_the_next_launch_that_reads_it_and_is_stored_then() {
    let runtime = runtime();
    let [source, held, _used] = owing(&runtime);
    let more = field(&runtime);
    multiply(&runtime, &more, &held, 7);
    wait(&runtime);
    assert!(held.field().is_settled() && source.field().is_settled());
    assert_eq!([first(&runtime, &held), first(&runtime, &more)], [15, 105]);
    let text = runtime.plan_text();
    assert_eq!(text.matches("group rows").count(), 2, "{text}");
    assert_eq!(text.matches("not stored").count(), 1, "{text}");
}

#[test]
fn it_is_stored_in_the_memory_of_a_source_that_nobody_else_needs() {
    for others in [false, true] {
        let runtime = runtime();
        let [source, held, _used] = owing(&runtime);
        let (second, more) = (field(&runtime), [field(&runtime), field(&runtime)]);
        if others {
            multiply(&runtime, &second, &source, 11);
            multiply(&runtime, &more[1], &second, 2);
            wait(&runtime);
            assert!(second.field().is_owed());
        }
        let (address, blocks) = (source.field().address(), runtime.pool().fresh_blocks());
        drop(source);
        multiply(&runtime, &more[0], &held, 7);
        wait(&runtime);
        assert_eq!(held.field().address() == address, !others);
        assert_eq!(runtime.pool().fresh_blocks() - blocks, if others { 2 } else { 1 });
        assert_eq!([first(&runtime, &held), first(&runtime, &more[0])], [15, 105]);
        if others {
            assert_eq!(first(&runtime, &second), 55);
        }
    }
}

#[test]
fn it_remains_owed_where_it_is_made_from_next_to_nothing() {
    for looks in [false, true] {
        let runtime = runtime();
        let one = runtime.field(8).expect("there is room");
        // SAFETY: the field has one element, and no launch touches it yet.
        unsafe { *(one.field().materialize() as *mut u64) = 5 };
        let large = || runtime.field(64 * 8).expect("there is room");
        let held = large();
        let spread = |output: &Handle, input: &Handle, stride: isize, constant: u64| {
            let operand = |handle: &Handle, stride: isize, privilege| {
                let view = View { offset: 0, strides: smallvec![stride], item_bytes: 8 };
                Operand { field: handle.field().clone(), view, privilege }
            };
            let operands = smallvec![operand(output, 8, Privilege::Write), operand(input, stride, Privilege::Read)];
            runtime.launch("step".into(), Work::Map, smallvec![64], operands, Step { constant, adds: false });
        };
        spread(&held, &one, 0, 3);
        for round in 0..4 {
            let used = large();
            spread(&used, &held, 8, 2);
            wait(&runtime);
            assert!(held.field().is_owed() && held.field().address().is_none() && !one.field().is_settled());
            assert_eq!(first(&runtime, &used), 30);
            if looks && round == 2 {
                assert_eq!(first(&runtime, &held), 15);
                assert!(held.field().is_settled() && one.field().is_settled());
                break;
            }
        }
        settle(&runtime, &one);
        // SAFETY: it is settled and has memory.
        unsafe { *(one.field().materialize() as *mut u64) = 6 };
        assert_eq!(first(&runtime, &held), 15);
    }
}

#[test]
fn it_is_made_before_a_launch_or_the_program_changes_its_source() {
    for by_launch in [true, false] {
        let runtime = runtime();
        let [source, held, _used] = owing(&runtime);
        if by_launch {
            let other = filled(&runtime, 1);
            multiply(&runtime, &source, &other, 1);
        } else {
            settle(&runtime, &source);
            // SAFETY: everything is done, and the source has memory.
            unsafe { *(source.field().materialize() as *mut u64) = 1 };
        }
        assert_eq!([first(&runtime, &held), first(&runtime, &source)], [15, 1]);
    }
}

#[test]
fn it_is_stored_where_its_window_changes_its_source_later() {
    let runtime = runtime();
    let (source, held, used) = (filled(&runtime, 5), field(&runtime), field(&runtime));
    multiply(&runtime, &held, &source, 3);
    multiply(&runtime, &used, &held, 2);
    let view = View { offset: 0, strides: smallvec![8], item_bytes: 8 };
    let alone = smallvec![Operand { field: used.field().clone(), view, privilege: Privilege::ReadWrite }];
    runtime.launch("alone".into(), Work::Whole, smallvec![LENGTH], alone, Step { constant: 0, adds: false });
    let other = filled(&runtime, 1);
    multiply(&runtime, &source, &other, 1);
    wait(&runtime);
    assert!(held.field().is_settled());
    assert_eq!([first(&runtime, &held), first(&runtime, &source)], [15, 1]);
}

#[test]
fn its_source_is_not_settled_before_it_is_made() {
    for _ in 0..500 {
        let runtime = runtime_with(2);
        let [source, held, _used] = owing(&runtime);
        let more = [field(&runtime), field(&runtime)];
        more.iter().for_each(|more| multiply(&runtime, more, &held, 7));
        // Now the background thread may be making `held`.
        let nothing = Step { constant: 0, adds: false };
        while runtime.settle(source.field(), true, nothing) {
            wait(&runtime);
        }
        // SAFETY: the source is settled and has memory.
        unsafe { *(source.field().materialize() as *mut u64) = 1 };
        assert_eq!([first(&runtime, &held), first(&runtime, &more[1])], [15, 105]);
    }
}

#[test]
fn it_may_be_made_from_a_small_sum_of_its_group() {
    const ROWS: usize = 2;
    const COLUMNS: usize = 64;
    for keeps_sums in [false, true] {
        let runtime = runtime();
        let large = || runtime.field(ROWS * COLUMNS * 8).expect("there is room");
        let (source, held, used) = (large(), large(), large());
        let start = source.field().materialize() as *mut u64;
        // SAFETY: the field has that many elements, and no launch touches it yet.
        unsafe { std::slice::from_raw_parts_mut(start, ROWS * COLUMNS) }.fill(3);
        let operand = |handle: &Handle, strides: [isize; 2], privilege| {
            let view = View { offset: 0, strides: strides.into_iter().collect(), item_bytes: 8 };
            Operand { field: handle.field().clone(), view, privilege }
        };
        let (dense, row) = ([COLUMNS as isize * 8, 8], [8, 0]);
        let issue = |work, operands, constant| {
            runtime.launch("step".into(), work, smallvec![ROWS, COLUMNS], operands, Step { constant, adds: false });
        };
        let sums = runtime.field(ROWS * 8).expect("there is room");
        let folded = smallvec![operand(&sums, row, Privilege::ReadWrite), operand(&source, dense, Privilege::Read)];
        issue(Work::Fold { axes: 1 }, folded, 1);
        let made = smallvec![
            operand(&held, dense, Privilege::Write),
            operand(&source, dense, Privilege::Read),
            operand(&sums, row, Privilege::Read)
        ];
        issue(Work::Map, made, 2);
        let read = smallvec![operand(&used, dense, Privilege::Write), operand(&held, dense, Privilege::Read)];
        issue(Work::Map, read, 5);
        let sums = keeps_sums.then_some(sums);
        wait(&runtime);
        assert!(held.field().is_owed() && held.field().address().is_none());
        if let Some(sums) = &sums {
            // Before the program changes them.
            settle(&runtime, sums);
            // SAFETY: the sums are settled and have memory.
            unsafe { *(sums.field().materialize() as *mut u64) = 1 };
        }
        assert_eq!(first(&runtime, &held), 3 * 2 + 3 * COLUMNS as u64);
        assert_eq!(first(&runtime, &used), (3 * 2 + 3 * COLUMNS as u64) * 5);
    }
}

#[test]
fn what_costs_as_much_as_storing_is_stored_where_such_was_asked_for() {
    let runtime = runtime();
    let source = filled(&runtime, 5);
    let mut owed = Vec::new();
    for _ in 0..4 {
        let (held, used) = (field(&runtime), field(&runtime));
        multiply(&runtime, &held, &source, DEAR);
        multiply(&runtime, &used, &held, 2);
        wait(&runtime);
        owed.push(held.field().is_owed());
        assert_eq!([first(&runtime, &held), first(&runtime, &used)], [5 * DEAR, 10 * DEAR]);
    }
    assert_eq!(owed, [true, true, false, false]);
}

#[test]
fn what_costs_as_much_as_storing_is_owed_where_such_was_forgotten() {
    let runtime = runtime();
    let source = filled(&runtime, 5);
    for round in 0..6 {
        let (held, used) = (field(&runtime), field(&runtime));
        multiply(&runtime, &held, &source, DEAR);
        multiply(&runtime, &used, &held, 2);
        wait(&runtime);
        assert!(held.field().is_owed());
        if round % 2 == 0 {
            assert_eq!(first(&runtime, &held), 5 * DEAR);
        }
    }
}

#[test]
fn it_is_forgotten_when_nobody_holds_it() {
    let runtime = runtime();
    let [source, held, _used] = owing(&runtime);
    drop(held);
    let other = field(&runtime);
    multiply(&runtime, &other, &source, 1);
    wait(&runtime);
    assert!(source.field().is_settled());
    assert_eq!(runtime.plan_text().matches("step").count(), 3);
}

#[test]
fn what_is_exported_is_stored() {
    let runtime = runtime();
    let (source, held, used) = (filled(&runtime, 5), field(&runtime), field(&runtime));
    source.field().pin();
    multiply(&runtime, &held, &source, 3);
    multiply(&runtime, &used, &held, 2);
    wait(&runtime);
    assert!(held.field().is_settled());
    assert_eq!(first(&runtime, &held), 15);
    source.field().unpin();
}

/// Runs a program on each of `shards` shards.
fn on_shards(shards: usize, program: impl Fn(&Runtime<Interpreter>) + Sync) {
    let program = &program;
    std::thread::scope(|scope| {
        for shard in Threads::job(shards, &Arc::new(Stop::default())) {
            scope.spawn(move || program(&runtime_on(100, Arc::new(shard))));
        }
    });
}

/// All values of a field, which every shard gets.
fn gathered(runtime: &Runtime<Interpreter>, handle: &Handle) -> Vec<u64> {
    let view = View { offset: 0, strides: smallvec![8], item_bytes: 8 };
    let operands = smallvec![Operand { field: handle.field().clone(), view, privilege: Privilege::Read }];
    runtime.launch("gather".into(), Work::Whole, smallvec![LENGTH], operands, Step { constant: 0, adds: false });
    wait(runtime);
    let start = handle.field().address().expect("it was gathered") as *const u64;
    // SAFETY: everything is done, and the field has LENGTH elements.
    unsafe { std::slice::from_raw_parts(start, LENGTH) }.to_vec()
}

#[test]
fn each_shard_makes_its_part_of_what_another_asks_for() {
    on_shards(3, |runtime| {
        let [source, held, used] = owing(runtime);
        assert!(held.field().is_owed() && held.field().address().is_none());
        assert_eq!(gathered(runtime, &held), [15; LENGTH]);
        assert!(!held.field().is_owed() && source.field().is_settled());
        assert_eq!(gathered(runtime, &used), [30; LENGTH]);
    });
}

#[test]
fn shards_make_what_is_owed_before_its_source_changes() {
    on_shards(2, |runtime| {
        let [source, held, _used] = owing(runtime);
        let other = filled(runtime, 1);
        multiply(runtime, &source, &other, 7);
        wait(runtime);
        assert!(!held.field().is_owed() && held.field().address().is_some());
        assert_eq!(gathered(runtime, &held), [15; LENGTH]);
        assert_eq!(gathered(runtime, &source), [7; LENGTH]);
    });
}

#[test]
fn looking_at_what_is_owed_sends_nothing_and_issues_nothing() {
    on_shards(4, |runtime| {
        let [_source, held, _used] = owing(runtime);
        let newest = runtime.newest();
        assert!(!runtime.settle(held.field(), true, Step { constant: 0, adds: false }));
        assert_eq!(runtime.newest(), newest);
        assert!(held.field().is_settled() && held.field().address().is_some());
        assert_eq!(gathered(runtime, &held), [15; LENGTH]);
    });
}

#[test]
fn what_others_rows_are_needed_for_is_stored() {
    on_shards(2, |runtime| {
        let (source, held, used) = (field(runtime), field(runtime), field(runtime));
        // The source lives in parts; its elements are taken in the other direction.
        let (plain, seed) = (View { offset: 0, strides: smallvec![8], item_bytes: 8 }, filled(runtime, 2));
        multiply(runtime, &source, &seed, 3);
        wait(runtime);
        let turned = View { offset: (LENGTH as isize - 1) * 8, strides: smallvec![-8], item_bytes: 8 };
        let operands = smallvec![
            Operand { field: held.field().clone(), view: plain, privilege: Privilege::Write },
            Operand { field: source.field().clone(), view: turned, privilege: Privilege::Read },
        ];
        runtime.launch("turn".into(), Work::Map, smallvec![LENGTH], operands, Step { constant: 5, adds: false });
        multiply(runtime, &used, &held, 2);
        wait(runtime);
        assert!(!held.field().is_owed() && held.field().address().is_some());
        assert_eq!(gathered(runtime, &held), [30; LENGTH]);
        assert_eq!(gathered(runtime, &used), [60; LENGTH]);
    });
}
