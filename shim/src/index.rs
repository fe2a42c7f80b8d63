//! Indexing: basic keys are views that NumPy computes on the phantom; all others are looked up on the host.
//!
//! A key that selects one element reads it; assigning to a basic key is a copy into the view, deferred like any other.

use legate_runtime::view::{Axes, View};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::{DeferredArray, deferred};
use crate::events::Mood;
use crate::future::settled_key;
use crate::host;
use crate::numpy_api;
use crate::operators;
use crate::ops::mask;
use crate::report::How;
use crate::selection;
use crate::state::{self, Shim, started};
use crate::storage::Purpose;
use crate::ufuncs::{self, Target};
use crate::values::{Value, broadcasts_to};

/// What a key selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selects {
    /// One element.
    Element,
    /// A view.
    View,
    /// Elements by arrays of indices or booleans.
    Elements,
}

/// What one item of a key is: an index, a slice or new axis, the ellipsis, or something else.
enum Item {
    Index,
    Span,
    Ellipsis,
    Other,
}

fn item(object: &Bound<'_, PyAny>) -> Item {
    if object.is_exact_instance_of::<PyInt>() {
        Item::Index
    } else if object.is_exact_instance_of::<PySlice>() || object.is_none() {
        Item::Span
    } else if object.is_exact_instance_of::<PyEllipsis>() {
        Item::Ellipsis
    } else if object.is_instance_of::<PyBool>() || deferred(object).is_some() || numpy_api::is_array(object) {
        Item::Other
    } else if object.is_instance_of::<PyInt>() {
        Item::Index
    } else if numpy_api::is_scalar(object) {
        let kind = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind")?.extract::<char>());
        if matches!(kind, Ok('i' | 'u')) { Item::Index } else { Item::Other }
    } else if object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyString>()
    {
        Item::Other
    } else if object.hasattr("__index__").unwrap_or(false) && !object.hasattr("__len__").unwrap_or(false) {
        Item::Index
    } else {
        Item::Other
    }
}

fn selects(key: &Bound<'_, PyAny>, axes: usize) -> Selects {
    let Ok(items) = key.cast_exact::<PyTuple>() else {
        return match item(key) {
            Item::Index if axes == 1 => Selects::Element,
            Item::Index | Item::Span | Item::Ellipsis => Selects::View,
            Item::Other if key.is_instance_of::<PyString>() => Selects::View,
            Item::Other => Selects::Elements,
        };
    };
    let mut indices = 0;
    for object in items.iter_borrowed() {
        match item(&object) {
            Item::Index => indices += 1,
            Item::Span | Item::Ellipsis => {}
            Item::Other => return Selects::Elements,
        }
    }
    if indices == items.len() && indices == axes { Selects::Element } else { Selects::View }
}

/// `array[key]`.
pub(crate) fn get<'py>(array: &Bound<'py, DeferredArray>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let shim = started(py);
    let key = &settled_key(key)?;
    match selects(key, array.get().axes(py)) {
        Selects::Element if shim.shards == 1 => array.get().alias(py, shim, Purpose::Read)?.get_item(key),
        Selects::Element => element(py, shim, array, key),
        Selects::View => match array.get().resident_alias(py, shim)? {
            Some(alias) => {
                let made = alias.get_item(key)?;
                if !numpy_api::is_exact_array(&made) {
                    return Ok(made);
                }
                DeferredArray::view_through(array, made)
            }
            None => DeferredArray::view_of(array, array.get().phantom(py).get_item(key)?),
        },
        Selects::Elements => {
            if picks_few(array, key)
                && let Some(alias) = array.get().resident_alias(py, shim)?
            {
                return alias.get_item(key);
            }
            if let Some(selected) = selection::get(py, shim, array, key)? {
                return Ok(selected);
            }
            if let Some(picked) = mask::get(py, shim, array, key)? {
                return Ok(picked);
            }
            if let Some(handler) = state::methods(py).get_item(pyo3::intern!(py, "getitem"))? {
                let picked = handler.call1((array, key)).map_err(|error| as_own(py, error))?;
                if !picked.is(py.NotImplemented()) {
                    return Ok(picked);
                }
            }
            let function = py.import(pyo3::intern!(py, "operator"))?.getattr(pyo3::intern!(py, "getitem"))?;
            host::call(&function, &PyTuple::new(py, [array.as_any(), key])?, None, "getitem")
        }
    }
}

