//! Views: affine walks over the flat storage of a field.
//!
//! A view of rank k over a domain of rank k: the byte address of index `i` is `offset + sum(i * strides)`. Zero strides
//! repeat (broadcast), negative ones walk backwards. Everything here is integer arithmetic on shapes; nothing touches
//! memory and nothing knows a dtype beyond its size.

use std::ops::Range;

use smallvec::SmallVec;

/// Lengths or byte strides of a few axes.
pub type Axes<T> = SmallVec<[T; 4]>;

/// Byte offset of the first element and byte strides along the axes of a launch's domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Byte offset of index 0 from the start of the field.
    pub offset: isize,
    /// Byte strides, one for each axis of the domain.
    pub strides: Axes<isize>,
    /// Size of one element in bytes.
    pub item_bytes: usize,
}

impl View {
    /// The bytes that the view touches over a domain, as one covering range; empty for an empty domain.
    pub fn extent(&self, domain: &[usize]) -> Range<isize> {
        if domain.contains(&0) {
            return self.offset..self.offset;
        }
        let reach = reach(domain, &self.strides);
        self.offset + reach.start..self.offset + reach.end + self.item_bytes as isize
    }

    /// The bytes that one row (a fixed index on axis 0, here index 0) touches.
    pub fn row_extent(&self, domain: &[usize]) -> Range<isize> {
        let reach = reach(domain.get(1..).unwrap_or_default(), self.strides.get(1..).unwrap_or_default());
        self.offset + reach.start..self.offset + reach.end + self.item_bytes as isize
    }

    /// Bytes from one row to the next (0 for a domain without axes).
    pub fn row_stride(&self) -> isize {
        self.strides.first().copied().unwrap_or(0)
    }

    /// Whether two elements of the domain can share a byte.
    pub fn overlaps_itself(&self, domain: &[usize]) -> bool {
        let mut axes: Axes<(usize, usize)> = domain
            .iter()
            .zip(&self.strides)
            .filter(|(length, _)| **length > 1)
            .map(|(length, stride)| (stride.unsigned_abs(), *length))
            .collect();
        axes.sort_unstable();
        let mut span = self.item_bytes;
        for (stride, length) in axes {
            if stride < span {
                return true;
            }
            span += stride * (length - 1);
        }
        false
    }

    /// Whether the view is the dense, row-major walk over `domain` starting at its offset.
    pub fn is_dense(&self, domain: &[usize]) -> bool {
        let mut expected = self.item_bytes as isize;
        for (length, stride) in domain.iter().zip(&self.strides).rev() {
            if *length != 1 && *stride != expected {
                return false;
            }
            expected *= *length as isize;
        }
        true
    }

    /// Number of bytes a view covers that does not overlap itself but along axes with stride 0.
    pub fn covered_bytes(&self, domain: &[usize]) -> usize {
        let lengths = domain
            .iter()
            .zip(&self.strides)
            .map(|(length, stride)| if *stride == 0 { (*length).min(1) } else { *length });
        lengths.product::<usize>() * self.item_bytes
    }
}

/// Smallest and largest byte offset that the axes add.
fn reach(lengths: &[usize], strides: &[isize]) -> Range<isize> {
    let mut low = 0;
    let mut high = 0;
    for (length, stride) in lengths.iter().zip(strides) {
        let last = (*length as isize - 1) * stride;
        if last < 0 { low += last } else { high += last }
    }
    low..high
}

/// Whether two byte ranges share a byte.
pub fn ranges_overlap(left: &Range<isize>, right: &Range<isize>) -> bool {
    left.start < right.end && right.start < left.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn extents_follow_negative_strides() {
        let view = View { offset: 80, strides: smallvec![-16, 4], item_bytes: 4 };
        assert_eq!(view.extent(&[3, 2]), 48..88);
        assert_eq!(view.row_extent(&[3, 2]), 80..88);
        assert_eq!(view.extent(&[0, 2]), 80..80);
    }

    #[test]
    fn a_window_overlaps_itself_and_a_matrix_does_not() {
        assert!(View { offset: 0, strides: smallvec![8, 8], item_bytes: 8 }.overlaps_itself(&[3, 3]));
        assert!(!View { offset: 0, strides: smallvec![24, 8], item_bytes: 8 }.overlaps_itself(&[3, 3]));
        assert!(View { offset: 0, strides: smallvec![0, 8], item_bytes: 8 }.overlaps_itself(&[3, 3]));
    }

    #[test]
    fn whole_rows_are_dense() {
        assert!(View { offset: 0, strides: smallvec![800, 8], item_bytes: 8 }.is_dense(&[4, 100]));
        assert!(!View { offset: 0, strides: smallvec![808, 8], item_bytes: 8 }.is_dense(&[4, 100]));
    }
}
