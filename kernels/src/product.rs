//! Products of narrow matrices over a long inner axis: sums, over many rows, of the outer products of two short rows. Those of long
//! rows with a vector are `long`'s, those of short rows with a small matrix `short`'s.
//!
//! A library for matrix products copies both operands before it multiplies; here each row is read once, and the sums stay in
//! registers or in the first cache. Fused multiply and add, row after row within a block: the rounding is its own, like that of any
//! BLAS, and depends on nothing but the blocks that the caller makes. Raises the events of the products and sums.

#![expect(unsafe_code, reason = "vector instructions on computed addresses")]

pub mod long;
pub mod short;

use std::sync::OnceLock;

/// Elements of the sums, at most: past this a library's way of blocking pays.
pub const MOST_SUMS: usize = 512;

/// Bytes of rows that stay in the first cache while all of their products are added.
const BLOCK_BYTES: usize = 16 << 10;

/// The type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// `f32`
    Single,
    /// `f64`
    Double,
}

/// Short rows, one for each place of the inner axis.
#[derive(Clone, Copy, Debug)]
pub struct ShortRows {
    /// Address of the first element of the first one.
    pub address: usize,
    /// Bytes from one row to the next.
    pub step: isize,
    /// Bytes from one element of a row to the next.
    pub stride: isize,
    /// Elements of a row.
    pub count: usize,
}

impl ShortRows {
    fn from(self, row: usize) -> ShortRows {
        ShortRows { address: self.address.wrapping_add_signed(self.step * row.cast_signed()), ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The widest vectors with fused operations; none where a library is better off.
fn width() -> Option<Width> {
    static FOUND: OnceLock<Option<Width>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                return Some(Width::Avx512);
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                return Some(Width::Avx2);
            }
        }
        None
    })
}

/// Whether rows of `left` and `right` elements are multiplied here.
pub fn is_narrow(left: usize, right: usize) -> bool {
    left.saturating_mul(right) <= MOST_SUMS && width().is_some()
}

/// The sums, `left.count` rows of `right.count` elements, of the outer products of `rows` pairs of rows; as bytes of the elements.
///
/// # Safety
/// The rows must be there, their elements aligned. [`is_narrow`] must hold.
pub unsafe fn outer_sums(item: Item, left: ShortRows, right: ShortRows, rows: usize) -> Vec<u8> {
    // The longer rows go along the vectors.
    let turned = left.count > right.count;
    let (across, along) = if turned { (right, left) } else { (left, right) };
    // SAFETY: the caller's, and the width was found on this processor.
    unsafe {
        match (width(), item) {
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx512), Item::Double) => x86::double_512(across, along, rows, turned),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx512), Item::Single) => x86::single_512(across, along, rows, turned),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx2), Item::Double) => x86::double_256(across, along, rows, turned),
            #[cfg(target_arch = "x86_64")]
            (Some(Width::Avx2), Item::Single) => x86::single_256(across, along, rows, turned),
            (None, _) => Vec::new(),
        }
    }
}

/// Elements side by side.
///
/// Safety of all methods: the processor must have the instructions, and pointers be to as many elements.
trait Vector: Copy {
    type Item: Copy + Default;
    const COUNT: usize;
    unsafe fn load(from: *const Self::Item) -> Self;
    unsafe fn store(self, to: *mut Self::Item);
    unsafe fn splat(value: Self::Item) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// The first `count` elements, fewer than there are in a vector, and zeros.
    unsafe fn load_some(from: *const Self::Item, count: usize) -> Self;
    /// All elements added up: the halves, and then the halves of what that gives.
    unsafe fn sum(self) -> Self::Item;
    /// `self * other + sum`, rounded once.
    unsafe fn multiply_add(self, other: Self, sum: Self) -> Self;
    fn to_bytes(item: Self::Item) -> impl Iterator<Item = u8>;
}

/// Elements as a block has them: one after the other, filled up to whole vectors by repeating the last of a row, which raises no
/// event that it does not raise itself.
struct Packed<T> {
    elements: Vec<T>,
    /// Elements from one row to the next.
    step: usize,
    /// Elements of a row before any are repeated.
    count: usize,
}

impl<T: Copy> Packed<T> {
    fn new(count: usize, multiple: usize, rows: usize, any: T) -> Packed<T> {
        let step = count.next_multiple_of(multiple);
        Packed { elements: vec![any; step * rows], step, count }
    }

    /// Where rows are and how far apart: copied if they are not as they must be.
    ///
    /// # Safety
    /// The rows must be there.
    #[inline(always)]
    unsafe fn take(&mut self, from: ShortRows, rows: usize) -> (*const T, isize) {
        let size = size_of::<T>().cast_signed();
        if self.step == self.count && (from.stride == size || self.count == 1) && from.step % size == 0 {
            return (from.address as *const T, from.step / size);
        }
        for (row, to) in self.elements.chunks_exact_mut(self.step).take(rows).enumerate() {
            let row = from.from(row);
            for (place, to) in to.iter_mut().enumerate() {
                let place = place.min(self.count - 1).cast_signed();
                // SAFETY: the caller's.
                *to = unsafe { *(row.address.wrapping_add_signed(place * row.stride) as *const T) };
            }
        }
        (self.elements.as_ptr(), self.step.cast_signed())
    }
}

