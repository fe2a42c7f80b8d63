//! `array.flat`: NumPy's flat iterator over a deferred array.
//!
//! A slice of the flattened array is one more view of the field wherever its elements are evenly spaced in memory: reading it is a
//! copy, writing it a launch that touches no other element. Everything else - walking through it, other keys, values that are
//! repeated - is NumPy's own iterator over exported memory, made when it is first needed.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn, reason = "pyo3's generated code, inside macros of ours")]

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyInt, PySlice, PyTuple};

use crate::array::{DeferredArray, Shape, deferred};
use crate::future::{future, settled_key};
use crate::host;
use crate::index;
use crate::kept::Kept;
use crate::numpy_api;
use crate::ops::create;
use crate::report::How;
use crate::state::started;
use crate::storage;

/// What `array.flat` gives.
#[pyclass(frozen, name = "flatiter", module = "numpy")]
pub(crate) struct FlatIterator {
    array: Py<DeferredArray>,
    /// NumPy's iterator over the array's memory, where it stands.
    host: Kept<PyAny>,
}

/// Elements of the flattened array: the first one, and how far it is from each to the next.
struct Span {
    start: usize,
    step: isize,
    count: usize,
}

impl Span {
    /// What a slice, or an ellipsis, selects of `size` elements; `None` for another key.
    fn of(key: &Bound<'_, PyAny>, size: usize) -> PyResult<Option<Span>> {
        if key.is_exact_instance_of::<PyEllipsis>() {
            return Ok(Some(Span { start: 0, step: 1, count: size }));
        }
        let Ok(slice) = key.cast_exact::<PySlice>() else { return Ok(None) };
        let indices = slice.indices(size as isize)?;
        let start = usize::try_from(indices.start).unwrap_or(0);
        Ok(Some(Span { start, step: indices.step, count: indices.slicelength }))
    }

    /// Byte offset and stride of the elements in an array's memory; `None` where they are not evenly spaced.
    fn place(&self, shape: &Shape, item_bytes: usize) -> Option<(isize, isize)> {
        if shape.is_c_contiguous() {
            let item = item_bytes as isize;
            return Some((shape.offset + self.start as isize * item, self.step * item));
        }
        // Steps along each axis, which must never carry over to the next one.
        let (mut start, mut step) = (self.start, usize::try_from(self.step).ok()?);
        let (mut offset, mut stride) = (shape.offset, 0);
        for (length, along) in shape.shape.iter().zip(&shape.strides).rev() {
            let (first, each) = (start % length, step % length);
            if first + each * (self.count - 1) >= *length {
                return None;
            }
            offset += first as isize * along;
            stride += each as isize * along;
            (start, step) = (start / length, step / length);
        }
        (step == 0 || self.count == 1).then_some((offset, stride))
    }
}

impl FlatIterator {
    /// The iterator over an array, from its first element on.
    pub(crate) fn of<'py>(array: &Bound<'py, DeferredArray>) -> PyResult<Bound<'py, FlatIterator>> {
        Bound::new(array.py(), FlatIterator { array: array.clone().unbind(), host: Kept::new() })
    }

    /// NumPy's iterator, which goes on from where it stood.
    fn walking<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(host) = self.host.get(py) {
            return Ok(host);
        }
        let host = self.array.bind(py).get().export(py)?.getattr("flat")?;
        self.host.replace(py, Some(host.clone()));
        Ok(host)
    }

    /// NumPy's iterator for a single call, which is counted.
    fn once<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (shim, array) = (started(py), self.array.bind(py).get());
        let alias = array.export(py)?;
        if shim.settings.report {
            let bytes = array.count(py) as u64 * alias.getattr("itemsize")?.extract::<u64>()?;
            shim.report.lock().note(py, name, How::Host, bytes, 0.0);
        }
        alias.getattr("flat")
    }

    /// The view of the field that a key selects; `None` where there is none.
    fn view<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, DeferredArray>>> {
        let py = key.py();
        let array = self.array.bind(py);
        let shape = array.get().describe(py);
        let Some(span) = Span::of(key, shape.size())? else { return Ok(None) };
        let descr = array.get().descr(py);
        let item_bytes: usize = descr.getattr("itemsize")?.extract()?;
        if span.count == 0 || shape.shape.is_empty() {
            return Ok(None);
        }
        let Some((offset, stride)) = span.place(&shape, item_bytes) else { return Ok(None) };
        let phantom = storage::view_over(array, offset, span.count, stride)?;
        Ok(Some(DeferredArray::over(phantom, array.get().storage(py), Some(DeferredArray::root_of(array)))?))
    }

    /// The index on each axis of element `place` of the flattened array.
    fn indices<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyTuple>> {
        let mut left = place;
        let mut indices = Vec::new();
        for length in self.array.bind(py).get().describe(py).shape.iter().rev() {
            indices.push(left % length);
            left /= length;
        }
        indices.reverse();
        PyTuple::new(py, indices)
    }

    /// The indices of the element that a key selects, if it selects one that is there.
    fn element<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = key.py();
        if !key.is_exact_instance_of::<PyInt>() {
            return Ok(None);
        }
        let size = self.array.bind(py).get().count(py) as isize;
        let Ok(place) = key.extract::<isize>() else { return Ok(None) };
        let place = if place < 0 { place + size } else { place };
        if (0..size).contains(&place) { self.indices(py, place as usize).map(Some) } else { Ok(None) }
    }
}

