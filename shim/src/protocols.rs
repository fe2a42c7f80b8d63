//! NumPy's protocols: what a deferred array answers when NumPy's ufuncs (NEP 13) and other functions (NEP 18) meet it.
//!
//! A ufunc's call or reduction looks for a launch; another function goes to the handler that the Python side or `ops`
//! entered for it. What has neither runs on the host.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn, reason = "pyo3's generated code, inside macros of ours")]

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::array::{DeferredArray, deferred};
use crate::host;
use crate::operators::{self, Outcome, apply, at_once, named};
use crate::ops::{batches, product, reduce, scan};
use crate::state::{self, Shim, started};
use crate::storage::Purpose;
use crate::ufuncs;
use crate::values::{Kind, Value};

#[pymethods]
impl DeferredArray {
    /// NumPy's protocol for ufuncs (NEP 13).
    #[pyo3(signature = (ufunc, method, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        by_protocol(slf.py(), ufunc, method, inputs, kwargs)
    }

    /// NumPy's protocol for its other functions (NEP 18).
    fn __array_function__<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
        _types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        // Nothing to share out without axes, and protocols do not say when an array of no axes is wanted (`out=...`).
        if slf.get().axes(py) > 0 && host::reads_deferred(args, kwargs)? {
            if let Some(done) = small(py, function, args, kwargs)? {
                return Ok(done);
            }
            if let Some(handler) = state::array_functions(py).get_item(function)? {
                let made = handler.call(args, Some(kwargs))?;
                // What a handler leaves to the host is called without a frame of ours, which NumPy's warnings would name.
                if !made.is(py.NotImplemented()) {
                    return Ok(made);
                }
            }
        }
        let label: String = function.getattr("__name__")?.extract()?;
        host::call(function, args, Some(kwargs), &label)
    }
}

/// What NumPy itself runs for a function in the table of those that run at once, and the elements below which the operands of a call
/// are small enough for it; `None` for other functions.
fn at_once_below<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
    let Some(row) = state::functions_at_once(py).get_item(function)? else { return Ok(None) };
    let (whole, along, own): (usize, usize, Bound<'py, PyAny>) = row.extract()?;
    let axis = kwargs.get_item(pyo3::intern!(py, "axis"))?.is_some_and(|axis| !axis.is_none());
    let chunks = if axis || args.len() > 1 { along } else { whole };
    Ok(Some((own, state::min_chunk().saturating_mul(chunks))))
}

/// Arrays of a list that are few: more of them are together no longer middling.
const MOST_ITEMS: usize = 4;

/// The host form of an operand of fewer than `most` elements that is done, also of few such in a tuple or a list; `None` for any other.
fn at_hand<'py>(
    py: Python<'py>,
    shim: &Shim,
    operand: &Bound<'py, PyAny>,
    most: usize,
    lent: &mut host::Lent<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(array) = deferred(operand) {
        let size = array.get().count(py);
        if size >= most || !operators::is_resident(py, shim, operand) {
            return Ok(None);
        }
        let alias = array.get().alias(py, shim, Purpose::Read)?;
        lent.push((alias.clone(), operand.clone()));
        return Ok(Some(alias));
    }
    if !host::holds_ours(operand) {
        return Ok(Some(operand.clone()));
    }
    let items: SmallVec<[Bound<'py, PyAny>; 4]> =
        match (operand.cast_exact::<PyTuple>(), operand.cast_exact::<PyList>()) {
            (Ok(items), _) => items.iter().collect(),
            (_, Ok(items)) => items.iter().collect(),
            _ => return Ok(None),
        };
    if items.len() > MOST_ITEMS {
        return Ok(None);
    }
    let mut forms: SmallVec<[Bound<'py, PyAny>; 4]> = SmallVec::new();
    for item in items {
        match at_hand(py, shim, &item, most, lent)? {
            Some(form) => forms.push(form),
            None => return Ok(None),
        }
    }
    PyTuple::new(py, forms).map(|forms| Some(forms.into_any()))
}

/// A function in the table of those, on operands that are done and small enough for it: NumPy's own on their memory. `None` for others.
fn small<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if state::is_several() {
        return Ok(None);
    }
    let Some((own, most)) = at_once_below(py, function, args, kwargs)? else { return Ok(None) };
    let shim = started(py);
    let mut lent = host::Lent::new();
    let mut forms: SmallVec<[Bound<'py, PyAny>; 3]> = SmallVec::new();
    for (place, operand) in args.iter_borrowed().enumerate() {
        // A third one may be for the result.
        let form = if place < 2 || deferred(&operand).is_none() {
            at_hand(py, shim, &operand, most, &mut lent)?
        } else {
            None
        };
        match form {
            Some(form) => forms.push(form),
            None => return Ok(None),
        }
    }
    let options = PyDict::new(py);
    for (name, value) in kwargs.iter() {
        let form = if host::holds_ours(&value) && !name.eq("weights")? {
            None
        } else {
            at_hand(py, shim, &value, most, &mut lent)?
        };
        match form {
            Some(form) => options.set_item(name, form)?,
            None => return Ok(None),
        }
    }
    let result = own.call(PyTuple::new(py, &forms)?, Some(&options))?;
    host::settle_lent(shim, result, &lent).map(Some)
}

/// A ufunc called with as many plain operands as it reads, of which one is deferred.
pub(crate) fn called_plainly<'py>(
    py: Python<'py>,
    ufunc: &Bound<'py, PyAny>,
    operands: &[&Bound<'py, PyAny>],
) -> PyResult<Bound<'py, PyAny>> {
    let shim = started(py);
    match apply(py, shim, ufunc, operands, None, None)? {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { small: true } => at_once(py, shim, ufunc, operands, Purpose::Read),
        Outcome::Host { small: false } => {
            if let Some(product) = product::by_ufunc(shim, ufunc, operands)? {
                return Ok(product);
            }
            let args = PyTuple::new(py, operands.iter().map(|operand| (*operand).clone()))?;
            if let Some(made) = batches::generalised(shim, ufunc, &args, None)? {
                return Ok(made);
            }
            // Not by the hook, which brought it here.
            host::call(&ufunc.getattr(pyo3::intern!(py, "__call__"))?, &args, None, ufuncs::ufunc_name(shim, ufunc)?)
        }
    }
}

