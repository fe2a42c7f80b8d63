//! The host NumPy at work on our arrays: arguments become aliases, results become deferred again.
//!
//! A result that is a view of an alias comes back as a view of the same field; a fresh result that is large enough is
//! adopted without a copy; everything else is returned as the host made it. Each call is counted.

use std::time::Instant;

use legate_runtime::Handle;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::{DeferredArray, deferred, without_elements};
use crate::future::future;
use crate::numpy_api;
use crate::report::How;
use crate::state::{Shim, shim};
use crate::storage::{self, Purpose, Root};

/// Fields start on multiples of this many bytes, wherever adopted memory starts.
const ALIGNMENT: usize = 16;

/// The host form of an argument: aliases for deferred arrays, also inside lists, tuples and dictionaries.
pub(crate) fn unwrap<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    unwrap_noting(object, &mut Vec::new(), &mut 0, Purpose::Any)
}

/// Aliases given out for a call, with the arrays they stand for.
pub(crate) type Lent<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

fn unwrap_noting<'py>(
    object: &Bound<'py, PyAny>,
    lent: &mut Lent<'py>,
    bytes: &mut u64,
    purpose: Purpose,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if let Some(array) = deferred(object) {
        let alias = array.get().export_for(py, purpose)?;
        *bytes += array.get().count(py) as u64 * alias.getattr("itemsize")?.extract::<u64>()?;
        lent.push((alias.clone(), object.clone()));
        return Ok(alias);
    }
    if let Some(future) = future(object) {
        return future.get().value(py);
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        if !holds_ours(object) {
            return Ok(object.clone());
        }
        let items =
            tuple.iter().map(|item| unwrap_noting(&item, lent, bytes, purpose)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        if !holds_ours(object) {
            return Ok(object.clone());
        }
        let items = list.iter().map(|item| unwrap_noting(&item, lent, bytes, purpose)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    if let Ok(dict) = object.cast_exact::<PyDict>() {
        if !holds_ours(object) {
            return Ok(object.clone());
        }
        let copy = PyDict::new(py);
        for (key, value) in dict.iter() {
            copy.set_item(key, unwrap_noting(&value, lent, bytes, purpose)?)?;
        }
        return Ok(copy.into_any());
    }
    Ok(object.clone())
}

/// Whether something is a deferred array or a future, or a container of one (so that others, which the callee may change, are passed as they are).
pub(crate) fn holds_ours(object: &Bound<'_, PyAny>) -> bool {
    holds(object, |item| deferred(item).is_some() || future(item).is_some())
}

/// Whether a deferred array is in a container.
pub(crate) fn holds_deferred(object: &Bound<'_, PyAny>) -> bool {
    holds(object, |item| deferred(item).is_some())
}

fn holds(object: &Bound<'_, PyAny>, wanted: fn(&Bound<'_, PyAny>) -> bool) -> bool {
    if wanted(object) {
        return true;
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return tuple.iter().any(|item| holds(&item, wanted));
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        return list.iter().any(|item| holds(&item, wanted));
    }
    object.cast_exact::<PyDict>().is_ok_and(|dict| dict.iter().any(|(_, value)| holds(&value, wanted)))
}

/// Whether a deferred array is among the arguments of a call, other than as `out=`.
pub(crate) fn reads_deferred(args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<bool> {
    if args.iter_borrowed().any(|item| holds_deferred(&item)) {
        return Ok(true);
    }
    for (name, value) in kwargs.iter() {
        if holds_deferred(&value) && !name.eq("out")? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Functions that change none of their first positional arguments, as many as named, and keep none of them; by their labels.
const READERS: &[(&str, usize)] = &[
    (MATRIX_PRODUCT, 2),
    ("bincount", 3),
    ("c_einsum", 9),
    ("convolve", 3),
    ("corrcoef", 3),
    ("correlate", 3),
    ("cov", 3),
    ("digitize", 3),
    ("dot", 2),
    ("eig", 1),
    ("eigh", 2),
    ("eigvals", 1),
    ("eigvalsh", 2),
    ("histogram", 5),
    ("inner", 2),
    ("interp", 5),
    ("inv", 1),
    ("lstsq", 3),
    ("matmul", 2),
    ("matvec", 2),
    ("pinv", 3),
    ("qr", 2),
    ("searchsorted", 4),
    ("solve", 2),
    ("svd", 4),
    ("vdot", 2),
    ("vecdot", 2),
    ("vecmat", 2),
];

/// Label of a product that NumPy makes into memory of ours.
pub(crate) const MATRIX_PRODUCT: &str = "matrix product";

/// Runs a host function on aliases. `label` names it in the report.
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    label: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    crate::prompt::step()?;
    let shim = shim(py)?;
    let start = shim.settings.report.then(Instant::now);
    let mut lent = Vec::new();
    let mut bytes = 0;
    let reads = READERS.iter().any(|(name, most)| *name == label && args.len() <= *most);
    let purpose = if reads { Purpose::Read } else { Purpose::Any };
    let host_args =
        args.iter().map(|item| unwrap_noting(&item, &mut lent, &mut bytes, purpose)).collect::<PyResult<Vec<_>>>()?;
    let host_args = PyTuple::new(py, host_args)?;
    let result = match kwargs {
        None => function.call1(host_args)?,
        Some(kwargs) => {
            let host_kwargs = PyDict::new(py);
            for (key, value) in kwargs.iter() {
                host_kwargs.set_item(key, unwrap_noting(&value, &mut lent, &mut bytes, Purpose::Any)?)?;
            }
            function.call(host_args, Some(&host_kwargs))?
        }
    };
    let result = rewrap(shim, result, &lent, 1)?;
    if let Some(start) = start {
        shim.report.lock().note(py, label, How::Host, bytes, start.elapsed().as_secs_f64());
    }
    Ok(result)
}

/// What the result of a host function on unpinned aliases is to the user.
pub(crate) fn settle_result<'py>(shim: &Shim, result: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rewrap(shim, result, &Vec::new(), 1)
}

/// What the result of a host function is to the user that was given such aliases.
pub(crate) fn settle_lent<'py>(
    shim: &Shim,
    result: Bound<'py, PyAny>,
    lent: &Lent<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    rewrap(shim, result, lent, 1)
}

/// What a host result is to the user. `holders` is the number of references that a fresh array has here.
fn rewrap<'py>(
    shim: &Shim,
    result: Bound<'py, PyAny>,
    lent: &Lent<'py>,
    holders: isize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = result.py();
    if numpy_api::is_exact_array(&result) {
        if let Some((_, original)) = lent.iter().find(|(alias, _)| alias.is(&result)) {
            return Ok(original.clone());
        }
        // Views name as their base what the argument's views would.
        let base = |storage: &Bound<'py, storage::Storage>| {
            lent.iter().find_map(|(_, original)| {
                let original = deferred(original)?;
                original.get().storage(py).is(storage).then(|| DeferredArray::root_of(original))
            })
        };
        let is_empty = numpy_api::geometry(&result).size() == 0;
        return match storage::root(&result) {
            Root::Alias(found) | Root::Phantom(found) if is_empty => match base(&found) {
                Some(base) => without_elements(&result, base.into_bound(py)),
                None => Ok(result),
            },
            Root::Alias(found) => {
                let base = base(&found);
                Ok(storage::deferred_view(&result, found, base)?.into_any())
            }
            Root::Phantom(found) => {
                let base = base(&found);
                Ok(DeferredArray::over(result, found.unbind(), base)?.into_any())
            }
            Root::Foreign => adopt_held(shim, result, holders),
        };
    }
    if let Ok(tuple) = result.cast::<PyTuple>() {
        let items = tuple.iter().map(|item| rewrap(shim, item, lent, 2)).collect::<PyResult<Vec<_>>>()?;
        if items.iter().zip(tuple.iter()).all(|(new, old)| new.is(&old)) {
            return Ok(result);
        }
        let plain = PyTuple::new(py, items)?;
        if result.cast_exact::<PyTuple>().is_ok() {
            return Ok(plain.into_any());
        }
        return result.get_type().getattr("_make")?.call1((plain,));
    }
    if let Ok(list) = result.cast_exact::<PyList>() {
        for index in 0..list.len() {
            let item = list.get_item(index)?;
            let wrapped = rewrap(shim, item.clone(), lent, 2)?;
            if !wrapped.is(&item) {
                list.set_item(index, wrapped)?;
            }
        }
    }
    Ok(result)
}