/// A value as a slice of `count` elements takes it, one after the other; `None` where it is for NumPy: what is repeated or cut off,
/// or no array.
fn flattened<'py>(value: &Bound<'py, PyAny>, count: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let axes = match deferred(value) {
        Some(array) if array.get().count(py) == count => array.get().axes(py),
        Some(_) => return Ok(None),
        None if numpy_api::is_exact_array(value) => {
            let geometry = numpy_api::geometry(value);
            if geometry.size() != count && geometry.size() != 1 {
                return Ok(None);
            }
            geometry.shape.len()
        }
        None => {
            let number = numpy_api::is_scalar(value) || future(value).is_some() || value.is_instance_of::<PyInt>();
            return Ok((number || value.extract::<f64>().is_ok()).then(|| value.clone()));
        }
    };
    if axes == 1 { Ok(Some(value.clone())) } else { value.call_method0("ravel").map(Some) }
}

/// `array.flat[key] = value`; `false` when NumPy must do it.
fn assign(iterator: &FlatIterator, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = key.py();
    if let Some(indices) = iterator.element(key)?
        && (numpy_api::is_scalar(value) || value.is_instance_of::<PyInt>())
    {
        index::set(iterator.array.bind(py), indices.as_any(), value)?;
        return Ok(true);
    }
    let array = iterator.array.bind(py);
    let shape = array.get().describe(py);
    let whole = Span::of(key, shape.size())?.is_some_and(|span| span.count == shape.size() && span.step == 1);
    if whole && shape.is_writeable() {
        if let Some(value) = flattened(value, shape.size())? {
            let elements = match deferred(&value) {
                Some(array) => Some(array.get().count(py)),
                None => numpy_api::is_array(&value).then(|| numpy_api::geometry(&value).size()),
            };
            let lengths = PyTuple::new(py, shape.shape.iter())?;
            let value = if elements == Some(shape.size()) { value.call_method1("reshape", (lengths,))? } else { value };
            index::set(array, PyEllipsis::get(py).as_any(), &value)?;
            return Ok(true);
        }
        return Ok(false);
    }
    let Some(view) = iterator.view(key)? else { return Ok(false) };
    let Some(value) = flattened(value, view.get().count(py))? else { return Ok(false) };
    if !shape.is_writeable() {
        return Ok(false);
    }
    index::set(&view, PyEllipsis::get(py).as_any(), &value)?;
    Ok(true)
}

/// `array.flat[key] = value`, as the setter of `flat` does it as well.
pub(crate) fn set(iterator: &FlatIterator, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = key.py();
    drop(iterator.host.replace(py, None));
    let key = &settled_key(key)?;
    if assign(iterator, key, value)? {
        return Ok(());
    }
    iterator.once(py, "flat[...] =")?.set_item(host::unwrap(key)?, host::unwrap(value)?)
}

#[pymethods]
impl FlatIterator {
    #[getter(__class__)]
    fn shown_class<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        started(slf.py()).host(slf.py(), "flatiter")
    }

    #[getter]
    fn base<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        slf.get().array.bind(slf.py()).clone().into_any()
    }

    #[getter]
    fn index<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().host.get(slf.py()) {
            Some(host) => host.getattr("index"),
            None => Ok(0usize.into_pyobject(slf.py())?.into_any()),
        }
    }

    #[getter]
    fn coords<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().host.get(slf.py()) {
            Some(host) => host.getattr("coords"),
            None => Ok(slf.get().indices(slf.py(), 0)?.into_any()),
        }
    }

    fn copy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().array.bind(slf.py()).call_method0("flatten")
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.get().once(slf.py(), "flat")?.call_method("__array__", args, kwargs)
    }

    fn __len__(slf: &Bound<'_, Self>) -> usize {
        slf.get().array.bind(slf.py()).get().count(slf.py())
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        slf.get().walking(slf.py())?.try_iter()?.next().transpose()
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        drop(own.host.replace(py, None));
        let key = &settled_key(key)?;
        if let Some(indices) = own.element(key)? {
            return index::get(own.array.bind(py), indices.as_any());
        }
        if let Some(view) = own.view(key)?
            && let Some(copied) = create::copy(py, started(py), &view, "C", None)?
        {
            return Ok(copied.into_any());
        }
        host::settle_result(started(py), own.once(py, "flat[...]")?.get_item(host::unwrap(key)?)?)
    }

    fn __setitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        set(slf.get(), key, value)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        how: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.get().array.bind(slf.py()).call_method0("ravel")?.rich_compare(other, how)
    }
}