/// NumPy's protocol for ufuncs, where a deferred array is among the operands.
pub(crate) fn by_protocol<'py>(
    py: Python<'py>,
    ufunc: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
    inputs: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let shim = started(py);
    if !ufunc.is_exact_instance(&named(py, "numpy", "ufunc")?) {
        // Other libraries' objects that behave as ufuncs (numba's vectorized functions).
        return host::call(&ufunc.getattr(method)?, inputs, kwargs, "ufunc");
    }
    let outcome = match method.to_str()? {
        "__call__" => called(py, shim, ufunc, inputs, kwargs)?,
        "reduce" => reduce::by_protocol(py, shim, ufunc, inputs, kwargs)?,
        "accumulate" => scan::by_protocol(py, shim, ufunc, inputs, kwargs)?,
        _ => Outcome::Host { small: false },
    };
    match outcome {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { small } => {
            if kwargs.is_none_or(|kwargs| kwargs.is_empty()) {
                let operands: SmallVec<[Bound<'py, PyAny>; 3]> = inputs.iter().collect();
                let borrowed: SmallVec<[&Bound<'py, PyAny>; 3]> = operands.iter().collect();
                if small {
                    return at_once(py, shim, ufunc, &borrowed, Purpose::Read);
                }
                if method.to_str()? == "__call__"
                    && let Some(product) = product::by_ufunc(shim, ufunc, &borrowed)?
                {
                    return Ok(product);
                }
            }
            if method.to_str()? == "__call__"
                && let Some(made) = batches::generalised(shim, ufunc, inputs, kwargs)?
            {
                return Ok(made);
            }
            host::call(&ufunc.getattr(method)?, inputs, kwargs, ufuncs::ufunc_name(shim, ufunc)?)
        }
    }
}

/// A ufunc called with whatever keywords: those covered here are `out` and `where`.
fn called<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Outcome<'py>> {
    let operands: SmallVec<[Bound<'py, PyAny>; 3]> = inputs.iter().collect();
    let borrowed: SmallVec<[&Bound<'py, PyAny>; 3]> = operands.iter().collect();
    let Some(kwargs) = kwargs else { return apply(py, shim, ufunc, &borrowed, None, None) };
    let mut outs: Option<SmallVec<[Bound<'py, PyAny>; 2]>> = None;
    let mut mask = None;
    for (name, value) in kwargs.iter() {
        match name.cast::<PyString>()?.to_str()? {
            "out" => outs = Some(value.cast::<PyTuple>()?.iter().collect()),
            "where" => mask = (!value.is(true.into_bound_py_any(py)?)).then_some(value),
            _ => return Ok(Outcome::Host { small: false }),
        }
    }
    if outs.as_ref().is_some_and(|outs| outs.iter().any(|out| out.is_none())) {
        return Ok(Outcome::Host { small: false });
    }
    if let Some(mask) = &mask {
        let is_bool = match Value::of(shim, mask)? {
            Some((Kind::Strong(address), _)) => shim.dtypes.at(address).is_some_and(|native| native.letter == b'?'),
            Some(_) | None => false,
        };
        if !is_bool {
            return Ok(Outcome::Host { small: false });
        }
    }
    apply(py, shim, ufunc, &borrowed, outs.as_deref(), mask.as_ref())
}
