//! Operators and ufunc calls on deferred arrays.
//!
//! An operator looks for a native launch first ([`apply`]); what has none - other dtypes, other operands, errors - is done
//! by the host's own operator on aliases, which also knows when to give way to the other operand's class.
#![allow(unsafe_code, unsafe_op_in_unsafe_fn, reason = "pyo3's generated code, inside macros of ours")]

use parking_lot::Mutex;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, PHANTOM, Shape, deferred};
use crate::events::Mood;
use crate::future::{future, settled};
use crate::host;
use crate::ops::product;
use crate::report::How;
use crate::selection;
use crate::state::{Shim, started};
use crate::storage::Purpose;
use crate::ufuncs::{self, Map, Target};
use crate::values::{Kind, Value, broadcast, broadcasts_to};

/// Order of NumPy's kinds for the "same kind" casting rule.
pub(crate) fn rank(kind: u8) -> u8 {
    match kind {
        b'b' => 0,
        b'u' => 1,
        b'i' => 2,
        b'f' => 3,
        _ => 4,
    }
}

/// What became of an operation.
pub(crate) enum Outcome<'py> {
    /// It was launched (or done); this is the result.
    Done(Bound<'py, PyAny>),
    /// The host must do it; small and resident operands need no pinned memory.
    Host {
        /// Whether everything is small and waited for already.
        small: bool,
    },
}

