//! Products of long rows with a vector: one sum of products for each row, in one walk over memory.
//!
//! Several rows are read side by side, so that as many streams come from memory at once: two threads get about 1.4 times as much
//! as when each reads one row after the other. A row's sum depends on the row and the vector alone, whatever is read beside it. Does
//! not decide which products are made so, or by whom: [`is_long`] only says what pays.

#![expect(unsafe_code, reason = "vector instructions on computed addresses")]

use super::{Item, Vector, Width, width};

/// Bytes of a matrix from which no cache holds it.
const LEAST_BYTES: usize = 8 << 20;
/// Fewest elements of a row, and rows.
const LEAST_LENGTH: usize = 256;
const LEAST_ROWS: usize = 64;
/// Rows that are read side by side.
const BESIDE: usize = 8;
/// Elements of a row after which a new sum begins, so that rounding errors do not grow with the length.
const BLOCK: usize = 4096;
/// Bytes of rows that one thread takes at a time.
const PART_BYTES: usize = 1 << 20;

/// Rows of elements that lie side by side.
#[derive(Clone, Copy, Debug)]
pub struct LongRows {
    /// Address of the first element of the first one.
    pub address: usize,
    /// Bytes from one row to the next.
    pub step: isize,
    /// Elements of a row.
    pub length: usize,
}

impl LongRows {
    /// The rows from one on.
    pub fn from(self, row: usize) -> LongRows {
        LongRows { address: self.address.wrapping_add_signed(self.step * row.cast_signed()), ..self }
    }
}

/// Whether a matrix of so many rows of so many elements is multiplied here.
pub fn is_long(rows: usize, length: usize, item_bytes: usize) -> bool {
    rows >= LEAST_ROWS
        && length >= LEAST_LENGTH
        && rows.saturating_mul(length).saturating_mul(item_bytes) >= LEAST_BYTES
        && width().is_some()
}

/// Rows of so many bytes that one thread takes at a time.
pub fn rows_of_part(row_bytes: usize) -> usize {
    (PART_BYTES / row_bytes.max(1)).max(1).next_multiple_of(BESIDE)
}

/// Stores the products of `count` rows with the vector at an address, `apart` bytes from one to the next from `out` on.
///
/// # Safety
/// The rows and the vector must be there, and room for the products; all aligned. [`is_long`] must hold for some matrix.
pub unsafe fn products(item: Item, rows: LongRows, count: usize, vector: usize, out: usize, apart: isize) {
    // SAFETY: the caller's, and the width was found on this processor.
    unsafe {
        match (width(), item) {
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx512), Item::Double) => x86::double_512(rows, count, vector, out, apart),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx512), Item::Single) => x86::single_512(rows, count, vector, out, apart),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx2), Item::Double) => x86::double_256(rows, count, vector, out, apart),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx2), Item::Single) => x86::single_256(rows, count, vector, out, apart),
            (None, _) => {}
        }
    }
}

/// See [`products`].
#[inline(always)]
unsafe fn all<V: Vector>(rows: LongRows, count: usize, vector: usize, out: usize, apart: isize) {
    let mut done = 0;
    while done < count {
        let (own, vector) = (rows.from(done), vector as *const V::Item);
        let to = out.wrapping_add_signed(apart * done.cast_signed());
        // SAFETY: the caller's.
        unsafe {
            done += match count - done {
                BESIDE.. => beside::<V, BESIDE>(own, vector, to, apart),
                4.. => beside::<V, 4>(own, vector, to, apart),
                2.. => beside::<V, 2>(own, vector, to, apart),
                _ => beside::<V, 1>(own, vector, to, apart),
            };
        }
    }
}