/// Runs a function that only looks at geometry on phantoms; views of them come back as views of the same fields.
pub(crate) fn view_call<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let shim = shim(py)?;
    let mut lent = Vec::new();
    let args = args.iter().map(|item| phantoms(&item, &mut lent)).collect::<PyResult<Vec<_>>>()?;
    let args = PyTuple::new(py, args)?;
    let result = match kwargs {
        None => function.call1(args)?,
        Some(kwargs) => {
            let copy = PyDict::new(py);
            for (key, value) in kwargs.iter() {
                copy.set_item(key, phantoms(&value, &mut lent)?)?;
            }
            function.call(args, Some(&copy))?
        }
    };
    rewrap(shim, result, &lent, 1)
}

/// An argument with phantoms in the place of deferred arrays.
fn phantoms<'py>(object: &Bound<'py, PyAny>, lent: &mut Lent<'py>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if let Some(array) = deferred(object) {
        let phantom = array.get().phantom(py);
        lent.push((phantom.clone(), object.clone()));
        return Ok(phantom);
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        let items = tuple.iter().map(|item| phantoms(&item, lent)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        let items = list.iter().map(|item| phantoms(&item, lent)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    Ok(object.clone())
}

/// Whether arrays of this shape and dtype are deferred.
pub(crate) fn is_eligible(shim: &Shim, axes: usize, size: usize, descr: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(axes >= 1
        && crate::shards::in_program()
        && size >= shim.settings.min_chunk
        && size > 0
        && (shim.dtypes.at(descr.as_ptr() as usize).is_some() || is_fixed_width(descr)?))
}

/// Whether elements have a fixed width and hold no Python objects.
fn is_fixed_width(descr: &Bound<'_, PyAny>) -> PyResult<bool> {
    let item_bytes: usize = descr.getattr("itemsize")?.extract()?;
    let holds_objects: bool = descr.getattr("hasobject")?.extract()?;
    let legacy = descr.getattr("num")?.extract::<i64>()? < 256;
    Ok(item_bytes > 0 && !holds_objects && legacy && !descr.getattr("char")?.eq("T")?)
}

/// Hands a host array over that is the argument of a Python call (whose frame still holds it), when it is eligible and
/// nobody else holds it.
pub(crate) fn adopt_argument<'py>(shim: &Shim, array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    adopt_held(shim, array, 3)
}

