//! Reductions: sums by NumPy's pairwise tree, folds by its loops, arg-reductions.
//!
//! The order in which elements meet is NumPy's for the operand's memory order. Three layouts are launched: everything
//! (one unbroken stretch), inner axes (each an unbroken run), outer axes (element by element, in order). Integer and
//! logical folds do not depend on order, so they need no unbroken stretch. What is left - sums over views whose order
//! is not modelled, `where=`, `out=` - runs NumPy's own reduction on the whole.

use legate_kernels::program::{Element, Extreme, Float, Number, Reducer, Seed};
use legate_runtime::view::Axes;
use legate_runtime::{Operand, Privilege, Work};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, Shape, deferred};
use crate::dtypes::{Native, element};
use crate::events::Mood;
use crate::future::Future;
use crate::operators::Outcome;
use crate::ops::{create, extremes, scan};
use crate::report::How;
use crate::state::Shim;
use crate::storage::Purpose;
use crate::task::{Origin, Source, Task};
use crate::ufuncs::{self, cast_between};
use crate::values::{Kind, Walk, iteration_order, long_axes, moving_strides, ordered_strides};

/// What a reduction is asked to do.
#[derive(Default)]
pub(crate) struct Request<'py> {
    /// `axis=`; `None` for all axes.
    pub(crate) axis: Option<Bound<'py, PyAny>>,
    /// `dtype=`.
    pub(crate) dtype: Option<Bound<'py, PyAny>>,
    /// `keepdims=`.
    pub(crate) keepdims: bool,
    /// `initial=`.
    pub(crate) initial: Option<Bound<'py, PyAny>>,
    /// Part of another operation: its name in warnings, or none to warn in.
    pub(crate) told: Option<Option<&'static str>>,
}

const HOST: Outcome<'static> = Outcome::Host { small: false };

/// How a ufunc's reduction treats order and type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Pairwise for floats, any order for integers; small integers are summed as long ones.
    Sum,
    /// Strictly in order for floats; small integers become long ones.
    Product,
    /// Any order.
    Free,
    /// Any order, over truth values.
    Logical,
}

/// The reductions launched here.
const RULES: [(&str, Rule); 11] = [
    ("add", Rule::Sum),
    ("multiply", Rule::Product),
    ("maximum", Rule::Free),
    ("minimum", Rule::Free),
    ("fmax", Rule::Free),
    ("fmin", Rule::Free),
    ("bitwise_and", Rule::Free),
    ("bitwise_or", Rule::Free),
    ("bitwise_xor", Rule::Free),
    ("logical_and", Rule::Logical),
    ("logical_or", Rule::Logical),
];

fn float(number: Option<Number>) -> Option<Float> {
    match number? {
        Number::F16 => Some(Float::F16),
        Number::F32 => Some(Float::F32),
        Number::F64 => Some(Float::F64),
        Number::C64 => Some(Float::C64),
        Number::C128 => Some(Float::C128),
        Number::Bool
        | Number::I8
        | Number::U8
        | Number::I16
        | Number::U16
        | Number::I32
        | Number::U32
        | Number::I64
        | Number::U64 => None,
    }
}

/// The axes that are folded, as flags; `None` when the request is not a plain one (the host says what is wrong).
fn folded(axis: Option<&Bound<'_, PyAny>>, axes: usize) -> Option<SmallVec<[bool; 4]>> {
    let mut flags: SmallVec<[bool; 4]> = smallvec![false; axes];
    let mut mark = |object: &Bound<'_, PyAny>| -> Option<()> {
        if object.is_instance_of::<PyBool>() || !object.is_instance_of::<PyInt>() {
            return None;
        }
        let index: isize = object.extract().ok()?;
        let index = if index < 0 { index + axes as isize } else { index };
        let flag = flags.get_mut(usize::try_from(index).ok()?)?;
        (!std::mem::replace(flag, true)).then_some(())
    };
    match axis {
        None => return Some(smallvec![true; axes]),
        Some(axis) => match axis.cast::<PyTuple>() {
            Ok(several) => several.iter().try_for_each(|one| mark(&one))?,
            Err(_) => mark(axis)?,
        },
    }
    Some(flags)
}

