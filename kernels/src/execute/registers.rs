//! Registers of a lowered pass: which storage each has, and how many elements a block of them holds.
//!
//! Promises that registers whose lives overlap never share storage, and that no operation writes what it reads.

use smallvec::SmallVec;

use super::nest::{Nest, PERIOD, Walk};
use super::plan::{Operation, Pointer, Transfer};

/// Bytes of registers that a block should keep within: half of a 48 KiB L1, measured in `facts/fusion.md`.
const REGISTER_BYTES: usize = 24 << 10;

/// Bounds of the block size in elements, when a pass has registers.
const BLOCK: (usize, usize) = (128, 1024);

/// Most elements of a block of few and small ones: with fewer, calls of loops that do many elements at a time would cost as much as
/// what they do.
const LONG_BLOCK: usize = 4 << 10;

/// Block size of a pass of one step without registers: long enough that the cost of a call vanishes.
const LONE_BLOCK: usize = 16 << 10;

/// Block size where a walk crosses the lines: a cache line per element of the block should stay in L1.
pub(super) const CROSS_BLOCK: usize = 256;

/// A register before storage is assigned.
pub(super) struct Register {
    pub(super) item_bytes: usize,
    /// Keeps its storage through all blocks.
    pub(super) pinned: bool,
}

/// Gives each register a storage by the span of operations in which it lives: the storage of each register and their number.
pub(super) fn assign(operations: &[Operation], registers: &[Register], first: usize) -> (Vec<usize>, usize) {
    let mut last = vec![None; registers.len()];
    for (index, operation) in operations.iter().enumerate() {
        look_at_pointers(operation, |pointer| {
            if *pointer >= first {
                last[*pointer - first] = Some(index);
            }
        });
    }
    let mut storage_of = vec![usize::MAX; registers.len()];
    let mut free: Vec<usize> = Vec::new();
    let mut count = 0;
    for (index, operation) in operations.iter().enumerate() {
        let mut ended: SmallVec<[usize; 4]> = SmallVec::new();
        look_at_pointers(operation, |pointer| {
            if *pointer < first {
                return;
            }
            let register = *pointer - first;
            let pinned = registers[register].pinned;
            if storage_of[register] == usize::MAX {
                // A pinned register lives in all blocks, so what it takes must never have been another's.
                let reused = if pinned { None } else { free.pop() };
                storage_of[register] = reused.unwrap_or_else(|| {
                    count += 1;
                    count - 1
                });
            }
            if last[register] == Some(index) && !pinned && !ended.contains(&storage_of[register]) {
                ended.push(storage_of[register]);
            }
        });
        free.extend(ended);
    }
    (storage_of, count)
}

/// Calls `visit` for each pointer that may be to a register.
pub(super) fn for_each_pointer(operation: &mut Operation, mut visit: impl FnMut(&mut Pointer)) {
    match operation {
        Operation::Load(transfer) | Operation::Store(transfer) => visit(&mut transfer.storage),
        Operation::Call(call) => call.pointers.iter_mut().for_each(visit),
        Operation::Masked(mask, call) => {
            visit(&mut mask.pointer);
            call.pointers.iter_mut().for_each(visit);
        }
        Operation::Enter(enter) => {
            visit(&mut enter.mask.pointer);
            visit(&mut enter.places);
        }
        Operation::Packed(packed) => packed.whole.pointers.iter_mut().chain(&mut packed.pointers).for_each(visit),
        Operation::Gather(moved) | Operation::Scatter(moved) => {
            visit(&mut moved.block.pointer);
            visit(&mut moved.packed.pointer);
            visit(&mut moved.places);
        }
        Operation::Chain(chain) => {
            visit(&mut chain.first.pointer);
            for operand in chain.links.iter_mut().filter_map(|link| link.operand.as_mut()) {
                visit(&mut operand.pointer);
            }
            visit(&mut chain.output);
        }
        Operation::Woven(woven) => woven.operands.iter_mut().for_each(visit),
        Operation::Index { output, .. } => visit(&mut output.pointer),
        Operation::Fold(fold, _) => visit(&mut fold.input.pointer),
        Operation::Accumulate { input, .. } => visit(&mut input.pointer),
    }
}

