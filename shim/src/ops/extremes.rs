//! Arg-reductions along an axis with others behind it: `argmin` and `argmax` over rows, for all columns at once.
//!
//! Each row is compared with the best of those before it. On several shards each has some rows: what they found is joined in as many steps as
//! the logarithm of the shards has, a position and an element for each column. With axes before the reduced one, rows are those of
//! the first axes together, and nothing is sent.
#![expect(unsafe_code, reason = "binds the kernel of columns to addresses")]

use std::ops::Range;

use legate_kernels::execute::Columns;
use legate_kernels::program::{Extreme, Number};
use legate_runtime::transport::TransportError;
use legate_runtime::view::{Axes, View};
use legate_runtime::{Exchange, Operand, Privilege};
use parking_lot::Mutex;
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::exchange::{at, intersection, issue, rows, stretch};
use crate::array::{DeferredArray, Shape};
use crate::dtypes::Native;
use crate::state::Shim;
use crate::ufuncs;
use crate::values::ordered_strides;

/// Bytes of a position.
const PLACE: usize = size_of::<i64>();
/// Columns that are looked at together: what is best of them stays in a cache.
const TASK_COLUMNS: usize = 1 << 11;
/// Rows of each shard below which not every one may have some.
const LEAST_ROWS: usize = 2;

/// What is reduced: `outer` blocks of `length` rows of `inner` elements.
#[derive(Clone, Copy)]
struct Blocks {
    extreme: Extreme,
    number: Number,
    outer: usize,
    length: usize,
    inner: usize,
    item_bytes: usize,
    /// Bytes from one row to the next.
    stride: usize,
}

impl Blocks {
    /// The blocks of an array whose axes lie in its memory in their order, without gaps but between the rows of a single block.
    fn of(shape: &Shape, axis: usize, from: Native, extreme: Extreme) -> Option<Blocks> {
        let lengths = &shape.shape;
        let inner: usize = lengths[axis + 1..].iter().product();
        let order: Axes<usize> = (0..lengths.len()).rev().collect();
        let unbroken = ordered_strides(lengths, &order, from.item_bytes);
        let first = if axis == 0 { 1 } else { 0 };
        let fits = (first..lengths.len()).all(|axis| lengths[axis] == 1 || shape.strides[axis] == unbroken[axis]);
        let stride = if lengths[axis] == 1 { unbroken[axis] } else { shape.strides[axis] };
        let outer: usize = lengths[..axis].iter().product();
        (fits && stride >= unbroken[axis] && shape.size() > 0).then_some(Blocks {
            extreme,
            number: from.number?,
            outer,
            length: lengths[axis],
            inner,
            item_bytes: from.item_bytes,
            stride: stride as usize,
        })
    }

    /// The best of some rows of a block at an address, for each of some of its columns.
    fn best(&self, block: usize, rows: &Range<usize>, columns: &Range<usize>) -> Columns {
        let mut best = Columns::new(self.extreme, self.number, columns.len());
        let first = block + rows.start * self.stride + columns.start * self.item_bytes;
        // SAFETY: callers pass a block that is done, and rows and columns of it.
        unsafe { best.feed(at(first, self.stride), rows.start, rows.len()) };
        best
    }

    /// The best of rows of one block, shared out among the workers.
    fn of_rows(&self, block: usize, rows: Range<usize>, exchange: &Exchange<'_>) -> Columns {
        let threads = exchange.workers().threads();
        let is_wide = self.inner >= TASK_COLUMNS * threads;
        let (tasks, length) = match is_wide {
            true => (self.inner.div_ceil(TASK_COLUMNS), TASK_COLUMNS),
            false => (threads, rows.len().div_ceil(threads).max(1)),
        };
        let found: Vec<Mutex<Option<Columns>>> = (0..tasks).map(|_| Mutex::default()).collect();
        exchange.workers().each(tasks, &|task| {
            let part = |all: &Range<usize>| {
                let start = (all.start + task * length).min(all.end);
                start..(start + length).min(all.end)
            };
            let best = match is_wide {
                true => self.best(block, &rows, &part(&(0..self.inner))),
                false => self.best(block, &part(&rows), &(0..self.inner)),
            };
            *found[task].lock() = Some(best);
        });
        let found: Vec<Columns> = found.into_iter().filter_map(Mutex::into_inner).collect();
        if is_wide {
            let places = found.iter().flat_map(|part| part.places());
            let elements = found.iter().flat_map(|part| &part.bytes()[part.places().len()..]);
            let bytes: Vec<u8> = places.chain(elements).copied().collect();
            return Columns::from_bytes(self.extreme, self.number, self.inner, &bytes);
        }
        let mut all = Columns::new(self.extreme, self.number, self.inner);
        found.iter().for_each(|part| all.join(part));
        all
    }

