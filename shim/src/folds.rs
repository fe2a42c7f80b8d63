//! Reducing methods of the deferred array: `sum`, `prod`, `max`, `min`, `any`, `all`, `argmax`, `argmin`, and those along an axis.
//!
//! Each reads its arguments as NumPy does and asks `ops::reduce` for a launch; what has none runs on the host with the same
//! arguments, which also raises what there is to raise.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn, reason = "pyo3's generated code, inside macros of ours")]

use legate_kernels::program::Extreme;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use crate::array::DeferredArray;
use crate::methods::{on_host, with_self};
use crate::operators::{Outcome, numpy_ufunc};
use crate::ops::{reduce, scan};
use crate::resident;
use crate::state::{self, Shim, started};

/// Reductions with NumPy's signature `(axis, dtype, out, keepdims, initial, where)`.
macro_rules! reductions {
    ($($name:ident $ufunc:literal;)*) => {
        #[pymethods]
        impl DeferredArray {
            $(
                #[pyo3(signature = (*args, **kwargs))]
                fn $name<'py>(
                    slf: &Bound<'py, Self>,
                    args: &Bound<'py, PyTuple>,
                    kwargs: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    fold(slf, stringify!($name), numpy_ufunc!(slf.py(), $ufunc), args, kwargs)
                }
            )*
        }
    };
}

reductions! {
    sum "add";
    prod "multiply";
    max "maximum";
    min "minimum";
    any "logical_or";
    all "logical_and";
}

/// The parameters of a reducing method: those with a dtype, and those without.
fn parameters(name: &str) -> &'static [&'static str] {
    match name {
        "sum" | "prod" => &["axis", "dtype", "out", "keepdims", "initial", "where"],
        "any" | "all" => &["axis", "out", "keepdims", "where"],
        _ => &["axis", "out", "keepdims", "initial", "where"],
    }
}

/// Elements below which NumPy folds what was waited for, at once: all of a middling array, or a small one along an axis.
pub(crate) fn most_at_once(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> usize {
    let whole = args.is_empty() && kwargs.is_none_or(|kwargs| kwargs.is_empty());
    if whole { state::middling() } else { state::min_chunk() }
}

fn fold<'py>(
    array: &Bound<'py, DeferredArray>,
    name: &'static str,
    ufunc: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let shim = started(py);
    if let Some(done) = resident::method(array, name, args, kwargs, most_at_once(args, kwargs))? {
        return Ok(done);
    }
    let outcome = match request(shim, name, args, kwargs)? {
        Some(request) => reduce::reduce(py, shim, ufunc, array, &request)?,
        None => Outcome::Host { small: false },
    };
    match outcome {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { .. } => on_host(shim, name, &with_self(array, args)?, kwargs),
    }
}