/// Whether a key with index arrays of the host picks so few elements that NumPy itself is asked, on memory that is there. On several
/// shards an array's elements are elsewhere mostly.
fn picks_few(array: &Bound<'_, DeferredArray>, key: &Bound<'_, PyAny>) -> bool {
    if state::is_several() {
        return false;
    }
    let shape = array.get().describe(array.py());
    let mut lengths = shape.shape.iter();
    // At most so many elements: what index arrays have in all, times the length of each axis that has none.
    let mut most = 1usize;
    let mut longest = 1;
    let mut count = |item: &Bound<'_, PyAny>| {
        let Some(length) = lengths.next() else { return false };
        if item.is_exact_instance_of::<PyInt>() {
            return true;
        }
        if item.is_exact_instance_of::<PySlice>() {
            most = most.saturating_mul(*length);
            return true;
        }
        if let Ok(list) = item.cast_exact::<PyList>() {
            longest = longest.max(list.len());
            return list.iter().all(|index| index.is_exact_instance_of::<PyInt>());
        }
        if !numpy_api::is_exact_array(item) {
            return false;
        }
        let geometry = numpy_api::geometry(item);
        match geometry.shape {
            [length] => longest = longest.max(*length as usize),
            // Several axes may be spread against each other.
            _ => most = most.saturating_mul(geometry.size()),
        }
        let kind = numpy_api::descr(item).getattr("kind").and_then(|kind| kind.extract::<char>());
        match kind {
            Ok('i' | 'u') => true,
            // A mask of one axis picks no more than it has.
            Ok('b') => geometry.shape.len() == 1,
            Ok(_) | Err(_) => false,
        }
    };
    let counted = match key.cast_exact::<PyTuple>() {
        Ok(items) => items.iter_borrowed().all(|item| count(&item)),
        Err(_) => count(key),
    };
    counted
        && lengths.fold(most.saturating_mul(longest), |most, length| most.saturating_mul(*length)) < state::min_chunk()
}

/// An exception of a handler in Python as raised here: its traceback is the program's.
pub(crate) fn as_own(py: Python<'_>, error: PyErr) -> PyErr {
    let raised = error.into_value(py);
    // Exceptions have the attribute.
    drop(raised.bind(py).setattr(pyo3::intern!(py, "__traceback__"), py.None()));
    PyErr::from_value(raised.into_bound(py).into_any())
}

/// One element, which is fetched from where it lives.
fn element<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(alias) = array.get().resident_alias(py, shim)? {
        return alias.get_item(key);
    }
    let view = array.get().phantom(py).get_item(with_ellipsis(py, key)?)?;
    let view = DeferredArray::of_phantom(view, None)?;
    view.get().alias(py, shim, Purpose::Read)?.get_item(PyTuple::empty(py))
}

/// A key of one index for each axis, as the key of a view without axes.
fn with_ellipsis<'py>(py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let mut items: SmallVec<[Bound<'py, PyAny>; 4]> = match key.cast_exact::<PyTuple>() {
        Ok(items) => items.iter().collect(),
        Err(_) => std::iter::once(key.clone()).collect(),
    };
    items.push(PyEllipsis::get(py).to_owned().into_any());
    PyTuple::new(py, items)
}

/// `array[key] = value`.
pub(crate) fn set<'py>(
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let py = array.py();
    let shim = started(py);
    let key = &settled_key(key)?;
    let selected = selects(key, array.get().axes(py));
    if selected != Selects::Elements && assign(array, key, value, selected, shim)? {
        return Ok(());
    }
    if selected == Selects::Elements
        && picks_few(array, key)
        && operators::is_resident(py, shim, array.as_any())
        && operators::is_resident(py, shim, value)
    {
        return array.get().alias(py, shim, Purpose::Any)?.set_item(key, host::unwrap(value)?);
    }
    if selected == Selects::Elements
        && (selection::assign(py, shim, array, key, value)? || mask::set(py, shim, array, key, value)?)
    {
        return Ok(());
    }
    if selected == Selects::Elements
        && let Some(handler) = state::methods(py).get_item(pyo3::intern!(py, "setitem"))?
        && handler.call1((array, key, value)).map_err(|error| as_own(py, error))?.is_truthy()?
    {
        return Ok(());
    }
    let function = py.import(pyo3::intern!(py, "operator"))?.getattr(pyo3::intern!(py, "setitem"))?;
    host::call(&function, &PyTuple::new(py, [array.as_any(), key, value])?, None, "setitem")?;
    Ok(())
}

