//! Products of many short rows with a small matrix, which stays in the first cache: each row is read once, as fast as memory comes.
//!
//! A library for matrix products copies the rows before it multiplies, which takes longer than the products. A row's products depend
//! on the row and the small matrix alone, whatever is beside it. Does not decide which products are made so, or by whom:
//! [`is_small`] only says what pays.

#![expect(unsafe_code, reason = "vector instructions on computed addresses")]

use super::long::LongRows;
use super::{Item, Vector, Width, width};

/// Bytes of rows from which no cache holds them.
const LEAST_BYTES: usize = 8 << 20;
/// Fewest rows for each of their elements.
const LEAST_ROWS: usize = 16;
/// Most elements of the small matrix, and columns; past it a library's way of blocking pays.
const MOST_ELEMENTS: usize = 2048;
const MOST_COLUMNS: usize = 32;

/// Whether so many rows of `length` elements are multiplied here with a matrix of so many columns.
pub fn is_small(rows: usize, length: usize, columns: usize, item_bytes: usize) -> bool {
    (2..=MOST_COLUMNS).contains(&columns)
        && length > 0
        && length * columns.next_multiple_of(64 / item_bytes) <= MOST_ELEMENTS
        && rows / length >= LEAST_ROWS
        && rows.saturating_mul(length).saturating_mul(item_bytes) >= LEAST_BYTES
        && width().is_some()
}

/// A matrix with its rows filled up to whole vectors by repeating their last element, which raises no event that it does not raise
/// itself.
pub struct Small {
    item: Item,
    /// The elements; doubles, so that they are aligned.
    elements: Vec<f64>,
    /// Elements from one row to the next.
    step: usize,
    length: usize,
    columns: usize,
}

impl Small {
    /// A copy of a matrix of `length` rows, one for each element of the rows to be multiplied; strides in bytes.
    ///
    /// # Safety
    /// The matrix must be there.
    pub unsafe fn copy(item: Item, address: usize, strides: [isize; 2], length: usize, columns: usize) -> Small {
        let item_bytes = match item {
            Item::Single => 4,
            Item::Double => 8,
        };
        let step = columns.next_multiple_of(64 / item_bytes);
        let mut elements = vec![0.0; (length * step * item_bytes).div_ceil(8)];
        let to = elements.as_mut_ptr().cast::<u8>();
        for (row, place) in (0..length).flat_map(|row| (0..step).map(move |place| (row, place))) {
            let column = place.min(columns - 1).cast_signed();
            let from = address.wrapping_add_signed(strides[0] * row.cast_signed() + strides[1] * column);
            // SAFETY: the caller's, and there is room.
            unsafe {
                to.add((row * step + place) * item_bytes).copy_from_nonoverlapping(from as *const u8, item_bytes)
            };
        }
        Small { item, elements, step, length, columns }
    }
}

/// Stores the products of `count` rows with the matrix, `apart` bytes from one row of products to the next from `out` on.
///
/// # Safety
/// The rows must be there, as long as the matrix has rows, and room for the products; all aligned. [`is_small`] must hold for some
/// rows.
pub unsafe fn products(rows: LongRows, count: usize, small: &Small, out: usize, apart: isize) {
    // SAFETY: the caller's, and the width was found on this processor.
    unsafe {
        match (width(), small.item) {
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx512), Item::Double) => x86::double_512(rows, count, small, out, apart),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx512), Item::Single) => x86::single_512(rows, count, small, out, apart),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx2), Item::Double) => x86::double_256(rows, count, small, out, apart),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx2), Item::Single) => x86::single_256(rows, count, small, out, apart),
            (None, _) => {}
        }
    }
}

/// See [`products`]; `N` rows at a time where there are as many.
#[inline(always)]
unsafe fn all<V: Vector, const N: usize>(rows: LongRows, count: usize, small: &Small, out: usize, apart: isize) {
    let mut done = 0;
    while done < count {
        let own = rows.from(done);
        let to = out.wrapping_add_signed(apart * done.cast_signed());
        // SAFETY: the caller's.
        unsafe {
            if count - done >= N {
                beside::<V, N>(own, small, to, apart);
                done += N;
            } else {
                beside::<V, 1>(own, small, to, apart);
                done += 1;
            }
        }
    }
}

/// The products of `R` rows.
#[inline(always)]
unsafe fn beside<V: Vector, const R: usize>(rows: LongRows, small: &Small, out: usize, apart: isize) {
    for first in (0..small.columns).step_by(2 * V::COUNT) {
        // SAFETY: the caller's.
        unsafe {
            if first + V::COUNT < small.columns {
                tile::<V, R, 2>(rows, small, first, out, apart);
            } else {
                tile::<V, R, 1>(rows, small, first, out, apart);
            }
        }
    }
}

