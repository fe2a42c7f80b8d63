//! Views that NumPy made of an array's stand-ins, as views of the array.
//!
//! NumPy decides the geometry, on a phantom or an alias; what it made becomes a deferred array over the same field. Promises NumPy's
//! base, and that a view without elements is an array of NumPy's own. Does not look at elements.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;

use crate::array::DeferredArray;
use crate::numpy_api::{self, flag};
use crate::storage::{self, Root};

/// Where arrays without elements are: NumPy reads a byte there before it assigns what there is, so that it must be memory.
static NOWHERE: [u128; 4] = [0; 4];

/// An array of NumPy's like `view`, which has no elements. As a key NumPy takes an empty object of any other class for integers.
pub(crate) fn without_elements<'py>(view: &Bound<'py, PyAny>, base: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let geometry = numpy_api::geometry(view);
    let writeable = geometry.has(flag::WRITEABLE);
    let descr = numpy_api::descr(view);
    numpy_api::array_over(&descr, geometry.shape, geometry.strides, NOWHERE.as_ptr().addr(), writeable, base)
}

impl DeferredArray {
    /// The view of this array that `made`, a view of its alias that NumPy made, stands for.
    pub(crate) fn view_through<'py>(slf: &Bound<'py, Self>, made: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let base = DeferredArray::root_of(slf);
        if numpy_api::geometry(&made).size() == 0 {
            return without_elements(&made, base.into_bound(py));
        }
        let array = DeferredArray::new(py)?;
        array.get().hold(py, slf.get().storage(py), Some(base));
        array.get().alias.replace(py, Some(made));
        array.get().origin.store(slf.get().origin.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(array.into_any())
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
                let base = DeferredArray::root_of(slf);
                if numpy_api::geometry(&made).size() == 0 {
                    return without_elements(&made, base.into_bound(slf.py()));
                }
                Ok(DeferredArray::over(made, found.unbind(), Some(base))?.into_any())
            }
            Root::Alias(_) | Root::Foreign => Ok(made),
        }
    }

    /// What views of this array name as their base: the array itself, or its own base.
    pub(crate) fn root_of(slf: &Bound<'_, Self>) -> Py<PyAny> {
        slf.get().base.get(slf.py()).unwrap_or_else(|| slf.clone().into_any()).unbind()
    }
}
