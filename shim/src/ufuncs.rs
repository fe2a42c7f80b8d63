//! Element-wise operations: NumPy's type resolution, our launches.
//!
//! For each ufunc and combination of operand types NumPy is asked once which loop it would run and with which types; the
//! answer is kept. An operation is then: look the answer up, broadcast, order the result as NumPy would, append a launch.
//! Whatever is not covered - other dtypes, other keyword arguments, errors - is left to the host NumPy, which also
//! raises the error.
#![expect(unsafe_code, reason = "reads the call information in NumPy's capsule")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use legate_kernels::loops;
use legate_kernels::program::{Element, Loop, LoopFunction, Number};
use legate_runtime::view::{Axes, ranges_overlap};
use legate_runtime::{Operand, Privilege, Work};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyComplex, PyFloat, PyInt, PyTuple};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, PHANTOM, Shape};
use crate::dtypes::{Native, element};
use crate::events::Mood;
use crate::memory;
use crate::numpy_api;
use crate::selection;
use crate::state::Shim;
use crate::storage;
use crate::task::{Cast, Origin, Sink, Source, Task};
use crate::values::{Kind, Value, Walk, broadcast, fresh_strides};

/// NumPy's `ufunc_call_info`, the contents of the capsule.
#[repr(C)]
struct CallInfo {
    function: LoopFunction,
    context: *const c_void,
    auxdata: *mut c_void,
    requires_pyapi: u8,
    no_floatingpoint_errors: u8,
}

/// What NumPy would run for some operand types.
pub(crate) struct Resolution {
    /// Types the loop reads.
    pub(crate) inputs: SmallVec<[Native; 3]>,
    /// Types the loop writes.
    pub(crate) outputs: SmallVec<[Native; 1]>,
    /// The loop: ours where we have a better one with the same bits.
    pub(crate) kernel: Loop,
    /// NumPy's own loop, whose reduce form (both inputs' role played by one accumulator) is part of its contract.
    pub(crate) borrowed: Loop,
    /// Whether floating-point events can happen.
    pub(crate) warns: bool,
    /// The ufunc's name, for warnings.
    pub(crate) name: &'static str,
}

/// Key of a resolution: the ufunc's address and the kinds of its inputs.
type Key = (usize, SmallVec<[Kind; 3]>);

/// All resolutions so far; `None` where the host must do it.
#[derive(Default)]
pub(crate) struct Resolutions {
    known: FxHashMap<Key, Option<Arc<Resolution>>>,
    names: FxHashMap<usize, &'static str>,
}

/// The answer of NumPy for a ufunc and kinds of inputs.
pub(crate) fn resolve(
    shim: &Shim,
    ufunc: &Bound<'_, PyAny>,
    kinds: SmallVec<[Kind; 3]>,
) -> PyResult<Option<Arc<Resolution>>> {
    let key = (ufunc.as_ptr() as usize, kinds);
    if let Some(known) = shim.resolutions.lock().known.get(&key) {
        return Ok(known.clone());
    }
    let name = ufunc_name(shim, ufunc)?;
    let answer = ask(shim, ufunc, &key.1, name)?.map(Arc::new);
    shim.resolutions.lock().known.insert(key, answer.clone());
    Ok(answer)
}

/// The ufunc's name. Ufuncs live as long as the process; so do their names.
pub(crate) fn ufunc_name(shim: &Shim, ufunc: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let address = ufunc.as_ptr() as usize;
    if let Some(name) = shim.resolutions.lock().names.get(&address) {
        return Ok(name);
    }
    let name: &'static str = Box::leak(ufunc.getattr("__name__")?.extract::<String>()?.into_boxed_str());
    shim.resolutions.lock().names.insert(address, name);
    Ok(name)
}

/// Loops that may raise from the values they meet, which only the host can do at the right place.
fn may_raise(name: &str, types: &[Native]) -> bool {
    name == "power" && types.iter().all(|native| matches!(native.kind, b'i' | b'u'))
}

