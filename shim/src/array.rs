//! The deferred array: a handle on a view of a field, with NumPy's own account of shape, strides, dtype and flags.
//!
//! That account is a *phantom*: a real `numpy.ndarray` over addresses that are never touched, starting at [`PHANTOM`].
//! NumPy itself computes every view on it (basic indexing, transpose, reshape, diagonal, dtype views, ...), so that
//! shapes, strides, flags and errors are NumPy's by construction; the byte offset into the field is the phantom's data
//! pointer less [`PHANTOM`]. A phantom never leaves the shim: whoever could read it gets an alias (`storage`) instead.
//!
//! This file holds the object and its attributes. Operators are in `operators`, indexing in `index`, methods in `methods`.

mod views;
pub(crate) use views::without_elements;

use std::sync::atomic::{AtomicUsize, Ordering};

use legate_runtime::view::Axes;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyTuple, PyType};

use crate::flat::{self, FlatIterator};
use crate::kept::Kept;
use crate::numpy_api::{self, flag};
use crate::recycle;
use crate::resident;
use crate::selection::Selection;
use crate::state::{self, Shim, started};
use crate::storage::{self, Purpose, Root, Storage};

/// First address of every phantom: user space that no mapping reaches (below it are heaps, above it libraries).
pub(crate) const PHANTOM: usize = 0x1000_0000_0000;
/// Length of the stretch of addresses that phantoms lie in: more than any field.
pub(crate) const PHANTOM_BYTES: usize = 0x1000_0000_0000;

