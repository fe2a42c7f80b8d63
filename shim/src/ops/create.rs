//! Creation: zeros, ones, full, empty, arange, and copies, deferred when they are large enough.
//!
//! What is small, or has a dtype or argument that is not covered, is made by the host NumPy, whose errors are the user's.

use legate_kernels::loops;
use legate_kernels::program::{Element, Number};
use legate_runtime::view::Axes;
use legate_runtime::{Privilege, Work};
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyComplex, PyDict, PyFloat, PyInt, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, deferred};
use crate::dtypes::{Native, element};
use crate::host;
use crate::index;
use crate::memory;
use crate::numpy_api;
use crate::report::How;
use crate::state::{Shim, shim};
use crate::storage;
use crate::task::{Sink, Task};
use crate::ufuncs;
use crate::values::{Walk, copied_strides, ordered_strides};

/// A shape argument as lengths; `None` when the host must look at it.
fn lengths(shape: &Bound<'_, PyAny>) -> Option<Axes<usize>> {
    if shape.is_instance_of::<PyInt>() {
        return Some(smallvec![shape.extract().ok()?]);
    }
    let items = shape.cast::<PyTuple>().ok()?;
    items.iter().map(|item| item.extract::<usize>().ok()).collect()
}

/// A fresh deferred array of any fixed-width dtype, not filled; `None` when it is not one to defer.
pub(crate) fn unfilled<'py>(
    shim: &Shim,
    shape: &[usize],
    descr: &Bound<'py, PyAny>,
    column_major: bool,
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let py = descr.py();
    let Some(size) = shape.iter().try_fold(1usize, |size, length| size.checked_mul(*length)) else { return Ok(None) };
    if !host::is_eligible(shim, shape.len(), size, descr)? {
        return Ok(None);
    }
    let item_bytes: usize = descr.getattr("itemsize")?.extract()?;
    // Beyond the address space NumPy's own error is another than that of too little memory.
    let bytes = size.checked_mul(item_bytes).filter(|bytes| isize::try_from(*bytes).is_ok());
    let Some(bytes) = bytes else { return Ok(None) };
    let handle = memory::field(py, shim, bytes, shape, descr)?;
    let mut order: Axes<usize> = (0..shape.len()).collect();
    if !column_major {
        order.reverse();
    }
    let strides = ordered_strides(shape, &order, item_bytes);
    let (phantom, owner) = storage::phantom(handle, descr, numpy_api::signed(shape), &strides, 0)?;
    Ok(Some(DeferredArray::over(phantom, owner, None)?))
}

/// Fills a fresh array's bytes with an element of its own size.
fn fill_bytes(
    py: Python<'_>,
    shim: &Shim,
    array: &Bound<'_, DeferredArray>,
    value: Element,
    item_bytes: usize,
) -> PyResult<()> {
    let shape = array.get().describe(py);
    let walk = Walk::of(&shape.shape, &shape.strides);
    let operands =
        smallvec![walk.operand(&array.get().storage(py), shape.offset, &shape.strides, item_bytes, Privilege::Write)];
    let source = crate::task::Source { origin: crate::task::Origin::Constant(value), item_bytes, cast: None };
    let task = Task::Map {
        kernel: loops::copy(item_bytes),
        inputs: smallvec![source],
        outputs: smallvec![Sink { operand: 0, cast: None }],
        mask: None,
    };
    crate::shards::check_thread()?;
    crate::selection::before_writing(py, shim, &operands)?;
    let issued = shim.runtime.launch("fill".into(), Work::Map, walk.domain(), operands, task);
    shim.settle(py, issued, false)
}

/// Reads `(shape, dtype=float, order='C')`; `None` when anything else was said.
struct Wanted<'py> {
    shape: Axes<usize>,
    descr: Bound<'py, PyAny>,
    column_major: bool,
}

fn wanted<'py>(
    shim: &Shim,
    shape: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Wanted<'py>>> {
    let py = shape.py();
    let Some(shape) = lengths(shape) else { return Ok(None) };
    let size = shape.iter().fold(1usize, |size, length| size.saturating_mul(*length));
    if size < shim.settings.min_chunk {
        return Ok(None);
    }
    let descr = match dtype {
        None => shim.dtypes.descr(py, b'd').clone(),
        Some(dtype) => match shim.host(py, "dtype")?.call1((dtype,)) {
            Ok(descr) => descr,
            Err(_) => return Ok(None),
        },
    };
    let column_major = match order {
        None => false,
        Some(order) => match order.cast::<PyString>().ok().and_then(|text| text.to_str().ok()) {
            Some("C" | "c" | "K" | "A") => false,
            Some("F" | "f") => true,
            Some(_) | None => return Ok(None),
        },
    };
    Ok(Some(Wanted { shape, descr, column_major }))
}

