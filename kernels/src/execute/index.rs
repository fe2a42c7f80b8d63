//! The numbers of the elements of a pass, as NumPy's `arange` computes them.

#![expect(unsafe_code, reason = "writes elements at computed addresses")]

use super::walk::BlockWalk;
use crate::loops::half;
use crate::program::{Element, Number};

/// Writes `start + index * delta` for each element of the block; the addresses of `numbers` are the indices.
///
/// # Safety
/// `output` must hold `count` elements of `number` along `stride`.
pub(super) unsafe fn fill(
    number: Number,
    start: &Element,
    delta: &Element,
    output: *mut u8,
    stride: isize,
    numbers: &BlockWalk<'_>,
    count: usize,
) {
    numbers.for_each_line(count, |address, length, before, _| {
        let line = Line {
            first: address.addr().cast_signed(),
            step: numbers.stride,
            output: output.wrapping_offset(stride * before.cast_signed()),
            stride,
            length,
        };
        // SAFETY: the line lies within the block, and the type is that of `number`.
        unsafe {
            match number {
                Number::Bool | Number::I8 | Number::U8 => {
                    line.write(|i| read::<u8>(start, 0).wrapping_add((i as u8).wrapping_mul(read(delta, 0))))
                }
                Number::I16 | Number::U16 => {
                    line.write(|i| read::<u16>(start, 0).wrapping_add((i as u16).wrapping_mul(read(delta, 0))))
                }
                Number::I32 | Number::U32 => {
                    line.write(|i| read::<u32>(start, 0).wrapping_add((i as u32).wrapping_mul(read(delta, 0))))
                }
                Number::I64 | Number::U64 => {
                    line.write(|i| read::<u64>(start, 0).wrapping_add((i as u64).wrapping_mul(read(delta, 0))))
                }
                Number::F16 => line.write(|i| half::from_f32(read::<f32>(start, 0) + i as f32 * read::<f32>(delta, 0))),
                Number::F32 => line.write(|i| read::<f32>(start, 0) + i as f32 * read::<f32>(delta, 0)),
                Number::F64 => line.write(|i| read::<f64>(start, 0) + i as f64 * read::<f64>(delta, 0)),
                Number::C64 => {
                    line.write(|i| [0, 1].map(|part| read::<f32>(start, part) + i as f32 * read::<f32>(delta, part)))
                }
                Number::C128 => {
                    line.write(|i| [0, 1].map(|part| read::<f64>(start, part) + i as f64 * read::<f64>(delta, part)))
                }
            }
        }
    });
}

fn read<T: Copy>(element: &Element, part: usize) -> T {
    debug_assert!((part + 1) * size_of::<T>() <= element.0.len());
    // SAFETY: within the element, which is aligned for any number; every bit pattern is a number.
    unsafe { element.0.as_ptr().cast::<T>().add(part).read() }
}

struct Line {
    first: isize,
    step: isize,
    output: *mut u8,
    stride: isize,
    length: usize,
}

impl Line {
    #[inline(always)]
    unsafe fn write<T>(&self, value: impl Fn(isize) -> T) {
        if self.stride == size_of::<T>().cast_signed() {
            for index in 0..self.length {
                // SAFETY: the caller's.
                unsafe {
                    self.output.cast::<T>().add(index).write(value(self.first + self.step * index.cast_signed()))
                };
            }
            return;
        }
        for index in 0..self.length.cast_signed() {
            // SAFETY: the caller's.
            unsafe { self.output.offset(self.stride * index).cast::<T>().write(value(self.first + self.step * index)) };
        }
    }
}
