//! Writing elements that an index array or a mask picks.
//!
//! Promises that of several values for one element the last stays, as in NumPy, when one task writes them in order. Indices
//! must have been checked (`gather::check`): nothing is written before an error is known.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use std::ptr;

use crate::gather::{Strided, copy_run, for_each_set, place};

/// `target[indices[k]] = values[k]` for `count` indices (i64) into an axis of `length`; elements (often whole rows) of
/// `bytes` contiguous bytes. A stride of 0 repeats one value.
///
/// # Safety
/// All operands must be there and the indices in range; the values must not overlap the target.
pub unsafe fn put(target: Strided, length: usize, indices: Strided, values: Strided, count: usize, bytes: usize) {
    for position in 0..count {
        // SAFETY: the caller's.
        unsafe {
            let index = indices.at(position).cast::<i64>().read_unaligned();
            let Some(place) = place(index, length) else { continue };
            write(values.at(position), target.at(place), bytes);
        }
    }
}

/// `*(target + offsets[k]) = values[k]`: several index arrays at once, as byte offsets that were checked when they were made.
///
/// # Safety
/// All operands must be there; the values must not overlap the target.
pub unsafe fn put_at(target: *mut u8, offsets: &[isize], values: Strided, bytes: usize) {
    for (position, offset) in offsets.iter().enumerate() {
        // SAFETY: the caller's.
        unsafe { write(values.at(position), target.offset(*offset), bytes) };
    }
}

/// Writes `values`, one after the other, to the elements of `target` whose mask byte is set; their number.
///
/// # Safety
/// The mask and the target must hold `count` elements, the values as many as are set (or have stride 0); the values must
/// not overlap the target.
pub unsafe fn expand(mask: Strided, target: Strided, count: usize, values: Strided, bytes: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            1 => expand_items::<u8>(mask, target, count, values),
            2 => expand_items::<u16>(mask, target, count, values),
            4 => expand_items::<u32>(mask, target, count, values),
            8 => expand_items::<u64>(mask, target, count, values),
            16 => expand_items::<[u64; 2]>(mask, target, count, values),
            _ => for_each_set(mask, count, |index, before, run| {
                for place in 0..run {
                    ptr::copy_nonoverlapping(values.at(before + place), target.at(index + place), bytes);
                }
            }),
        }
    }
}

unsafe fn expand_items<T: Copy>(mask: Strided, target: Strided, count: usize, values: Strided) -> usize {
    // SAFETY: the caller's.
    unsafe {
        for_each_set(mask, count, |index, before, run| copy_run::<T>(values.from(before), target.from(index), run))
    }
}

#[inline(always)]
unsafe fn write(value: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            4 => target.cast::<u32>().write_unaligned(value.cast::<u32>().read_unaligned()),
            8 => target.cast::<u64>().write_unaligned(value.cast::<u64>().read_unaligned()),
            16 => target.cast::<[u64; 2]>().write_unaligned(value.cast::<[u64; 2]>().read_unaligned()),
            _ => ptr::copy_nonoverlapping(value, target, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided<T>(values: &mut [T]) -> Strided {
        Strided { address: values.as_mut_ptr().cast(), stride: size_of::<T>().cast_signed() }
    }

    #[test]
    fn the_last_of_several_values_stays() {
        let mut target = [0_u64; 3];
        let mut indices = [2_i64, -1, 0];
        let mut values = [5_u64, 6, 7];
        let (to, by, from) = (strided(&mut target), strided(&mut indices), strided(&mut values));
        // SAFETY: all operands have three elements.
        unsafe { put(to, 3, by, from, 3, 8) };
        assert_eq!(target, [7, 0, 6]);
    }

    #[test]
    fn expand_spends_a_value_per_set_byte() {
        let mut target = [0_u16; 10];
        let mut mask = [0_u8, 1, 0, 0, 2, 0, 0, 0, 0, 1];
        let mut values = [7_u16, 8, 9];
        let (to, by, from) = (strided(&mut target), strided(&mut mask), strided(&mut values));
        // SAFETY: ten elements and three values.
        assert_eq!(unsafe { expand(by, to, 10, from, 2) }, 3);
        assert_eq!(target, [0, 7, 0, 0, 8, 0, 0, 0, 0, 9]);
    }
}
