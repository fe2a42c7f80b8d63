//! Carried bytes: what a second instance of a field must have of the first, since no member writes it.
//!
//! Kept as the walk that is written, so that a shard works out only the gaps that lie in its own part, however large the field.

use std::ops::Range;

use crate::shards::runs::{add_runs, without};
use crate::view::{Axes, View};

/// Runs shorter than this are not worth finding: then nothing cheap can be said about the gaps.
const SHORTEST_RUN_BYTES: isize = 64;

/// The bytes of a field that a written walk leaves untouched.
#[derive(Clone, Debug)]
pub struct Carried {
    view: View,
    domain: Axes<usize>,
}

impl Carried {
    /// What the walk leaves; `None` where its runs are not whole stretches of bytes that come in increasing order.
    pub(crate) fn beside(view: &View, domain: &[usize]) -> Option<Carried> {
        let mut run = view.item_bytes as isize;
        let mut outer = domain.len();
        while outer > 0 && (view.strides[outer - 1] == run || domain[outer - 1] == 1) {
            run *= domain[outer - 1] as isize;
            outer -= 1;
        }
        if run < SHORTEST_RUN_BYTES && outer > 0 {
            return None;
        }
        let mut span = run;
        for axis in (0..outer).rev().filter(|axis| domain[*axis] > 1) {
            if view.strides[axis] < span {
                return None;
            }
            span += view.strides[axis] * (domain[axis] as isize - 1);
        }
        Some(Carried { view: view.clone(), domain: domain.iter().copied().collect() })
    }

    /// The untouched bytes within a part of the field, in order.
    pub(crate) fn within(&self, part: &Range<usize>) -> Vec<Range<usize>> {
        let mut written = Vec::new();
        add_runs(&self.view, &self.domain, part, 0, &mut written);
        without(std::slice::from_ref(part), &written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn the_border_of_an_inner_square_is_carried() {
        let view = View { offset: 800 + 8, strides: smallvec![800, 8], item_bytes: 8 };
        let carried = Carried::beside(&view, &[2, 98]).expect("runs are whole");
        assert_eq!(carried.within(&(0..3200)), vec![0..808, 1592..1608, 2392..3200]);
        assert_eq!(carried.within(&(1600..2400)), vec![1600..1608, 2392..2400]);
        assert!(Carried::beside(&View { offset: 0, strides: smallvec![16], item_bytes: 8 }, &[10]).is_none());
        assert!(
            Carried::beside(&View { offset: 0, strides: smallvec![800, 1600], item_bytes: 800 }, &[2, 2]).is_none()
        );
    }
}
