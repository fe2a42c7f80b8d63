//! Arithmetic of futures: launches where the result is known in type, NumPy's own scalars elsewhere.
//!
//! With a deferred array the future is one more operand of the array's operation. With numbers and other futures the
//! operations of [`SCALAR_UFUNCS`] are launches of one element, so that Python runs on; they are exact, so their bits are
//! those of NumPy's scalar arithmetic. All other operations, and those whose operands are known, are NumPy's own.
#![expect(unsafe_code, reason = "calls CPython's number protocol; pyo3's generated code, inside macros of ours")]
#![allow(unsafe_op_in_unsafe_fn, reason = "pyo3's generated code, inside macros of ours")]

use pyo3::basic::CompareOp;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple};
use smallvec::SmallVec;

use super::{Future, settled};
use crate::array::deferred;
use crate::events::Mood;
use crate::host;
use crate::operators::{self, named};
use crate::protocols;
use crate::report::How;
use crate::resident::NumberFunction;
use crate::state::{Shim, started};
use crate::ufuncs::{self, Map};
use crate::values::{Kind, Value};

/// Ufuncs launched on single elements, and the name of each in the warnings of scalar arithmetic.
const SCALAR_UFUNCS: [(&str, &str); 8] = [
    ("add", "scalar add"),
    ("subtract", "scalar subtract"),
    ("multiply", "scalar multiply"),
    ("divide", "scalar divide"),
    ("negative", "scalar negative"),
    ("positive", "scalar positive"),
    ("absolute", "scalar absolute"),
    ("sqrt", "sqrt"),
];

/// Whole numbers up to this magnitude are the same in every type that a launch would give them.
const EXACT_WHOLE: i64 = 1 << 53;

/// Launches an operation on single elements; `None` when it is NumPy's to do: an operand of another kind, another
/// type of result, everything known. `operator` says that it is written as one, which warnings show.
fn launch<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    operands: &[&Bound<'py, PyAny>],
    operator: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let name = ufuncs::ufunc_name(shim, ufunc)?;
    let Some((_, scalar_name)) = SCALAR_UFUNCS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
    if operands.iter().all(|operand| operators::is_resident(py, shim, operand)) {
        return Ok(None);
    }
    let mood = shim.origins.mood(py)?;
    if mood == Mood::Host {
        return Ok(None);
    }
    let mut kinds: SmallVec<[Kind; 3]> = SmallVec::new();
    let mut inputs: SmallVec<[Value<'py>; 3]> = SmallVec::new();
    for operand in operands {
        if crate::numpy_api::is_array(operand) || !is_tame(operand) {
            return Ok(None);
        }
        let Some((kind, value)) = Value::of(shim, operand)? else { return Ok(None) };
        kinds.push(kind);
        inputs.push(value);
    }
    let weak_float = kinds.contains(&Kind::Float);
    let Some(resolution) = ufuncs::resolve(shim, ufunc, kinds)? else { return Ok(None) };
    let [output] = resolution.outputs[..] else { return Ok(None) };
    if resolution.inputs.iter().any(|input| input.kind == b'c') {
        return Ok(None);
    }
    // Integers that overflow warn as scalars only; a float that is too large for a short one warns as a cast.
    if !matches!(output.letter, b'd' | b'f') || (output.letter == b'f' && weak_float) {
        return Ok(None);
    }
    let noted = if operator { scalar_name } else { resolution.name };
    let map = Map { resolution: &resolution, name: noted, inputs, mask: None, shape: SmallVec::new(), mood };
    let Some(results) = map.issue(py, shim, None)? else { return Ok(None) };
    if shim.settings.report {
        shim.report.lock().note(py, resolution.name, How::Native, 0, 0.0);
    }
    Future::of(shim, &results[0], output).map(Some)
}

/// Whether a Python number is one that every type takes without a word.
fn is_tame(operand: &Bound<'_, PyAny>) -> bool {
    !operand.is_exact_instance_of::<PyInt>()
        || operand.extract::<i64>().is_ok_and(|value| (-EXACT_WHOLE..=EXACT_WHOLE).contains(&value))
}

/// An operator of two operands, one of them a future.
fn binary<'py>(
    py: Python<'py>,
    ufunc: &'static str,
    operator: &'static str,
    function: NumberFunction,
    operands: [&Bound<'py, PyAny>; 2],
) -> PyResult<Bound<'py, PyAny>> {
    if operands.iter().any(|operand| deferred(operand).is_some()) {
        return operators::operate(py, &named(py, "numpy", ufunc)?, operator, &operands, false);
    }
    if let Some(result) = launch(py, started(py), &named(py, "numpy", ufunc)?, &operands, true)? {
        return Ok(result);
    }
    let (left, right) = (settled(operands[0])?, settled(operands[1])?);
    // SAFETY: two live objects under the GIL; a new reference or an error comes back.
    unsafe { Bound::from_owned_ptr_or_err(py, function(left.as_ptr(), right.as_ptr())) }
}

