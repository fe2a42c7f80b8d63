//! Products of a large matrix of many short rows with a small matrix, on one shard: by a loop of ours that reads each row once.
//!
//! As in `long_rows`, the product is done when the call returns, and what raises floating-point events is left to NumPy, which
//! tells of them.
#![expect(unsafe_code, reason = "runs a loop on arrays' memory")]

use std::sync::atomic::{AtomicU8, Ordering};

use legate_kernels::execute::watched;
use legate_kernels::product::long;
use legate_kernels::product::short::{self, Small};
use pyo3::prelude::*;

use crate::array::deferred;
use crate::numpy_api;
use crate::ops::long_rows::{Rows, minded, room, told_of};
use crate::state::Shim;
use crate::storage::Purpose;

/// The product of a deferred matrix with a small one; `None` for what is left to the host. It is told of in the name given.
pub(crate) fn product<'py>(
    shim: &Shim,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    told: &'static str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = left.py();
    let Some(matrix) = Rows::of(shim, left) else { return Ok(None) };
    let is_small = |columns: usize| short::is_small(matrix.count, matrix.length, columns, matrix.size);
    if matrix.count / matrix.length.max(1) < 2 {
        return Ok(None);
    }
    let other = match deferred(right) {
        Some(array) => match array.get().describe(py).shape[..] {
            [_, columns] if is_small(columns) => array.get().export_for(py, Purpose::Read)?,
            _ => return Ok(None),
        },
        None if numpy_api::is_exact_array(right) => right.clone(),
        None => return Ok(None),
    };
    let side = numpy_api::geometry(&other);
    let (&[inner, columns], &[along, across]) = (side.shape, side.strides) else { return Ok(None) };
    let columns = columns.cast_unsigned();
    let fits = inner == matrix.length.cast_signed() && is_small(columns);
    if !fits || numpy_api::descr_address(&other) != matrix.descr {
        return Ok(None);
    }
    let Some(minded) = minded(shim, py)? else { return Ok(None) };
    crate::prompt::step()?;
    let Some((rows, _memory)) = matrix.bring()? else { return Ok(None) };
    let (result, room) = room(shim, &[matrix.count, columns], &numpy_api::descr(&other))?;
    let (out, apart) = (numpy_api::geometry(&room).data, (matrix.size * columns).cast_signed());
    let (item, count, length) = (matrix.item, matrix.count, matrix.length);
    let workers = shim.runtime.workers();
    let events = AtomicU8::new(0);
    py.detach(|| {
        // SAFETY: the small matrix is held, and so is its memory.
        let small = unsafe { Small::copy(item, side.data, [along, across], length, columns) };
        let each = long::rows_of_part(rows.step.unsigned_abs());
        workers.each(count.div_ceil(each), &|part| {
            let (begin, count) = (part * each, each.min(count - part * each));
            let out = out.wrapping_add_signed(apart * begin.cast_signed());
            // SAFETY: both arrays are held, and so is their memory; they have these shapes, and nobody knows the result yet.
            let raised = watched(|| unsafe { short::products(rows.from(begin), count, &small, out, apart) });
            events.fetch_or(raised, Ordering::Relaxed);
        });
    });
    Ok(told_of(shim, (result, told), events.into_inner() & minded))
}
