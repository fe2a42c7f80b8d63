//! `numpy.concatenate` of arrays of one native dtype: a fresh array, and one copy into each of its parts.
//!
//! Stacking functions are NumPy's own Python code over this one. Row-major operands only: the order of the result is then
//! row-major too. Other orders, dtypes that differ, `out=` and everything that is wrong go to the host.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PySlice, PyString, PyTuple};

use crate::array::{DeferredArray, Shape, deferred};
use crate::host;
use crate::index;
use crate::numpy_api;
use crate::ops::create;
use crate::report::How;
use crate::state::{Shim, array_functions, shim};

/// Enters this file's function for those of the host NumPy.
pub(crate) fn register(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = numpy.py();
    let table = array_functions(py);
    table.set_item(numpy.getattr("concatenate")?, wrap_pyfunction!(concatenate, py)?)
}

/// `numpy.concatenate`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn concatenate<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let shim = shim(py)?;
    if let Some(joined) = joined(py, shim, args, kwargs)? {
        if shim.settings.report {
            shim.report.lock().note(py, "concatenate", How::Native, 0, 0.0);
        }
        return Ok(joined.into_any());
    }
    host::call(&shim.host(py, "concatenate")?, args, kwargs, "concatenate")
}

/// A part's numbers; `None` when it is no plain row-major array.
fn part<'py>(operand: &Bound<'py, PyAny>) -> Option<(Shape, Bound<'py, PyAny>)> {
    let py = operand.py();
    let shape = match deferred(operand) {
        Some(array) => array.get().describe(py),
        None if numpy_api::is_exact_array(operand) => {
            let geometry = numpy_api::geometry(operand);
            Shape {
                offset: 0,
                shape: geometry.shape.iter().map(|length| *length as usize).collect(),
                strides: geometry.strides.iter().copied().collect(),
                flags: geometry.flags,
                descr: numpy_api::descr_address(operand),
            }
        }
        None => return None,
    };
    shape.is_c_contiguous().then(|| (shape, operand.clone()))
}

/// Launches the copies; `None` when the host must do it.
fn joined<'py>(
    py: Python<'py>,
    shim: &Shim,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let mut axis = args.get_item(1).ok();
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        match name.cast::<PyString>()?.to_str()? {
            "axis" if axis.is_none() => axis = Some(value),
            "out" | "dtype" if value.is_none() => {}
            "casting" if value.cast::<PyString>().is_ok_and(|rule| rule == "same_kind") => {}
            _ => return Ok(None),
        }
    }
    let axis: isize = match &axis {
        None => 0,
        Some(axis) if axis.is_exact_instance_of::<PyInt>() => axis.extract()?,
        Some(_) => return Ok(None),
    };
    let Ok(operands) = args.get_item(0) else { return Ok(None) };
    if args.len() > 2 || !(operands.is_exact_instance_of::<PyTuple>() || operands.is_exact_instance_of::<PyList>()) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for operand in operands.try_iter()? {
        let Some(part) = part(&operand?) else { return Ok(None) };
        parts.push(part);
    }
    let Some((first, _)) = parts.first() else { return Ok(None) };
    let axes = first.shape.len();
    let axis = if axis < 0 { axis + axes as isize } else { axis };
    let Some(axis) = usize::try_from(axis).ok().filter(|axis| *axis < axes) else { return Ok(None) };
    let fits = parts.iter().all(|(part, _)| {
        part.descr == first.descr
            && part.shape.len() == axes
            && (0..axes).all(|other| other == axis || part.shape[other] == first.shape[other])
    });
    let Some(native) = shim.dtypes.at(first.descr).filter(|_| fits) else { return Ok(None) };
    let mut shape = first.shape.clone();
    shape[axis] = parts.iter().map(|(part, _)| part.shape[axis]).sum();
    let descr = shim.dtypes.descr(py, native.letter);
    let Some(result) = create::unfilled(shim, &shape, descr, false)? else { return Ok(None) };
    let mut start = 0;
    for (part, operand) in &parts {
        let stop = start + part.shape[axis];
        if part.size() > 0 {
            let mut key = vec![PySlice::full(py).into_any(); axis];
            key.push(PySlice::new(py, start as isize, stop as isize, 1).into_any());
            let view = result.get().phantom(py).get_item(PyTuple::new(py, key)?)?;
            let view = DeferredArray::of_phantom(view, None)?;
            if !index::fill(py, shim, &view, operand)? {
                return Ok(None);
            }
        }
        start = stop;
    }
    Ok(Some(result))
}