/// An operator of a future alone.
fn unary<'py>(
    operand: &Bound<'py, Future>,
    ufunc: &'static str,
    operator: &'static str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = operand.py();
    if let Some(result) = launch(py, started(py), &named(py, "numpy", ufunc)?, &[operand.as_any()], true)? {
        return Ok(result);
    }
    named(py, "operator", operator)?.call1((operand.get().value(py)?,))
}

/// One Python operator and its reflected form.
macro_rules! binary_operators {
    ($($forward:ident $reflected:ident $ufunc:literal $operator:literal $function:ident;)*) => {
        #[pymethods]
        impl Future {
            $(
                fn $forward<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    binary(slf.py(), $ufunc, $operator, ffi::$function, [slf.as_any(), other])
                }
                fn $reflected<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    binary(slf.py(), $ufunc, $operator, ffi::$function, [other, slf.as_any()])
                }
            )*
        }
    };
}

binary_operators! {
    __add__ __radd__ "add" "add" PyNumber_Add;
    __sub__ __rsub__ "subtract" "sub" PyNumber_Subtract;
    __mul__ __rmul__ "multiply" "mul" PyNumber_Multiply;
    __truediv__ __rtruediv__ "true_divide" "truediv" PyNumber_TrueDivide;
    __floordiv__ __rfloordiv__ "floor_divide" "floordiv" PyNumber_FloorDivide;
    __mod__ __rmod__ "remainder" "mod" PyNumber_Remainder;
    __lshift__ __rlshift__ "left_shift" "lshift" PyNumber_Lshift;
    __rshift__ __rrshift__ "right_shift" "rshift" PyNumber_Rshift;
    __and__ __rand__ "bitwise_and" "and_" PyNumber_And;
    __or__ __ror__ "bitwise_or" "or_" PyNumber_Or;
    __xor__ __rxor__ "bitwise_xor" "xor" PyNumber_Xor;
    __matmul__ __rmatmul__ "matmul" "matmul" PyNumber_MatrixMultiply;
}

/// `left ** right` or `pow(left, right, modulo)`, one of the first two a future.
fn power<'py>(
    py: Python<'py>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    modulo: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if modulo.is_none() && (deferred(left).is_some() || deferred(right).is_some()) {
        return operators::power(py, left, right, false);
    }
    settled(left)?.pow(settled(right)?, settled(modulo)?)
}

#[pymethods]
impl Future {
    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        divide(slf.as_any(), other)
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        divide(other, slf.as_any())
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        power(slf.py(), slf.as_any(), other, modulo)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        power(slf.py(), other, slf.as_any(), modulo)
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        unary(slf, "negative", "neg")
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        unary(slf, "positive", "pos")
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        unary(slf, "absolute", "abs")
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        unary(slf, "invert", "invert")
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        comparison: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        if deferred(other).is_some() {
            // The array's own comparison, from its side.
            let reflected = match comparison {
                CompareOp::Lt => CompareOp::Gt,
                CompareOp::Le => CompareOp::Ge,
                CompareOp::Gt => CompareOp::Lt,
                CompareOp::Ge => CompareOp::Le,
                CompareOp::Eq | CompareOp::Ne => comparison,
            };
            return other.rich_compare(slf, reflected);
        }
        slf.get().value(slf.py())?.rich_compare(settled(other)?, comparison)
    }

    /// NumPy's protocol for ufuncs (NEP 13).
    #[pyo3(signature = (ufunc, method, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>,
        ufunc: &Bound<'py, PyAny>,
        method: &Bound<'py, PyString>,
        inputs: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let meets_array = inputs.iter_borrowed().any(|input| deferred(&input).is_some())
            || kwargs.is_some_and(|kwargs| kwargs.values().iter().any(|value| host::holds_deferred(&value)));
        if meets_array {
            return protocols::by_protocol(py, ufunc, method, inputs, kwargs);
        }
        let plain = method.to_str()? == "__call__" && kwargs.is_none_or(|kwargs| kwargs.is_empty());
        if plain && ufunc.is_exact_instance(&named(py, "numpy", "ufunc")?) {
            let operands: SmallVec<[Bound<'py, PyAny>; 3]> = inputs.iter().collect();
            let borrowed: SmallVec<[&Bound<'py, PyAny>; 3]> = operands.iter().collect();
            if let Some(result) = launch(py, started(py), ufunc, &borrowed, false)? {
                return Ok(result);
            }
        }
        host::call(&ufunc.getattr(method)?, inputs, kwargs, "ufunc")
    }
}

fn divide<'py>(left: &Bound<'py, PyAny>, right: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if deferred(left).is_some() || deferred(right).is_some() {
        return operators::divide(left.py(), left, right);
    }
    settled(left)?.divmod(settled(right)?)
}