/// The walk of a reduction over an operand, and how its axes are folded along it.
struct Layout {
    walk: Walk,
    work: Work,
    /// Lengths of the result with its folded axes kept, and its byte strides.
    lengths: Axes<usize>,
    strides: Axes<isize>,
    /// Byte strides of the result along the operand's axes (0 where folded).
    along: Axes<isize>,
}

impl Layout {
    /// Has the result row-major, whatever the operand's order.
    fn row_major(&mut self, item_bytes: usize) {
        let order: Axes<usize> = (0..self.lengths.len()).rev().collect();
        self.strides = ordered_strides(&self.lengths, &order, item_bytes);
        self.along = moving_strides(&self.lengths, &self.strides);
    }

    /// What of a list of one entry for each of the operand's axes is the result's.
    fn of_result<T: Copy>(&self, entries: &[T], folded: &[bool], keepdims: bool) -> Axes<T>
    where
        [T; 4]: smallvec::Array<Item = T>,
    {
        let mut kept = Axes::new();
        for (entry, _) in entries.iter().zip(folded).filter(|(_, folded)| keepdims || !**folded) {
            kept.push(*entry);
        }
        kept
    }
}

/// Plans the walk; `None` when the order is not modelled.
fn layout(shape: &Shape, folded: &[bool], item_bytes: usize, needs_runs: bool, in_order: bool) -> Option<Layout> {
    let mut order = long_axes(&shape.shape);
    if order.iter().any(|axis| shape.strides[*axis] == 0) {
        return None;
    }
    order.sort_by_key(|axis| std::cmp::Reverse(shape.strides[*axis].unsigned_abs()));
    if in_order && !order.windows(2).all(|pair| pair[0] < pair[1]) {
        return None;
    }
    let unbroken = |from: usize, to: usize| {
        (from..to.saturating_sub(1)).all(|position| {
            let (outer, inner) = (order[position], order[position + 1]);
            shape.strides[outer] == shape.strides[inner] * shape.shape[inner] as isize
        })
    };
    let suffix = order.iter().rev().take_while(|axis| folded[**axis]).count();
    let all = order.iter().filter(|axis| folded[**axis]).count();
    let start = order.len() - suffix;
    let work = if all == order.len() {
        if needs_runs && !unbroken(0, order.len()) {
            return None;
        }
        Work::Total
    } else if all == 0 {
        return None;
    } else if suffix == all {
        if needs_runs && !unbroken(start, order.len()) {
            return None;
        }
        Work::Fold { axes: suffix }
    } else if suffix == 0 {
        // The folded axes must be next to each other, before the last kept ones.
        let first = order.iter().position(|axis| folded[*axis])?;
        if !order[first..first + all].iter().all(|axis| folded[*axis]) {
            return None;
        }
        Work::Accumulate
    } else {
        return None;
    };
    let mut lengths = Axes::from_slice(&shape.shape);
    for (length, _) in lengths.iter_mut().zip(folded).filter(|(_, folded)| **folded) {
        *length = 1;
    }
    let whole =
        ordered_strides(&lengths, &iteration_order(&shape.shape, std::slice::from_ref(&shape.strides)), item_bytes);
    let along = moving_strides(&lengths, &whole);
    Some(Layout { walk: Walk::in_order(&shape.shape, order), work, along, lengths, strides: whole })
}

/// Whether a sum starts from -0 and not +0, a matter of NumPy's version: asked of it once.
fn sums_start_negative(py: Python<'_>, shim: &Shim) -> PyResult<bool> {
    static ANSWER: PyOnceLock<bool> = PyOnceLock::new();
    ANSWER
        .get_or_try_init(py, || {
            let sum: f64 = shim.host(py, "add")?.getattr("reduce")?.call1((vec![-0.0f64],))?.extract()?;
            Ok(sum.is_sign_negative())
        })
        .copied()
}

/// What a reduction starts from when nothing is said.
fn default_seed(shim: &Shim, py: Python<'_>, rule: Rule, is_float: bool, native: Native) -> PyResult<Seed> {
    if rule != Rule::Sum || !is_float {
        return Ok(Seed::First);
    }
    if !sums_start_negative(py, shim)? {
        return Ok(Seed::Value(Element([0; 32])));
    }
    let descr = shim.dtypes.descr(py, native.letter);
    let zero = shim.host(py, "array")?.call1((-0.0f64, descr))?;
    let geometry = crate::numpy_api::geometry(&zero);
    Ok(Seed::Value(element(&crate::memory::bytes_at(geometry.data, native.item_bytes))))
}