/// The same, for looking only.
pub(super) fn look_at_pointers(operation: &Operation, mut visit: impl FnMut(&Pointer)) {
    match operation {
        Operation::Load(transfer) | Operation::Store(transfer) => visit(&transfer.storage),
        Operation::Call(call) => call.pointers.iter().for_each(visit),
        Operation::Masked(mask, call) => {
            visit(&mask.pointer);
            call.pointers.iter().for_each(visit);
        }
        Operation::Enter(enter) => {
            visit(&enter.mask.pointer);
            visit(&enter.places);
        }
        Operation::Packed(packed) => packed.whole.pointers.iter().chain(&packed.pointers).for_each(visit),
        Operation::Gather(moved) | Operation::Scatter(moved) => {
            visit(&moved.block.pointer);
            visit(&moved.packed.pointer);
            visit(&moved.places);
        }
        Operation::Chain(chain) => {
            visit(&chain.first.pointer);
            for operand in chain.links.iter().filter_map(|link| link.operand.as_ref()) {
                visit(&operand.pointer);
            }
            visit(&chain.output);
        }
        Operation::Woven(woven) => woven.operands.iter().for_each(visit),
        Operation::Index { output, .. } => visit(&output.pointer),
        Operation::Fold(fold, _) => visit(&fold.input.pointer),
        Operation::Accumulate { input, .. } => visit(&input.pointer),
    }
}

/// Whether some walk touches a new cache line at each element of a line but finds its neighbours in the next lines (a
/// transposed operand), and no operation depends on the order of blocks.
pub(super) fn crosses(nest: &Nest, operations: &[Operation]) -> bool {
    let is_ordered = |operation: &Operation| matches!(operation, Operation::Fold(..) | Operation::Accumulate { .. });
    let crosses = |walk: &Walk| match walk.strides[..] {
        [.., across, along] => along.unsigned_abs() >= 64 && across != 0 && across.unsigned_abs() < 64,
        _ => false,
    };
    nest.walks.iter().any(crosses) && !operations.iter().any(is_ordered)
}

/// How many elements a block has.
pub(super) fn block_size(
    nest: &Nest,
    gathers: bool,
    storages: usize,
    item_bytes: usize,
    operations: &[Operation],
) -> usize {
    let item_bytes = item_bytes.max(1);
    let limit = match storages {
        0 if operations.len() == 1 => LONE_BLOCK,
        0 => {
            // What one operation has written the next one reads.
            let moving = nest.walks.iter().filter(|walk| walk.whole != Some(0));
            let bytes: usize = moving.map(|walk| walk.item_bytes).sum();
            (REGISTER_BYTES / bytes.max(1)).clamp(BLOCK.1, LONG_BLOCK)
        }
        _ => (REGISTER_BYTES / (storages * item_bytes)).clamp(BLOCK.0, BLOCK.1.max(LONG_BLOCK / item_bytes)),
    };
    let rounded = limit - limit % 16;
    // A block whose bytes divide a page keeps the phase between streams and registers fixed: see `facts/fusion.md`.
    let limit = if storages > 0 && 4096 % (rounded * item_bytes) == 0 { rounded - 16 } else { rounded };
    let innermost = nest.axes[nest.axes.len() - 1];
    if !gathers {
        if innermost.by_rows || innermost.length == 0 {
            return limit;
        }
        // Equal blocks: no short last one.
        let blocks = innermost.length.div_ceil(limit);
        return innermost.length.div_ceil(blocks).next_multiple_of(16);
    }
    let once = operations.iter().any(|operation| matches!(operation, Operation::Load(Transfer { once: true, .. })));
    let limit = if once { limit.max(PERIOD) } else { limit };
    let mut unit = 1;
    for axis in nest.axes[1..].iter().rev() {
        if unit * axis.length > limit {
            break;
        }
        unit *= axis.length;
    }
    (limit / unit.max(1)).max(1) * unit.max(1)
}