fn ask(shim: &Shim, ufunc: &Bound<'_, PyAny>, kinds: &[Kind], name: &'static str) -> PyResult<Option<Resolution>> {
    let py = ufunc.py();
    if !ufunc.getattr("signature")?.is_none() || ufunc.getattr("nin")?.extract::<usize>()? != kinds.len() {
        return Ok(None);
    }
    let outputs: usize = ufunc.getattr("nout")?.extract()?;
    let mut types: Vec<Bound<'_, PyAny>> = Vec::new();
    for kind in kinds {
        types.push(match kind {
            Kind::Strong(address) => match shim.dtypes.at(*address) {
                Some(native) => shim.dtypes.descr(py, native.letter).clone(),
                None => return Ok(None),
            },
            Kind::Int => py.get_type::<PyInt>().into_any(),
            Kind::Float => py.get_type::<PyFloat>().into_any(),
            Kind::Complex => py.get_type::<PyComplex>().into_any(),
        });
    }
    types.extend((0..outputs).map(|_| py.None().into_bound(py)));
    let resolve = ufunc.getattr("_resolve_dtypes_and_context")?;
    let Ok(answer) = resolve.call1((PyTuple::new(py, types)?,)) else { return Ok(None) };
    let resolved = answer.get_item(0)?;
    let mut natives: SmallVec<[Native; 4]> = SmallVec::new();
    for index in 0..kinds.len() + outputs {
        match shim.dtypes.at(resolved.get_item(index)?.as_ptr() as usize) {
            Some(native) => natives.push(native),
            None => return Ok(None),
        }
    }
    if may_raise(name, &natives) {
        return Ok(None);
    }
    let numbers: Option<SmallVec<[Number; 4]>> = natives.iter().map(|native| native.number).collect();
    let (own, known) = match &numbers {
        Some(numbers) => (loops::lookup(name, numbers), loops::borrowed_name(name, numbers)),
        None => (None, None),
    };
    let borrowed = borrow(ufunc, &answer.get_item(1)?, known.as_deref().unwrap_or(name))?;
    let Some((mut borrowed, silent)) = borrowed else { return Ok(None) };
    borrowed.is_quiet = numbers.as_ref().is_some_and(|numbers| loops::is_quiet(name, numbers));
    Ok(Some(Resolution {
        inputs: natives[..kinds.len()].iter().copied().collect(),
        outputs: natives[kinds.len()..].iter().copied().collect(),
        kernel: own.unwrap_or_else(|| borrowed.clone()),
        borrowed,
        warns: !silent,
        name,
    }))
}

/// NumPy's own loop from a context capsule, and whether it never raises floating-point flags; `None` when it needs the GIL.
pub(crate) fn borrow(
    ufunc: &Bound<'_, PyAny>,
    capsule: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Option<(Loop, bool)>> {
    let py = ufunc.py();
    let fixed = pyo3::types::PyDict::new(py);
    fixed.set_item("fixed_strides", py.None())?;
    ufunc.getattr("_get_strided_loop")?.call((capsule,), Some(&fixed))?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"numpy_1.24_ufunc_call_info"))?;
    // SAFETY: a capsule of this name holds NumPy's ufunc_call_info, filled by `_get_strided_loop`; it lives as long as the
    // capsule, which the loop's owner keeps.
    let info = unsafe { &*pointer.as_ptr().cast_const().cast::<CallInfo>() };
    if info.requires_pyapi != 0 {
        return Ok(None);
    }
    let kernel = Loop {
        context: info.context,
        auxdata: info.auxdata,
        owner: Some(Arc::new(capsule.clone().unbind())),
        ..Loop::of(info.function, name)
    };
    Ok(Some((kernel, info.no_floatingpoint_errors != 0)))
}

/// A conversion between two native dtypes; `Err` when there is none of ours.
pub(crate) fn cast_between(from: Native, to: Native, item_bytes: usize) -> Result<Option<Arc<Cast>>, ()> {
    if from.letter == to.letter || (from.number.is_some() && from.number == to.number) {
        return Ok(None);
    }
    match (from.number, to.number) {
        (Some(from), Some(to)) => {
            loops::cast(from, to).map(|kernel| Some(Arc::new(Cast { kernel, item_bytes }))).ok_or(())
        }
        (Some(_) | None, Some(_) | None) => Err(()),
    }
}

/// The element that a Python number is as a native dtype, or the error NumPy raises for it.
pub(crate) fn weak_element(shim: &Shim, number: &Bound<'_, PyAny>, native: Native) -> PyResult<Element> {
    let py = number.py();
    if native.letter == b'd'
        && let Ok(float) = number.cast_exact::<PyFloat>()
    {
        return Ok(element(&float.extract::<f64>()?.to_ne_bytes()));
    }
    let array = shim.host(py, "array")?.call1((number, shim.dtypes.descr(py, native.letter)))?;
    Ok(element(&memory::bytes_at(numpy_api::geometry(&array).data, native.item_bytes)))
}