/// Runs the host's function of the same name with the same arguments.
fn by_host<'py>(
    shim: &Shim,
    name: &str,
    args: Vec<Bound<'py, PyAny>>,
    named: &[(&str, Option<&Bound<'py, PyAny>>)],
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let kwargs = PyDict::new(py);
    for (key, value) in named {
        if let Some(value) = value {
            kwargs.set_item(key, value)?;
        }
    }
    shim.host(py, name)?.call(PyTuple::new(py, args)?, Some(&kwargs))
}

/// `numpy.zeros`.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None))]
pub(crate) fn zeros<'py>(
    shape: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    like: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = shape.py();
    let shim = shim(py)?;
    if device.is_none()
        && like.is_none()
        && let Some(wanted) = wanted(shim, shape, dtype, order)?
        && let Some(native) = shim.dtypes.at(wanted.descr.as_ptr() as usize)
        && let Some(array) = unfilled(shim, &wanted.shape, &wanted.descr, wanted.column_major)?
    {
        fill_bytes(py, shim, &array, Element([0; 32]), native.item_bytes)?;
        note(py, shim, "zeros");
        return Ok(array.into_any());
    }
    let named = [("dtype", dtype), ("order", order), ("device", device), ("like", like)];
    let made = by_host(shim, "zeros", vec![shape.clone()], &named, py)?;
    host::settle_result(shim, made)
}

/// `numpy.empty`.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None))]
pub(crate) fn empty<'py>(
    shape: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    like: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = shape.py();
    let shim = shim(py)?;
    if device.is_none()
        && like.is_none()
        && let Some(wanted) = wanted(shim, shape, dtype, order)?
        && let Some(array) = unfilled(shim, &wanted.shape, &wanted.descr, wanted.column_major)?
    {
        note(py, shim, "empty");
        return Ok(array.into_any());
    }
    let named = [("dtype", dtype), ("order", order), ("device", device), ("like", like)];
    let made = by_host(shim, "empty", vec![shape.clone()], &named, py)?;
    host::settle_result(shim, made)
}

/// `numpy.ones`.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None))]
pub(crate) fn ones<'py>(
    shape: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    like: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = shape.py();
    let shim = shim(py)?;
    if device.is_none() && like.is_none() {
        let one = 1i64.into_pyobject(py)?.into_any();
        if let Some(array) = filled(py, shim, shape, &one, dtype, order)? {
            return Ok(array);
        }
    }
    let named = [("dtype", dtype), ("order", order), ("device", device), ("like", like)];
    let made = by_host(shim, "ones", vec![shape.clone()], &named, py)?;
    host::settle_result(shim, made)
}

/// `numpy.full`.
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype=None, order=None, *, device=None, like=None))]
pub(crate) fn full<'py>(
    shape: &Bound<'py, PyAny>,
    fill_value: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    like: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = shape.py();
    let shim = shim(py)?;
    if device.is_none() && like.is_none() {
        let inferred;
        let dtype = match dtype {
            Some(dtype) => Some(dtype),
            None => {
                inferred = match deferred(fill_value) {
                    Some(array) => array.get().descr(py),
                    None => shim.host(py, "asarray")?.call1((fill_value,))?.getattr("dtype")?,
                };
                Some(&inferred)
            }
        };
        if let Some(array) = filled(py, shim, shape, fill_value, dtype, order)? {
            return Ok(array);
        }
    }
    let named = [("dtype", dtype), ("order", order), ("device", device), ("like", like)];
    let made = by_host(shim, "full", vec![shape.clone(), host::unwrap(fill_value)?], &named, py)?;
    host::settle_result(shim, made)
}

/// A deferred array filled with a value that broadcasts to it; `None` when it is for the host.
fn filled<'py>(
    py: Python<'py>,
    shim: &Shim,
    shape: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(wanted) = wanted(shim, shape, dtype, order)? else { return Ok(None) };
    let Some(native) = shim.dtypes.at(wanted.descr.as_ptr() as usize) else { return Ok(None) };
    // An assignment would refuse it; filling drops its imaginary part and warns, with a class of NumPy's own.
    if value.is_instance_of::<PyComplex>() && native.kind != b'c' {
        return Ok(None);
    }
    let Some(array) = unfilled(shim, &wanted.shape, &wanted.descr, wanted.column_major)? else { return Ok(None) };
    if !index::fill(py, shim, &array, value)? {
        return Ok(None);
    }
    Ok(Some(array.into_any()))
}

/// `numpy.arange`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
pub(crate) fn arange<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let shim = shim(py)?;
    if let Some(array) = counted(py, shim, args, kwargs)? {
        note(py, shim, "arange");
        return Ok(array);
    }
    let made = shim.host(py, "arange")?.call(args, kwargs)?;
    host::settle_result(shim, made)
}

