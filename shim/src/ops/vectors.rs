//! Products of two vectors, or of one with each of many short ones: sums of products, launched as such.
//!
//! They join what made the vectors, need no gathering on several shards, and the value of one is a future. The rounding is that of
//! a pairwise sum, not of BLAS; it is the same for any number of shards.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::deferred;
use crate::events::Mood;
use crate::host;
use crate::numpy_api;
use crate::operators::{self, Outcome};
use crate::ops::{product, reduce};
use crate::state::{Shim, array_functions, shim};
use crate::ufuncs::{self, Map};
use crate::values::{Kind, Value};

/// Enters this file's functions for those of the host NumPy.
pub(crate) fn register(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = numpy.py();
    let table = array_functions(py);
    table.set_item(numpy.getattr("inner")?, wrap_pyfunction!(inner, py)?)?;
    table.set_item(numpy.getattr("vdot")?, wrap_pyfunction!(vdot, py)?)
}

/// `numpy.inner`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn inner<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    of_vectors("inner", args, kwargs)
}

/// `numpy.vdot`, of real vectors the same.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn vdot<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    of_vectors("vdot", args, kwargs)
}

fn of_vectors<'py>(
    name: &'static str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let shim = shim(args.py())?;
    if let Some((left, right)) = pair(args, kwargs)? {
        let told = (name != "vdot").then_some("dot");
        if let Some(product) = product(shim, &left, &right, told)? {
            return Ok(product);
        }
        let known = |operand| deferred(operand).is_some() || numpy_api::is_exact_array(operand);
        if name == "inner" && shim.shards > 1 && known(&left) && known(&right) {
            // Over the last axes of both; a vector is its own transpose.
            if let Some(product) = product::shared_out(args.py(), shim, &left, &right.getattr("T")?, "dot")? {
                return Ok(product);
            }
        }
    }
    host::call(&shim.host(args.py(), name)?, args, kwargs, name)
}

/// Two positional arguments and nothing else.
pub(crate) fn pair<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    if args.len() != 2 || kwargs.is_some_and(|kwargs| !kwargs.is_empty()) {
        return Ok(None);
    }
    Ok(Some((args.get_item(0)?, args.get_item(1)?)))
}

/// Length and dtype of a one-dimensional operand.
fn vector(operand: &Bound<'_, PyAny>) -> Option<(usize, usize)> {
    let py = operand.py();
    if let Some(array) = deferred(operand) {
        let shape = array.get().describe(py);
        return (shape.shape.len() == 1).then(|| (shape.shape[0], shape.descr));
    }
    if !numpy_api::is_exact_array(operand) {
        return None;
    }
    match numpy_api::geometry(operand).shape {
        [length] => Some((*length as usize, numpy_api::descr_address(operand))),
        _ => None,
    }
}

/// The product of two vectors of one dtype, as a sum of products; `None` for anything else. Floating-point events are told
/// in the name given; without one nobody is told, as NumPy's `vdot` tells nobody.
pub(crate) fn product<'py>(
    shim: &Shim,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    told: Option<&'static str>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = left.py();
    let (Some((length, descr)), Some((other, other_descr))) = (vector(left), vector(right)) else { return Ok(None) };
    let known = shim.dtypes.at(descr).is_some_and(|native| b"fdl".contains(&native.letter));
    if !known || length != other || descr != other_descr || length == 0 {
        return Ok(None);
    }
    let small = length < shim.settings.min_chunk;
    if small && operators::is_resident(py, shim, left) && operators::is_resident(py, shim, right) {
        return Ok(None);
    }
    let mood = match (told, shim.origins.mood(py)?) {
        (None, _) => Mood::Silent,
        // The sum comes at once, and the products with it.
        (Some(_), Mood::Warn(flags) | Mood::AtOnce(flags)) => Mood::Warn(flags),
        (Some(_), Mood::Silent) => Mood::Silent,
        (Some(_), Mood::Host) => return Ok(None),
    };
    sum_of_products(shim, [left, right], &[length], descr, told, mood)
}

/// Longest row that is summed with the products of its elements; past it BLAS is as fast.
const SHORT_ROW: usize = 128;

/// The product of a matrix of short rows, the rows one behind the other, with a vector from either side: a sum of products for each
/// row, which joins what is done with it; `None` for anything else. On one shard.
pub(crate) fn with_rows<'py>(
    shim: &Shim,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    told: &'static str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = left.py();
    let turned;
    let (matrix, by, (length, descr)) = match (vector(left), vector(right)) {
        (None, Some(found)) => (left, right, found),
        (Some(found), None) if deferred(right).is_some() => {
            turned = right.getattr("T")?;
            (&turned, left, found)
        }
        _ => return Ok(None),
    };
    let Some(array) = deferred(matrix) else { return Ok(None) };
    let shape = array.get().describe(py);
    let ([rows, columns], [row_stride, stride]) = (&shape.shape[..], &shape.strides[..]) else { return Ok(None) };
    let known = shim.dtypes.at(descr).filter(|native| b"fd".contains(&native.letter));
    let Some(item) = known.map(|native| native.item_bytes as isize) else { return Ok(None) };
    let products = rows * columns;
    let fits = *columns == length
        && shape.descr == descr
        && (1..=SHORT_ROW).contains(columns)
        && rows / columns >= 4
        && *stride == item
        && row_stride.abs() >= item * *columns as isize
        && products >= shim.settings.min_chunk
        && shim.runtime.pool().has_room(products * item as usize);
    let mood = match shim.origins.mood(py)? {
        Mood::Host => return Ok(None),
        Mood::Warn(flags) | Mood::AtOnce(flags) => Mood::Warn(flags),
        Mood::Silent => Mood::Silent,
    };
    if !fits {
        return Ok(None);
    }
    sum_of_products(shim, [matrix, by], &[*rows, *columns], descr, Some(told), mood)
}

/// The sums along the last axis of the products of two operands that broadcast to a shape.
fn sum_of_products<'py>(
    shim: &Shim,
    operands: [&Bound<'py, PyAny>; 2],
    shape: &[usize],
    descr: usize,
    told: Option<&'static str>,
    mood: Mood,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = operands[0].py();
    let mut inputs: SmallVec<[Value<'py>; 3]> = SmallVec::new();
    for operand in operands {
        match Value::of(shim, operand)? {
            Some((_, value)) => inputs.push(value),
            None => return Ok(None),
        }
    }
    let multiply = shim.host(py, "multiply")?;
    let kinds = smallvec![Kind::Strong(descr), Kind::Strong(descr)];
    let Some(resolution) = ufuncs::resolve(shim, &multiply, kinds)? else { return Ok(None) };
    let name = told.unwrap_or(resolution.name);
    let map = Map { resolution: &resolution, name, inputs, mask: None, shape: shape.into(), mood };
    let Some(products) = map.issue(py, shim, None)? else { return Ok(None) };
    let axis = if shape.len() > 1 { Some((shape.len() - 1).into_pyobject(py)?.into_any()) } else { None };
    let request = reduce::Request { axis, told: Some(told), ..reduce::Request::default() };
    match reduce::reduce(py, shim, &shim.host(py, "add")?, &products[0], &request)? {
        Outcome::Done(sum) => Ok(Some(sum)),
        Outcome::Host { .. } => Ok(None),
    }
}
