//! What a shard of very many sends in a stencil's sweep, in blocks and in rows: one shard is played, and counted.

mod interpreter;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use interpreter::{Interpreter, Step, wait};
use legate_runtime::transport::Planning;
use legate_runtime::view::View;
use legate_runtime::{Handle, Mapper, Operand, Privilege, Runtime, Work};
use smallvec::smallvec;

const SHARDS: usize = 1024;
/// A shard in the middle of the grid of 32 x 32.
const SHARD: usize = 16 * 32 + 16;
/// Side of a block.
const BLOCK: usize = 16;
const SIDE: usize = 32 * BLOCK;
const ROW: isize = SIDE as isize * 8;

fn view(row: isize, column: isize) -> View {
    View { offset: row * ROW + column * 8, strides: smallvec![ROW, 8], item_bytes: 8 }
}

fn map(runtime: &Runtime<Interpreter>, side: usize, output: (&Handle, View), inputs: &[(&Handle, View)]) {
    let operand = |(handle, view): &(&Handle, View), privilege| {
        let field = handle.field().clone();
        Operand { field, view: view.clone(), privilege }
    };
    let inputs = inputs.iter().map(|input| operand(input, Privilege::Read));
    let operands = std::iter::once(operand(&output, Privilege::Write)).chain(inputs).collect();
    runtime.launch("step".into(), Work::Map, smallvec![side, side], operands, Step { constant: 3, adds: false });
}

/// The messages and bytes that the played shard sends in a sweep of the 5-point stencil.
fn sweep(blocks: bool) -> (u64, u64) {
    let mapper = Mapper {
        cpus: 1,
        processors: 1,
        min_tile: 1,
        most_steps: usize::MAX,
        window: 64,
        run_ahead: 2,
        fusion: true,
        blocks,
        memory_limit: 1 << 30,
        show_plan: false,
    };
    let runtime = Runtime::new(Interpreter, mapper, Arc::new(Planning::new(SHARD, SHARDS)));
    let field = || runtime.field(SIDE * SIDE * 8).expect("there is room");
    let (source, grid, other) = (field(), field(), field());
    map(&runtime, SIDE, (&grid, view(0, 0)), &[(&source, view(0, 0))]);
    map(&runtime, SIDE, (&other, view(0, 0)), &[(&source, view(0, 0))]);
    wait(&runtime);
    let counted = || {
        let traffic = runtime.traffic();
        (traffic.messages.load(Ordering::Relaxed), traffic.bytes.load(Ordering::Relaxed))
    };
    let before = counted();
    assert_eq!(before, (0, 0), "new arrays live where they are made");
    map(&runtime, SIDE - 2, (&other, view(1, 1)), &[(&grid, view(0, 1)), (&grid, view(2, 1))]);
    map(&runtime, SIDE - 2, (&other, view(1, 1)), &[(&grid, view(1, 0)), (&grid, view(1, 2))]);
    wait(&runtime);
    assert_eq!(runtime.counters().in_blocks.load(Ordering::Relaxed) > 0, blocks);
    counted()
}

#[test]
fn a_sweep_sends_the_sides_of_a_block() {
    assert_eq!(sweep(true), (4, 4 * BLOCK as u64 * 8));
}

#[test]
fn a_sweep_in_rows_sends_whole_rows() {
    // There are fewer rows than shards, so each has half of one, without the end that no inner element is above or below.
    let (messages, bytes) = sweep(false);
    assert!(messages >= 2 && bytes > 2 * (SIDE as u64 / 2 - 1) * 8, "{messages} {bytes}");
}
