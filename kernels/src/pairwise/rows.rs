//! Many runs of the same short length: the sums of the rows of a block.

#![expect(unsafe_code, reason = "reads values through raw pointers")]

use super::tree::{Summand, sum};

/// Calls `emit(row, sum)` for each of `rows` runs of `count` values, all `stride` bytes apart.
///
/// # Safety
/// The values must be there and aligned.
#[inline(always)]
pub(crate) unsafe fn sum_rows<T: Summand>(
    values: *const u8,
    stride: isize,
    rows: usize,
    count: usize,
    mut emit: impl FnMut(usize, T::Sum),
) {
    let row_bytes = stride * count.cast_signed();
    for row in 0..rows {
        // SAFETY: the caller's.
        emit(row, unsafe { sum::<T>(values.offset(row_bytes * row.cast_signed()), stride, count) });
    }
}
