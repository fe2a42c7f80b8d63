//! Reading elements that an index array or a mask picks.
//!
//! Promises NumPy's meaning of indices (negative ones count from the end) and the order of the picks. Parallel callers
//! give each task a range: picks by index are independent; for a mask they count each range first and let each task write
//! at the sum of the counts before it. `scatter` writes where this reads.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use std::ptr;

use crate::loops;

/// An index outside its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The index as given.
    pub index: i64,
    /// Its place among the indices.
    pub position: usize,
    /// Length of the axis.
    pub length: usize,
}

impl std::fmt::Display for OutOfRange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "index {} is out of bounds for an axis of length {}", self.index, self.length)
    }
}

impl std::error::Error for OutOfRange {}

/// Equal elements at equal distances.
#[derive(Clone, Copy, Debug)]
pub struct Strided {
    /// Address of the first.
    pub address: *mut u8,
    /// Bytes from one to the next.
    pub stride: isize,
}

impl Strided {
    /// The address of element `index`.
    #[inline(always)]
    pub fn at(self, index: usize) -> *mut u8 {
        self.address.wrapping_offset(self.stride * index.cast_signed())
    }

    /// The elements from `index` on.
    #[inline(always)]
    pub fn from(self, index: usize) -> Strided {
        Strided { address: self.at(index), stride: self.stride }
    }
}

/// Place of a NumPy index on an axis.
#[inline(always)]
pub fn place(index: i64, length: usize) -> Option<usize> {
    let wrapped = if index < 0 { index.wrapping_add(length.cast_signed() as i64) } else { index };
    usize::try_from(wrapped).ok().filter(|place| *place < length)
}

/// Whether all of `count` indices (i64) lie on an axis of `length`; the first that does not.
///
/// # Safety
/// The indices must be there.
pub unsafe fn check(indices: Strided, count: usize, length: usize) -> Result<(), OutOfRange> {
    for position in 0..count {
        // SAFETY: the caller's.
        let index = unsafe { indices.at(position).cast::<i64>().read_unaligned() };
        if place(index, length).is_none() {
            return Err(OutOfRange { index, position, length });
        }
    }
    Ok(())
}

/// `output[k] = source[indices[k]]` for `count` indices (i64) into an axis of `length`; elements (often whole rows) of
/// `bytes` contiguous bytes. Stops at the first index that is out of range.
///
/// # Safety
/// All operands must be there; the output must overlap neither of the others.
pub unsafe fn take(
    source: Strided,
    length: usize,
    indices: Strided,
    count: usize,
    output: Strided,
    bytes: usize,
) -> Result<(), OutOfRange> {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            1 => take_items::<u8>(source, length, indices, count, output),
            2 => take_items::<u16>(source, length, indices, count, output),
            4 => take_items::<u32>(source, length, indices, count, output),
            8 => take_items::<u64>(source, length, indices, count, output),
            16 => take_items::<[u64; 2]>(source, length, indices, count, output),
            _ => {
                for position in 0..count {
                    let index = indices.at(position).cast::<i64>().read_unaligned();
                    let Some(place) = place(index, length) else {
                        return Err(OutOfRange { index, position, length });
                    };
                    ptr::copy_nonoverlapping(source.at(place), output.at(position), bytes);
                }
                Ok(())
            }
        }
    }
}

unsafe fn take_items<T: Copy>(
    source: Strided,
    length: usize,
    indices: Strided,
    count: usize,
    output: Strided,
) -> Result<(), OutOfRange> {
    for position in 0..count {
        // SAFETY: the caller's; the place is on the axis.
        unsafe {
            let index = indices.at(position).cast::<i64>().read_unaligned();
            let Some(place) = place(index, length) else {
                return Err(OutOfRange { index, position, length });
            };
            let value = source.at(place).cast::<T>().read_unaligned();
            output.at(position).cast::<T>().write_unaligned(value);
        }
    }
    Ok(())
}

