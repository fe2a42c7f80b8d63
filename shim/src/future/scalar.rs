//! Futures as the NumPy scalars that they become: numbers, texts, attributes, copies, memory.
//!
//! What follows from the dtype is answered at once; all else waits and is NumPy's own answer. Attributes that are not
//! here are the scalar's.
#![expect(unsafe_code, reason = "fills Py_buffer")]

use std::ffi::c_int;

use pyo3::exceptions::{PyAttributeError, PyBufferError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{Future, settled_key};
use crate::convert::BUFFER_READERS;
use crate::frames;
use crate::operators::named;
use crate::state::started;

/// Attributes by which NumPy's C code asks unknown objects for memory or conversions: it gets `__array__`, which loses
/// nothing; code that names them gets the scalar's.
const ASKED_BY_NUMPY: [&str; 4] = ["__array_interface__", "__array_struct__", "__array_wrap__", "__array_finalize__"];

#[pymethods]
impl Future {
    #[getter(__class__)]
    fn shown_class<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().host_class(slf.py())
    }

    #[getter]
    fn shape<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyTuple> {
        PyTuple::empty(slf.py())
    }

    #[getter]
    fn ndim(&self) -> usize {
        0
    }

    #[getter]
    fn size(&self) -> usize {
        1
    }

    #[getter]
    fn itemsize(&self) -> usize {
        self.native.item_bytes
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.native.item_bytes
    }

    #[classattr]
    fn __array_priority__() -> f64 {
        -1_000_000.0
    }

    /// Everything else that the scalar has.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let text = name.to_str()?;
        let hidden = ASKED_BY_NUMPY.contains(&text) && !frames::running_code_mentions(py, &[text])?;
        let class = slf.get().host_class(py)?;
        if hidden || !class.hasattr(name)? {
            let class: String = class.getattr("__name__")?.extract()?;
            return Err(PyAttributeError::new_err(format!("'numpy.{class}' object has no attribute '{text}'")));
        }
        slf.get().value(py)?.getattr(name)
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.call_method0("__dir__")
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        slf.get().value(slf.py())?.repr()
    }

    fn __str__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        slf.get().value(slf.py())?.str()
    }

    fn __format__<'py>(slf: &Bound<'py, Self>, format: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.call_method1("__format__", (format,))
    }

    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
        slf.get().value(slf.py())?.hash()
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        slf.get().value(slf.py())?.is_truthy()
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        named(slf.py(), "builtins", "int")?.call1((slf.get().value(slf.py())?,))
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        named(slf.py(), "builtins", "float")?.call1((slf.get().value(slf.py())?,))
    }

    fn __complex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        named(slf.py(), "builtins", "complex")?.call1((slf.get().value(slf.py())?,))
    }

    #[pyo3(signature = (*args))]
    fn __round__<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let value = slf.get().value(slf.py())?;
        let all: Vec<Bound<'py, PyAny>> = std::iter::once(value).chain(args.iter()).collect();
        named(slf.py(), "builtins", "round")?.call1(PyTuple::new(slf.py(), all)?)
    }

    fn __trunc__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        named(slf.py(), "math", "trunc")?.call1((slf.get().value(slf.py())?,))
    }

    fn __floor__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        named(slf.py(), "math", "floor")?.call1((slf.get().value(slf.py())?,))
    }

    fn __ceil__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        named(slf.py(), "math", "ceil")?.call1((slf.get().value(slf.py())?,))
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.get_item(settled_key(key)?)
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.call_method0("__copy__")
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.call_method1("__deepcopy__", (memo,))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.call_method0("__reduce__")
    }

    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.call_method1("__reduce_ex__", (protocol,))
    }

    fn __sizeof__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().value(slf.py())?.call_method0("__sizeof__")
    }

    /// NumPy's protocol: an array without axes.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let keywords = PyDict::new(py);
        if let Some(copy) = copy {
            keywords.set_item("copy", copy)?;
        }
        started(py).host(py, "array")?.call((slf.get().value(py)?, dtype), Some(&keywords))
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let py = slf.py();
        // NumPy looks for a buffer before `__array__`, and would take one that cannot be written.
        if flags == ffi::PyBUF_FULL_RO && !frames::running_code_mentions(py, &BUFFER_READERS)? {
            return Err(PyBufferError::new_err("an array function takes the scalar itself"));
        }
        let value = slf.get().value(py)?;
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        // SAFETY: `view` is CPython's to fill; the scalar fills it and becomes its owner.
        let status = unsafe { ffi::PyObject_GetBuffer(value.as_ptr(), view, flags) };
        if status != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(())
    }
}