/// Tries to launch a ufunc. `outs` are arrays to write; `mask` is `where=`.
pub(crate) fn apply<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    operands: &[&Bound<'py, PyAny>],
    outs: Option<&[Bound<'py, PyAny>]>,
    mask: Option<&Bound<'py, PyAny>>,
) -> PyResult<Outcome<'py>> {
    const HOST: Outcome<'static> = Outcome::Host { small: false };
    let mood = shim.origins.mood(py)?;
    if mood == Mood::Host {
        return Ok(HOST);
    }
    let is_selection = |object: &Bound<'py, PyAny>| deferred(object).is_some_and(|array| array.get().is_selection(py));
    let outputs = outs.unwrap_or_default();
    if operands.iter().copied().chain(outputs).chain(mask).any(is_selection) {
        if mask.is_none()
            && let Some(selected) = selection::apply(py, shim, ufunc, operands, outs, mood)?
        {
            return Ok(Outcome::Done(selected));
        }
        for object in operands.iter().copied().chain(outputs).chain(mask) {
            selection::settle_object(py, object)?;
        }
    }
    let mut kinds: SmallVec<[Kind; 3]> = SmallVec::new();
    let mut inputs: SmallVec<[Value<'py>; 3]> = SmallVec::new();
    let mut resident = true;
    for operand in operands {
        // Whether arrays are matters for small ones only.
        resident &= deferred(operand).is_some() || is_resident(py, shim, operand);
        let Some((kind, value)) = Value::of(shim, operand)? else { return Ok(HOST) };
        kinds.push(kind);
        inputs.push(value);
    }
    let mask = match mask {
        None => None,
        Some(mask) => match Value::of(shim, mask)? {
            Some((_, value)) => Some(value),
            None => return Ok(HOST),
        },
    };
    let mut shape = match ufuncs::common_shape(&inputs) {
        Some(shape) => shape,
        None => return Ok(HOST),
    };
    if let Some(mask) = &mask {
        match broadcast(&[shape.clone(), mask.shape()]) {
            Some(wider) => shape = wider,
            None => return Ok(HOST),
        }
    }
    let targets = match outs {
        None => None,
        Some(outs) => {
            let mut targets: SmallVec<[Target<'py>; 1]> = SmallVec::new();
            for out in outs {
                let Some(array) = deferred(out) else { return Ok(HOST) };
                let own = array.get().describe(py);
                let Some(native) = shim.dtypes.at(own.descr) else { return Ok(HOST) };
                if !own.is_writeable() || !broadcasts_to(&shape, &own.shape) {
                    return Ok(HOST);
                }
                shape = own.shape.clone();
                targets.push(Target { array: array.clone(), shape: own, native });
            }
            Some(targets)
        }
    };
    let size: usize = shape.iter().product();
    if shape.is_empty() || size == 0 {
        return Ok(HOST);
    }
    if size < shim.settings.min_chunk
        && resident
        && operands.iter().copied().chain(outputs).all(|operand| is_resident(py, shim, operand))
    {
        return Ok(Outcome::Host { small: true });
    }
    let Some(resolution) = ufuncs::resolve(shim, ufunc, kinds)? else { return Ok(HOST) };
    if let Some(targets) = &targets {
        let fits = targets
            .iter()
            .zip(&resolution.outputs)
            .all(|(target, native)| rank(native.kind) <= rank(target.native.kind) && !overlaps_itself(target));
        if !fits {
            return Ok(HOST);
        }
    } else if mask.is_some() {
        return Ok(HOST);
    }
    if mask.is_some() && resolution.kernel.owner.is_some() && !are_side_by_side(&inputs, targets.as_deref()) {
        return Ok(HOST);
    }
    let map = Map { resolution: &resolution, name: resolution.name, inputs, mask, shape, mood };
    let Some(results) = attempt(&map, py, shim, targets)? else { return Ok(HOST) };
    if results.len() == 1 {
        return Ok(Outcome::Done(results[0].clone().into_any()));
    }
    Ok(Outcome::Done(PyTuple::new(py, results)?.into_any()))
}

/// Whether elements that a mask selects may be packed: all arrays lie without gaps and in one order. Loops of NumPy's own may give
/// other bits for elements apart from one another.
fn are_side_by_side(inputs: &[Value<'_>], targets: Option<&[Target<'_>]>) -> bool {
    let arrays = inputs.iter().filter_map(|value| match value {
        Value::Array { shape, .. } => Some(shape),
        Value::Weak(_) | Value::Constant { .. } => None,
    });
    arrays.chain(targets.unwrap_or_default().iter().map(|target| &target.shape)).all(Shape::is_c_contiguous)
}

/// Issues what a line of the program asks for, and reports it; `None` when it must be left to the host.
pub(crate) fn attempt<'py>(
    map: &Map<'_, 'py>,
    py: Python<'py>,
    shim: &Shim,
    targets: Option<SmallVec<[Target<'py>; 1]>>,
) -> PyResult<Option<SmallVec<[Bound<'py, DeferredArray>; 1]>>> {
    let name = map.name;
    let results = match map.issue(py, shim, targets) {
        // A Python number that the dtype cannot hold: the host decides whether that is an error.
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) => None,
        issued => issued?,
    };
    if results.is_some() && shim.settings.report {
        shim.report.lock().note(py, name, How::Native, 0, 0.0);
    }
    Ok(results)
}

/// Whether the program has waited for all that was issued on an operand, and every shard has its newest values; host operands
/// always are.
pub(crate) fn is_resident(py: Python<'_>, shim: &Shim, operand: &Bound<'_, PyAny>) -> bool {
    if let Some(future) = future(operand) {
        return future.get().is_known(shim);
    }
    let Some(array) = deferred(operand) else { return true };
    let storage = array.get().storage(py);
    let field = storage.get().field();
    shim.is_synced(field.last_touch())
        && (shim.shards == 1
            || crate::numpy_api::bytes_of(&array.get().phantom(py), PHANTOM)
                .is_ok_and(|bytes| shim.is_here(field, &bytes)))
}

fn overlaps_itself(target: &Target<'_>) -> bool {
    let view = legate_runtime::view::View {
        offset: target.shape.offset,
        strides: target.shape.strides.clone(),
        item_bytes: target.native.item_bytes,
    };
    view.overlaps_itself(&target.shape.shape)
}

/// A host function on small, resident operands: their memory is used at this line only, so nothing is pinned.
pub(crate) fn at_once<'py>(
    py: Python<'py>,
    shim: &Shim,
    function: &Bound<'py, PyAny>,
    operands: &[&Bound<'py, PyAny>],
    purpose: Purpose,
) -> PyResult<Bound<'py, PyAny>> {
    let mut aliases: SmallVec<[Bound<'py, PyAny>; 3]> = SmallVec::new();
    for operand in operands {
        aliases.push(match deferred(operand) {
            Some(array) => array.get().alias(py, shim, purpose)?,
            None => settled(operand)?,
        });
    }
    let result = function.call1(PyTuple::new(py, &aliases)?)?;
    match aliases.iter().position(|alias| alias.is(&result)) {
        Some(index) => Ok(operands[index].clone()),
        None => host::settle_result(shim, result),
    }
}

/// Python objects that were looked up once.
type Kept<K> = Mutex<Option<FxHashMap<K, Py<PyAny>>>>;

/// A named object of a module, kept.
pub(crate) fn named<'py>(py: Python<'py>, module: &'static str, name: &'static str) -> PyResult<Bound<'py, PyAny>> {
    static KNOWN: Kept<(&'static str, &'static str)> = Mutex::new(None);
    if let Some(found) =
        KNOWN.lock().as_ref().and_then(|known| known.get(&(module, name)).map(|found| found.clone_ref(py)))
    {
        return Ok(found.into_bound(py));
    }
    let found = py.import(module)?.getattr(name)?;
    KNOWN.lock().get_or_insert_default().insert((module, name), found.clone().unbind());
    Ok(found)
}