/// See [`outer_sums`]; `N` elements of the shorter rows at a time where there are as many, and one, two or four vectors of the longer.
#[inline(always)]
unsafe fn sums<V: Vector, const N: usize>(across: ShortRows, along: ShortRows, rows: usize, turned: bool) -> Vec<u8> {
    let zero = V::Item::default();
    let group = N.min(across.count.next_power_of_two());
    let vectors = along.count.div_ceil(V::COUNT);
    // Few rows leave registers for more vectors: memory is then read from one end to the other.
    let wide = if group <= 2 && vectors > 2 { 4 } else { vectors.min(2) };
    let row_bytes = (across.count + along.count) * size_of::<V::Item>();
    let block = (BLOCK_BYTES / row_bytes).max(1).min(rows.max(1));
    let mut packed_across = Packed::new(across.count, group, block, zero);
    let mut packed_along = Packed::new(along.count, wide * V::COUNT, block, zero);
    let step = packed_along.step;
    let mut sums = vec![zero; packed_across.step * step];
    for first in (0..rows).step_by(block) {
        let count = block.min(rows - first);
        // SAFETY: the caller's; sums have room for whole groups and vectors.
        unsafe {
            let one = packed_across.take(across.from(first), count);
            let other = packed_along.take(along.from(first), count);
            for row in (0..packed_across.step).step_by(group) {
                for column in (0..step).step_by(wide * V::COUNT) {
                    let one = (one.0.add(row), one.1);
                    let other = (other.0.add(column), other.1);
                    let target = sums.as_mut_ptr().add(row * step + column);
                    match (group, wide) {
                        (1, 1) => tile::<V, 1, 1>(one, other, count, target, step),
                        (1, 4) => tile::<V, 1, 4>(one, other, count, target, step),
                        (1, _) => tile::<V, 1, 2>(one, other, count, target, step),
                        (2, 1) => tile::<V, 2, 1>(one, other, count, target, step),
                        (2, 4) => tile::<V, 2, 4>(one, other, count, target, step),
                        (2, _) => tile::<V, 2, 2>(one, other, count, target, step),
                        (4, 1) => tile::<V, 4, 1>(one, other, count, target, step),
                        (4, _) => tile::<V, 4, 2>(one, other, count, target, step),
                        (_, 1) => tile::<V, N, 1>(one, other, count, target, step),
                        (_, _) => tile::<V, N, 2>(one, other, count, target, step),
                    }
                }
            }
        }
    }
    let at = |row: usize, column: usize| V::to_bytes(sums[row * step + column]);
    if turned {
        (0..along.count).flat_map(|row| (0..across.count).flat_map(move |column| at(column, row))).collect()
    } else {
        (0..across.count).flat_map(|row| (0..along.count).flat_map(move |column| at(row, column))).collect()
    }
}

