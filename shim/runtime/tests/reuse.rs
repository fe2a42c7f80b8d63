//! Results in the memory of operands that end with their group: when they are, and when they must not be. On several shards each
//! does as it likes.
#![expect(unsafe_code, reason = "looks at fields by address")]

mod interpreter;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use interpreter::{Interpreter, Step, settle, wait};
use legate_runtime::transport::{Alone, Stop, Threads, Transport};
use legate_runtime::view::View;
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

const LENGTH: usize = 12;

fn runtime() -> Runtime<Interpreter> {
    runtime_of(Arc::new(Alone))
}

fn runtime_of(transport: Arc<dyn Transport>) -> Runtime<Interpreter> {
    let mapper = Mapper {
        cpus: 1,
        processors: 3,
        min_tile: 1,
        most_steps: usize::MAX,
        window: 100,
        run_ahead: 2,
        fusion: true,
        blocks: false,
        memory_limit: 1 << 30,
        show_plan: false,
    };
    Runtime::new(Interpreter, mapper, transport)
}

fn fresh(runtime: &Runtime<Interpreter>) -> Handle {
    runtime.field(LENGTH * 8).expect("there is room")
}

/// A field with memory that holds 1, 2, 3, ...
fn numbers(runtime: &Runtime<Interpreter>) -> Handle {
    let handle = fresh(runtime);
    // SAFETY: the field has LENGTH elements, and no launch touches it yet.
    let elements = unsafe { std::slice::from_raw_parts_mut(handle.field().materialize() as *mut u64, LENGTH) };
    elements.iter_mut().zip(1..).for_each(|(element, number)| *element = number);
    handle
}

/// Issues `output[i] = input[i * stride] * 10`.
fn issue(runtime: &Runtime<Interpreter>, output: &Handle, input: &Handle, stride: isize) {
    let operand = |handle: &Handle, stride: isize, privilege| {
        let view = View { offset: 0, strides: smallvec![stride * 8], item_bytes: 8 };
        Operand { field: handle.field().clone(), view, privilege }
    };
    let operands = smallvec![operand(output, 1, Privilege::Write), operand(input, stride, Privilege::Read)];
    runtime.launch("step".into(), Work::Map, smallvec![LENGTH], operands, Step { constant: 10, adds: false });
}

fn values(runtime: &Runtime<Interpreter>, handle: &Handle) -> Vec<u64> {
    settle(runtime, handle);
    let address = handle.field().address().expect("it was stored");
    // SAFETY: everything is done, and the field holds LENGTH elements.
    unsafe { std::slice::from_raw_parts(address as *const u64, LENGTH) }.to_vec()
}

#[test]
fn a_result_takes_the_memory_of_an_operand_that_ends() {
    let runtime = runtime();
    let (source, result) = (numbers(&runtime), fresh(&runtime));
    issue(&runtime, &result, &source, 1);
    drop(source);
    wait(&runtime);
    assert_eq!(runtime.pool().fresh_blocks(), 1);
    assert_eq!(values(&runtime, &result), (1..=LENGTH as u64).map(|n| n * 10).collect::<Vec<_>>());
}

#[test]
fn not_where_the_operand_is_held_or_read_later() {
    for later in [false, true] {
        let runtime = runtime();
        let (source, result, other) = (numbers(&runtime), fresh(&runtime), fresh(&runtime));
        issue(&runtime, &result, &source, 1);
        let held = (!later).then(|| source.clone());
        if later {
            issue(&runtime, &other, &source, 1);
        }
        drop(source);
        wait(&runtime);
        let expected: Vec<u64> = (1..=LENGTH as u64).map(|n| n * 10).collect();
        assert_eq!(values(&runtime, &result), expected);
        match held {
            Some(held) => assert_eq!(values(&runtime, &held)[2], 3),
            None => assert_eq!(values(&runtime, &other), expected),
        }
    }
}

#[test]
fn not_where_the_operand_is_read_elsewhere() {
    let runtime = runtime();
    let (source, result, repeated) = (numbers(&runtime), fresh(&runtime), fresh(&runtime));
    issue(&runtime, &repeated, &source, 0);
    issue(&runtime, &result, &source, 1);
    drop(source);
    wait(&runtime);
    assert_eq!(runtime.pool().fresh_blocks(), 3);
    assert_eq!(values(&runtime, &repeated), [10; LENGTH]);
}

#[test]
fn not_where_the_pool_has_a_block() {
    let runtime = runtime();
    let (source, result) = (numbers(&runtime), fresh(&runtime));
    drop(numbers(&runtime));
    let address = source.field().address();
    issue(&runtime, &result, &source, 1);
    drop(source);
    wait(&runtime);
    assert_eq!(runtime.pool().fresh_blocks(), 2);
    assert_ne!(result.field().address(), address);
}

#[test]
fn shards_need_not_do_alike() {
    let job = Threads::job(2, &Arc::new(Stop::default()));
    let outcome = |transport: Threads| {
        let shard = transport.shard();
        let runtime = runtime_of(Arc::new(transport));
        let (source, middle, result, turned) = (numbers(&runtime), fresh(&runtime), fresh(&runtime), fresh(&runtime));
        issue(&runtime, &middle, &source, 1);
        wait(&runtime);
        let before = runtime.pool().fresh_blocks();
        issue(&runtime, &result, &middle, 1);
        // Only one of them sees that nobody holds it any more.
        let held = (shard == 0).then(|| middle.clone());
        drop(middle);
        wait(&runtime);
        let blocks = runtime.pool().fresh_blocks() - before;
        drop(held);
        let view = |offset, stride| View { offset, strides: smallvec![stride], item_bytes: 8 };
        let operand = |handle: &Handle, view, privilege| Operand { field: handle.field().clone(), view, privilege };
        let operands = smallvec![
            operand(&turned, view(0, 8), Privilege::Write),
            operand(&result, view(8 * (LENGTH as isize - 1), -8), Privilege::Read)
        ];
        runtime.launch("step".into(), Work::Map, smallvec![LENGTH], operands, Step { constant: 1, adds: false });
        let everything = smallvec![operand(&turned, view(0, 8), Privilege::Read)];
        runtime.launch("gather".into(), Work::Whole, smallvec![LENGTH], everything, Step { constant: 0, adds: false });
        let traffic = runtime.traffic();
        let seen = values(&runtime, &turned);
        (blocks, traffic.messages.load(Ordering::Relaxed), seen)
    };
    std::thread::scope(|scope| {
        let outcomes: Vec<_> = job.into_iter().map(|shard| scope.spawn(move || outcome(shard))).collect();
        let outcomes: Vec<_> = outcomes.into_iter().map(|thread| thread.join().expect("no shard panics")).collect();
        let expected: Vec<u64> = (1..=LENGTH as u64).rev().map(|n| n * 100).collect();
        assert_eq!(outcomes, [(1, 2, expected.clone()), (0, 2, expected)]);
    });
}