    /// Writes positions in a block of which each shard has some rows, to what lives here.
    fn joined(&self, block: usize, to: usize, exchange: &Exchange<'_>) -> Result<(), TransportError> {
        let own = self.of_rows(block, exchange.rows(), exchange);
        let bytes = own.bytes().to_vec();
        let size = bytes.len();
        let known = |bytes: &[u8]| Columns::from_bytes(self.extreme, self.number, self.inner, bytes);
        let all = match exchange.is_divided() {
            false => bytes,
            true => exchange.merged(bytes, size, |lower, upper| {
                let mut both = known(lower);
                both.join(&known(upper));
                both.bytes().to_vec()
            })?,
        };
        let places = 0..self.inner * PLACE;
        let own = if exchange.writes_all(0) { places.clone() } else { exchange.own(0) };
        if let Some(part) = intersection(&own, &places) {
            // SAFETY: the part of the result that lives here.
            unsafe { crate::numpy_api::copy_bytes(all[part.clone()].as_ptr() as usize, to + part.start, part.len()) };
        }
        Ok(())
    }

    /// Writes positions in this shard's blocks.
    fn apart(&self, from: usize, to: usize, exchange: &Exchange<'_>) {
        let own = exchange.rows();
        let row = self.inner * PLACE;
        exchange.workers().each(own.len(), &|place| {
            let block = own.start + place;
            let mut column = 0;
            while column < self.inner {
                let columns = column..(column + TASK_COLUMNS).min(self.inner);
                column = columns.end;
                let best = self.best(from + block * self.length * self.stride, &(0..self.length), &columns);
                let places = best.places();
                // SAFETY: the block's row of the result is this shard's, and no other task's.
                unsafe {
                    let target = to + block * row + columns.start * PLACE;
                    crate::numpy_api::copy_bytes(places.as_ptr() as usize, target, places.len());
                }
            }
        });
    }
}

/// The positions of the first smallest or largest elements along an axis, as an array of these lengths; `None` for layouts and dtypes
/// without a launch.
pub(crate) fn positions<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    (extreme, axis): (Extreme, usize),
    lengths: &[usize],
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let shape = array.get().describe(py);
    let long = shim.dtypes.at(shim.dtypes.descr(py, b'l').as_ptr() as usize);
    let (Some(from), Some(long)) = (shim.dtypes.at(shape.descr), long) else { return Ok(None) };
    let Some(blocks) = Blocks::of(&shape, axis, from, extreme) else { return Ok(None) };
    let rows_of_all = if blocks.outer == 1 { blocks.length } else { blocks.outer };
    if shim.shards > 1 && rows_of_all < LEAST_ROWS * shim.shards {
        return Ok(None);
    }
    let order: Axes<usize> = (0..lengths.len()).rev().collect();
    let target = ufuncs::fresh(py, shim, lengths, &ordered_strides(lengths, &order, PLACE), long)?;
    let (result, storage) = (target.array.get().storage(py), array.get().storage(py));
    let name = match extreme {
        Extreme::Min => "argmin",
        Extreme::Max => "argmax",
    };
    let (start, Blocks { outer, length, inner, item_bytes, stride, .. }) = (shape.offset, blocks);
    let row = View { offset: start, strides: smallvec![stride as isize, item_bytes as isize], item_bytes };
    let input = Operand { field: storage.get().field().clone(), view: row, privilege: Privilege::Read };
    if outer == 1 {
        let operands: SmallVec<[Operand; 4]> = smallvec![input, stretch(&result, 0, inner * PLACE, Privilege::Write)];
        issue(py, shim, name, (1, PLACE), smallvec![length, inner], operands, move |addresses, exchange| {
            blocks.joined(addresses[0].wrapping_add_signed(start), addresses[1], exchange)
        })?;
    } else {
        let operands: SmallVec<[Operand; 4]> =
            smallvec![rows_of(&result, inner), rows(&storage, start, length * stride, item_bytes, Privilege::Read),];
        let domain = smallvec![outer, length * inner];
        issue(py, shim, name, (2, 0), domain, operands, move |addresses, exchange| {
            blocks.apart(addresses[1].wrapping_add_signed(start), addresses[0], exchange);
            Ok(())
        })?;
    }
    Ok(Some(target.array))
}

/// An operand with a row of `inner` positions for each block.
fn rows_of(result: &Py<crate::storage::Storage>, inner: usize) -> Operand {
    let bytes = inner * PLACE;
    let view = View { offset: 0, strides: smallvec![bytes as isize, 0], item_bytes: bytes };
    Operand { field: result.get().field().clone(), view, privilege: Privilege::Write }
}
