//! Matrix products on memory: rows of one, and sums of parts of one, by NumPy's own loops; where many short rows are multiplied and
//! summed up, block by block by loops of ours, on all workers.
//!
//! What a launch multiplies and how it is shared out is decided by `ops::product`; this runs it, without the GIL.
#![expect(unsafe_code, reason = "calls NumPy's loops on parts of fields")]

use std::ffi::c_char;
use std::ops::Range;

use legate_kernels::execute::watched;
use legate_kernels::product::long::LongRows;
use legate_kernels::product::{self, Item, ShortRows};
use legate_kernels::program::Loop;
use legate_runtime::{Operand, Parallel};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::ops::long_rows::Job;
use crate::task::Product;

/// Calls a loop.
///
/// # Safety
/// The operands must be those that the loop takes.
unsafe fn call(kernel: &Loop, data: &[*mut c_char], lengths: &[isize], strides: &[isize]) {
    // SAFETY: the caller's, and `Loop`'s invariant.
    let code =
        unsafe { (kernel.function)(kernel.context, data.as_ptr(), lengths.as_ptr(), strides.as_ptr(), kernel.auxdata) };
    assert!(code == 0, "inner loop {} failed with code {code}", kernel.name);
}

/// Bytes of short rows in a block, of which each gives a part of the sums: some hundred microseconds' work.
const BLOCK_BYTES: usize = 1 << 20;
/// Most blocks, so that adding up what they give costs little.
const MOST_BLOCKS: usize = 1024;

/// Runs rows of a matrix product; the floating-point events that they raised.
pub(crate) fn multiply(
    product: &Product,
    operands: &[Operand],
    addresses: &[usize],
    rows: &Range<usize>,
    workers: &dyn Parallel,
) -> u8 {
    let starts: SmallVec<[usize; 3]> = operands
        .iter()
        .zip(addresses)
        .map(|(operand, address)| address.wrapping_add_signed(operand.view.offset))
        .collect();
    let [height, depth, width] = product.lengths.map(|length| length as isize);
    let [left_row, left_sum, right_sum, right_column, out_row, out_column] = product.strides;
    let first = rows.start as isize;
    if let Some(apart) = product.stack {
        let [left, right, out] = apart;
        let places = [(starts[1], left), (starts[2], right), (starts[0], out)];
        let data = places.map(|(start, apart)| start.wrapping_add_signed(first * apart) as *mut c_char);
        let strides = [left, right, out, left_row, left_sum, right_sum, right_column, out_row, out_column];
        // SAFETY: as below, for each matrix of the stack.
        return watched(|| unsafe {
            call(&product.kernel, &data, &[rows.len() as isize, height, depth, width], &strides);
        });
    }
    let by_sum = operands[0].view.row_stride() == 0;
    let (left, right, out) = match by_sum {
        true => (
            starts[1].wrapping_add_signed(first * left_sum),
            starts[2].wrapping_add_signed(first * right_sum),
            starts[0],
        ),
        false => {
            (starts[1].wrapping_add_signed(first * left_row), starts[2], starts[0].wrapping_add_signed(first * out_row))
        }
    };
    if by_sum && let Some(item) = product.narrow {
        return sum_outer(product, item, [left, right, out], rows.len(), workers);
    }
    if let Some(item) = product.long {
        let matrix = LongRows { address: left, step: left_row, length: product.lengths[1] };
        let job = Job { item, rows: matrix, count: rows.len(), vector: right, out, apart: out_row };
        // SAFETY: the views lie inside their fields, aligned (`ops::product`); nobody else touches these rows of the output.
        return unsafe { job.run(workers) };
    }
    let (height, depth) = if by_sum { (height, rows.len() as isize) } else { (rows.len() as isize, depth) };
    let data = [left as *mut c_char, right as *mut c_char, out as *mut c_char];
    let strides = [0, 0, 0, left_row, left_sum, right_sum, right_column, out_row, out_column];
    // SAFETY: the views lie inside their fields; the rows' parts of them are what NumPy's loop for matrices is given.
    watched(|| unsafe { call(&product.kernel, &data, &[1, height, depth, width], &strides) })
}

/// Sums the products of `rows` short rows of both matrices, each block by itself and then the blocks in order, so that threads
/// change no rounding; addresses are those of the first rows and of the output. The events.
fn sum_outer(product: &Product, item: Item, addresses: [usize; 3], rows: usize, workers: &dyn Parallel) -> u8 {
    let [left, right, out] = addresses;
    let [height, _, width] = product.lengths;
    let [left_row, left_sum, right_sum, right_column, ..] = product.strides;
    let left = ShortRows { address: left, step: left_sum, stride: left_row, count: height };
    let right = ShortRows { address: right, step: right_sum, stride: right_column, count: width };
    let block = (BLOCK_BYTES / ((height + width) * product.item_bytes)).max(rows.div_ceil(MOST_BLOCKS)).max(1);
    let parts: Vec<Mutex<(Vec<u8>, u8)>> = (0..rows.div_ceil(block).max(1)).map(|_| Mutex::default()).collect();
    workers.each(parts.len(), &|part| {
        let first = part * block;
        let behind = |side: ShortRows| ShortRows {
            address: side.address.wrapping_add_signed(side.step * first as isize),
            ..side
        };
        let mut sums = Vec::new();
        // SAFETY: the views lie inside their fields, aligned (`ops::product`), and these rows of them are there.
        let events = watched(|| unsafe {
            sums = product::outer_sums(item, behind(left), behind(right), block.min(rows - first));
        });
        *parts[part].lock() = (sums, events);
    });
    let (mut sums, mut events) = (Vec::new(), 0);
    for (part, raised) in parts.into_iter().map(Mutex::into_inner) {
        sums.extend(part);
        events |= raised;
    }
    events | watched(|| add_parts(product, &sums, height * width * product.item_bytes, out))
}

/// Adds up parts of a product, of `bytes` bytes each, in order; the sum goes to an address.
pub(crate) fn add_parts(product: &Product, parts: &[u8], bytes: usize, address: usize) {
    let item = product.item_bytes as isize;
    // SAFETY: the output's elements are `bytes` bytes inside its field.
    unsafe { crate::numpy_api::copy_bytes(parts.as_ptr() as usize, address, bytes) };
    for part in parts[bytes..].chunks(bytes) {
        let data = [address as *mut c_char, part.as_ptr().cast_mut().cast(), address as *mut c_char];
        // SAFETY: the sum and the part have `bytes` bytes of elements of the loop's type; `parts` comes from an allocation that
        // is aligned for numbers as the system's allocator aligns, and parts are whole numbers of elements.
        unsafe { call(&product.adder, &data, &[bytes as isize / item], &[item, item, item]) };
    }
}
