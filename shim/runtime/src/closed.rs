//! Closed windows: launches that wait to be run, and whether a waiting thread should run them itself.

use crate::launch::{Launch, Work};

/// Most elements, summed over its launches, of a window that a waiting thread runs itself: well under a tenth of a second.
const SHORT_ELEMENTS: usize = 1 << 24;
/// Elements of a map that take as long as one element of a launch that runs whole (a matrix product, a sort).
const WHOLE_WEIGHT: usize = 32;

/// A closed window.
pub(crate) struct Closed<T> {
    pub(crate) launches: Vec<Launch<T>>,
    pub(crate) short: bool,
}

impl<T> Closed<T> {
    pub(crate) fn new(launches: Vec<Launch<T>>) -> Closed<T> {
        let mut elements = 0usize;
        for launch in &launches {
            let size = match launch.work {
                Work::Rows | Work::Whole => {
                    launch.operands.iter().map(|operand| operand.field.bytes() / 8 * WHOLE_WEIGHT).sum()
                }
                Work::Map
                | Work::Fold { .. }
                | Work::Total
                | Work::Accumulate
                | Work::Exchange { .. }
                | Work::Scan { .. } => launch.domain.iter().product(),
            };
            elements = elements.saturating_add(size);
        }
        Closed { launches, short: elements <= SHORT_ELEMENTS }
    }
}