fn adopt_held<'py>(shim: &Shim, array: Bound<'py, PyAny>, holders: isize) -> PyResult<Bound<'py, PyAny>> {
    let geometry = numpy_api::geometry(&array);
    let descr = numpy_api::descr(&array);
    let fresh = geometry.has(numpy_api::flag::OWNDATA) && numpy_api::references(&array) <= holders;
    if !fresh || !is_eligible(shim, geometry.shape.len(), geometry.size(), &descr)? {
        return Ok(array);
    }
    Ok(over_memory(shim, &array)?.into_any())
}

/// A deferred array over the memory of a host array, which it keeps. All elements must be inside the array's own extent.
pub(crate) fn over_memory<'py>(shim: &Shim, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, DeferredArray>> {
    let geometry = numpy_api::geometry(array);
    let descr = numpy_api::descr(array);
    let item_bytes: usize = descr.getattr("itemsize")?.extract()?;
    let mut low = 0isize;
    let mut high = item_bytes as isize;
    for (length, stride) in geometry.shape.iter().zip(geometry.strides) {
        let reach = (length - 1).max(0) * stride;
        if reach < 0 { low += reach } else { high += reach }
    }
    let first = geometry.data.wrapping_add_signed(low);
    let start = first / ALIGNMENT * ALIGNMENT;
    let bytes = geometry.data.wrapping_add_signed(high) - start;
    let handle: Handle = shim.runtime.adopt(start, bytes, Box::new(array.clone().unbind()));
    let (phantom, owner) = storage::phantom(handle, &descr, geometry.shape, geometry.strides, geometry.data - start)?;
    if !geometry.has(numpy_api::flag::WRITEABLE) {
        phantom.getattr("flags")?.setattr("writeable", false)?;
    }
    DeferredArray::over(phantom, owner, None)
}
