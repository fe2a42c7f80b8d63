//! Methods of the deferred array: views and copies natively, the rest through the method table or the host.
//!
//! A method's way: a native launch where there is one; else the handler that the Python side registered (NumPy's own
//! Python code, rebound); else `numpy.ndarray.<name>` on an alias, counted for the report.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn, reason = "pyo3's generated code, inside macros of ours")]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple, PyType};

use crate::array::{DeferredArray, deferred};
use crate::folds;
use crate::host;
use crate::index;
use crate::numpy_api::{self, flag};
use crate::operators;
use crate::ops::{create, sort};
use crate::resident;
use crate::state::{self, Shim, started};
use crate::storage::{self, Purpose};

/// Methods that always give something new, no larger than the array.
const GIVE_NEW: [&str; 11] =
    ["argsort", "cumprod", "cumsum", "item", "mean", "round", "std", "tobytes", "tolist", "trace", "var"];

/// Those of them that give one number for all of an array.
const FOLDING: [&str; 4] = ["mean", "std", "trace", "var"];

/// Methods that NumPy writes in C and whose handler is ours: no frame of it is in a traceback.
const PICKING: [&str; 7] = ["argpartition", "compress", "nonzero", "partition", "put", "repeat", "take"];

/// A method through the table, or on the host.
fn dispatch<'py>(
    array: &Bound<'py, DeferredArray>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let shim = started(py);
    let most = if FOLDING.contains(&name) { folds::most_at_once(args, kwargs) } else { state::min_chunk() };
    if GIVE_NEW.contains(&name)
        && let Some(done) = resident::method(array, name, args, kwargs, most)?
    {
        return Ok(done);
    }
    if let Some(done) = folds::along(array, name, args, kwargs)? {
        return Ok(done);
    }
    let all = with_self(array, args)?;
    if array.get().axes(py) > 0
        && let Some(handler) = crate::state::methods(py).get_item(name)?
    {
        let outcome = handler.call(all, kwargs);
        return if PICKING.contains(&name) { outcome.map_err(|error| index::as_own(py, error)) } else { outcome };
    }
    on_host(shim, name, &all, kwargs)
}

/// `numpy.ndarray.<name>` on aliases of the arguments.
pub(crate) fn on_host<'py>(
    shim: &Shim,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    host::call(&shim.host(py, "ndarray")?.getattr(name)?, args, kwargs, name)
}

/// The arguments of a method with the array before them.
pub(crate) fn with_self<'py>(
    array: &Bound<'py, DeferredArray>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut all = vec![array.clone().into_any()];
    all.extend(args.iter());
    PyTuple::new(array.py(), all)
}

/// A method that NumPy computes on the phantom: its result is a view.
fn as_view<'py>(
    array: &Bound<'py, DeferredArray>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    DeferredArray::view_of(array, array.get().phantom(array.py()).call_method(name, args, kwargs)?)
}

/// Methods that go through the table or to the host, as they are.
macro_rules! dispatched_methods {
    ($($name:ident)*) => {
        #[pymethods]
        impl DeferredArray {
            $(
                #[pyo3(signature = (*args, **kwargs))]
                fn $name<'py>(
                    slf: &Bound<'py, Self>,
                    args: &Bound<'py, PyTuple>,
                    kwargs: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    dispatch(slf, stringify!($name), args, kwargs)
                }
            )*
        }
    };
}

dispatched_methods! {
    argpartition byteswap choose clip compress cumprod cumsum dot dump dumps getfield item mean nonzero
    partition put repeat round searchsorted setfield std take to_device tobytes tofile tolist trace var
    __array_namespace__ __dlpack__ __dlpack_device__ __reduce__ __reduce_ex__ __setstate__ __deepcopy__ __format__
}

/// Methods whose result is a view that NumPy computes without looking at elements.
macro_rules! view_methods {
    ($($name:ident)*) => {
        #[pymethods]
        impl DeferredArray {
            $(
                #[pyo3(signature = (*args, **kwargs))]
                fn $name<'py>(
                    slf: &Bound<'py, Self>,
                    args: &Bound<'py, PyTuple>,
                    kwargs: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    as_view(slf, stringify!($name), args, kwargs)
                }
            )*
        }
    };
}