/// An element converted to another dtype.
fn converted(value: Element, from: Native, to: Native) -> Option<Element> {
    let Some(cast) = cast_between(from, to, to.item_bytes).ok()? else { return Some(value) };
    let mut result = Element([0; 32]);
    let pointers = [value.0.as_ptr().cast_mut().cast(), result.0.as_mut_ptr().cast()];
    let strides = [0isize, 0];
    // SAFETY: one element is read and one written, both inside 32 aligned bytes.
    let status: c_int = unsafe {
        (cast.kernel.function)(cast.kernel.context, pointers.as_ptr(), &1isize, strides.as_ptr(), cast.kernel.auxdata)
    };
    (status == 0).then_some(result)
}

/// A written view in the making.
pub(crate) struct Target<'py> {
    /// The array.
    pub(crate) array: Bound<'py, DeferredArray>,
    /// Its view.
    pub(crate) shape: Shape,
    /// Its dtype.
    pub(crate) native: Native,
}

/// Everything an element-wise launch is made of.
pub(crate) struct Map<'a, 'py> {
    /// What runs.
    pub(crate) resolution: &'a Resolution,
    /// Its name in warnings.
    pub(crate) name: &'static str,
    /// Values read.
    pub(crate) inputs: SmallVec<[Value<'py>; 3]>,
    /// Where a boolean says so.
    pub(crate) mask: Option<Value<'py>>,
    /// Shape of the operation.
    pub(crate) shape: Axes<usize>,
    /// How events are treated.
    pub(crate) mood: Mood,
}

/// Turns a value into a source for a loop that reads `wanted`; which operand an array is, is left open.
fn source<'py>(shim: &Shim, value: &Value<'py>, wanted: Native) -> PyResult<Option<Source>> {
    let constant = match value {
        Value::Weak(number) => weak_element(shim, number, wanted)?,
        Value::Constant { element, native, .. } => match converted(*element, *native, wanted) {
            Some(constant) => constant,
            None => return Ok(None),
        },
        Value::Array { native, .. } => {
            let Ok(cast) = cast_between(*native, wanted, wanted.item_bytes) else { return Ok(None) };
            return Ok(Some(Source { origin: Origin::Operand(usize::MAX), item_bytes: native.item_bytes, cast }));
        }
    };
    Ok(Some(Source { origin: Origin::Constant(constant), item_bytes: wanted.item_bytes, cast: None }))
}