/// An operator: `ufunc` natively, `operator.<name>` on the host.
pub(crate) fn operate<'py>(
    py: Python<'py>,
    ufunc: &Bound<'py, PyAny>,
    operator: &'static str,
    operands: &[&Bound<'py, PyAny>],
    in_place: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let shim = started(py);
    let target = [operands[0].clone()];
    if operator == "matmul"
        && let Some(product) = product::by_ufunc(shim, ufunc, operands)?
    {
        return Ok(product);
    }
    match apply(py, shim, ufunc, operands, in_place.then_some(&target[..]), None)? {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { small: true } => {
            let purpose = if in_place { Purpose::Any } else { Purpose::Read };
            at_once(py, shim, &named(py, "operator", operator)?, operands, purpose)
        }
        Outcome::Host { small: false } => {
            let args = PyTuple::new(py, operands.iter().map(|operand| (*operand).clone()))?;
            host::call(&named(py, "operator", operator)?, &args, None, operator)
        }
    }
}

/// The ufunc that NumPy uses for `array ** exponent` with a Python number (it has shortcuts): asked of NumPy once.
fn power_ufunc<'py>(
    py: Python<'py>,
    array: &Bound<'py, DeferredArray>,
    exponent: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    static KNOWN: Kept<(usize, bool, u64)> = Mutex::new(None);
    let is_float = exponent.is_exact_instance_of::<PyFloat>();
    if !is_float && !exponent.is_exact_instance_of::<PyInt>() {
        return named(py, "numpy", "power");
    }
    let Ok(value) = exponent.extract::<f64>() else { return named(py, "numpy", "power") };
    let key = (array.get().describe(py).descr, is_float, value.to_bits());
    if let Some(found) = KNOWN.lock().as_ref().and_then(|known| known.get(&key).map(|found| found.clone_ref(py))) {
        return Ok(found.into_bound(py));
    }
    let probe = named(py, "legate.power", "chosen_ufunc")?;
    let found = probe.call1((array.get().descr(py), exponent))?;
    KNOWN.lock().get_or_insert_default().insert(key, found.clone().unbind());
    Ok(found)
}

pub(crate) fn power<'py>(
    py: Python<'py>,
    base: &Bound<'py, PyAny>,
    exponent: &Bound<'py, PyAny>,
    in_place: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let operator = if in_place { "ipow" } else { "pow" };
    let ufunc = match deferred(base) {
        Some(array) => power_ufunc(py, array, exponent)?,
        None => named(py, "numpy", "power")?,
    };
    let power = named(py, "numpy", "power")?;
    if ufunc.is(&power) {
        return operate(py, &ufunc, operator, &[base, exponent], in_place);
    }
    let shim = started(py);
    let target = [base.clone()];
    match apply(py, shim, &ufunc, &[base], in_place.then_some(&target[..]), None)? {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { .. } => {
            let args = PyTuple::new(py, [base, exponent])?;
            host::call(&named(py, "operator", operator)?, &args, None, operator)
        }
    }
}

/// A ufunc of NumPy's, looked up once at each place.
macro_rules! numpy_ufunc {
    ($py:expr, $name:literal) => {{
        static KNOWN: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
        let found = || crate::operators::named($py, "numpy", $name).map(Bound::unbind);
        KNOWN.get_or_try_init($py, found)?.bind($py)
    }};
}
pub(crate) use numpy_ufunc;