view_methods! { transpose swapaxes squeeze diagonal }

/// The argument `order=` of a copying method, when it is the only one given.
fn order_argument<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    default: &'static str,
) -> PyResult<Option<String>> {
    let given = match (args.len(), kwargs) {
        (0, None) => return Ok(Some(default.to_owned())),
        (1, None) => args.get_item(0)?,
        (0, Some(kwargs)) if kwargs.len() == 1 => match kwargs.get_item("order")? {
            Some(order) => order,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Ok(text) = given.extract::<String>() else { return Ok(None) };
    let text = text.to_uppercase();
    Ok(matches!(text.as_str(), "C" | "F" | "A" | "K").then_some(text))
}

#[pymethods]
impl DeferredArray {
    #[pyo3(signature = (*args, **kwargs))]
    fn copy<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let shim = started(py);
        if let Some(order) = order_argument(args, kwargs, "C")?
            && let Some(copied) = create::copy(py, shim, slf, &order, None)?
        {
            return Ok(copied.into_any());
        }
        on_host(shim, "copy", &with_self(slf, args)?, kwargs)
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let shim = started(py);
        match create::copy(py, shim, slf, "K", None)? {
            Some(copied) => Ok(copied.into_any()),
            None => on_host(shim, "__copy__", &PyTuple::new(py, [slf])?, None),
        }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn flatten<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let shim = started(py);
        if let Some(order) = order_argument(args, kwargs, "C")?
            && matches!(order.as_str(), "C" | "F")
            && let Some(copied) = create::copy(py, shim, slf, &order, None)?
        {
            return flat(&copied, &order);
        }
        on_host(shim, "flatten", &with_self(slf, args)?, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn ravel<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let order = order_argument(args, kwargs, "C")?;
        let flags = slf.get().describe(py).flags;
        let order = match order.as_deref() {
            Some("K" | "A") if flags & flag::C_CONTIGUOUS != 0 => Some("C".to_owned()),
            Some("K" | "A") if flags & flag::F_CONTIGUOUS != 0 => Some("F".to_owned()),
            _ => order,
        };
        let wanted = match order.as_deref() {
            Some("C") => flag::C_CONTIGUOUS,
            Some("F") => flag::F_CONTIGUOUS,
            _ => 0,
        };
        match order.as_deref() {
            Some(order @ ("C" | "F")) if flags & wanted != 0 => reshaped(slf, &PyTuple::new(py, [-1])?, order),
            Some(order @ ("C" | "F")) if let Some(copied) = create::copy(py, started(py), slf, order, None)? => {
                flat(&copied, order)
            }
            _ => on_host(started(slf.py()), "ravel", &with_self(slf, args)?, kwargs),
        }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn reshape<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let order = match kwargs {
            None => Some("C".to_owned()),
            Some(kwargs) if kwargs.len() == 1 => match kwargs.get_item("order")? {
                Some(order) => order.extract::<String>().ok().map(|order| order.to_uppercase()),
                None => None,
            },
            Some(_) => None,
        };
        match order.as_deref() {
            Some(order @ ("C" | "F")) => reshaped(slf, args, order),
            _ => on_host(started(slf.py()), "reshape", &with_self(slf, args)?, kwargs),
        }
    }

    /// A view, with another dtype, or of another class (then over pinned memory).
    #[pyo3(signature = (*args, **kwargs))]
    fn view<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names_class = args.iter().any(|arg| arg.is_instance_of::<PyType>() && is_array_class(&arg))
            || kwargs.is_some_and(|kwargs| kwargs.contains("type").unwrap_or(false));
        if names_class {
            let exported = slf.get().export(slf.py())?.call_method("view", args, kwargs)?;
            return host::settle_result(started(slf.py()), exported);
        }
        as_view(slf, "view", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn astype<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let shim = started(py);
        if let Some(wanted) = conversion(shim, args, kwargs)?
            && let Some(native) = shim.dtypes.at(wanted.descr.as_ptr() as usize)
        {
            let own = slf.get().describe(py);
            let laid_out = match wanted.order.as_str() {
                "K" => true,
                "C" => own.is_c_contiguous(),
                "F" => own.flags & flag::F_CONTIGUOUS != 0,
                _ => own.flags & (flag::C_CONTIGUOUS | flag::F_CONTIGUOUS) != 0,
            };
            let same = own.descr == wanted.descr.as_ptr() as usize;
            if same && laid_out && !wanted.copies {
                return Ok(slf.clone().into_any());
            }
            if (same || wanted.unchecked)
                && let Some(copied) = create::copy(py, shim, slf, &wanted.order, Some(native))?
            {
                return Ok(copied.into_any());
            }
        }
        on_host(shim, "astype", &with_self(slf, args)?, kwargs)
    }

    fn fill(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let shim = started(py);
        let single = deferred(value).is_none() && !numpy_api::is_array(value);
        if single && slf.get().describe(py).is_writeable() && index::fill(py, shim, slf, value)? {
            return Ok(());
        }
        on_host(shim, "fill", &PyTuple::new(py, [slf.as_any(), value])?, None)?;
        Ok(())
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn sort<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if sort::in_place(started(py), slf, args, kwargs)? {
            return Ok(py.None().into_bound(py));
        }
        dispatch(slf, "sort", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn argsort<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match sort::order(started(slf.py()), slf, args, kwargs)? {
            Some(order) => Ok(order),
            None => dispatch(slf, "argsort", args, kwargs),
        }
    }

    #[pyo3(signature = (out=None))]
    fn conj<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        DeferredArray::conjugate(slf, out)
    }

    #[pyo3(signature = (out=None))]
    fn conjugate<'py>(slf: &Bound<'py, Self>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(out) = out {
            return started(slf.py()).host(slf.py(), "conjugate")?.call1((slf, out));
        }
        let kind: char = slf.get().descr(slf.py()).getattr("kind")?.extract()?;
        match kind {
            'c' => operators::unary(slf, "conjugate"),
            'b' | 'i' | 'u' | 'f' => Ok(slf.clone().into_any()),
            _ => on_host(started(slf.py()), "conjugate", &PyTuple::new(slf.py(), [slf])?, None),
        }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn setflags(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        slf.get().phantom(slf.py()).call_method("setflags", args, kwargs)?;
        slf.get().renew(slf.py(), None);
        Ok(())
    }

    /// Changes the size of the array itself: a host copy is resized and handed over.
    #[pyo3(signature = (*args, **kwargs))]
    fn resize(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let py = slf.py();
        let flags = slf.get().describe(py).flags;
        let has_others =
            kwargs.is_some_and(|kwargs| kwargs.iter().any(|(name, _)| !name.eq("refcheck").unwrap_or(false)));
        if let Some(lengths) = resized(args).filter(|_| !has_others)
            && flags & flag::C_CONTIGUOUS != 0
            && lengths.iter().product::<usize>() == slf.get().count(py)
        {
            // As many elements stay where they are, for views of them as well.
            return slf.setattr("shape", PyTuple::new(py, lengths)?);
        }
        if flags & flag::OWNDATA == 0 {
            return Err(PyValueError::new_err("cannot resize this array: it does not own its data"));
        }
        let checked = match kwargs.and_then(|kwargs| kwargs.get_item("refcheck").transpose()) {
            Some(checked) => checked?.is_truthy()?,
            None => true,
        };
        let copy = slf.get().alias(py, started(py), Purpose::Read)?.call_method1("copy", ("K",))?;
        // The caller's name and the call itself hold the array; who else does would see it change. NumPy says so of a copy that
        // is held as well.
        let held = numpy_api::references(slf.as_any()) > 2 || slf.get().storage(py).get().field().is_pinned();
        let witness = if checked && held { Some(copy.call_method0("view")?) } else { None };
        let options = PyDict::new(py);
        if let Some(kwargs) = kwargs {
            options.update(kwargs.as_mapping())?;
        }
        options.set_item("refcheck", witness.is_some())?;
        copy.call_method("resize", args, Some(&options))?;
        drop(witness);
        let renewed = host::over_memory(started(py), &copy)?;
        slf.get().renew(py, Some((renewed.get().phantom(py), renewed.get().storage(py).into_bound(py))));
        Ok(())
    }
}

/// The lengths that `resize` is asked for, as one tuple or as numbers; `None` when NumPy must look at them.
fn resized(args: &Bound<'_, PyTuple>) -> Option<Vec<usize>> {
    let only = (args.len() == 1).then(|| args.get_item(0).ok()).flatten();
    match only.filter(|only| only.is_instance_of::<PyTuple>()) {
        Some(lengths) => lengths.extract().ok(),
        None if args.is_empty() => None,
        None => args.extract().ok(),
    }
}

/// What `astype` is asked for.
struct Conversion<'py> {
    descr: Bound<'py, PyAny>,
    order: String,
    /// Whether any conversion is allowed.
    unchecked: bool,
    copies: bool,
}

/// Reads the arguments of `astype`; `None` when the host must look at them.
fn conversion<'py>(
    shim: &Shim,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Conversion<'py>>> {
    let py = args.py();
    let Ok(dtype) = args.get_item(0) else { return Ok(None) };
    let Ok(descr) = shim.host(py, "dtype")?.call1((dtype,)) else { return Ok(None) };
    let mut wanted = Conversion { descr, order: "K".to_owned(), unchecked: true, copies: true };
    if args.len() > 1 {
        return Ok(None);
    }
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        match name.cast::<PyString>()?.to_str()? {
            "order" => match value.extract::<String>() {
                Ok(order) if matches!(order.as_str(), "K" | "C" | "F" | "A") => wanted.order = order,
                Ok(_) | Err(_) => return Ok(None),
            },
            "casting" => match value.extract::<String>().as_deref() {
                Ok("unsafe") => {}
                Ok("no" | "equiv" | "safe" | "same_kind") => wanted.unchecked = false,
                Ok(_) | Err(_) => return Ok(None),
            },
            "copy" if value.is_exact_instance_of::<PyBool>() => wanted.copies = value.is_truthy()?,
            "subok" => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(wanted))
}