/// `ufunc.reduce(array, ...)`.
pub(crate) fn reduce<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    array: &Bound<'py, DeferredArray>,
    request: &Request<'py>,
) -> PyResult<Outcome<'py>> {
    let name = ufuncs::ufunc_name(shim, ufunc)?;
    let Some((_, rule)) = RULES.iter().find(|(known, _)| *known == name) else { return Ok(HOST) };
    let shape = array.get().describe(py);
    let Some(from) = shim.dtypes.at(shape.descr) else { return Ok(HOST) };
    let Some(folded) = folded(request.axis.as_ref(), shape.shape.len()) else { return Ok(HOST) };
    if is_small(py, shim, array, &shape) {
        return Ok(Outcome::Host { small: true });
    }
    let Some(native) = operation_type(py, shim, *rule, from, request.dtype.as_ref()) else { return Ok(HOST) };
    let is_float = matches!(native.kind, b'f' | b'c');
    // Dropping an imaginary part warns, with a class of NumPy's own.
    let drops = from.kind == b'c' && !matches!(native.kind, b'c' | b'b');
    let (false, Ok(cast)) = (drops, cast_between(from, native, native.item_bytes)) else { return Ok(HOST) };
    let pairwise = *rule == Rule::Sum && is_float;
    if (pairwise || (*rule == Rule::Product && is_float)) && (cast.is_some() || float(native.number).is_none()) {
        return Ok(HOST);
    }
    let Some(layout) = layout(&shape, &folded, native.item_bytes, pairwise, false) else { return Ok(HOST) };
    if *rule == Rule::Product && is_float && layout.work != Work::Accumulate {
        // NumPy's loops fold a whole run in one call, in a wider type for halves: only the host makes the same calls.
        let wide = native.letter == b'e' || native.kind == b'c';
        let plain = request.initial.is_none() && !request.keepdims && folded.iter().all(|folded| *folded);
        if layout.work == Work::Total && !wide && shim.shards > 1 && plain {
            return scan::last_total(py, shim, ufunc, array, &shape);
        }
        if layout.work == Work::Total || wide {
            return Ok(HOST);
        }
    }
    let address = shim.dtypes.descr(py, native.letter).as_ptr() as usize;
    let kinds = smallvec![Kind::Strong(address), Kind::Strong(address)];
    let Some(resolution) = ufuncs::resolve(shim, ufunc, kinds)? else { return Ok(HOST) };
    if resolution.outputs[0].letter != native.letter {
        return Ok(HOST);
    }
    let seed = match &request.initial {
        None => default_seed(shim, py, *rule, is_float, native)?,
        Some(initial) => Seed::Value(ufuncs::weak_element(shim, initial, native)?),
    };
    let input = Source { origin: Origin::Operand(1), item_bytes: from.item_bytes, cast };
    let task = if layout.work == Work::Accumulate {
        Task::Accumulate { kernel: resolution.kernel.clone(), seed, input, output: 0 }
    } else {
        let reducer = match float(native.number) {
            Some(float) if pairwise => Reducer::Pairwise(float),
            Some(_) | None => Reducer::Fold(resolution.borrowed.clone()),
        };
        Task::Reduce { reducer, seed, input, output: 0, result_bytes: native.item_bytes }
    };
    let warns = resolution.warns && request.told != Some(None);
    let told = request.told.flatten().unwrap_or("reduce");
    let plan = Plan { layout, task, name, warns, told, from, native };
    plan.issue(py, shim, array, &shape, &folded, request.keepdims)
}

/// Whether an operand is small and waited for: then the host does it at its line.
fn is_small(py: Python<'_>, shim: &Shim, array: &Bound<'_, DeferredArray>, shape: &Shape) -> bool {
    shape.size() == 0
        || (shape.size() < shim.settings.min_chunk
            && shim.is_synced(array.get().storage(py).get().field().last_touch()))
}

