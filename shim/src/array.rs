//! The deferred array: a handle on a view of a field, with NumPy's own account of shape, strides, dtype and flags.
//!
//! That account is a *phantom*: a real `numpy.ndarray` over addresses that are never touched, starting at [`PHANTOM`].
//! NumPy itself computes every view on it (basic indexing, transpose, reshape, diagonal, dtype views, ...), so that
//! shapes, strides, flags and errors are NumPy's by construction; the byte offset into the field is the phantom's data
//! pointer less [`PHANTOM`]. A phantom never leaves the shim: whoever could read it gets an alias (`storage`) instead.
//!
//! This file holds the object and its attributes. Operators are in `operators`, indexing in `index`, methods in `methods`.

use legate_runtime::view::Axes;
use parking_lot::Mutex;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::numpy_api::{self, Geometry, flag};
use crate::state::{Shim, started};
use crate::storage::{self, Root, Storage};

/// First address of every phantom: user space that no mapping reaches (below it are heaps, above it libraries).
pub(crate) const PHANTOM: usize = 0x1000_0000_0000;
/// Length of the stretch of addresses that phantoms lie in: more than any field.
pub(crate) const PHANTOM_BYTES: usize = 0x1000_0000_0000;

/// What may change under a name that the user holds (`a.shape = ...`, `a.resize(...)`).
struct Inner {
    phantom: Py<PyAny>,
    storage: Py<Storage>,
    base: Option<Py<PyAny>>,
    alias: Option<(usize, Py<PyAny>)>,
    /// An alias whose address was told to someone who holds only this object.
    lent: Option<Py<PyAny>>,
}

/// An array whose values may not be there yet.
#[pyclass(frozen, weakref, name = "ndarray", module = "numpy")]
pub(crate) struct DeferredArray {
    inner: Mutex<Inner>,
}

/// A copy of a phantom's numbers, with the offset into the field.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Byte offset of the first element in the field.
    pub(crate) offset: isize,
    /// Lengths.
    pub(crate) shape: Axes<usize>,
    /// Byte strides.
    pub(crate) strides: Axes<isize>,
    /// Flag bits.
    pub(crate) flags: i32,
    /// Address of the dtype.
    pub(crate) descr: usize,
}

impl Shape {
    /// Number of elements.
    pub(crate) fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements lie row-major without gaps.
    pub(crate) fn is_c_contiguous(&self) -> bool {
        self.flags & flag::C_CONTIGUOUS != 0
    }

    /// Whether it may be written.
    pub(crate) fn is_writeable(&self) -> bool {
        self.flags & flag::WRITEABLE != 0
    }
}

impl DeferredArray {
    /// A deferred array over a phantom whose storage is known.
    pub(crate) fn over<'py>(
        phantom: Bound<'py, PyAny>,
        storage: Py<Storage>,
        base: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, DeferredArray>> {
        let py = phantom.py();
        let inner = Inner { phantom: phantom.unbind(), storage, base, alias: None, lent: None };
        Bound::new(py, DeferredArray { inner: Mutex::new(inner) })
    }

    /// A deferred array over a phantom; its storage is found from its bases.
    pub(crate) fn of_phantom<'py>(
        phantom: Bound<'py, PyAny>,
        base: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, DeferredArray>> {
        match storage::root(&phantom) {
            Root::Phantom(found) => DeferredArray::over(phantom, found.unbind(), base),
            Root::Alias(_) | Root::Foreign => Err(PyTypeError::new_err("this view has no field")),
        }
    }