/// `output[k] = *(source + offsets[k])` for elements of `bytes` bytes: several index arrays at once, as byte offsets that
/// were checked when they were made.
///
/// # Safety
/// All operands must be there; the output must overlap neither of the others.
pub unsafe fn take_at(source: *const u8, offsets: &[isize], output: Strided, bytes: usize) {
    for (position, offset) in offsets.iter().enumerate() {
        // SAFETY: the caller's.
        unsafe {
            let (from, to) = (source.offset(*offset), output.at(position));
            match bytes {
                4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
                8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
                _ => ptr::copy_nonoverlapping(from, to, bytes),
            }
        }
    }
}

/// How many of `count` mask bytes are set.
///
/// # Safety
/// The mask must be there.
pub unsafe fn count_set(mask: Strided, count: usize) -> usize {
    if mask.stride == 1 {
        // SAFETY: the caller's.
        let bytes = unsafe { std::slice::from_raw_parts(mask.address, count) };
        // In runs whose counts fit a byte, so that the sum can be made in vectors of bytes.
        return bytes.chunks(255).map(|run| usize::from(run.iter().map(|byte| u8::from(*byte != 0)).sum::<u8>())).sum();
    }
    // SAFETY: the caller's.
    (0..count).filter(|index| unsafe { *mask.at(*index) } != 0).count()
}

/// Copies the elements of `bytes` bytes whose mask byte is set to `output`, one after the other; their number.
///
/// # Safety
/// The mask and the source must hold `count` elements, the output as many as are set; the output must overlap neither.
pub unsafe fn compress(mask: Strided, source: Strided, count: usize, output: Strided, bytes: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            1 => compress_items::<u8>(mask, source, count, output),
            2 => compress_items::<u16>(mask, source, count, output),
            4 => compress_items::<u32>(mask, source, count, output),
            8 => compress_items::<u64>(mask, source, count, output),
            16 => compress_items::<[u64; 2]>(mask, source, count, output),
            _ => for_each_set(mask, count, |index, before, run| {
                for place in 0..run {
                    ptr::copy_nonoverlapping(source.at(index + place), output.at(before + place), bytes);
                }
            }),
        }
    }
}

unsafe fn compress_items<T: Copy>(mask: Strided, source: Strided, count: usize, output: Strided) -> usize {
    // SAFETY: the caller's.
    unsafe {
        for_each_set(mask, count, |index, before, run| copy_run::<T>(source.from(index), output.from(before), run))
    }
}

/// Copies one element, or a run of eight: at once where both sides are contiguous.
///
/// # Safety
/// Both sides must be there and not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_run<T: Copy>(source: Strided, target: Strided, run: usize) {
    let item = size_of::<T>().cast_signed();
    // SAFETY: the caller's.
    unsafe {
        if run == RUN && source.stride == item && target.stride == item {
            target.address.cast::<[T; RUN]>().write_unaligned(source.address.cast::<[T; RUN]>().read_unaligned());
            return;
        }
        for place in 0..run {
            let value = source.at(place).cast::<T>().read_unaligned();
            target.at(place).cast::<T>().write_unaligned(value);
        }
    }
}

/// Mask bytes whose places are listed at a time.
const LISTED: usize = 1024;
/// Places that are written behind the list.
const BEHIND: usize = 16;

/// Writes the numbers of the set bytes of an unbroken mask, counted from `first`, to `output`, an unbroken list of i64; how many there
/// are.
///
/// # Safety
/// The mask must hold `count` bytes, the output as many numbers as are set.
pub unsafe fn positions(mask: *const u8, count: usize, first: i64, output: *mut u8) -> usize {
    let mut places = [0u32; LISTED + BEHIND];
    let mut found = 0;
    for start in (0..count).step_by(LISTED) {
        // SAFETY: the caller's; there is room for the places of all these bytes and what is written behind them.
        let set = unsafe {
            let bytes = std::slice::from_raw_parts(mask.add(start), LISTED.min(count - start));
            loops::places_of(bytes, places.as_mut_ptr());
            loops::count_set(bytes)
        };
        for (place, number) in places[..set].iter().enumerate() {
            let number = first + start.cast_signed() as i64 + i64::from(*number);
            // SAFETY: the caller's.
            unsafe { output.cast::<i64>().add(found + place).write_unaligned(number) };
        }
        found += set;
    }
    found
}

/// Mask bytes that are looked at together.
const RUN: usize = 8;