/// The type a reduction is computed in; `None` when the host must say.
fn operation_type(
    py: Python<'_>,
    shim: &Shim,
    rule: Rule,
    from: Native,
    dtype: Option<&Bound<'_, PyAny>>,
) -> Option<Native> {
    let at_letter = |letter: u8| shim.dtypes.at(shim.dtypes.descr(py, letter).as_ptr() as usize);
    if let Some(dtype) = dtype {
        let descr = shim.host(py, "dtype").ok()?.call1((dtype,)).ok()?;
        return shim.dtypes.at(descr.as_ptr() as usize);
    }
    match rule {
        Rule::Sum | Rule::Product => match from.kind {
            b'b' | b'i' if from.item_bytes < 8 => at_letter(b'l'),
            b'u' if from.item_bytes < 8 => at_letter(b'L'),
            _ => Some(from),
        },
        Rule::Free => Some(from),
        Rule::Logical => at_letter(b'?'),
    }
}

/// A reduction ready to be issued.
struct Plan {
    layout: Layout,
    task: Task,
    name: &'static str,
    warns: bool,
    /// Its name in warnings.
    told: &'static str,
    from: Native,
    native: Native,
}

impl Plan {
    fn issue<'py>(
        self,
        py: Python<'py>,
        shim: &Shim,
        array: &Bound<'py, DeferredArray>,
        shape: &Shape,
        folded: &[bool],
        keepdims: bool,
    ) -> PyResult<Outcome<'py>> {
        let mood = shim.origins.mood(py)?;
        if mood == Mood::Host {
            return Ok(HOST);
        }
        let Plan { layout, task, name, warns, told, from, native } = self;
        let whole = folded.iter().all(|folded| *folded);
        let lengths = layout.of_result(&layout.lengths, folded, keepdims && !whole);
        let strides = layout.of_result(&layout.strides, folded, keepdims && !whole);
        let result = ufuncs::fresh(py, shim, &lengths, &strides, native)?;
        let storage = array.get().storage(py);
        let operands: SmallVec<[Operand; 4]> = smallvec![
            layout.walk.operand(&result.array.get().storage(py), 0, &layout.along, native.item_bytes, Privilege::Write),
            layout.walk.operand(&storage, shape.offset, &shape.strides, from.item_bytes, Privilege::Read),
        ];
        crate::shards::check_thread()?;
        crate::selection::before_writing(py, shim, &operands)?;
        let issued = shim.runtime.launch(name.into(), layout.work, layout.walk.domain(), operands, task);
        let picks_zero = native.kind == b'f' && matches!(name, "maximum" | "minimum" | "fmax" | "fmin");
        // Of a long double in an object that it does not know, NumPy makes a double.
        let no_future = keepdims || picks_zero || native.number.is_none();
        // The truth values are looked at, and are NumPy's own two objects.
        let mut at_once = lengths.is_empty() && (no_future || native.kind == b'b');
        if warns {
            match mood {
                Mood::Silent | Mood::Host => {}
                Mood::Warn(flags) | Mood::AtOnce(flags) => {
                    at_once |= matches!(mood, Mood::AtOnce(_));
                    shim.origins.note(py, issued.sequence, flags, told, issued.sequence.saturating_sub(10_000));
                }
            }
        }
        shim.settle(py, issued, at_once)?;
        if shim.settings.report {
            shim.report.lock().note(py, name, How::Native, 0, 0.0);
        }
        if lengths.is_empty() && !no_future {
            return Ok(Outcome::Done(Future::of(shim, &result.array, native)?));
        }
        finish(py, shim, result.array, shape.shape.len(), keepdims, picks_zero)
    }
}

/// The result as the user gets it, where it is no future: what was folded to one element is waited for.
fn finish<'py>(
    py: Python<'py>,
    shim: &Shim,
    result: Bound<'py, DeferredArray>,
    axes: usize,
    keepdims: bool,
    picks_zero: bool,
) -> PyResult<Outcome<'py>> {
    if result.get().axes(py) > 0 {
        return Ok(Outcome::Done(result.into_any()));
    }
    let alias = result.get().alias(py, shim, Purpose::Read)?;
    if picks_zero && alias.eq(0)? {
        // Which of two zeros a largest or smallest one is depends on the order of the whole: NumPy's own.
        return Ok(HOST);
    }
    Ok(Outcome::Done(if keepdims {
        let kept: Axes<usize> = (0..axes).map(|_| 1).collect();
        alias.call_method1("reshape", (PyTuple::new(py, kept)?,))?.call_method0("copy")?
    } else {
        alias.get_item(PyTuple::empty(py))?
    }))
}