/// One Python operator and its reflected and in-place forms.
macro_rules! binary_operators {
    ($($forward:ident $reflected:ident $in_place:ident $ufunc:literal $operator:literal $in_place_operator:literal;)*) => {
        #[pymethods]
        impl DeferredArray {
            $(
                fn $forward<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    operate(slf.py(), numpy_ufunc!(slf.py(), $ufunc), $operator, &[slf.as_any(), other], false)
                }
                fn $reflected<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                    operate(slf.py(), numpy_ufunc!(slf.py(), $ufunc), $operator, &[other, slf.as_any()], false)
                }
                fn $in_place(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    operate(slf.py(), numpy_ufunc!(slf.py(), $ufunc), $in_place_operator, &[slf.as_any(), other], true)?;
                    Ok(())
                }
            )*
        }
    };
}

binary_operators! {
    __add__ __radd__ __iadd__ "add" "add" "iadd";
    __sub__ __rsub__ __isub__ "subtract" "sub" "isub";
    __mul__ __rmul__ __imul__ "multiply" "mul" "imul";
    __truediv__ __rtruediv__ __itruediv__ "true_divide" "truediv" "itruediv";
    __floordiv__ __rfloordiv__ __ifloordiv__ "floor_divide" "floordiv" "ifloordiv";
    __mod__ __rmod__ __imod__ "remainder" "mod" "imod";
    __lshift__ __rlshift__ __ilshift__ "left_shift" "lshift" "ilshift";
    __rshift__ __rrshift__ __irshift__ "right_shift" "rshift" "irshift";
    __and__ __rand__ __iand__ "bitwise_and" "and_" "iand";
    __or__ __ror__ __ior__ "bitwise_or" "or_" "ior";
    __xor__ __rxor__ __ixor__ "bitwise_xor" "xor" "ixor";
    __matmul__ __rmatmul__ __imatmul__ "matmul" "matmul" "imatmul";
}

#[pymethods]
impl DeferredArray {
    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        divide(slf.py(), slf.as_any(), other)
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        divide(slf.py(), other, slf.as_any())
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !modulo.is_none() {
            return Ok(py.NotImplemented().into_bound(py));
        }
        power(py, slf.as_any(), other, false)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !modulo.is_none() {
            return Ok(py.NotImplemented().into_bound(py));
        }
        power(py, other, slf.as_any(), false)
    }

    fn __ipow__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, _modulo: &Bound<'_, PyAny>) -> PyResult<()> {
        power(slf.py(), slf.as_any(), other, true)?;
        Ok(())
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        operate(slf.py(), numpy_ufunc!(slf.py(), "negative"), "neg", &[slf.as_any()], false)
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        operate(slf.py(), numpy_ufunc!(slf.py(), "positive"), "pos", &[slf.as_any()], false)
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        operate(slf.py(), numpy_ufunc!(slf.py(), "absolute"), "abs", &[slf.as_any()], false)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        operate(slf.py(), numpy_ufunc!(slf.py(), "invert"), "invert", &[slf.as_any()], false)
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        comparison: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (ufunc, operator) = match comparison {
            CompareOp::Lt => (numpy_ufunc!(py, "less"), "lt"),
            CompareOp::Le => (numpy_ufunc!(py, "less_equal"), "le"),
            CompareOp::Eq => (numpy_ufunc!(py, "equal"), "eq"),
            CompareOp::Ne => (numpy_ufunc!(py, "not_equal"), "ne"),
            CompareOp::Gt => (numpy_ufunc!(py, "greater"), "gt"),
            CompareOp::Ge => (numpy_ufunc!(py, "greater_equal"), "ge"),
        };
        operate(py, ufunc, operator, &[slf.as_any(), other], false)
    }
}

pub(crate) fn divide<'py>(
    py: Python<'py>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    match apply(py, started(py), &named(py, "numpy", "divmod")?, &[left, right], None, None)? {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { .. } => {
            let args = PyTuple::new(py, [left, right])?;
            host::call(&named(py, "builtins", "divmod")?, &args, None, "divmod")
        }
    }
}

/// A ufunc of one operand, natively or by the host: for the methods of the array.
pub(crate) fn unary<'py>(array: &Bound<'py, DeferredArray>, ufunc: &'static str) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let ufunc = named(py, "numpy", ufunc)?;
    let operands: SmallVec<[&Bound<'py, PyAny>; 1]> = smallvec![array.as_any()];
    match apply(py, started(py), &ufunc, &operands, None, None)? {
        Outcome::Done(result) => Ok(result),
        Outcome::Host { .. } => host::call(&ufunc, &PyTuple::new(py, [array])?, None, "unary"),
    }
}
