//! Running totals on memory, by NumPy's own loops.
//!
//! NumPy's `accumulate` calls the loop once for each line along the axis, with the output one element behind itself as an input;
//! so does this, and gets its very bits. Where an operation's bits do not depend on the form of the call, rows are taken whole, so
//! that memory is gone through in its order. What is scanned and how it is shared out is decided by `ops::scan`.
#![expect(unsafe_code, reason = "calls NumPy's loops on parts of fields")]

use std::ffi::c_char;

use legate_kernels::program::Loop;
use legate_runtime::view::Axes;
use legate_runtime::{Cut, From, Launch};

use crate::task::{Scan, Task};

/// Shortest inner axis that is taken whole.
const SHORTEST_ROW: usize = 16;

/// Calls a loop of two inputs and one output.
///
/// # Safety
/// The elements must be there, and of the loop's type.
unsafe fn call(kernel: &Loop, data: [usize; 3], length: usize, strides: [isize; 3]) {
    let data = data.map(|address| address as *mut c_char);
    let length = length as isize;
    // SAFETY: the caller's, and `Loop`'s invariant; that one input is the output an element earlier is NumPy's own use of it.
    let code = unsafe { (kernel.function)(kernel.context, data.as_ptr(), &length, strides.as_ptr(), kernel.auxdata) };
    assert!(code == 0, "inner loop {} failed with code {code}", kernel.name);
}

/// The lengths, and the strides of output and input, of one part of a scan.
struct Part {
    lengths: Axes<usize>,
    out: Axes<isize>,
    input: Axes<isize>,
}

impl Part {
    /// Visits the starts of all lines along an axis: output and input.
    fn lines(&self, axis: usize, out: usize, input: usize, visit: &mut dyn FnMut(usize, usize)) {
        self.visit(0, axis, out, input, visit);
    }

    fn visit(&self, at: usize, skipped: usize, out: usize, input: usize, visit: &mut dyn FnMut(usize, usize)) {
        if at == self.lengths.len() {
            visit(out, input);
            return;
        }
        let length = if at == skipped { 1 } else { self.lengths[at] };
        for index in 0..length as isize {
            let (out, input) =
                (out.wrapping_add_signed(index * self.out[at]), input.wrapping_add_signed(index * self.input[at]));
            self.visit(at + 1, skipped, out, input, visit);
        }
    }
}

/// Runs part of a launch of running totals.
pub(crate) fn run(launch: &Launch<Task>, scan: &Scan, addresses: &[usize], cut: &Cut, from: From) {
    let (output, input) = (&launch.operands[0].view, &launch.operands[1].view);
    let mut part = Part { lengths: launch.domain.clone(), out: output.strides.clone(), input: input.strides.clone() };
    let (rows, inner) = match cut {
        Cut::Rows(rows) => (rows, None),
        Cut::Inner(rows, inner) => (rows, Some(inner)),
    };
    let mut out = addresses[0].wrapping_add_signed(output.offset + rows.start as isize * output.strides[0]);
    let mut read = addresses[1].wrapping_add_signed(input.offset + rows.start as isize * input.strides[0]);
    part.lengths[0] = rows.len();
    if let Some(inner) = inner {
        out = out.wrapping_add_signed(inner.start as isize * output.strides[1]);
        read = read.wrapping_add_signed(inner.start as isize * input.strides[1]);
        part.lengths[1] = inner.len();
    }
    if part.lengths.contains(&0) {
        return;
    }
    let axis = scan.axis;
    let (behind, along) = (part.out[axis], part.input[axis]);
    if from == From::Added {
        let before = out.wrapping_add_signed(-behind);
        // SAFETY: the views lie inside their fields; the element before the first one is the output's.
        unsafe { call(&scan.kernel, [before, out, out], part.lengths[axis], [0, behind, behind]) };
        return;
    }
    let mut first = 0;
    if from == From::Nothing {
        part.lines(axis, out, read, &mut |out, read| {
            if out != read {
                // SAFETY: single elements of the two views.
                unsafe { crate::numpy_api::copy_bytes(read, out, scan.item_bytes) };
            }
        });
        first = 1;
    }
    let length = part.lengths[axis] - first;
    let (out, read) =
        (out.wrapping_add_signed(first as isize * behind), read.wrapping_add_signed(first as isize * along));
    let last = part.lengths.len() - 1;
    if scan.any_form && axis != last && part.lengths[last] >= SHORTEST_ROW {
        let (row_out, row_read, width) = (part.out[last], part.input[last], part.lengths[last]);
        part.lengths[last] = 1;
        // Lines along the scan, each a row wide; the lines of one place along the other axes one after the other.
        part.lines(axis, out, read, &mut |out, read| {
            for index in 0..length as isize {
                let to = out.wrapping_add_signed(index * behind);
                let data = [to.wrapping_add_signed(-behind), read.wrapping_add_signed(index * along), to];
                // SAFETY: the views lie inside their fields; rows of one line do not overlap each other.
                unsafe { call(&scan.kernel, data, width, [row_out, row_read, row_out]) };
            }
        });
        return;
    }
    part.lines(axis, out, read, &mut |out, read| {
        // SAFETY: the views lie inside their fields, and the output has an element before each of these.
        unsafe { call(&scan.kernel, [out.wrapping_add_signed(-behind), read, out], length, [behind, along, behind]) };
    });
}

/// Joins totals of one element each, in order; the result goes to an address.
pub(crate) fn join(scan: &Scan, parts: &[u8], address: usize) {
    let item = scan.item_bytes;
    let copied = |at: usize| parts.as_ptr() as usize + at;
    let mut sum = legate_kernels::program::Element([0; 32]);
    let mut next = sum;
    let place = sum.0.as_mut_ptr() as usize;
    // SAFETY: elements of the loop's type have at most 32 bytes; `parts` holds whole elements.
    unsafe {
        crate::numpy_api::copy_bytes(copied(0), place, item);
        for at in (item..parts.len()).step_by(item) {
            let other = next.0.as_mut_ptr() as usize;
            crate::numpy_api::copy_bytes(copied(at), other, item);
            call(&scan.kernel, [place, other, place], 1, [0, 0, 0]);
        }
        crate::numpy_api::copy_bytes(place, address, item);
    }
}