/// The products of `R` rows with `W` vectors of columns.
#[inline(always)]
unsafe fn tile<V: Vector, const R: usize, const W: usize>(
    rows: LongRows,
    small: &Small,
    first: usize,
    out: usize,
    apart: isize,
) {
    // SAFETY: the caller's: rows have `length` elements, and the matrix whole vectors.
    unsafe {
        let starts: [*const V::Item; R] = std::array::from_fn(|row| rows.from(row).address as *const V::Item);
        let mut columns = small.elements.as_ptr().cast::<V::Item>().add(first);
        let mut sums = [[V::splat(V::Item::default()); W]; R];
        for place in 0..small.length {
            let mut vectors = [V::splat(V::Item::default()); W];
            for (number, vector) in vectors.iter_mut().enumerate() {
                *vector = V::load(columns.add(number * V::COUNT));
            }
            for (sums, start) in sums.iter_mut().zip(starts) {
                let factor = V::splat(*start.add(place));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = factor.multiply_add(vector, *sum);
                }
            }
            columns = columns.add(small.step);
        }
        for (row, sums) in sums.into_iter().enumerate() {
            let to = (out.wrapping_add_signed(apart * row.cast_signed()) as *mut V::Item).add(first);
            for (number, sum) in sums.into_iter().enumerate() {
                let (to, left) = (to.add(number * V::COUNT), small.columns - first - number * V::COUNT);
                if left >= V::COUNT {
                    sum.store(to);
                } else {
                    let mut items = [V::Item::default(); 16];
                    sum.store(items.as_mut_ptr());
                    to.copy_from_nonoverlapping(items.as_ptr(), left);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LongRows, Small, all};

    macro_rules! of_width {
        ($name:ident, $features:literal, $vector:ty, $rows:literal) => {
            /// # Safety
            /// As for [`super::products`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(rows: LongRows, count: usize, small: &Small, out: usize, apart: isize) {
                // SAFETY: the caller's.
                unsafe { all::<$vector, $rows>(rows, count, small, out, apart) }
            }
        };
    }

    // As many sums as leave some of the 32 or 16 registers for factors.
    of_width!(double_512, "avx512f", __m512d, 8);
    of_width!(single_512, "avx512f", __m512, 8);
    of_width!(double_256, "avx2,fma", __m256d, 4);
    of_width!(single_256, "avx2,fma", __m256, 4);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_whole_numbers_are_exact_for_all_shapes() {
        if width().is_none() {
            return;
        }
        let value = |index: usize| ((index * 7 + index / 5) % 19) as f64 - 9.0;
        for [count, length, columns] in [
            [0, 3, 2],
            [1, 1, 2],
            [7, 5, 3],
            [8, 64, 8],
            [29, 64, 9],
            [16, 40, 16],
            [17, 33, 17],
            [11, 60, 31],
            [9, 2, 32],
        ] {
            let rows: Vec<f64> = (0..count * (length + 1)).map(value).collect();
            // Columns lie one after the other.
            let matrix: Vec<f64> = (0..length * columns).map(|index| value(index + 4)).collect();
            let sum = |row: usize, column: usize| -> f64 {
                (0..length).map(|place| rows[row * (length + 1) + place] * matrix[column * length + place]).sum()
            };
            let wanted: Vec<f64> = (0..count * columns).map(|index| sum(index / columns, index % columns)).collect();
            let (step, strides) = ((length as isize + 1) * 8, [8, length as isize * 8]);
            let mut found = vec![0.0; count * columns];
            // SAFETY: the vectors hold the matrices and have room.
            unsafe {
                let small = Small::copy(Item::Double, matrix.as_ptr() as usize, strides, length, columns);
                let rows = LongRows { address: rows.as_ptr() as usize, step, length };
                products(rows, count, &small, found.as_mut_ptr() as usize, columns as isize * 8);
            }
            assert_eq!(found, wanted, "{count} {length} {columns}");
            let rows: Vec<f32> = rows.iter().map(|value| *value as f32).collect();
            let matrix: Vec<f32> = matrix.iter().map(|value| *value as f32).collect();
            let mut found = vec![0_f32; count * columns];
            // SAFETY: as above.
            unsafe {
                let strides = strides.map(|stride| stride / 2);
                let small = Small::copy(Item::Single, matrix.as_ptr() as usize, strides, length, columns);
                let rows = LongRows { address: rows.as_ptr() as usize, step: step / 2, length };
                products(rows, count, &small, found.as_mut_ptr() as usize, columns as isize * 4);
            }
            assert!(found.iter().map(|value| f64::from(*value)).eq(wanted), "{count} {length} {columns}");
        }
    }
}
