//! Moving a block between memory and a register, and folding one into the rows of an output.
//!
//! Promises to read and write exactly the elements of the block, of any size and alignment.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use std::ptr;

use super::LoopError;
use super::plan::Kernel;
use super::walk::{BlockWalk, invoke};
use crate::loops;
use crate::program::Seed;

/// Copies the block's elements to `register`, one after the other.
///
/// # Safety
/// Both sides must hold `count` elements and not overlap.
pub(super) unsafe fn load(register: *mut u8, source: &BlockWalk<'_>, count: usize) {
    let item_bytes = source.item_bytes;
    source.for_each_line(count, |address, length, before, _| {
        let target = register.wrapping_add(before * item_bytes);
        // SAFETY: a line lies within the block.
        unsafe { copy_line(target, item_bytes.cast_signed(), address, source.stride, length, item_bytes) };
    });
}

/// Copies `register` to the block's elements.
///
/// # Safety
/// Both sides must hold `count` elements and not overlap.
pub(super) unsafe fn store(target: &BlockWalk<'_>, register: *const u8, count: usize) {
    let item_bytes = target.item_bytes;
    target.for_each_line(count, |address, length, before, _| {
        let source = register.wrapping_add(before * item_bytes);
        // SAFETY: a line lies within the block.
        unsafe { copy_line(address, target.stride, source, item_bytes.cast_signed(), length, item_bytes) };
    });
}

#[inline(always)]
unsafe fn copy_line(
    target: *mut u8,
    target_stride: isize,
    source: *const u8,
    source_stride: isize,
    count: usize,
    item_bytes: usize,
) {
    let item = item_bytes.cast_signed();
    // SAFETY: the caller's: `count` elements on both sides, which do not overlap.
    unsafe {
        if source_stride == item && target_stride == item {
            match item_bytes {
                8 if count <= 32 => {
                    for index in 0..count {
                        target.cast::<u64>().add(index).write_unaligned(source.cast::<u64>().add(index).read_unaligned());
                    }
                }
                _ => ptr::copy_nonoverlapping(source, target, count * item_bytes),
            }
        } else {
            loops::copy_strided(target, target_stride, source, source_stride, count, item_bytes);
        }
    }
}

/// `output[j] = kernel(output[j], input[i, j])` for the block's elements; the first to reach an output element seeds it.
///
/// # Safety
/// `source` and `target` must hold `count` elements each.
pub(super) unsafe fn accumulate(
    kernel: &Kernel,
    seed: Seed,
    source: (*mut u8, isize),
    target: &BlockWalk<'_>,
    item_bytes: usize,
    count: usize,
) -> Result<(), LoopError> {
    let (input, stride) = source;
    let mut result = Ok(());
    target.for_each_line(count, |address, length, before, is_first| {
        if result.is_err() {
            return;
        }
        let input = input.wrapping_offset(stride * before.cast_signed());
        // SAFETY: a line lies within the block.
        result = unsafe { accumulate_line(kernel, seed, (input, stride), (address, target.stride), item_bytes, length, is_first) };
    });
    result
}

unsafe fn accumulate_line(
    kernel: &Kernel,
    seed: Seed,
    (input, input_stride): (*mut u8, isize),
    (output, output_stride): (*mut u8, isize),
    item_bytes: usize,
    count: usize,
    is_first: bool,
) -> Result<(), LoopError> {
    // SAFETY: the caller's.
    unsafe {
        if output_stride == 0 {
            // One output element for the whole line; calls of one element, since loops may sum longer ones in another order.
            let mut first = 0;
            if is_first {
                match seed {
                    Seed::First => {
                        ptr::copy_nonoverlapping(input, output, item_bytes);
                        first = 1;
                    }
                    Seed::Value(value) => ptr::copy_nonoverlapping(value.0.as_ptr(), output, item_bytes),
                }
            }
            for index in first..count {
                let input = input.wrapping_offset(input_stride * index.cast_signed());
                invoke(kernel, &[output.cast(), input.cast(), output.cast()], 1, &[0, input_stride, 0])?;
            }
            return Ok(());
        }
        if is_first {
            match seed {
                Seed::First => {
                    loops::copy_strided(output, output_stride, input, input_stride, count, item_bytes);
                    return Ok(());
                }
                Seed::Value(value) => {
                    loops::copy_strided(output, output_stride, value.0.as_ptr(), 0, count, item_bytes);
                }
            }
        }
        let data = [output.cast(), input.cast(), output.cast()];
        invoke(kernel, &data, count, &[output_stride, input_stride, output_stride])
    }
}
