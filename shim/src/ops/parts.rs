//! Parts: this shard's own part of an array's memory, for those who write it to a file or read it from one.
//!
//! Promises that the parts of all shards are the array, each byte once, and that nothing is gathered. Which file, and where in it,
//! is the Python side's (`legate.replicate.arrays`). All shards must ask in the same order.

use std::sync::Arc;

use legate_runtime::view::View;
use legate_runtime::{Field, Operand, Privilege, Work};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::smallvec;

use crate::array::{DeferredArray, PHANTOM, deferred};
use crate::numpy_api;
use crate::ops::create;
use crate::report::How;
use crate::state::{Shim, shim};
use crate::storage;

/// Adds this file's functions to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(own_part, module)?)?;
    module.add_function(wrap_pyfunction!(shared_out, module)?)
}

/// The bytes of this shard's part of a row-major deferred array: where they begin in the array, and a host array over them that is
/// good until the next operation on the array. ValueError for other arrays.
#[pyfunction]
fn own_part<'py>(array: &Bound<'py, PyAny>) -> PyResult<(usize, Bound<'py, PyAny>)> {
    let py = array.py();
    let shim = shim(py)?;
    let Some(array) = deferred(array).filter(|array| array.get().describe(py).is_c_contiguous()) else {
        return Err(PyValueError::new_err("only row-major deferred arrays have parts"));
    };
    let storage = array.get().storage(py);
    let field = storage.get().field();
    if shim.settings.blocks {
        live_in_rows(shim, field);
    }
    storage::await_field(py, shim, field, storage::Purpose::Read)?;
    let all = numpy_api::bytes_of(&array.get().phantom(py), PHANTOM)?;
    let own = shim.runtime.own_part(field, &all);
    if shim.settings.report {
        shim.report.lock().note(py, "own part", How::Native, 0, 0.0);
    }
    Ok((own.start - all.start, memory(py, shim, array, field, own.start, own.len())?))
}

/// Has a field that may live in blocks live in rows: a launch that takes rows, and does nothing with them.
fn live_in_rows(shim: &Shim, field: &Arc<Field>) {
    let view = View { offset: 0, strides: smallvec![1], item_bytes: 1 };
    let operand = Operand { field: field.clone(), view, privilege: Privilege::Read };
    shim.runtime.launch("rows".into(), Work::Rows, smallvec![field.bytes()], smallvec![operand], storage::nothing());
}

/// An array, where this shard's part of it begins in bytes, and a host array over that part.
type Parted<'py> = (Bound<'py, DeferredArray>, usize, Bound<'py, PyAny>);

/// A new deferred array of that shape and dtype that is shared out among the shards, with its part as `own_part` tells it, to be
/// written at once; None where it would not be shared out.
#[pyfunction]
fn shared_out<'py>(shape: &Bound<'py, PyTuple>, dtype: &Bound<'py, PyAny>) -> PyResult<Option<Parted<'py>>> {
    let py = shape.py();
    let shim = shim(py)?;
    let lengths: Vec<usize> = shape.extract()?;
    let Some(array) = create::unfilled(shim, &lengths, dtype, false)? else { return Ok(None) };
    let item_bytes: usize = dtype.getattr("itemsize")?.extract()?;
    let inner: usize = lengths.iter().skip(1).product();
    let storage = array.get().storage(py);
    let field = storage.get().field();
    let own = shim.runtime.share_out(field, inner * item_bytes, item_bytes);
    if own.len() == field.bytes() && shim.shards > 1 {
        return Ok(None);
    }
    let part = memory(py, shim, &array, field, own.start, own.len())?;
    Ok(Some((array, own.start, part)))
}

/// Bytes of an array's field as a host array.
fn memory<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    field: &Field,
    start: usize,
    length: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = shim.dtypes.descr(py, b'B');
    let holder = array.get().storage(py).into_bound(py).into_any();
    numpy_api::array_over(bytes, &[length as isize], &[1], field.materialize() + start, true, holder)
}