impl<'py> Map<'_, 'py> {
    /// Issues the operation. With no targets, fresh arrays are made; `None` when it must be left to the host.
    pub(crate) fn issue(
        &self,
        py: Python<'py>,
        shim: &Shim,
        targets: Option<SmallVec<[Target<'py>; 1]>>,
    ) -> PyResult<Option<SmallVec<[Bound<'py, DeferredArray>; 1]>>> {
        let mut sources: SmallVec<[Source; 3]> = SmallVec::new();
        let mut strides: SmallVec<[Axes<isize>; 3]> = SmallVec::new();
        for (value, wanted) in self.inputs.iter().zip(&self.resolution.inputs) {
            match source(shim, value, *wanted)? {
                Some(source) => sources.push(source),
                None => return Ok(None),
            }
            if value.is_array() {
                strides.push(value.strides_for(&self.shape));
            }
        }
        let mut mask = match &self.mask {
            None => None,
            Some(value) => {
                let Some(native) = shim.dtypes.at(shim.dtypes.descr(py, b'?').as_ptr() as usize) else {
                    return Ok(None);
                };
                match source(shim, value, native)? {
                    Some(source) => Some(source),
                    None => return Ok(None),
                }
            }
        };
        let lent = self.inputs.iter().chain(&self.mask).any(Value::is_lent);
        let fresh = targets.is_none();
        let targets = match targets {
            Some(targets) => targets,
            None => self.fresh_targets(py, shim, &strides)?,
        };
        if let Some(mask) = self.mask.as_ref().filter(|mask| mask.is_array()) {
            strides.push(mask.strides_for(&self.shape));
        }
        let mut outputs: SmallVec<[Sink; 1]> = SmallVec::new();
        for (index, (target, native)) in targets.iter().zip(&self.resolution.outputs).enumerate() {
            let Ok(cast) = cast_between(*native, target.native, native.item_bytes) else { return Ok(None) };
            outputs.push(Sink { operand: index, cast });
        }
        let walk = Walk::of(&self.shape, &targets[0].shape.strides);
        // Of fresh results only elements of the mask are looked at.
        let privilege = if mask.is_some() && !fresh { Privilege::ReadWrite } else { Privilege::Write };
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        for target in &targets {
            let storage = target.array.get().storage(py);
            let (offset, strides) = (target.shape.offset, &target.shape.strides);
            operands.push(walk.operand(&storage, offset, strides, target.native.item_bytes, privilege));
        }
        let mut strides = strides.iter();
        for (value, source) in self.inputs.iter().chain(&self.mask).zip(sources.iter_mut().chain(&mut mask)) {
            // Only arrays have strides.
            if let Value::Array { storage, shape, native, .. } = value
                && let Some(strides) = strides.next()
            {
                source.origin = Origin::Operand(operands.len());
                operands.push(walk.operand(storage, shape.offset, strides, native.item_bytes, Privilege::Read));
            }
        }
        let domain = walk.domain();
        if !fresh && needs_detour(&operands, targets.len(), &domain) {
            let converts =
                targets.iter().zip(&self.resolution.outputs).any(|(to, from)| to.native.letter != from.letter);
            // NumPy's own copy of what is written is of the operation's type: elements that no mask selects are converted to it and back.
            if mask.is_some() && converts {
                return Ok(None);
            }
            return self.detour(py, shim, targets);
        }
        let task = Task::Map { kernel: self.resolution.kernel.clone(), inputs: sources, outputs, mask };
        self.launch(py, shim, domain, operands, task, lent)?;
        Ok(Some(targets.into_iter().map(|target| target.array).collect()))
    }

    fn launch(
        &self,
        py: Python<'py>,
        shim: &Shim,
        domain: Axes<usize>,
        operands: SmallVec<[Operand; 4]>,
        task: Task,
        lent: bool,
    ) -> PyResult<()> {
        crate::shards::check_thread()?;
        selection::before_writing(py, shim, &operands)?;
        let issued = shim.runtime.launch(self.resolution.kernel.name.clone(), Work::Map, domain, operands, task);
        let mut at_once = lent;
        if self.resolution.warns {
            match self.mood {
                Mood::Silent | Mood::Host => {}
                Mood::Warn(flags) => self.note(py, shim, issued.sequence, flags),
                Mood::AtOnce(flags) => {
                    self.note(py, shim, issued.sequence, flags);
                    at_once = true;
                }
            }
        }
        shim.settle(py, issued, at_once)
    }

    fn note(&self, py: Python<'py>, shim: &Shim, sequence: legate_runtime::Sequence, flags: u8) {
        let completed = sequence.saturating_sub(10_000);
        shim.origins.note(py, sequence, flags, self.name, completed);
    }

    /// Fresh results, ordered as NumPy orders them.
    fn fresh_targets(
        &self,
        py: Python<'py>,
        shim: &Shim,
        inputs: &[Axes<isize>],
    ) -> PyResult<SmallVec<[Target<'py>; 1]>> {
        let mut targets = SmallVec::new();
        for native in &self.resolution.outputs {
            let strides = fresh_strides(&self.shape, inputs, native.item_bytes);
            targets.push(fresh(py, shim, &self.shape, &strides, *native)?);
        }
        Ok(targets)
    }

    /// Computes into fresh arrays first, then copies: for outputs that overlap what is read at other places.
    fn detour(
        &self,
        py: Python<'py>,
        shim: &Shim,
        targets: SmallVec<[Target<'py>; 1]>,
    ) -> PyResult<Option<SmallVec<[Bound<'py, DeferredArray>; 1]>>> {
        let (shape, mood) = (self.shape.clone(), self.mood);
        let inputs = self.inputs.iter().map(|value| value.again(py)).collect();
        let unmasked =
            Map { resolution: self.resolution, name: self.name, inputs, mask: None, shape: shape.clone(), mood };
        let natives: SmallVec<[Native; 1]> = self.resolution.outputs.clone();
        let Some(results) = unmasked.issue(py, shim, None)? else { return Ok(None) };
        let mut mask = match &self.mask {
            // What was lent was used, and done, just now.
            Some(Value::Array { storage, shape, native, .. }) => {
                let (storage, shape) = (storage.clone_ref(py), shape.clone());
                Some(Value::Array { storage, shape, native: *native, lent: false })
            }
            Some(mask @ Value::Constant { .. }) => Some(mask.again(py)),
            Some(Value::Weak(_)) | None => None,
        };
        for ((result, target), native) in results.iter().zip(&targets).zip(natives) {
            let Some((_, value)) = Value::of_deferred(py, shim, result) else { continue };
            let target = Target { array: target.array.clone(), shape: target.shape.clone(), native: target.native };
            // The mask may itself be part of what is written, so it is read before (copied aside) when it overlaps.
            copy(py, shim, value, native, target, shape.clone(), mask.take(), mood)?;
        }
        Ok(Some(targets.into_iter().map(|target| target.array).collect()))
    }
}

/// A fresh deferred array with given strides.
pub(crate) fn fresh<'py>(
    py: Python<'py>,
    shim: &Shim,
    shape: &[usize],
    strides: &[isize],
    native: Native,
) -> PyResult<Target<'py>> {
    let descr = shim.dtypes.descr(py, native.letter);
    let bytes = shape.iter().product::<usize>() * native.item_bytes;
    let handle = memory::field(py, shim, bytes, shape, descr)?;
    let (phantom, owner) = storage::phantom(handle, descr, numpy_api::signed(shape), strides, 0)?;
    let shape = Shape::of(&phantom, PHANTOM);
    Ok(Target { array: DeferredArray::over(phantom, owner, None)?, shape, native })
}

