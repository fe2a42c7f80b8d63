//! NumPy's dispatched C functions that have an answer of their own: `where` as one launch (or, of a condition alone, `nonzero`),
//! `result_type` and `empty_like` from shapes and dtypes alone.
//!
//! Each is entered in the table of `__array_function__`. What is not covered goes to the host with the same arguments.

use legate_kernels::loops;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, deferred};
use crate::events::Mood;
use crate::host;
use crate::memory;
use crate::numpy_api;
use crate::report::How;
use crate::state::{Shim, array_functions, shim};
use crate::storage;
use crate::ufuncs::{Map, Resolution, common_shape};
use crate::values::{Value, copied_strides};

/// Enters this file's functions for those of the host NumPy.
pub(crate) fn register(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = numpy.py();
    let table = array_functions(py);
    table.set_item(numpy.getattr("where")?, wrap_pyfunction!(choose, py)?)?;
    table.set_item(numpy.getattr("result_type")?, wrap_pyfunction!(result_type, py)?)?;
    table.set_item(numpy.getattr("empty_like")?, wrap_pyfunction!(empty_like, py)?)
}

/// `numpy.where`.
#[pyfunction(name = "where")]
#[pyo3(signature = (*args))]
fn choose<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let shim = shim(py)?;
    if args.len() == 3 {
        let chosen = match chosen(py, shim, args) {
            // A Python number that the dtype cannot hold: the host decides what that means.
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => None,
            other => other?,
        };
        if let Some(chosen) = chosen {
            if shim.settings.report {
                shim.report.lock().note(py, "where", How::Native, 0, 0.0);
            }
            return Ok(chosen.into_any());
        }
    }
    if args.len() == 1 && deferred(&args.get_item(0)?).is_some() {
        return args.get_item(0)?.call_method0("nonzero");
    }
    host::call(&shim.host(py, "where")?, args, None, "where")
}

/// The deferred result of `where` with three arguments; `None` when the host must do it.
fn chosen<'py>(
    py: Python<'py>,
    shim: &Shim,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let mut inputs: SmallVec<[Value<'py>; 3]> = SmallVec::new();
    let mut types: SmallVec<[Bound<'py, PyAny>; 2]> = SmallVec::new();
    for (position, operand) in args.iter().enumerate() {
        let Some((_, value)) = Value::of(shim, &operand)? else { return Ok(None) };
        if position > 0 {
            types.push(match (&value, deferred(&operand)) {
                (_, Some(array)) => array.get().descr(py),
                (Value::Weak(number), None) => number.clone(),
                (_, None) if numpy_api::is_exact_array(&operand) => numpy_api::descr(&operand),
                (Value::Constant { native, .. } | Value::Array { native, .. }, None) => {
                    shim.dtypes.descr(py, native.letter).clone()
                }
            });
        }
        inputs.push(value);
    }
    let Some(shape) = common_shape(&inputs) else { return Ok(None) };
    let size: usize = shape.iter().product();
    if shape.is_empty() || size < shim.settings.min_chunk.max(1) {
        return Ok(None);
    }
    let descr = shim.host(py, "result_type")?.call1(PyTuple::new(py, types)?)?;
    let truth = shim.dtypes.at(shim.dtypes.descr(py, b'?').as_ptr() as usize);
    let (Some(native), Some(truth)) = (shim.dtypes.at(descr.as_ptr() as usize), truth) else { return Ok(None) };
    let resolution = Resolution {
        inputs: smallvec![truth, native, native],
        outputs: smallvec![native],
        kernel: loops::select(native.item_bytes),
        borrowed: loops::select(native.item_bytes),
        warns: false,
        name: "where",
    };
    let map = Map { resolution: &resolution, name: resolution.name, inputs, mask: None, shape, mood: Mood::Silent };
    Ok(map.issue(py, shim, None)?.and_then(|results| results.into_iter().next()))
}

/// `numpy.result_type`.
#[pyfunction]
#[pyo3(signature = (*args))]
fn result_type<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    host::view_call(&shim(args.py())?.host(args.py(), "result_type")?, args, None)
}

/// `numpy.empty_like`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn empty_like<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let shim = shim(py)?;
    let mut prototype = args.get_item(0).ok();
    let mut dtype = args.get_item(1).ok().filter(|dtype| !dtype.is_none());
    let mut order = args.get_item(2).ok();
    let mut plain = args.len() <= 3;
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        match name.cast::<PyString>()?.to_str()? {
            "prototype" => prototype = Some(value),
            "dtype" => dtype = (!value.is_none()).then_some(value),
            "order" => order = Some(value),
            "subok" => {}
            "shape" | "device" if value.is_none() => {}
            _ => plain = false,
        }
    }
    if let Some(prototype) = prototype.as_ref().and_then(deferred)
        && plain
        && let Some(made) = like(py, shim, prototype, dtype.as_ref(), order.as_ref())?
    {
        return Ok(made.into_any());
    }
    host::call(&shim.host(py, "empty_like")?, args, kwargs, "empty_like")
}

/// A fresh array laid out like `prototype`; `None` when the host must make it.
fn like<'py>(
    py: Python<'py>,
    shim: &Shim,
    prototype: &Bound<'py, DeferredArray>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let own = prototype.get().describe(py);
    let descr = match dtype {
        None => prototype.get().descr(py),
        Some(dtype) => match shim.host(py, "dtype")?.call1((dtype,)) {
            Ok(descr) => descr,
            Err(_) => return Ok(None),
        },
    };
    if !host::is_eligible(shim, own.shape.len(), own.size(), &descr)? {
        return Ok(None);
    }
    let item_bytes: usize = descr.getattr("itemsize")?.extract()?;
    let order = match order.map(|order| order.extract::<String>()) {
        None => "K".to_owned(),
        Some(Ok(order)) => order.to_uppercase(),
        Some(Err(_)) => return Ok(None),
    };
    let Some(strides) = copied_strides(&own, &order, item_bytes) else { return Ok(None) };
    let handle = memory::field(py, shim, own.size() * item_bytes, &own.shape, &descr)?;
    let (phantom, owner) = storage::phantom(handle, &descr, numpy_api::signed(&own.shape), &strides, 0)?;
    Ok(Some(DeferredArray::over(phantom, owner, None)?))
}