/// The products of `N` rows, as many as are returned.
#[inline(always)]
unsafe fn beside<V: Vector, const N: usize>(rows: LongRows, vector: *const V::Item, out: usize, apart: isize) -> usize {
    let whole = rows.length / V::COUNT * V::COUNT;
    // SAFETY: the caller's: rows and vector have `length` elements; the last ones are copied out.
    unsafe {
        let zero = V::splat(V::Item::default());
        let starts: [*const V::Item; N] = std::array::from_fn(|row| rows.from(row).address as *const V::Item);
        let mut totals = [zero; N];
        for first in (0..whole).step_by(BLOCK) {
            let mut sums = [zero; N];
            for place in (first..(first + BLOCK).min(whole)).step_by(V::COUNT) {
                let factor = V::load(vector.add(place));
                for (sum, start) in sums.iter_mut().zip(starts) {
                    *sum = factor.multiply_add(V::load(start.add(place)), *sum);
                }
            }
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total = total.add(sum);
            }
        }
        if whole < rows.length {
            let factor = V::load_some(vector.add(whole), rows.length - whole);
            for (total, start) in totals.iter_mut().zip(starts) {
                *total = factor.multiply_add(V::load_some(start.add(whole), rows.length - whole), *total);
            }
        }
        for (row, total) in totals.into_iter().enumerate() {
            let to = out.wrapping_add_signed(apart * row.cast_signed()) as *mut V::Item;
            *to = total.sum();
        }
    }
    N
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LongRows, all};

    macro_rules! of_width {
        ($name:ident, $features:literal, $vector:ty) => {
            /// # Safety
            /// As for [`super::products`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(rows: LongRows, count: usize, vector: usize, out: usize, apart: isize) {
                // SAFETY: the caller's.
                unsafe { all::<$vector>(rows, count, vector, out, apart) }
            }
        };
    }

    of_width!(double_512, "avx512f", __m512d);
    of_width!(single_512, "avx512f", __m512);
    of_width!(double_256, "avx2,fma", __m256d);
    of_width!(single_256, "avx2,fma", __m256);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_whole_numbers_are_exact_for_all_lengths_and_counts() {
        if width().is_none() {
            return;
        }
        let value = |index: usize| ((index * 7 + index / 5) % 19) as f64 - 9.0;
        for length in [0, 1, 7, 8, 31, 4096, 4099, 9001] {
            for count in [0, 1, 2, 5, 8, 15, 17] {
                let matrix: Vec<f64> = (0..count * (length + 3)).map(value).collect();
                let vector: Vec<f64> = (0..length).map(|index| value(index + 4)).collect();
                let product =
                    |row: usize| (0..length).map(|place| matrix[row * (length + 3) + place] * vector[place]).sum();
                let wanted: Vec<f64> = (0..count).map(product).collect();
                let rows = LongRows { address: matrix.as_ptr() as usize, step: (length as isize + 3) * 8, length };
                let mut found = vec![0.0; count * 2];
                let out = found.as_mut_ptr() as usize;
                // SAFETY: the vectors hold the rows and have room.
                unsafe { products(Item::Double, rows, count, vector.as_ptr() as usize, out, 16) };
                assert!(found.chunks(2).map(|pair| pair[0]).eq(wanted.iter().copied()), "{length} {count}");
                let matrix: Vec<f32> = matrix.iter().map(|value| *value as f32).collect();
                let vector: Vec<f32> = vector.iter().map(|value| *value as f32).collect();
                let rows = LongRows { address: matrix.as_ptr() as usize, step: (length as isize + 3) * 4, length };
                let mut found = vec![0_f32; count];
                let out = found.as_mut_ptr() as usize;
                // SAFETY: as above.
                unsafe { products(Item::Single, rows, count, vector.as_ptr() as usize, out, 4) };
                assert!(found.iter().map(|value| f64::from(*value)).eq(wanted.iter().copied()), "{length} {count}");
            }
        }
    }

    #[test]
    fn a_row_has_the_same_product_whatever_is_beside_it() {
        if width().is_none() {
            return;
        }
        let (length, count) = (5003, 15);
        let matrix: Vec<f64> = (0..count * length).map(|index| (index as f64).sin()).collect();
        let vector: Vec<f64> = (0..length).map(|index| (index as f64).cos()).collect();
        let rows = LongRows { address: matrix.as_ptr() as usize, step: length as isize * 8, length };
        let of = |first: usize, count: usize| {
            let mut found = vec![0.0; count];
            let out = found.as_mut_ptr() as usize;
            // SAFETY: the vectors hold the rows and have room.
            unsafe { products(Item::Double, rows.from(first), count, vector.as_ptr() as usize, out, 8) };
            found
        };
        let together = of(0, count);
        assert_eq!(together, (0..count).flat_map(|row| of(row, 1)).collect::<Vec<f64>>());
    }
}