    /// The phantom.
    pub(crate) fn phantom<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.inner.lock().phantom.bind(py).clone()
    }

    /// The hold on the field.
    pub(crate) fn storage(&self, py: Python<'_>) -> Py<Storage> {
        self.inner.lock().storage.clone_ref(py)
    }

    /// The phantom's numbers.
    pub(crate) fn describe(&self, py: Python<'_>) -> Shape {
        let inner = self.inner.lock();
        let phantom = inner.phantom.bind(py);
        let Geometry { data, shape, strides, flags } = numpy_api::geometry(phantom);
        Shape {
            offset: (data - PHANTOM) as isize,
            shape: shape.iter().map(|length| *length as usize).collect(),
            strides: strides.iter().copied().collect(),
            flags,
            descr: numpy_api::descr_address(phantom),
        }
    }

    /// Number of elements.
    pub(crate) fn count(&self, py: Python<'_>) -> usize {
        numpy_api::geometry(self.inner.lock().phantom.bind(py)).size()
    }

    /// Number of axes.
    pub(crate) fn axes(&self, py: Python<'_>) -> usize {
        numpy_api::geometry(self.inner.lock().phantom.bind(py)).shape.len()
    }

    /// The array's dtype object.
    pub(crate) fn descr<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        numpy_api::descr(self.inner.lock().phantom.bind(py))
    }

    /// A view of this array, from what NumPy made of its phantom. What is no view of the phantom (a copy that NumPy made
    /// without looking at elements) is handed back as it is.
    pub(crate) fn view_of<'py>(slf: &Bound<'py, Self>, made: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if !numpy_api::is_exact_array(&made) {
            return Ok(made);
        }
        match storage::root(&made) {
            Root::Phantom(found) => {
                if made.is(slf.get().phantom(slf.py())) {
                    return Ok(slf.clone().into_any());
                }
                Ok(DeferredArray::over(made, found.unbind(), Some(DeferredArray::root_of(slf)))?.into_any())
            }
            Root::Alias(_) | Root::Foreign => Ok(made),
        }
    }

    /// What views of this array name as their base: the array itself, or its own base.
    pub(crate) fn root_of(slf: &Bound<'_, Self>) -> Py<PyAny> {
        let base = slf.get().inner.lock().base.as_ref().map(|base| base.clone_ref(slf.py()));
        base.unwrap_or_else(|| slf.clone().into_any().unbind())
    }

    /// A pinned host alias: real memory that others may keep.
    pub(crate) fn export<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        storage::alias(py, started(py), &self.phantom(py), &self.storage(py), true)
    }

    /// What a protocol answers that names an address without an owner: the export lasts as long as this object. Only code that
    /// names the protocol gets an answer, so that NumPy goes on to `__array__`, which loses nothing of the dtype.
    fn lend_as<'py>(slf: &Bound<'py, Self>, protocol: &'static str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !crate::frames::running_code_mentions(py, &[protocol])? {
            return Err(PyAttributeError::new_err(protocol));
        }
        let alias = slf.get().export(py)?;
        slf.get().inner.lock().lent = Some(alias.clone().unbind());
        alias.getattr(protocol)
    }

    /// A host alias for use at this line only; kept for the next time, as long as the memory stays where it is.
    pub(crate) fn alias<'py>(&self, py: Python<'py>, shim: &Shim) -> PyResult<Bound<'py, PyAny>> {
        let (phantom, storage, known) = {
            let inner = self.inner.lock();
            let known = inner.alias.as_ref().map(|(address, alias)| (*address, alias.clone_ref(py)));
            (inner.phantom.clone_ref(py), inner.storage.clone_ref(py), known)
        };
        let field = storage.get().field();
        if let Some((address, alias)) = known {
            shim.wait(py, field.last_touch())?;
            if field.address() == Some(address) {
                return Ok(alias.into_bound(py));
            }
        }
        let alias = storage::alias(py, shim, phantom.bind(py), &storage, false)?;
        let address = field.address().unwrap_or(0);
        self.inner.lock().alias = Some((address, alias.clone().unbind()));
        Ok(alias)
    }

    /// The alias for use at this line, if the program has waited for all that was issued on the field.
    pub(crate) fn resident_alias<'py>(&self, py: Python<'py>, shim: &Shim) -> PyResult<Option<Bound<'py, PyAny>>> {
        {
            let inner = self.inner.lock();
            let field = inner.storage.get().field();
            if !shim.is_synced(field.last_touch()) {
                return Ok(None);
            }
            if let Some((address, alias)) = &inner.alias
                && field.current_address() == *address
            {
                return Ok(Some(alias.bind(py).clone()));
            }
        }
        self.alias(py, shim).map(Some)
    }

    /// Puts another phantom in the place of this one (`a.resize(...)`), or notes that the phantom was changed.
    pub(crate) fn renew(&self, phantom: Option<(Bound<'_, PyAny>, Py<Storage>)>) {
        let mut inner = self.inner.lock();
        inner.alias = None;
        if let Some((phantom, storage)) = phantom {
            inner.phantom = phantom.unbind();
            inner.storage = storage;
            inner.base = None;
        }
    }
}

/// The deferred array behind an object, if it is one.
pub(crate) fn deferred<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, DeferredArray>> {
    object.cast_exact::<DeferredArray>().ok()
}

#[pymethods]
impl DeferredArray {
    /// NumPy's constructor: arrays made this way are host arrays.
    #[new]
    #[pyo3(signature = (*args, **kwargs))]
    fn construct(py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let shim = crate::state::shim(py)?;
        let host = shim.host(py, "ndarray")?.call(args, kwargs)?;
        Ok(host.unbind())
    }