/// `array.argmin(axis)` and `array.argmax(axis)`.
pub(crate) fn arg_extreme<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    extreme: Extreme,
    axis: Option<&Bound<'py, PyAny>>,
    keepdims: bool,
) -> PyResult<Outcome<'py>> {
    let shape = array.get().describe(py);
    let Some(from) = shim.dtypes.at(shape.descr) else { return Ok(HOST) };
    let Some(number) = from.number else { return Ok(HOST) };
    if is_small(py, shim, array, &shape) {
        return Ok(Outcome::Host { small: true });
    }
    if axis.is_some_and(|axis| axis.is_instance_of::<PyTuple>()) {
        return Ok(HOST);
    }
    let Some(folded) = folded(axis, shape.shape.len()) else { return Ok(HOST) };
    let Some(native) = shim.dtypes.at(shim.dtypes.descr(py, b'l').as_ptr() as usize) else { return Ok(HOST) };
    let Some(mut layout) = layout(&shape, &folded, native.item_bytes, false, axis.is_none()) else { return Ok(HOST) };
    if layout.work == Work::Accumulate {
        let Some(along) = folded.iter().position(|folded| *folded) else { return Ok(HOST) };
        let lengths = layout.of_result(&layout.lengths, &folded, keepdims);
        if let Some(found) = extremes::positions(py, shim, array, (extreme, along), &lengths)? {
            return Ok(Outcome::Done(found.into_any()));
        }
        let in_order = shape.is_c_contiguous() && folded.last() == Some(&true);
        let Some(axis) = axis.filter(|_| !keepdims && !in_order) else { return Ok(HOST) };
        // As NumPy does: through a copy whose last axis it is.
        let moved = shim.host(py, "moveaxis")?.call1((array, axis, -1))?;
        let Some(moved) = deferred(&moved) else { return Ok(HOST) };
        let Some(copied) = create::copy(py, shim, moved, "C", None)? else { return Ok(HOST) };
        return arg_extreme(py, shim, &copied, extreme, Some(&(-1isize).into_pyobject(py)?.into_any()), false);
    }
    layout.row_major(native.item_bytes);
    let task = Task::Reduce {
        reducer: Reducer::ArgExtreme(extreme, number),
        seed: Seed::First,
        input: Source { origin: Origin::Operand(1), item_bytes: from.item_bytes, cast: None },
        output: 0,
        result_bytes: native.item_bytes,
    };
    let name = match extreme {
        Extreme::Min => "argmin",
        Extreme::Max => "argmax",
    };
    let plan = Plan { layout, task, name, warns: false, told: "reduce", from, native };
    plan.issue(py, shim, array, &shape, &folded, keepdims)
}

/// `ufunc.reduce` through NumPy's protocol.
pub(crate) fn by_protocol<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Outcome<'py>> {
    let operand = inputs.get_item(0)?;
    let Some(array) = deferred(&operand) else { return Ok(HOST) };
    let mut request = Request { axis: Some(0usize.into_pyobject(py)?.into_any()), ..Request::default() };
    if let Some(kwargs) = kwargs {
        for (name, value) in kwargs.iter() {
            match name.cast::<PyString>()?.to_str()? {
                "axis" => request.axis = (!value.is_none()).then_some(value),
                "dtype" => request.dtype = (!value.is_none()).then_some(value),
                "keepdims" => request.keepdims = value.is_truthy()?,
                "initial" if !is_no_value(shim, py, &value)? => {
                    if value.is_none() {
                        return Ok(HOST);
                    }
                    request.initial = Some(value);
                }
                "out" if out_is_none(&value)? => {}
                "where" if value.is_exact_instance_of::<PyBool>() && value.is_truthy()? => {}
                "initial" => {}
                _ => return Ok(HOST),
            }
        }
    }
    if inputs.len() != 1 {
        return Ok(HOST);
    }
    reduce(py, shim, ufunc, array, &request)
}

fn out_is_none(out: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(out.is_none() || out.cast::<PyTuple>().is_ok_and(|outs| outs.iter().all(|out| out.is_none())))
}

/// Whether an argument is NumPy's "nothing was said".
pub(crate) fn is_no_value(shim: &Shim, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is(&shim.host(py, "_NoValue")?))
}
