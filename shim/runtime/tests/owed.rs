//! Results that the program holds and a group need not store: when they are left out, and when they are made after all.
#![expect(unsafe_code, reason = "looks at fields by address")]

mod interpreter;

use std::sync::Arc;

use interpreter::{Interpreter, Step, settle, wait};
use legate_runtime::transport::Alone;
use legate_runtime::view::View;
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

const LENGTH: usize = 10;

fn runtime() -> Runtime<Interpreter> {
    runtime_with(100)
}

fn runtime_with(window: usize) -> Runtime<Interpreter> {
    let mapper = Mapper {
        cpus: 1,
        processors: 1,
        min_tile: 1,
        min_share: 1,
        window,
        run_ahead: 2,
        fusion: true,
        memory_limit: 1 << 30,
        show_plan: true,
    };
    Runtime::new(Interpreter, mapper, Arc::new(Alone))
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
