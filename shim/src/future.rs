//! Futures: 0-d results that Python holds while they are still being computed.
//!
//! A future stands for the NumPy scalar that it will become. Launches take it as an operand that repeats one element, so
//! that nothing waits; whoever looks at it gets NumPy's own scalar (`scalar`), which is kept from then on. Whether a
//! future counts as known follows program order alone: what the program has waited for, never what happens to be done.
//!
//! `classes` makes a class for each dtype, `arithmetic` does what needs no value. A future never subclasses float, whose
//! value compiled code reads directly.

mod arithmetic;
mod classes;
pub(crate) mod exact;
mod scalar;

use std::sync::Arc;

use legate_runtime::Field;
use legate_runtime::view::Axes;
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

pub(crate) use classes::{class, set_kind};

use crate::array::{DeferredArray, Shape};
use crate::dtypes::Native;
use crate::numpy_api;
use crate::state::{Shim, started};
use crate::storage::Storage;
use crate::values::{Kind, Value};

/// What is known of the value.
enum State {
    /// It is, or will be, the first element of this field.
    Pending(Py<Storage>),
    /// It was waited for: NumPy's scalar.
    Known(Py<PyAny>),
}

/// A NumPy scalar that may not be there yet. Its instances are of the subclasses that `classes` makes.
#[pyclass(frozen, subclass, mapping, module = "legate._core")]
pub(crate) struct Future {
    native: Native,
    state: Mutex<State>,
}

/// The future behind an object, if it is one.
pub(crate) fn future<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, Future>> {
    object.cast::<Future>().ok()
}

/// An operand as NumPy takes it: the scalar of a future (which is waited for), anything else as it is.
pub(crate) fn settled<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match future(object) {
        Some(future) => future.get().value(object.py()),
        None => Ok(object.clone()),
    }
}

/// As [`settled`], for an index: a future, or those in a tuple.
pub(crate) fn settled_key<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match key.cast_exact::<PyTuple>() {
        Ok(items) if items.iter_borrowed().any(|item| future(&item).is_some()) => {
            let items = items.iter().map(|item| settled(&item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(key.py(), items)?.into_any())
        }
        Ok(_) => Ok(key.clone()),
        Err(_) => settled(key),
    }
}

impl Future {
    /// The future of a launch's 0-d result; NumPy's scalar when the program has waited for that launch already.
    pub(crate) fn of<'py>(
        shim: &Shim,
        result: &Bound<'py, DeferredArray>,
        native: Native,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = result.py();
        let storage = result.get().storage(py);
        let future = Future { native, state: Mutex::new(State::Pending(storage)) };
        match future.known(py, shim)? {
            Some(scalar) => Ok(scalar),
            None => classes::instance(py, shim, future),
        }
    }

    /// NumPy's scalar; waits for it.
    pub(crate) fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let storage = match &*self.state.lock() {
            State::Known(scalar) => return Ok(scalar.bind(py).clone()),
            State::Pending(storage) => storage.clone_ref(py),
        };
        let shim = started(py);
        let field = storage.get().field();
        // Later launches only read it.
        shim.wait(py, field.last_write())?;
        let Some(address) = field.address() else {
            return Err(PyRuntimeError::new_err("a future's value was not stored"));
        };
        let scalar = numpy_api::scalar_of(shim.dtypes.descr(py, self.native.letter), address)?;
        let before = std::mem::replace(&mut *self.state.lock(), State::Known(scalar.clone().unbind()));
        drop(before);
        Ok(scalar)
    }

    /// Whether the program has waited for it.
    pub(crate) fn is_known(&self, shim: &Shim) -> bool {
        match &*self.state.lock() {
            State::Known(_) => true,
            State::Pending(storage) => shim.is_synced(storage.get().field().last_write()),
        }
    }

    /// The field that holds the value, as long as nobody has looked at it.
    pub(crate) fn pending_field(&self, py: Python<'_>) -> Option<Arc<Field>> {
        match &*self.state.lock() {
            State::Known(_) => None,
            State::Pending(storage) => Some(storage.bind(py).get().field().clone()),
        }
    }

    /// NumPy's scalar, if it was looked at before: borrowed, alive as long as the future.
    pub(crate) fn known_scalar(&self) -> Option<*mut pyo3::ffi::PyObject> {
        match &*self.state.lock() {
            State::Known(scalar) => Some(scalar.as_ptr()),
            State::Pending(_) => None,
        }
    }

    /// NumPy's scalar, if the program has waited for it.
    pub(crate) fn known<'py>(&self, py: Python<'py>, shim: &Shim) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_known(shim) { self.value(py).map(Some) } else { Ok(None) }
    }

    /// The future as an operand of a launch: a constant once it is known.
    pub(crate) fn operand<'py>(&self, py: Python<'py>, shim: &Shim) -> PyResult<Option<(Kind, Value<'py>)>> {
        if let Some(scalar) = self.known(py, shim)? {
            return Value::of(shim, &scalar);
        }
        let descr = shim.dtypes.descr(py, self.native.letter).as_ptr() as usize;
        let storage = match &*self.state.lock() {
            State::Pending(storage) => storage.clone_ref(py),
            State::Known(_) => return Ok(None),
        };
        let shape = Shape { offset: 0, shape: Axes::new(), strides: Axes::new(), flags: 0, descr };
        Ok(Some((Kind::Strong(descr), Value::Array { storage, shape, native: self.native, lent: false })))
    }

    /// NumPy's class of the scalar.
    fn host_class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        started(py).dtypes.descr(py, self.native.letter).getattr(pyo3::intern!(py, "type"))
    }
}

#[pymethods]
impl Future {
    /// As NumPy's class of that name: `type(x)(value)` is a NumPy scalar.
    #[new]
    #[classmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn construct(
        class: &Bound<'_, PyType>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(dtype) = class.getattr_opt("dtype")? else {
            return Err(PyTypeError::new_err("futures are made by reductions"));
        };
        Ok(dtype.getattr("type")?.call(args, kwargs)?.unbind())
    }
}
