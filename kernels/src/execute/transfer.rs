//! Moving a block between memory and a register, and folding one into the rows of an output.
//!
//! Promises to read and write exactly the elements of the block, of any size and alignment.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use std::ptr;

use super::LoopError;
use super::plan::Kernel;
use super::walk::{Batch, BlockWalk, invoke};
use crate::loops;
use crate::loops::rows::{Rows, RowsFunction};
use crate::program::Seed;

/// Copies the block's elements to `register`, one after the other.
///
/// # Safety
/// Both sides must hold `count` elements and not overlap.
pub(super) unsafe fn load(register: *mut u8, source: &BlockWalk<'_>, count: usize) {
    let item_bytes = source.item_bytes;
    source.for_each_batch(count, |mut batch| {
        let target = register.wrapping_add(batch.before * item_bytes);
        let copies = if batch.line_stride == 0 { batch.lines } else { 1 };
        if copies > 1 {
            batch.lines = 1;
        }
        // SAFETY: a batch lies within the block.
        unsafe {
            match item_bytes {
                1 => load_batch::<u8>(target.cast(), &batch, source.stride),
                2 => load_batch::<u16>(target.cast(), &batch, source.stride),
                4 => load_batch::<u32>(target.cast(), &batch, source.stride),
                8 => load_batch::<u64>(target.cast(), &batch, source.stride),
                16 => load_batch::<[u64; 2]>(target.cast(), &batch, source.stride),
                _ => {
                    for line in 0..batch.lines {
                        let from = batch.address.wrapping_offset(batch.line_stride * line.cast_signed());
                        let to = target.wrapping_add(line * batch.run * item_bytes);
                        loops::copy_strided(to, item_bytes.cast_signed(), from, source.stride, batch.run, item_bytes);
                    }
                }
            }
            repeat(target, batch.run * item_bytes, copies);
        }
    });
}

/// Repeats the first `bytes` bytes so that they are there `copies` times.
unsafe fn repeat(target: *mut u8, bytes: usize, copies: usize) {
    let mut done = 1;
    while done < copies {
        let more = done.min(copies - done);
        // SAFETY: the caller's; the two parts are apart.
        unsafe { ptr::copy_nonoverlapping(target, target.add(done * bytes), more * bytes) };
        done += more;
    }
}

unsafe fn load_batch<T: Copy>(target: *mut T, batch: &Batch, stride: isize) {
    let dense = stride == size_of::<T>().cast_signed();
    // SAFETY: the caller's.
    unsafe {
        match (batch.run, stride) {
            (2, 0) => load_lines::<T, 2, false>(target, batch),
            (3, 0) => load_lines::<T, 3, false>(target, batch),
            (4, 0) => load_lines::<T, 4, false>(target, batch),
            (2, _) if dense => load_lines::<T, 2, true>(target, batch),
            (3, _) if dense => load_lines::<T, 3, true>(target, batch),
            (4, _) if dense => load_lines::<T, 4, true>(target, batch),
            (8, _) if dense => load_lines::<T, 8, true>(target, batch),
            (16, _) if dense => load_lines::<T, 16, true>(target, batch),
            _ => {
                for line in 0..batch.lines {
                    let from = batch.address.wrapping_offset(batch.line_stride * line.cast_signed());
                    let to = target.add(line * batch.run);
                    if dense && batch.run * size_of::<T>() >= 128 {
                        // As bytes: a line need not be aligned for its type.
                        loops::copy_run(to.cast::<u8>(), from.cast::<u8>(), batch.run * size_of::<T>());
                        continue;
                    }
                    for index in 0..batch.run {
                        let value = from.wrapping_offset(stride * index.cast_signed()).cast::<T>().read_unaligned();
                        to.add(index).write_unaligned(value);
                    }
                }
            }
        }
    }
}