/// Whether a written view (the first `written` operands) shares bytes with a read one at other places.
fn needs_detour(operands: &[Operand], written: usize, domain: &[usize]) -> bool {
    operands[..written].iter().enumerate().any(|(index, output)| {
        operands.iter().skip(index + 1).any(|other| {
            Arc::ptr_eq(&other.field, &output.field)
                && other.view != output.view
                && ranges_overlap(&other.view.extent(domain), &output.view.extent(domain))
        })
    })
}

/// The copy of elements as they are.
pub(crate) fn copying(native: Native) -> Resolution {
    let kernel = loops::copy(native.item_bytes);
    Resolution {
        inputs: smallvec![native],
        outputs: smallvec![native],
        borrowed: kernel.clone(),
        kernel,
        warns: false,
        name: "copy",
    }
}

/// Copies a value into a view, converting it; the view's shape is `shape`.
#[expect(clippy::too_many_arguments, reason = "a copy is a map with one input and one output")]
pub(crate) fn copy<'py>(
    py: Python<'py>,
    shim: &Shim,
    value: Value<'py>,
    native: Native,
    target: Target<'py>,
    shape: Axes<usize>,
    mask: Option<Value<'py>>,
    mood: Mood,
) -> PyResult<bool> {
    let resolution = match cast_between(native, target.native, target.native.item_bytes) {
        Err(()) => return Ok(false),
        Ok(None) => copying(target.native),
        Ok(Some(cast)) => Resolution {
            inputs: smallvec![native],
            outputs: smallvec![target.native],
            borrowed: cast.kernel.clone(),
            kernel: cast.kernel.clone(),
            warns: true,
            name: "cast",
        },
    };
    let map = Map { resolution: &resolution, name: resolution.name, inputs: smallvec![value], mask, shape, mood };
    Ok(map.issue(py, shim, Some(smallvec![target]))?.is_some())
}

/// The shape that values broadcast to, if they do.
pub(crate) fn common_shape(values: &[Value<'_>]) -> Option<Axes<usize>> {
    // Mostly all arrays have one shape, and the rest is numbers.
    let mut arrays = values.iter().filter_map(|value| match value {
        Value::Array { shape, .. } => Some(&shape.shape[..]),
        Value::Constant { axes, .. } if *axes > 0 => Some(&[][..]),
        Value::Constant { .. } | Value::Weak(_) => None,
    });
    if let Some(first) = arrays.next()
        && !first.is_empty()
        && arrays.all(|other| other == first)
    {
        return Some(Axes::from_slice(first));
    }
    let shapes: SmallVec<[Axes<usize>; 3]> = values.iter().map(Value::shape).collect();
    broadcast(&shapes)
}