/// Whether a class is `numpy.ndarray` or one of its subclasses.
fn is_array_class(class: &Bound<'_, PyAny>) -> bool {
    let py = class.py();
    let Ok(array) = started(py).host(py, "ndarray") else { return false };
    class.cast::<PyType>().is_ok_and(|class| class.is_subclass(&array).unwrap_or(false))
}

/// A fresh copy, made in that order, as the flat array that owns the memory.
fn flat<'py>(copied: &Bound<'py, DeferredArray>, order: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = copied.py();
    let view = copied.get().phantom(py).call_method1("ravel", (order,))?;
    let storage = copied.get().storage(py);
    Ok(DeferredArray::over(storage::owner(&view, &storage)?, storage, None)?.into_any())
}

/// A reshape: a view where NumPy makes one, else of a copy in that order.
fn reshaped<'py>(
    array: &Bound<'py, DeferredArray>,
    shape: &Bound<'py, PyTuple>,
    order: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let phantom = array.get().phantom(py);
    let keywords = PyDict::new(py);
    keywords.set_item("order", order)?;
    keywords.set_item("copy", false)?;
    match phantom.call_method("reshape", shape, Some(&keywords)) {
        Ok(view) => return DeferredArray::view_of(array, view),
        Err(error) if error.is_instance_of::<PyValueError>(py) && error.to_string().contains("copy") => {}
        Err(error) => return Err(error),
    }
    keywords.del_item("copy")?;
    let shim = started(py);
    match create::copy(py, shim, array, order, None)? {
        Some(copied) => {
            let view = copied.get().phantom(py).call_method("reshape", shape, Some(&keywords))?;
            DeferredArray::view_of(&copied, view)
        }
        None => on_host(shim, "reshape", &with_self(array, shape)?, Some(&keywords)),
    }
}