/// Lines of `RUN` elements that follow one another (or are one element, repeated).
#[inline(always)]
unsafe fn load_lines<T: Copy, const RUN: usize, const DENSE: bool>(target: *mut T, batch: &Batch) {
    for line in 0..batch.lines {
        let from = batch.address.wrapping_offset(batch.line_stride * line.cast_signed());
        // SAFETY: the caller's.
        unsafe {
            let values =
                if DENSE { from.cast::<[T; RUN]>().read_unaligned() } else { [from.cast::<T>().read_unaligned(); RUN] };
            target.add(line * RUN).cast::<[T; RUN]>().write_unaligned(values);
        }
    }
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
        unsafe {
            loops::copy_strided(address, target.stride, source, item_bytes.cast_signed(), length, item_bytes);
        }
    });
}

/// Copies a register to contiguous memory past the caches.
///
/// # Safety
/// Both sides must hold `bytes` bytes and not overlap.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn stream(target: *mut u8, register: *const u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};

    // Whole cache lines only: a line written in part is read first anyway.
    let head = target.align_offset(64).min(bytes);
    let body = (bytes - head) / 64 * 64;
    // SAFETY: the caller's; the body is aligned.
    unsafe {
        ptr::copy_nonoverlapping(register, target, head);
        for offset in (head..head + body).step_by(64) {
            let (from, to) = (register.add(offset).cast::<__m128i>(), target.add(offset).cast::<__m128i>());
            let quarters = [0, 1, 2, 3].map(|quarter| _mm_loadu_si128(from.add(quarter)));
            for (quarter, value) in quarters.into_iter().enumerate() {
                _mm_stream_si128(to.add(quarter), value);
            }
        }
        let done = head + body;
        ptr::copy_nonoverlapping(register.add(done), target.add(done), bytes - done);
    }
}

/// Makes streamed bytes visible to other threads.
#[cfg(target_arch = "x86_64")]
pub(super) fn finish_streams() {
    // SAFETY: every x86-64 has it.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// Elsewhere there is no portable way past the caches.
///
/// # Safety
/// Both sides must hold `bytes` bytes and not overlap.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn stream(target: *mut u8, register: *const u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { ptr::copy_nonoverlapping(register, target, bytes) };
}

/// Nothing to do.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn finish_streams() {}

/// `output[j] = kernel(output[j], input[i, j])` for the block's elements; the first to reach an output element seeds it.
///
/// # Safety
/// `source` and `target` must hold `count` elements each.
pub(super) unsafe fn accumulate(
    (kernel, rows): (&Kernel, Option<RowsFunction>),
    seed: Seed,
    source: (*mut u8, isize),
    target: &BlockWalk<'_>,
    count: usize,
) -> Result<(), LoopError> {
    let (input, stride) = source;
    let item_bytes = target.item_bytes;
    let dense = item_bytes.cast_signed();
    let mut result = Ok(());
    target.for_each_batch(count, |batch| {
        let line = |number: usize| {
            let before = (batch.before + number * batch.run).cast_signed();
            let address = batch.address.wrapping_offset(batch.line_stride * number.cast_signed());
            (address, input.wrapping_offset(stride * before))
        };
        // Lines with one target, from the second on: the first may have to seed it.
        let together = rows.filter(|_| batch.line_stride == 0 && stride == dense && target.stride == dense);
        for number in 0..if together.is_some() { batch.lines.min(1) } else { batch.lines } {
            let (address, input) = line(number);
            let is_first = batch.is_first && (number == 0 || batch.line_stride != 0);
            if result.is_ok() {
                // SAFETY: a line lies within the block.
                result = unsafe {
                    let (source, target) = ((input, stride), (address, target.stride));
                    accumulate_line(kernel, seed, source, target, item_bytes, batch.run, is_first)
                };
            }
        }
        if let Some(fold) = together.filter(|_| batch.lines > 1) {
            let (address, first) = line(1);
            let step = dense * batch.run.cast_signed();
            // SAFETY: as above; an accumulated target is apart from what is read.
            unsafe { fold(address, &Rows { first, step, rows: batch.lines - 1, count: batch.run }) };
        }
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