    #[getter(__class__)]
    fn shown_class<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if crate::intercept::class_shown(py) {
            started(py).host(py, "ndarray")
        } else {
            Ok(py.get_type::<DeferredArray>().into_any())
        }
    }

    #[getter]
    fn shape<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).getattr("shape")
    }

    #[setter]
    fn set_shape(slf: &Bound<'_, Self>, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let phantom = slf.get().phantom(py);
        // NumPy would look at elements to make the copy that it then refuses.
        let kept = PyDict::new(py);
        kept.set_item("copy", false)?;
        if let Err(error) = phantom.call_method("reshape", (shape,), Some(&kept)) {
            if error.is_instance_of::<PyValueError>(py) && error.to_string().contains("copy") {
                return Err(PyAttributeError::new_err(
                    "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape.",
                ));
            }
            return Err(error);
        }
        phantom.setattr("shape", shape)?;
        slf.get().renew(None);
        Ok(())
    }

    #[getter]
    fn strides<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).getattr("strides")
    }

    #[setter]
    fn set_strides(slf: &Bound<'_, Self>, strides: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().phantom(slf.py()).setattr("strides", strides)?;
        slf.get().renew(None);
        Ok(())
    }

    #[getter]
    fn dtype<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        slf.get().descr(slf.py())
    }

    #[setter]
    fn set_dtype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().phantom(slf.py()).setattr("dtype", dtype)?;
        slf.get().renew(None);
        Ok(())
    }

    #[getter]
    fn ndim(slf: &Bound<'_, Self>) -> usize {
        slf.get().axes(slf.py())
    }

    #[getter]
    fn size(slf: &Bound<'_, Self>) -> usize {
        slf.get().count(slf.py())
    }

    #[getter]
    fn itemsize<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).getattr("itemsize")
    }

    #[getter]
    fn nbytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).getattr("nbytes")
    }

    #[getter]
    fn flags<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).getattr("flags")
    }

    #[getter]
    fn device<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).getattr("device")
    }

    #[getter]
    fn base(slf: &Bound<'_, Self>) -> Option<Py<PyAny>> {
        slf.get().inner.lock().base.as_ref().map(|base| base.clone_ref(slf.py()))
    }

    #[getter(T)]
    fn transposed<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        DeferredArray::view_of(slf, slf.get().phantom(slf.py()).getattr("T")?)
    }

    #[getter(mT)]
    fn matrix_transposed<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        DeferredArray::view_of(slf, slf.get().phantom(slf.py()).getattr("mT")?)
    }

    #[getter]
    fn real<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        DeferredArray::view_of(slf, slf.get().phantom(slf.py()).getattr("real")?)
    }

    #[setter]
    fn set_real(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let kind: char = slf.get().descr(py).getattr("kind")?.extract()?;
        if matches!(kind, 'b' | 'i' | 'u' | 'f' | 'c') {
            return DeferredArray::real(slf)?.set_item(py.Ellipsis(), value);
        }
        slf.get().export(py)?.setattr("real", crate::host::unwrap(value)?)
    }

    #[getter]
    fn imag<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let made = DeferredArray::view_of(slf, slf.get().phantom(slf.py()).getattr("imag")?)?;
        if deferred(&made).is_some() { Ok(made) } else { crate::host::settle_result(started(slf.py()), made) }
    }

    #[setter]
    fn set_imag(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let kind: char = slf.get().descr(py).getattr("kind")?.extract()?;
        if kind == 'c' {
            return DeferredArray::imag(slf)?.set_item(py.Ellipsis(), value);
        }
        Err(PyTypeError::new_err("array does not have imaginary part to set"))
    }

    #[getter]
    fn flat<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().export(slf.py())?.getattr("flat")
    }

    #[setter]
    fn set_flat(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        slf.get().export(py)?.setattr("flat", crate::host::unwrap(value)?)
    }

    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().export(slf.py())?.getattr("data")
    }

    #[getter]
    fn ctypes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().export(slf.py())?.getattr("ctypes")
    }

    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        DeferredArray::lend_as(slf, "__array_interface__")
    }

    #[getter]
    fn __array_struct__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        DeferredArray::lend_as(slf, "__array_struct__")
    }

    #[classattr]
    fn __array_priority__() -> f64 {
        0.0
    }

    #[classmethod]
    fn __class_getitem__<'py>(class: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        crate::state::shim(py)?.host(py, "ndarray")?.get_item(item)
    }
}