/// Assigns to an element or a view; `false` when the host must do it (and raise what there is to raise).
fn assign<'py>(
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    selected: Selects,
    shim: &Shim,
) -> PyResult<bool> {
    let py = array.py();
    let resident = operators::is_resident(py, shim, array.as_any());
    let value_resident = operators::is_resident(py, shim, value);
    if selected == Selects::Element && resident && value_resident {
        array.get().alias(py, shim, Purpose::Any)?.set_item(key, host::unwrap(value)?)?;
        return Ok(true);
    }
    let phantom = array.get().phantom(py);
    let view = if selected == Selects::Element {
        phantom.get_item(with_ellipsis(py, key)?)?
    } else {
        phantom.get_item(key)?
    };
    if let Some(value) = deferred(value)
        && is_same_view(array, value, &view)
    {
        // `a[1:] += b` ends by assigning the view to itself.
        return Ok(true);
    }
    let view = DeferredArray::of_phantom(view, None)?;
    let shape = view.get().describe(py);
    if !shape.is_writeable() || shape.size() == 0 {
        return Ok(false);
    }
    if resident && value_resident && shape.size() < shim.settings.min_chunk {
        let target = view.get().alias(py, shim, Purpose::Any)?;
        target.set_item(py.Ellipsis(), host::unwrap(value)?)?;
        return Ok(true);
    }
    fill(py, shim, &view, value)
}

/// Whether a value is the very view of `array` that a phantom's view stands for, and may be written.
fn is_same_view<'py>(
    array: &Bound<'py, DeferredArray>,
    value: &Bound<'py, DeferredArray>,
    view: &Bound<'py, PyAny>,
) -> bool {
    let py = array.py();
    let own = value.get().phantom(py);
    let (one, other) = (numpy_api::geometry(view), numpy_api::geometry(&own));
    one.data == other.data
        && one.shape == other.shape
        && one.strides == other.strides
        && one.has(numpy_api::flag::WRITEABLE)
        && numpy_api::descr_address(view) == numpy_api::descr_address(&own)
        && array.get().storage(py).is(value.get().storage(py))
}

/// Fills a deferred array from a value that broadcasts to it, as assignment does; `false` when the host must do it.
pub(crate) fn fill<'py>(
    py: Python<'py>,
    shim: &Shim,
    view: &Bound<'py, DeferredArray>,
    value: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let shape = view.get().describe(py);
    let Some(native) = shim.dtypes.at(shape.descr) else { return Ok(false) };
    let mood = shim.origins.mood(py)?;
    if mood == Mood::Host {
        return Ok(false);
    }
    let Some((value, from)) = Value::assigned(shim, value, native)? else { return Ok(false) };
    if !broadcasts_to(&value.shape(), &shape.shape) {
        return Ok(false);
    }
    let view_overlaps =
        View { offset: shape.offset, strides: Axes::from_slice(&shape.strides), item_bytes: native.item_bytes }
            .overlaps_itself(&shape.shape);
    if view_overlaps {
        return Ok(false);
    }
    let target_shape = Axes::from_slice(&shape.shape);
    let target = Target { array: view.clone(), shape, native };
    let done = ufuncs::copy(py, shim, value, from, target, target_shape, None, mood)?;
    if done && shim.settings.report {
        shim.report.lock().note(py, "assign", How::Native, 0, 0.0);
    }
    Ok(done)
}

#[pymethods]
impl DeferredArray {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        get(slf, key)
    }

    fn __setitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        set(slf, key, value)
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().alias(slf.py(), started(slf.py()), Purpose::Read)?.del_item(key)
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let py = slf.py();
        let shape = slf.get().describe(py);
        shape.shape.first().copied().ok_or_else(|| PyTypeError::new_err("len() of unsized object"))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if slf.get().axes(py) <= 1 {
            return Ok(slf.get().export(py)?.try_iter()?.into_any());
        }
        crate::numpy_api::sequence_iterator(slf.as_any())
    }

    fn __contains__<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        slf.get().alias(slf.py(), started(slf.py()), Purpose::Read)?.contains(host::unwrap(value)?)
    }
}
