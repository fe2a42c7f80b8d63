//! Matrix products on memory: rows of one, and sums of parts of one, by NumPy's own loops.
//!
//! What a launch multiplies and how it is shared out is decided by `ops::product`; this runs it, without the GIL.
#![expect(unsafe_code, reason = "calls NumPy's loops on parts of fields")]

use std::ffi::c_char;
use std::ops::Range;

use legate_kernels::program::Loop;
use legate_runtime::Operand;
use smallvec::SmallVec;

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

/// Runs rows of a matrix product.
pub(crate) fn multiply(product: &Product, operands: &[Operand], addresses: &[usize], rows: &Range<usize>) {
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
        unsafe { call(&product.kernel, &data, &[rows.len() as isize, height, depth, width], &strides) };
        return;
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
    let (height, depth) = if by_sum { (height, rows.len() as isize) } else { (rows.len() as isize, depth) };
    let data = [left as *mut c_char, right as *mut c_char, out as *mut c_char];
    let strides = [0, 0, 0, left_row, left_sum, right_sum, right_column, out_row, out_column];
    // SAFETY: the views lie inside their fields; the rows' parts of them are what NumPy's loop for matrices is given.
    unsafe { call(&product.kernel, &data, &[1, height, depth, width], &strides) };
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
