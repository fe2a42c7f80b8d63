//! The mean of a whole array: its sum, which is a future, divided by a number.
//!
//! Stands before NumPy's own Python code for means, which is rebound and asks for the value in between; that code does
//! all but the plain call. Promises NumPy's bits: one division here rounds as its two there, and the sum of whole numbers that NumPy
//! adds as fractions is the same where it is exact.

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::array::{DeferredArray, deferred};
use crate::operators::Outcome;
use crate::ops::reduce;
use crate::state::{Shim, array_functions, methods, started};

/// Types, that of the mean, and up to which count every count is a number of that type and every sum exact, if not summed in the
/// type itself.
const EXACT_COUNTS: [(u8, u8, usize); 9] = [
    (b'f', b'f', 1 << 24),
    (b'd', b'd', 1 << 53),
    (b'?', b'd', 1 << 52),
    (b'b', b'd', 1 << 36),
    (b'B', b'd', 1 << 36),
    (b'h', b'd', 1 << 36),
    (b'H', b'd', 1 << 36),
    (b'i', b'd', 1 << 20),
    (b'I', b'd', 1 << 20),
];

/// The mean of all elements; `None` where NumPy's code must do it.
fn of_all<'py>(shim: &Shim, array: &Bound<'py, DeferredArray>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = array.py();
    let shape = array.get().describe(py);
    let Some(native) = shim.dtypes.at(shape.descr) else { return Ok(None) };
    let Some((_, mean, largest)) = EXACT_COUNTS.iter().find(|(letter, ..)| *letter == native.letter) else {
        return Ok(None);
    };
    let count = shape.shape.iter().product::<usize>();
    if shape.shape.is_empty() || count == 0 || count > *largest {
        return Ok(None);
    }
    let add = shim.host(py, "add")?;
    let Outcome::Done(sum) = reduce::reduce(py, shim, &add, array, &reduce::Request::default())? else {
        return Ok(None);
    };
    let count = shim.dtypes.descr(py, *mean).getattr("type")?.call1((count,))?;
    sum.div(count).map(Some)
}

/// A function that does the plain call, and leaves any other to `rest`.
fn before<'py>(rest: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCFunction>> {
    let py = rest.py();
    let rest = rest.unbind();
    PyCFunction::new_closure(
        py,
        Some(c"mean"),
        None,
        move |args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>| {
            let py = args.py();
            if args.len() == 1
                && kwargs.is_none_or(|kwargs| kwargs.is_empty())
                && let Some(array) = deferred(&args.get_item(0)?)
                && let Some(mean) = of_all(started(py), array)?
            {
                return Ok(mean.unbind());
            }
            rest.bind(py).call(args, kwargs).map(Bound::unbind)
        },
    )
}

/// Puts this file's mean before what the tables of functions and methods have for `mean` (NumPy's function) now.
#[pyfunction]
fn enter_mean(mean: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = mean.py();
    for (table, key) in [(array_functions(py), mean.clone()), (methods(py), "mean".into_pyobject(py)?.into_any())] {
        if let Some(rest) = table.get_item(&key)? {
            table.set_item(key, before(rest)?)?;
        }
    }
    Ok(())
}

/// Adds this file's function to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(enter_mean, module)?)
}