/// Reads a reducing method's arguments; `None` when they hold what is not launched (or is wrong).
fn request<'py>(
    shim: &Shim,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<reduce::Request<'py>>> {
    let py = args.py();
    let names = parameters(name);
    if args.len() > names.len() {
        return Ok(None);
    }
    let mut given: Vec<(String, Bound<'py, PyAny>)> =
        names.iter().zip(args.iter()).map(|(name, value)| ((*name).to_owned(), value)).collect();
    if let Some(kwargs) = kwargs {
        for (key, value) in kwargs.iter() {
            let key: String = key.extract()?;
            if given.iter().any(|(known, _)| *known == key) || !names.contains(&key.as_str()) {
                return Ok(None);
            }
            given.push((key, value));
        }
    }
    let mut request = reduce::Request::default();
    for (key, value) in given {
        let unsaid = value.is_none() || reduce::is_no_value(shim, py, &value)?;
        match key.as_str() {
            "axis" => request.axis = (!value.is_none()).then_some(value),
            "dtype" => request.dtype = (!unsaid).then_some(value),
            "out" if unsaid => {}
            "keepdims" => request.keepdims = !unsaid && value.is_truthy()?,
            "initial" if value.is_none() => return Ok(None),
            "initial" => request.initial = (!unsaid).then_some(value),
            "where" if unsaid || (value.is_exact_instance_of::<PyBool>() && value.is_truthy()?) => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(request))
}

/// The methods that go along an axis: `cumsum`, `cumprod` and `trace`; `None` for others, and for what is left to the host.
pub(crate) fn along<'py>(
    array: &Bound<'py, DeferredArray>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (names, ufunc): (&[&str], _) = match name {
        "cumsum" => (&["axis", "dtype", "out"], "add"),
        "cumprod" => (&["axis", "dtype", "out"], "multiply"),
        "trace" => (&["offset", "axis1", "axis2", "dtype", "out"], "add"),
        _ => return Ok(None),
    };
    let py = array.py();
    let shim = started(py);
    let given = PyDict::new(py);
    for (name, value) in names.iter().zip(args.iter()) {
        given.set_item(name, value)?;
    }
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        let known = names.iter().any(|known| name.eq(known).unwrap_or(false));
        if !known || given.contains(&name)? {
            return Ok(None);
        }
        given.set_item(name, value)?;
    }
    if args.len() > names.len() || array.get().axes(py) == 0 {
        return Ok(None);
    }
    let (ufunc, whole) = (shim.host(py, ufunc)?, given.get_item("axis")?.is_none_or(|axis| axis.is_none()));
    let outcome = if name == "trace" {
        let (dtype, out) = (given.get_item("dtype")?, given.get_item("out")?);
        for ending in ["dtype", "out"].into_iter().filter(|name| given.contains(name).unwrap_or(false)) {
            given.del_item(ending)?;
        }
        let Ok(view) = array.get().phantom(py).call_method("diagonal", (), Some(&given)) else { return Ok(None) };
        if out.is_some_and(|out| !out.is_none()) {
            return Ok(None);
        }
        let diagonal = DeferredArray::of_phantom(view, None)?;
        let axis = Some((-1i64).into_pyobject(py)?.into_any());
        let request = reduce::Request { axis, dtype: dtype.filter(|dtype| !dtype.is_none()), ..Default::default() };
        reduce::reduce(py, shim, &ufunc, &diagonal, &request)?
    } else if whole {
        given.set_item("axis", 0)?;
        let flat = array.call_method0("ravel")?;
        scan::by_protocol(py, shim, &ufunc, &PyTuple::new(py, [flat])?, Some(&given))?
    } else {
        scan::by_protocol(py, shim, &ufunc, &PyTuple::new(py, [array])?, Some(&given))?
    };
    match outcome {
        Outcome::Done(result) => Ok(Some(result)),
        Outcome::Host { .. } => Ok(None),
    }
}

fn arg_extreme<'py>(
    array: &Bound<'py, DeferredArray>,
    name: &'static str,
    extreme: Extreme,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let shim = started(py);
    if let Some(done) = resident::method(array, name, args, kwargs, most_at_once(args, kwargs))? {
        return Ok(done);
    }
    let mut axis = args.get_item(0).ok();
    let mut keepdims = false;
    let mut plain = args.len() <= 1;
    for (key, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        match key.cast::<PyString>()?.to_str()? {
            "axis" if axis.is_none() => axis = Some(value),
            "out" if value.is_none() => {}
            "keepdims" => keepdims = !reduce::is_no_value(shim, py, &value)? && value.is_truthy()?,
            _ => plain = false,
        }
    }
    let axis = axis.filter(|axis| !axis.is_none());
    let outcome = if plain {
        reduce::arg_extreme(py, shim, array, extreme, axis.as_ref(), keepdims)?
    } else {
        Outcome::Host { small: false }
    };
    match outcome {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { .. } => on_host(shim, name, &with_self(array, args)?, kwargs),
    }
}

#[pymethods]
impl DeferredArray {
    #[pyo3(signature = (*args, **kwargs))]
    fn argmax<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arg_extreme(slf, "argmax", Extreme::Max, args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn argmin<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        arg_extreme(slf, "argmin", Extreme::Min, args, kwargs)
    }
}
