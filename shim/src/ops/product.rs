//! Matrix products: NumPy's own BLAS on the operands' memory, into memory of ours.
//!
//! A product of two matrices is as large as it is, and NumPy would make it on fresh pages, which cost more to touch than to
//! fill. The result is a field of the pool, handed to NumPy as `out=`. Everything else about the product - order, threads,
//! bits - is NumPy's.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::deferred;
use crate::host;
use crate::numpy_api;
use crate::ops::create;
use crate::state::{Shim, array_functions, shim};

/// Enters this file's function for that of the host NumPy.
pub(crate) fn register(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = numpy.py();
    array_functions(py).set_item(numpy.getattr("dot")?, wrap_pyfunction!(dot, py)?)
}

/// `numpy.dot`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn dot<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let shim = shim(py)?;
    let function = shim.host(py, "dot")?;
    if args.len() == 2
        && kwargs.is_none_or(|kwargs| kwargs.is_empty())
        && let Some(product) = matrices(shim, &function, &args.get_item(0)?, &args.get_item(1)?)?
    {
        return Ok(product);
    }
    host::call(&function, args, kwargs, "dot")
}

/// Rows, columns and dtype of a two-dimensional operand.
fn matrix<'py>(operand: &Bound<'py, PyAny>) -> Option<(usize, usize, Bound<'py, PyAny>)> {
    let py = operand.py();
    let array = match deferred(operand) {
        Some(array) => array.get().phantom(py),
        None if numpy_api::is_exact_array(operand) => operand.clone(),
        None => return None,
    };
    match numpy_api::geometry(&array).shape {
        [rows, columns] => Some((*rows as usize, *columns as usize, numpy_api::descr(&array))),
        _ => None,
    }
}

/// The product of two matrices of one BLAS type whose result is large; `None` for anything else.
pub(crate) fn matrices<'py>(
    shim: &Shim,
    function: &Bound<'py, PyAny>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = left.py();
    let (Some((rows, inner, descr)), Some((other, columns, other_descr))) = (matrix(left), matrix(right)) else {
        return Ok(None);
    };
    let blas = shim.dtypes.at(descr.as_ptr() as usize).is_some_and(|native| b"fdFD".contains(&native.letter));
    if !blas || inner != other || !descr.is(&other_descr) {
        return Ok(None);
    }
    let Some(result) = create::unfilled(shim, &[rows, columns], &descr, false)? else { return Ok(None) };
    let keywords = PyDict::new(py);
    keywords.set_item("out", &result)?;
    host::call(function, &PyTuple::new(py, [left, right])?, Some(&keywords), "matrix product").map(Some)
}
