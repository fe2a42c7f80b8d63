//! Running totals: `ufunc.accumulate`, and with it `cumsum`, `cumprod` and their kin.
//!
//! The order along the axis is NumPy's, element after element. An axis that is not shared out is each shard's own; along the one
//! that is, the shards hand on the last row. Sums of integers along a single axis are put together from parts. What has another
//! dtype than the result is converted aside first, as NumPy does. Lists of axes, operands that overlap otherwise than in place,
//! and everything that is wrong go to the host.

use legate_runtime::view::ranges_overlap;
use legate_runtime::{Privilege, Work};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, Shape, deferred};
use crate::dtypes::Native;
use crate::events::Mood;
use crate::operators::Outcome;
use crate::ops::create;
use crate::report::How;
use crate::state::Shim;
use crate::task::{Scan, Task};
use crate::ufuncs::{self, Target, cast_between};
use crate::values::{Kind, Walk, fresh_strides};

const HOST: Outcome<'static> = Outcome::Host { small: false };

/// Ufuncs whose floating-point results do not depend on how their loop is called.
const ANY_FORM: [&str; 3] = ["add", "multiply", "subtract"];
/// Ufuncs that, on integers and truth values, give the same for any grouping.
const ANY_GROUPING: [&str; 9] =
    ["add", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or"];

/// What an accumulation is asked to do.
struct Request<'py> {
    axis: isize,
    dtype: Option<Bound<'py, PyAny>>,
    out: Option<Bound<'py, DeferredArray>>,
}

/// Reads the arguments; `None` when they hold what is not launched (or is wrong).
fn request<'py>(inputs: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Option<Request<'py>>> {
    let mut request = Request { axis: 0, dtype: None, out: None };
    if inputs.len() != 1 {
        return Ok(None);
    }
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        match name.cast::<PyString>()?.to_str()? {
            "axis" if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() => {
                let Ok(axis) = value.extract() else { return Ok(None) };
                request.axis = axis;
            }
            "dtype" => request.dtype = (!value.is_none()).then_some(value),
            "out" => {
                let out = match value.cast::<PyTuple>() {
                    Ok(outs) if outs.len() == 1 => outs.get_item(0)?,
                    Ok(_) => return Ok(None),
                    Err(_) => value,
                };
                if !out.is_none() {
                    let Some(out) = deferred(&out) else { return Ok(None) };
                    request.out = Some(out.clone());
                }
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(request))
}

/// The dtype that a total is kept in; `None` when the host must say.
fn total_type(
    py: Python<'_>,
    shim: &Shim,
    name: &str,
    from: Native,
    request: &Request<'_>,
) -> PyResult<Option<Native>> {
    let at_letter = |letter: u8| shim.dtypes.at(shim.dtypes.descr(py, letter).as_ptr() as usize);
    let of_out = request.out.as_ref().and_then(|out| shim.dtypes.at(out.get().describe(py).descr));
    let native = match &request.dtype {
        Some(dtype) => match shim.host(py, "dtype")?.call1((dtype,)) {
            Ok(descr) => shim.dtypes.at(descr.as_ptr() as usize),
            Err(_) => None,
        },
        None if request.out.is_some() => of_out.filter(|of_out| of_out.letter == from.letter),
        None if name.starts_with("logical_") => at_letter(b'?'),
        None if matches!(name, "add" | "multiply") => match from.kind {
            b'b' | b'i' if from.item_bytes < 8 => at_letter(b'l'),
            b'u' if from.item_bytes < 8 => at_letter(b'L'),
            _ => Some(from),
        },
        None => Some(from),
    };
    let fits = request.out.is_none() || native.map(|native| native.letter) == of_out.map(|out| out.letter);
    Ok(native.filter(|_| fits))
}

/// Whether all elements are aligned for numbers of their size.
fn is_aligned(shape: &Shape, native: Native) -> bool {
    let unit = if native.item_bytes.is_power_of_two() { native.item_bytes.min(16) as isize } else { 1 };
    shape.offset % unit == 0 && shape.strides.iter().all(|stride| stride % unit == 0)
}

/// `ufunc.accumulate` through NumPy's protocol.
pub(crate) fn by_protocol<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Outcome<'py>> {
    accumulate(py, shim, ufunc, inputs, kwargs, "accumulate")
}

