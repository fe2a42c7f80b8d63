//! Deferred arrays as Python numbers, texts, buffers and host arrays.
//!
//! All of these look at values, so they wait. Texts and numbers are the host array's own.
#![expect(unsafe_code, reason = "fills Py_buffer")]

use std::ffi::c_int;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyString, PyTuple};

use crate::array::DeferredArray;
use crate::frames::{self, Operations};
use crate::host;
use crate::numpy_api;
use crate::state::started;
use crate::storage::{self, Purpose};

/// Names by which Python code asks for a buffer with all that it can say, as NumPy does on its way to `__array__`.
pub(crate) const BUFFER_READERS: [&str; 8] =
    ["memoryview", "bytes", "bytearray", "from_bytes", "Binary", "PickleBuffer", "from_buffer", "from_buffer_copy"];

/// The instruction of an assignment to an element.
static ASSIGNMENTS: Operations = Operations::new(&["STORE_SUBSCR"]);

/// The host array that a text is made of: of a long array that lives on several shards, only what is printed is fetched.
fn shown<'py>(array: &Bound<'py, DeferredArray>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let shim = started(py);
    if shim.shards > 1 {
        let options = shim.host(py, "get_printoptions")?.call0()?;
        let edges: isize = options.get_item("edgeitems")?.extract()?;
        let phantom = array.get().phantom(py);
        // Each axis doubles the number of corners.
        let axes = numpy_api::geometry(&phantom).shape.len();
        if array.get().count(py) > options.get_item("threshold")?.extract()? && (1..=3).contains(&axes) && edges > 0 {
            return storage::edges_alias(py, shim, &phantom, &array.get().storage(py), edges);
        }
    }
    array.get().alias(py, shim, Purpose::Read)
}

#[pymethods]
impl DeferredArray {
    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        shown(slf)?.repr()
    }

    fn __str__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        shown(slf)?.str()
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        slf.get().alias(slf.py(), started(slf.py()), Purpose::Read)?.is_truthy()
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let number = slf.get().alias(py, started(py), Purpose::Read)?.call_method0("__int__");
        match number {
            // NumPy asks for the number when the array is put into an element, and takes this refusal of an object of another class.
            Err(error) if error.is_instance_of::<PyTypeError>(py) && ASSIGNMENTS.are_running(py)? => {
                let refusal = PyValueError::new_err("setting an array element with a sequence.");
                refusal.set_cause(py, Some(error));
                Err(refusal)
            }
            number => number,
        }
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().alias(slf.py(), started(slf.py()), Purpose::Read)?.call_method0("__float__")
    }

    fn __complex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().alias(slf.py(), started(slf.py()), Purpose::Read)?.call_method0("__complex__")
    }

    fn __index__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().alias(slf.py(), started(slf.py()), Purpose::Read)?.call_method0("__index__")
    }

    fn __sizeof__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().phantom(slf.py()).call_method0("__sizeof__")
    }

    /// NumPy's protocol: real memory, pinned while the result lives.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let alias = slf.get().export(py)?;
        // As `numpy.array` copies: in the array's own order.
        if copy.is_some_and(|copy| copy.is_truthy().unwrap_or(false)) {
            let wanted = dtype.filter(|dtype| !dtype.is_none()).cloned().unwrap_or_else(|| slf.get().descr(py));
            return alias.call_method1("astype", (wanted, "K"));
        }
        // A scalar type called on an array converts it in the array's own order; the method does not.
        if let Some(dtype) = dtype.filter(|dtype| !dtype.is_none())
            && copy.is_none_or(|copy| copy.is_none())
            && !frames::running_code_mentions(py, &["__array__"])?
        {
            return alias.call_method("astype", (dtype, "K"), Some(&[("copy", false)].into_py_dict(py)?));
        }
        let args = match dtype {
            Some(dtype) => PyTuple::new(py, [dtype])?,
            None => PyTuple::empty(py),
        };
        let kwargs = PyDict::new(py);
        if let Some(copy) = copy {
            kwargs.set_item("copy", copy)?;
        }
        alias.call_method("__array__", args, Some(&kwargs))
    }

    /// What NumPy calls on results for subclasses: the result itself.
    #[pyo3(signature = (array, *_rest))]
    fn __array_wrap__<'py>(
        slf: &Bound<'py, Self>,
        array: &Bound<'py, PyAny>,
        _rest: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        host::settle_result(started(slf.py()), array.clone())
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let py = slf.py();
        // NumPy looks for a buffer before `__array__`, though a buffer may lose the unit of dates or the class of records.
        if flags == ffi::PyBUF_FULL_RO && !frames::running_code_mentions(py, &BUFFER_READERS)? {
            return Err(PyBufferError::new_err("an array function takes the array itself"));
        }
        let alias = slf.get().export(py)?;
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        // SAFETY: `view` is CPython's to fill; the host array fills it and becomes its owner, which keeps the export.
        let status = unsafe { ffi::PyObject_GetBuffer(alias.as_ptr(), view, flags) };
        if status != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(())
    }
}