/// An arange of Python ints or floats as one launch; `None` when it is small or has other arguments.
fn counted<'py>(
    py: Python<'py>,
    shim: &Shim,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut dtype = None;
    if let Some(kwargs) = kwargs {
        for (name, value) in kwargs.iter() {
            match name.cast::<PyString>()?.to_str()? {
                "dtype" => dtype = (!value.is_none()).then_some(value),
                "device" | "like" if value.is_none() => {}
                _ => return Ok(None),
            }
        }
    }
    let numbers: SmallVec<[Bound<'py, PyAny>; 3]> = args.iter().collect();
    let plain =
        |number: &Bound<'py, PyAny>| number.is_exact_instance_of::<PyInt>() || number.is_exact_instance_of::<PyFloat>();
    if numbers.is_empty() || numbers.len() > 3 || !numbers.iter().all(plain) {
        return Ok(None);
    }
    let value = |position: usize| numbers[position].extract::<f64>();
    let (start, stop, step) = match numbers.len() {
        1 => (0.0, value(0)?, 1.0),
        2 => (value(0)?, value(1)?, 1.0),
        _ => (value(0)?, value(1)?, value(2)?),
    };
    let length = ((stop - start) / step).ceil();
    let in_range =
        length >= shim.settings.min_chunk.max(2) as f64 && length < 9e15 && start.abs() < 9e15 && step.abs() < 9e15;
    if !in_range {
        return Ok(None);
    }
    let begin = if numbers.len() == 1 { 0i64.into_pyobject(py)?.into_any() } else { numbers[0].clone() };
    let integers = numbers.iter().all(|number| number.is_exact_instance_of::<PyInt>());
    let descr = match &dtype {
        Some(dtype) => match shim.host(py, "dtype")?.call1((dtype,)) {
            Ok(descr) => descr,
            Err(_) => return Ok(None),
        },
        None => shim.dtypes.descr(py, if integers { b'l' } else { b'd' }).clone(),
    };
    let Some(native) = shim.dtypes.at(descr.as_ptr() as usize) else { return Ok(None) };
    let Some((number, first, delta)) = sequence(native, &begin, start, step)? else { return Ok(None) };
    let shape = [length as usize];
    let Some(array) = unfilled(shim, &shape, &descr, false)? else { return Ok(None) };
    let own = array.get().describe(py);
    let walk = Walk::of(&own.shape, &own.strides);
    let operands =
        smallvec![walk.operand(&array.get().storage(py), 0, &own.strides, native.item_bytes, Privilege::Write)];
    let task = Task::Index { number, start: first, delta, output: 0 };
    crate::shards::check_thread()?;
    crate::selection::before_writing(py, shim, &operands)?;
    let issued = shim.runtime.launch("arange".into(), Work::Map, walk.domain(), operands, task);
    shim.settle(py, issued, false)?;
    Ok(Some(array.into_any()))
}

/// First value and step of an arange, in the array's type, as NumPy finds them: the step is the difference of the first
/// two elements.
fn sequence<'py>(
    native: Native,
    begin: &Bound<'py, PyAny>,
    start: f64,
    step: f64,
) -> PyResult<Option<(Number, Element, Element)>> {
    let Some(number) = native.number else { return Ok(None) };
    match number {
        Number::F64 => {
            let second = start + step;
            Ok(Some((number, element(&start.to_ne_bytes()), element(&(second - start).to_ne_bytes()))))
        }
        Number::I64 => {
            let first: i64 = match begin.extract() {
                Ok(first) => first,
                Err(_) => return Ok(None),
            };
            if step.fract() != 0.0 || start.fract() != 0.0 {
                return Ok(None);
            }
            Ok(Some((number, element(&first.to_ne_bytes()), element(&(step as i64).to_ne_bytes()))))
        }
        Number::Bool
        | Number::I8
        | Number::U8
        | Number::I16
        | Number::U16
        | Number::I32
        | Number::U32
        | Number::U64
        | Number::F16
        | Number::F32
        | Number::C64
        | Number::C128 => Ok(None),
    }
}

/// A copy of a deferred array in NumPy's order: 'C', 'F', 'A' or 'K'; converted to `native` if given.
pub(crate) fn copy<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    order: &str,
    native: Option<Native>,
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let shape = array.get().describe(py);
    let Some(from) = shim.dtypes.at(shape.descr) else { return Ok(None) };
    let to = native.unwrap_or(from);
    if shape.size() == 0 || shape.shape.is_empty() {
        return Ok(None);
    }
    let Some(strides) = copied_strides(&shape, order, to.item_bytes) else { return Ok(None) };
    let target = ufuncs::fresh(py, shim, &shape.shape, &strides, to)?;
    let result = target.array.clone();
    Ok(index::fill(py, shim, &result, array.as_any())?.then_some(result))
}

fn note(py: Python<'_>, shim: &Shim, name: &str) {
    if shim.settings.report {
        shim.report.lock().note(py, name, How::Native, 0, 0.0);
    }
}