/// Adds the products of `N` elements of each row with `W` vectors of its partner.
#[inline(always)]
unsafe fn tile<V: Vector, const N: usize, const W: usize>(
    across: (*const V::Item, isize),
    along: (*const V::Item, isize),
    rows: usize,
    target: *mut V::Item,
    step: usize,
) {
    // SAFETY: the caller's: all elements are there, and the target has room.
    unsafe {
        let mut sums = [[V::splat(V::Item::default()); W]; N];
        for (row, sums) in sums.iter_mut().enumerate() {
            for (place, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(target.add(row * step + place * V::COUNT));
            }
        }
        let (mut across, mut along) = ((across.0, across.1), (along.0, along.1));
        for _ in 0..rows {
            let mut vectors = [V::splat(V::Item::default()); W];
            for (place, vector) in vectors.iter_mut().enumerate() {
                *vector = V::load(along.0.add(place * V::COUNT));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let factor = V::splat(*across.0.add(row));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = factor.multiply_add(vector, *sum);
                }
            }
            across.0 = across.0.wrapping_offset(across.1);
            along.0 = along.0.wrapping_offset(along.1);
        }
        for (row, sums) in sums.iter().enumerate() {
            for (place, sum) in sums.iter().enumerate() {
                sum.store(target.add(row * step + place * V::COUNT));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ShortRows, Vector, sums};

    macro_rules! vector {
        ($vector:ty, $item:ty, $count:literal, $load:ident, $store:ident, $splat:ident, $add:ident, $multiply_add:ident) => {
            impl Vector for $vector {
                type Item = $item;
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn load(from: *const $item) -> $vector {
                    // SAFETY: the caller's.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $item) {
                    // SAFETY: the caller's.
                    unsafe { $store(to, self) }
                }

                #[inline(always)]
                unsafe fn splat(value: $item) -> $vector {
                    // SAFETY: the caller's.
                    unsafe { $splat(value) }
                }

                #[inline(always)]
                unsafe fn add(self, other: $vector) -> $vector {
                    // SAFETY: the caller's.
                    unsafe { $add(self, other) }
                }

                #[inline(always)]
                unsafe fn load_some(from: *const $item, count: usize) -> $vector {
                    let mut items = [<$item>::default(); $count];
                    // SAFETY: the caller's.
                    unsafe {
                        items.as_mut_ptr().copy_from_nonoverlapping(from, count);
                        $load(items.as_ptr())
                    }
                }

                #[inline(always)]
                unsafe fn sum(self) -> $item {
                    let mut items = [<$item>::default(); $count];
                    // SAFETY: the array has room for a vector.
                    unsafe { $store(items.as_mut_ptr(), self) };
                    let mut half = $count / 2;
                    while half > 0 {
                        (0..half).for_each(|place| items[place] += items[place + half]);
                        half /= 2;
                    }
                    items[0]
                }

                #[inline(always)]
                unsafe fn multiply_add(self, other: $vector, sum: $vector) -> $vector {
                    // SAFETY: the caller's.
                    unsafe { $multiply_add(self, other, sum) }
                }

                fn to_bytes(item: $item) -> impl Iterator<Item = u8> {
                    item.to_ne_bytes().into_iter()
                }
            }
        };
    }

    vector!(__m512d, f64, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_add_pd, _mm512_fmadd_pd);
    vector!(__m512, f32, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_fmadd_ps);
    vector!(__m256d, f64, 4, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_add_pd, _mm256_fmadd_pd);
    vector!(__m256, f32, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_fmadd_ps);

    macro_rules! of_width {
        ($name:ident, $features:literal, $vector:ty, $group:literal) => {
            /// # Safety
            /// As for [`super::outer_sums`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(across: ShortRows, along: ShortRows, rows: usize, turned: bool) -> Vec<u8> {
                // SAFETY: the caller's.
                unsafe { sums::<$vector, $group>(across, along, rows, turned) }
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

    fn rows_of<T>(values: &[T], step: usize, stride: usize, count: usize) -> ShortRows {
        let size = size_of::<T>();
        ShortRows {
            address: values.as_ptr() as usize,
            step: (step * size).cast_signed(),
            stride: (stride * size).cast_signed(),
            count,
        }
    }

    /// Whole numbers: any order of the sums gives these.
    fn expected(
        left: &dyn Fn(usize, usize) -> f64,
        right: &dyn Fn(usize, usize) -> f64,
        shape: [usize; 3],
    ) -> Vec<f64> {
        let [height, width, rows] = shape;
        let sum = |i: usize, j: usize| (0..rows).fold(0.0, |sum, row| sum + left(row, i) * right(row, j));
        (0..height).flat_map(|i| (0..width).map(move |j| (i, j))).map(|(i, j)| sum(i, j)).collect()
    }

    #[test]
    fn sums_of_whole_numbers_are_exact_for_all_shapes_and_strides() {
        if width().is_none() {
            return;
        }
        for [height, width] in [[1, 1], [1, 32], [3, 5], [8, 16], [16, 8], [7, 33], [22, 23], [5, 1], [64, 2], [2, 100]]
        {
            for rows in [0, 1, 2, 77, 1000] {
                for stride in [1, 2] {
                    let value = |index: usize| ((index * 7 + index / 5) % 19) as f64 - 9.0;
                    let left: Vec<f64> = (0..rows * height * stride + 1).map(value).collect();
                    let right: Vec<f64> = (0..rows * (width + 3) + 1).map(|index| value(index + 4)).collect();
                    let singles: Vec<f32> = left.iter().map(|value| *value as f32).collect();
                    let others: Vec<f32> = right.iter().map(|value| *value as f32).collect();
                    let wanted = expected(
                        &|row, i| left[row * height * stride + i * stride],
                        &|row, j| right[row * (width + 3) + j],
                        [height, width, rows],
                    );
                    // SAFETY: the vectors hold the rows.
                    let (doubles, floats) = unsafe {
                        (
                            outer_sums(
                                Item::Double,
                                rows_of(&left, height * stride, stride, height),
                                rows_of(&right, width + 3, 1, width),
                                rows,
                            ),
                            outer_sums(
                                Item::Single,
                                rows_of(&singles, height * stride, stride, height),
                                rows_of(&others, width + 3, 1, width),
                                rows,
                            ),
                        )
                    };
                    let bytes: Vec<u8> = wanted.iter().flat_map(|value| value.to_ne_bytes()).collect();
                    assert_eq!(doubles, bytes, "{height} {width} {rows} {stride}");
                    let bytes: Vec<u8> = wanted.iter().flat_map(|value| (*value as f32).to_ne_bytes()).collect();
                    assert_eq!(floats, bytes, "{height} {width} {rows} {stride}");
                }
            }
        }
    }

    #[test]
    fn what_fills_up_vectors_raises_nothing() {
        if width().is_none() {
            return;
        }
        let left = [f64::INFINITY, 1.0, 2.0];
        let right = [1.0, 2.0, 3.0, 4.0, 5.0];
        let events = crate::execute::watched(|| {
            // SAFETY: the arrays hold one row each.
            unsafe { outer_sums(Item::Double, rows_of(&left, 3, 1, 3), rows_of(&right, 5, 1, 5), 1) };
        });
        assert_eq!(events, 0);
    }
}