/// An array whose values may not be there yet.
///
/// All of it may change under a name that the user holds (`a.shape = ...`, `a.resize(...)`).
#[pyclass(frozen, weakref, name = "ndarray", module = "numpy")]
pub(crate) struct DeferredArray {
    pub(crate) storage: Kept<Storage>,
    /// NumPy's account of the view: made when it is first asked for, if there is an alias to tell it.
    pub(crate) phantom: Kept<PyAny>,
    base: Kept<PyAny>,
    /// A host array over the field's memory, which began at `origin` then.
    pub(crate) alias: Kept<PyAny>,
    pub(crate) origin: AtomicUsize,
    /// What it is as long as nobody has looked at it, if it is elements selected by a mask: then it has nothing else.
    pub(crate) selection: Kept<Selection>,
    /// An alias whose address was told to someone who holds only this object.
    lent: Kept<PyAny>,
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
    /// That of an array object for which the field begins at an address.
    pub(crate) fn of(array: &Bound<'_, PyAny>, origin: usize) -> Shape {
        let geometry = numpy_api::geometry(array);
        Shape {
            offset: (geometry.data - origin) as isize,
            shape: Axes::from_slice(geometry.lengths()),
            strides: Axes::from_slice(geometry.strides),
            flags: geometry.flags,
            descr: numpy_api::descr_address(array),
        }
    }

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
        let array = DeferredArray::new(py)?;
        array.get().hold(py, storage, base);
        array.get().phantom.replace(py, Some(phantom));
        Ok(array)
    }

    /// An array object with nothing in it.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Bound<'_, DeferredArray>> {
        if let Some(array) = recycle::take(py) {
            return Ok(array);
        }
        let array = DeferredArray {
            storage: Kept::new(),
            phantom: Kept::new(),
            base: Kept::new(),
            alias: Kept::new(),
            origin: AtomicUsize::new(0),
            selection: Kept::new(),
            lent: Kept::new(),
        };
        Bound::new(py, array)
    }

    pub(crate) fn hold(&self, py: Python<'_>, storage: Py<Storage>, base: Option<Py<PyAny>>) {
        self.storage.replace(py, Some(storage.into_bound(py)));
        self.base.replace(py, base.map(|base| base.into_bound(py)));
    }

    /// Gives up all that is in the object, which has ended.
    pub(crate) fn empty(&self, py: Python<'_>) {
        drop(self.selection.replace(py, None));
        drop((self.phantom.replace(py, None), self.alias.replace(py, None), self.lent.replace(py, None)));
        drop((self.base.replace(py, None), self.storage.replace(py, None)));
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
        if let Some(phantom) = self.phantom.get(py) {
            return phantom;
        }
        let (alias, origin) = self.told(py);
        if origin == PHANTOM {
            return alias;
        }
        let storage = self.storage(py).into_bound(py);
        let phantom = storage::phantom_of(&alias, origin, &storage).expect("a view that NumPy made can be made again");
        self.phantom.replace(py, Some(phantom.clone()));
        phantom
    }

    /// An array object that tells the geometry, and the address at which the field begins for it.
    #[inline]
    fn told<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, usize) {
        match self.phantom.get(py) {
            Some(phantom) => (phantom, PHANTOM),
            None if self.is_selection(py) => {
                self.settle(py);
                self.told(py)
            }
            None => {
                let alias = self.alias.get(py).expect("an array has a phantom or an alias");
                (alias, self.origin.load(Ordering::Relaxed))
            }
        }
    }

    /// The hold on the field.
    #[inline]
    pub(crate) fn storage(&self, py: Python<'_>) -> Py<Storage> {
        if self.is_selection(py) {
            self.settle(py);
        }
        self.storage.get(py).expect("an array has a storage").unbind()
    }

    /// The view's numbers.
    pub(crate) fn describe(&self, py: Python<'_>) -> Shape {
        let (array, origin) = self.told(py);
        Shape::of(&array, origin)
    }

    /// Number of elements.
    pub(crate) fn count(&self, py: Python<'_>) -> usize {
        numpy_api::geometry(&self.told(py).0).size()
    }

    /// Number of axes.
    pub(crate) fn axes(&self, py: Python<'_>) -> usize {
        numpy_api::geometry(&self.told(py).0).shape.len()
    }

    /// The array's dtype object.
    pub(crate) fn descr<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        numpy_api::descr(&self.told(py).0)
    }

    /// A pinned host alias: real memory that others may keep.
    pub(crate) fn export<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.export_for(py, Purpose::Any)
    }

    /// As [`DeferredArray::export`], for a purpose.
    pub(crate) fn export_for<'py>(&self, py: Python<'py>, purpose: Purpose) -> PyResult<Bound<'py, PyAny>> {
        storage::alias(py, started(py), &self.phantom(py), &self.storage(py), true, purpose)
    }

    /// What a protocol answers that names an address without an owner: the export lasts as long as this object. Only code that
    /// names the protocol gets an answer, so that NumPy goes on to `__array__`, which loses nothing of the dtype.
    fn lend_as<'py>(slf: &Bound<'py, Self>, protocol: &'static str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !crate::frames::running_code_mentions(py, &[protocol])? {
            return Err(PyAttributeError::new_err(protocol));
        }
        let alias = slf.get().export(py)?;
        slf.get().lent.replace(py, Some(alias.clone()));
        alias.getattr(protocol)
    }

    /// A host alias for use at this line only; kept for the next time, as long as the memory stays where it is.
    pub(crate) fn alias<'py>(&self, py: Python<'py>, shim: &Shim, purpose: Purpose) -> PyResult<Bound<'py, PyAny>> {
        let storage = self.storage(py);
        let field = storage.get().field();
        if self.alias.get(py).is_some() {
            shim.wait(py, field.last_touch())?;
            if let Some(alias) = resident::alias_of(py, self) {
                return Ok(alias);
            }
        }
        let phantom = self.phantom(py);
        let alias = storage::alias(py, shim, &phantom, &storage, false, purpose)?;
        self.alias.replace(py, Some(alias.clone()));
        self.origin.store(field.address().unwrap_or(0), Ordering::Relaxed);
        Ok(alias)
    }

    /// The alias for use at this line, if the program has waited for all that was issued on the field, and there is memory.
    pub(crate) fn resident_alias<'py>(&self, py: Python<'py>, shim: &Shim) -> PyResult<Option<Bound<'py, PyAny>>> {
        let storage = self.storage(py);
        let field = storage.get().field();
        if !state::is_synced(field.last_touch()) {
            return Ok(None);
        }
        if shim.shards > 1 && !field.is_settled() {
            // What is owed here, other shards may have stored: all are to go the same way.
            py.detach(|| storage::settle(shim, field, Purpose::Any));
        }
        if !field.is_settled() || field.current_address() == 0 {
            return Ok(None);
        }
        if shim.shards > 1 && !shim.is_here(field, &numpy_api::bytes_of(&self.phantom(py), PHANTOM)?) {
            return Ok(None);
        }
        self.alias(py, shim, Purpose::Read).map(Some)
    }

    /// Puts another phantom in the place of this one (`a.resize(...)`), or notes that the phantom was changed.
    pub(crate) fn renew<'py>(&self, py: Python<'py>, phantom: Option<(Bound<'py, PyAny>, Bound<'py, Storage>)>) {
        self.alias.replace(py, None);
        if let Some((phantom, storage)) = phantom {
            self.phantom.replace(py, Some(phantom));
            self.storage.replace(py, Some(storage));
            self.base.replace(py, None);
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
        if crate::intercept::class_shown(py) || crate::intercept::lend(slf)? {
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
        slf.get().renew(py, None);
        Ok(())
    }

    #[getter]
    fn strides<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).getattr("strides")
    }

    #[setter]
    fn set_strides(slf: &Bound<'_, Self>, strides: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        slf.get().phantom(py).setattr("strides", strides)?;
        slf.get().renew(py, None);
        Ok(())
    }

    #[getter]
    fn dtype<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        slf.get().descr(slf.py())
    }

    #[setter]
    fn set_dtype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        slf.get().phantom(py).setattr("dtype", dtype)?;
        slf.get().renew(py, None);
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
    fn base<'py>(slf: &Bound<'py, Self>) -> Option<Bound<'py, PyAny>> {
        slf.get().base.get(slf.py())
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
        Ok(FlatIterator::of(slf)?.into_any())
    }

    #[setter]
    fn set_flat(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        flat::set(FlatIterator::of(slf)?.get(), PyEllipsis::get(slf.py()).as_any(), value)
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