/// Calls `visit(index, number of set bytes before, run)` for each set byte of the mask, or for runs of [`RUN`]; how many set
/// bytes there are.
///
/// # Safety
/// The mask must hold `count` bytes.
#[inline(always)]
pub(crate) unsafe fn for_each_set(mask: Strided, count: usize, mut visit: impl FnMut(usize, usize, usize)) -> usize {
    let mut found = 0;
    let mut index = 0;
    if mask.stride == 1 {
        while index + RUN <= count {
            // SAFETY: the caller's.
            let word = unsafe { mask.at(index).cast::<u64>().read_unaligned() };
            if word == 0 {
                index += RUN;
                continue;
            }
            if word == 0x0101_0101_0101_0101 {
                visit(index, found, RUN);
                found += RUN;
                index += RUN;
                continue;
            }
            // One bit per set byte: the sum's high bit is set unless the byte is zero.
            let low = word & 0x7f7f_7f7f_7f7f_7f7f;
            let mut set = u64::from_le(((low + 0x7f7f_7f7f_7f7f_7f7f) | word) & 0x8080_8080_8080_8080);
            while set != 0 {
                visit(index + set.trailing_zeros() as usize / 8, found, 1);
                found += 1;
                set &= set - 1;
            }
            index += RUN;
        }
    }
    while index < count {
        // SAFETY: the caller's.
        if unsafe { *mask.at(index) } != 0 {
            visit(index, found, 1);
            found += 1;
        }
        index += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided<T>(values: &mut [T], step: isize) -> Strided {
        Strided { address: values.as_mut_ptr().cast(), stride: step * size_of::<T>().cast_signed() }
    }

    #[test]
    fn take_counts_negative_indices_from_the_end() {
        let mut source = [10_u64, 11, 12, 13];
        let mut indices = [3_i64, -1, 0, -4];
        let mut output = [0_u64; 4];
        let (from, by, to) = (strided(&mut source, 1), strided(&mut indices, 1), strided(&mut output, 1));
        // SAFETY: all operands have four elements.
        unsafe { take(from, 4, by, 4, to, 8) }.expect("all are in range");
        assert_eq!(output, [13, 13, 10, 10]);
    }

    #[test]
    fn take_names_the_first_index_out_of_range() {
        let mut source = [[0_u8; 3]; 4];
        let mut indices = [0_i64, 4, -5];
        let mut output = [[0_u8; 3]; 3];
        let (from, by, to) = (strided(&mut source, 1), strided(&mut indices, 1), strided(&mut output, 1));
        // SAFETY: all operands are as long as is said.
        let (taken, checked) = unsafe { (take(from, 4, by, 3, to, 3), check(by, 3, 4)) };
        assert_eq!(taken, Err(OutOfRange { index: 4, position: 1, length: 4 }));
        assert_eq!(checked, taken);
    }

    #[test]
    fn compress_keeps_order_for_any_mask() {
        let mut state = 1_u64;
        for count in (0..200_usize).chain([1023, 1024, 1025, 2048, 3000]) {
            for step in [1, 2] {
                let mut mask: Vec<u8> = (0..count * step)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (state >> 62) as u8
                    })
                    .collect();
                let mut source: Vec<u32> = (0..count as u32).collect();
                let expected: Vec<u32> =
                    source.iter().copied().filter(|index| mask[*index as usize * step] != 0).collect();
                let mut output = vec![0_u32; expected.len()];
                let mut places = vec![0_i64; expected.len()];
                let picks = strided(&mut mask, step.cast_signed());
                // SAFETY: the outputs are as long as the mask has set bytes.
                unsafe {
                    assert_eq!(count_set(picks, count), expected.len());
                    let (from, to) = (strided(&mut source, 1), strided(&mut output, 1));
                    assert_eq!(compress(picks, from, count, to, 4), expected.len());
                    if step == 1 {
                        let listed = positions(picks.address, count, 5, places.as_mut_ptr().cast());
                        assert_eq!(listed, expected.len());
                        assert!(places.iter().zip(&expected).all(|(place, index)| *place == i64::from(*index) + 5));
                    }
                }
                assert_eq!(output, expected);
            }
        }
    }
}