/// Running totals for an operation that is called `told` in warnings.
fn accumulate<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    told: &'static str,
) -> PyResult<Outcome<'py>> {
    let operand = inputs.get_item(0)?;
    let Some(array) = deferred(&operand) else { return Ok(HOST) };
    let Some(request) = request(inputs, kwargs)? else { return Ok(HOST) };
    let shape = array.get().describe(py);
    let axes = shape.shape.len();
    let axis = if request.axis < 0 { request.axis + axes as isize } else { request.axis };
    let Some(axis) = usize::try_from(axis).ok().filter(|axis| *axis < axes) else { return Ok(HOST) };
    let Some(from) = shim.dtypes.at(shape.descr) else { return Ok(HOST) };
    let is_small =
        shape.size() < shim.settings.min_chunk && shim.is_synced(array.get().storage(py).get().field().last_touch());
    if is_small || shape.size() == 0 || shape.shape[axis] == 1 {
        return Ok(HOST);
    }
    let name = ufuncs::ufunc_name(shim, ufunc)?;
    let Some(native) = total_type(py, shim, name, from, &request)? else { return Ok(HOST) };
    let address = shim.dtypes.descr(py, native.letter).as_ptr() as usize;
    let kinds = smallvec![Kind::Strong(address), Kind::Strong(address)];
    let Some(resolution) = ufuncs::resolve(shim, ufunc, kinds)? else { return Ok(HOST) };
    let types = resolution.inputs.iter().chain(&resolution.outputs);
    if resolution.outputs.len() != 1 || types.into_iter().any(|known| known.letter != native.letter) {
        return Ok(HOST);
    }
    let Ok(cast) = cast_between(from, native, native.item_bytes) else { return Ok(HOST) };
    let mood = shim.origins.mood(py)?;
    if mood == Mood::Host || shape.strides.contains(&0) || (from.kind == b'c' && native.kind != b'c') {
        return Ok(HOST);
    }
    let (array, shape) = match cast {
        None => (array.clone(), shape),
        Some(_) => match create::copy(py, shim, array, "K", Some(native))? {
            Some(converted) => {
                let shape = converted.get().describe(py);
                (converted, shape)
            }
            None => return Ok(HOST),
        },
    };
    let target = match request.out {
        None => {
            let strides = fresh_strides(&shape.shape, std::slice::from_ref(&shape.strides), native.item_bytes);
            ufuncs::fresh(py, shim, &shape.shape, &strides, native)?
        }
        Some(out) => {
            let own = out.get().describe(py);
            let wrong = own.shape != shape.shape || !own.is_writeable() || own.strides.contains(&0);
            if wrong || meets_otherwise(py, &array, &shape, &out, &own, native) {
                return Ok(HOST);
            }
            Target { array: out, shape: own, native }
        }
    };
    if !is_aligned(&shape, native) || !is_aligned(&target.shape, native) {
        return Ok(HOST);
    }
    let walk = Walk::in_order(&shape.shape, order(&target.shape));
    let Some(position) = walk.position(axis) else { return Ok(HOST) };
    let operands = [(&target.array, &target.shape, Privilege::Write), (&array, &shape, Privilege::Read)];
    let operands: SmallVec<[legate_runtime::Operand; 4]> = operands
        .into_iter()
        .map(|(array, shape, privilege)| {
            walk.operand(&array.get().storage(py), shape.offset, &shape.strides, native.item_bytes, privilege)
        })
        .collect();
    let whole = matches!(native.kind, b'b' | b'i' | b'u');
    let task = Task::Scan(Scan {
        kernel: resolution.borrowed.clone(),
        axis: position,
        item_bytes: native.item_bytes,
        any_form: whole || (native.kind == b'f' && ANY_FORM.contains(&name)),
        joins: whole && ANY_GROUPING.contains(&name),
    });
    crate::shards::check_thread()?;
    crate::selection::before_writing(py, shim, &operands)?;
    let work = Work::Scan { along_rows: position == 0 };
    let issued = shim.runtime.launch(format!("{name}.accumulate").into(), work, walk.domain(), operands, task);
    let mut at_once = false;
    if resolution.warns
        && let Mood::Warn(flags) | Mood::AtOnce(flags) = mood
    {
        at_once = matches!(mood, Mood::AtOnce(_));
        shim.origins.note(py, issued.sequence, flags, told, issued.sequence.saturating_sub(10_000));
    }
    shim.settle(py, issued, at_once)?;
    if shim.settings.report {
        shim.report.lock().note(py, &format!("{name}.accumulate"), How::Native, 0, 0.0);
    }
    Ok(Outcome::Done(target.array.into_any()))
}

/// A fold of everything in order, element after element: the last of the running totals, which shards hand on.
pub(crate) fn last_total<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    array: &Bound<'py, DeferredArray>,
    shape: &Shape,
) -> PyResult<Outcome<'py>> {
    if !shape.is_c_contiguous() {
        return Ok(HOST);
    }
    let flat = array.call_method1("reshape", (-1,))?;
    match accumulate(py, shim, ufunc, &PyTuple::new(py, [flat])?, None, "reduce")? {
        Outcome::Done(totals) => Ok(Outcome::Done(totals.get_item(-1)?)),
        Outcome::Host { .. } => Ok(HOST),
    }
}

/// The axes in the order of a written view's memory, outermost first, those of length 1 left out.
fn order(shape: &Shape) -> legate_runtime::view::Axes<usize> {
    let mut order: legate_runtime::view::Axes<usize> =
        (0..shape.shape.len()).filter(|axis| shape.shape[*axis] != 1).collect();
    order.sort_by_key(|axis| std::cmp::Reverse(shape.strides[*axis].unsigned_abs()));
    order
}

/// Whether two arrays share memory, other than by being the same view; or the output overlaps itself, or goes backwards.
fn meets_otherwise(
    py: Python<'_>,
    array: &Bound<'_, DeferredArray>,
    shape: &Shape,
    out: &Bound<'_, DeferredArray>,
    own: &Shape,
    native: Native,
) -> bool {
    let view = |shape: &Shape| legate_runtime::view::View {
        offset: shape.offset,
        strides: shape.strides.clone(),
        item_bytes: native.item_bytes,
    };
    let (read, written) = (view(shape), view(own));
    if own.strides.iter().any(|stride| *stride < 0) || written.overlaps_itself(&own.shape) {
        return true;
    }
    array.get().storage(py).is(out.get().storage(py))
        && read != written
        && ranges_overlap(&read.extent(&shape.shape), &written.extent(&own.shape))
}
