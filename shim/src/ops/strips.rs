//! Strips: this shard's own rows of an array that is being made, in memory with what they are made of, for NumPy's own code.
//!
//! Rows of the new array are shared out as those of any launch are: by where what they are made of lives. What a shard's rows read and
//! does not live there is received first, rows that overlap included. What is made of the rows is the Python side's
//! (`legate.strips`), which writes all of them before the next operation.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use legate_runtime::view::{Axes, View};
use legate_runtime::{Exchange, Operand, Privilege};
use pyo3::prelude::*;
use pyo3::types::PyList;
use smallvec::{SmallVec, smallvec};

use super::exchange::issue;
use crate::array::{DeferredArray, Shape};
use crate::state::{Shim, started};
use crate::storage::over_field;
use crate::ufuncs;
use crate::values::ordered_strides;

/// An array of which a shard has some rows, and how many each of them reads; its size of an element.
struct Rows {
    shape: Shape,
    item_bytes: usize,
    reach: usize,
}

impl Rows {
    /// The rows of a row-major array without gaps.
    fn of(py: Python<'_>, shim: &Shim, array: &Bound<'_, DeferredArray>, reach: usize) -> Option<Rows> {
        let shape = array.get().describe(py);
        let native = shim.dtypes.at(shape.descr)?;
        let fits = shape.is_c_contiguous() && !shape.shape.is_empty() && shape.size() > 0;
        fits.then_some(Rows { shape, item_bytes: native.item_bytes, reach })
    }

    /// Elements of one.
    fn elements(&self) -> usize {
        self.shape.shape[1..].iter().product()
    }

    fn operand(&self, py: Python<'_>, array: &Bound<'_, DeferredArray>, privilege: Privilege) -> Operand {
        let bytes = self.elements() * self.item_bytes;
        let view =
            View { offset: self.shape.offset, strides: smallvec![bytes as isize, 0], item_bytes: bytes * self.reach };
        Operand { field: array.get().storage(py).get().field().clone(), view, privilege }
    }
}

/// A fresh row-major deferred array, however small; `None` for dtypes without launches.
#[pyfunction]
pub(crate) fn fresh<'py>(shape: Vec<usize>, dtype: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let py = dtype.py();
    let shim = started(py);
    let Some(native) = shim.dtypes.at(dtype.as_ptr() as usize) else { return Ok(None) };
    let order: Axes<usize> = (0..shape.len()).rev().collect();
    let strides = ordered_strides(&shape, &order, native.item_bytes);
    Ok(Some(ufuncs::fresh(py, shim, &shape, &strides, native)?.array))
}

/// First and last row, and the arrays' memory.
type Own<'py> = (usize, usize, Bound<'py, PyList>);

/// This shard's rows of `made`, a fresh row-major array, and host arrays over `made` and each of `read`: arrays of which a row of `made`
/// reads the row of its number, and `reach - 1` more after it. Of these host arrays those rows are there, and nothing else; they
/// are good until the next operation. `None` for other layouts and dtypes.
#[pyfunction]
pub(crate) fn own_rows<'py>(
    label: &str,
    made: &Bound<'py, DeferredArray>,
    read: Vec<(Bound<'py, DeferredArray>, usize)>,
) -> PyResult<Option<Own<'py>>> {
    let py = made.py();
    let shim = started(py);
    let Some(target) = Rows::of(py, shim, made, 1) else { return Ok(None) };
    let length = target.shape.shape[0];
    let mut widest = target.elements();
    let mut operands: SmallVec<[Operand; 4]> = smallvec![target.operand(py, made, Privilege::Write)];
    for (array, reach) in &read {
        let Some(rows) = Rows::of(py, shim, array, *reach) else { return Ok(None) };
        if rows.shape.shape[0] + 1 < length + reach {
            return Ok(None);
        }
        widest = widest.max(rows.elements());
        operands.push(rows.operand(py, array, Privilege::Read));
    }
    let own: Arc<OnceLock<Range<usize>>> = Arc::default();
    let told = own.clone();
    let task = move |_: &[usize], exchange: &Exchange<'_>| {
        told.get_or_init(|| exchange.rows());
        Ok(())
    };
    let along = operands.len();
    let sequence = issue(py, shim, label, (along, 0), smallvec![length, widest], operands, task)?;
    shim.wait(py, sequence)?;
    let Some(own) = own.get() else { return Ok(None) };
    let memory = PyList::empty(py);
    for array in std::iter::once(made).chain(read.iter().map(|(array, _)| array)) {
        memory.append(over_field(py, &array.get().phantom(py), &array.get().storage(py), false)?)?;
    }
    Ok(Some((own.start, own.end, memory)))
}
