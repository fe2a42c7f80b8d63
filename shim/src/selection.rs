//! Selections: `x[mask]` of a mask of x's shape, not picked out yet.
//!
//! A selection is an array whose length nobody has asked for: values over the whole domain, of which those count where the mask
//! holds. Element-wise operations among selections by one mask and numbers are masked launches over the domain, and so is
//! `y[mask] = selection`; neither counts, and all join the operations around them. Whatever else looks at a selection makes it
//! the plain array that it stands for ([`settle`]). It keeps the values of when it was made: before a field that it looks at is
//! written, it gets a copy ([`before_writing`]). It is worth it only where a statement assigns to the same mask again, so only
//! there are selections made (`legate.masks`). On several shards masked launches send nothing, and selections come and go in program
//! order: only the program's own thread makes them.

use std::sync::{Arc, Weak};

use legate_runtime::{Field, Operand};
use parking_lot::Mutex;
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::array::{DeferredArray, PHANTOM, Shape, deferred};
use crate::dtypes::Native;
use crate::events::Mood;
use crate::frames;
use crate::host;
use crate::numpy_api;
use crate::operators::{self, rank};
use crate::ops::mask;
use crate::state::Shim;
use crate::storage::{Purpose, Storage};
use crate::ufuncs::{self, Map, Target};
use crate::values::{Kind, Value, fresh_strides};

/// A view of a field, as it was when it was taken.
struct Part {
    storage: Py<Storage>,
    shape: Shape,
    native: Native,
}

impl Part {
    fn of(py: Python<'_>, shim: &Shim, array: &DeferredArray) -> Option<Part> {
        let shape = array.describe(py);
        let native = shim.dtypes.at(shape.descr)?;
        Some(Part { storage: array.storage(py), shape, native })
    }

    fn clone_ref(&self, py: Python<'_>) -> Part {
        Part { storage: self.storage.clone_ref(py), shape: self.shape.clone(), native: self.native }
    }

    fn field(&self) -> &Arc<Field> {
        self.storage.get().field()
    }

    fn is_same(&self, other: &Part) -> bool {
        self.storage.is(&other.storage)
            && self.shape.offset == other.shape.offset
            && self.shape.shape == other.shape.shape
            && self.shape.strides == other.shape.strides
    }

    fn value<'py>(&self, py: Python<'py>) -> Value<'py> {
        let Part { storage, shape, native } = self.clone_ref(py);
        Value::Array { storage, shape, native, lent: false }
    }

    /// An array of its own over the view.
    fn array<'py>(&self, py: Python<'py>, shim: &Shim) -> PyResult<Bound<'py, DeferredArray>> {
        let descr = shim.dtypes.descr(py, self.native.letter);
        let lengths: SmallVec<[isize; 4]> = self.shape.shape.iter().map(|length| *length as isize).collect();
        let data = PHANTOM.wrapping_add_signed(self.shape.offset);
        let holder = self.storage.bind(py).clone().into_any();
        let phantom = numpy_api::array_over(descr, &lengths, &self.shape.strides, data, false, holder)?;
        DeferredArray::over(phantom, self.storage.clone_ref(py), None)
    }
}

/// What a selection looks at.
struct Parts {
    values: Part,
    mask: Part,
}

impl Parts {
    fn watch(&self, more: bool) {
        self.values.field().watch(more);
        self.mask.field().watch(more);
    }
}

/// The selection that an array is.
#[pyclass(frozen)]
pub(crate) struct Selection(Arc<Mutex<Watched>>);

/// Parts that are told of writes until they are dropped.
struct Watched(Parts);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.watch(false);
    }
}

/// All selections, to be told of writes.
static LIVE: Mutex<Vec<Weak<Mutex<Watched>>>> = Mutex::new(Vec::new());

impl Selection {
    fn new<'py>(py: Python<'py>, values: Part, mask: Part) -> PyResult<Bound<'py, Selection>> {
        let parts = Parts { values, mask };
        parts.watch(true);
        let shared = Arc::new(Mutex::new(Watched(parts)));
        let mut live = LIVE.lock();
        live.retain(|known| known.strong_count() > 0);
        live.push(Arc::downgrade(&shared));
        Bound::new(py, Selection(shared))
    }

    /// Its values and its mask.
    fn parts(&self, py: Python<'_>) -> (Part, Part) {
        let watched = self.0.lock();
        (watched.0.values.clone_ref(py), watched.0.mask.clone_ref(py))
    }
}

impl DeferredArray {
    /// Whether it is elements selected by a mask that nobody has looked at.
    #[inline]
    pub(crate) fn is_selection(&self, py: Python<'_>) -> bool {
        self.selection.is_taken(py)
    }

    /// Makes the array what another one is.
    pub(crate) fn become_plain(&self, py: Python<'_>, other: &DeferredArray) {
        let phantom = other.phantom(py);
        self.hold(py, other.storage(py), None);
        self.phantom.replace(py, Some(phantom));
        drop(self.selection.replace(py, None));
    }

    /// Whoever needs more than the selection gets what it stands for.
    #[cold]
    pub(crate) fn settle(&self, py: Python<'_>) {
        if let Err(error) = settle(py, self) {
            panic!("{error}");
        }
    }
}

/// The selection behind an object, if it is one that nobody has looked at.
fn pending<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, Selection>> {
    deferred(object)?.get().selection.get(object.py())
}

/// `array[key]` as a selection; `None` where it is to be picked out at once.
pub(crate) fn get<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(mask) = deferred(key) else { return Ok(None) };
    if !crate::shards::in_program() || shim.origins.mood(py)? == Mood::Host {
        return Ok(None);
    }
    let (Some(values), Some(mask)) = (Part::of(py, shim, array.get()), Part::of(py, shim, mask.get())) else {
        return Ok(None);
    };
    let fits = mask.native.letter == b'?'
        && values.shape.shape == mask.shape.shape
        && values.shape.size() >= shim.settings.min_chunk
        && !values.field().is_pinned()
        && !mask.field().is_pinned();
    // NumPy's loops for halves differ between elements side by side, as picked ones are, and others.
    let is_even = values.native.item_bytes != 2 || values.shape.is_c_contiguous();
    if !fits || !is_even || !assigns_back(py)? {
        return Ok(None);
    }
    Ok(Some(made(py, values, mask)?.into_any()))
}

fn made<'py>(py: Python<'py>, values: Part, mask: Part) -> PyResult<Bound<'py, DeferredArray>> {
    let selection = Selection::new(py, values, mask)?;
    let array = DeferredArray::new(py)?;
    array.get().selection.replace(py, Some(selection));
    Ok(array)
}

/// Whether the running statement assigns to elements by the key that it reads now.
fn assigns_back(py: Python<'_>) -> PyResult<bool> {
    let Some((code, place)) = frames::instruction(py) else { return Ok(false) };
    operators::named(py, "legate.masks", "assigns_back")?.call1((code, place))?.extract()
}

/// A ufunc among selections by one mask and numbers, into another or (`out`) one of them; `None` for anything else.
pub(crate) fn apply<'py>(
    py: Python<'py>,
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    operands: &[&Bound<'py, PyAny>],
    outs: Option<&[Bound<'py, PyAny>]>,
    mood: Mood,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(first) = operands.iter().find_map(|operand| pending(operand)) else { return Ok(None) };
    let (values, mask) = first.get().parts(py);
    let mut kinds: SmallVec<[Kind; 3]> = SmallVec::new();
    let mut inputs: SmallVec<[Value<'py>; 3]> = SmallVec::new();
    for operand in operands {
        if let Some(selection) = pending(operand) {
            let (own, by) = selection.get().parts(py);
            if !by.is_same(&mask) {
                return Ok(None);
            }
            kinds.push(Kind::Strong(own.shape.descr));
            inputs.push(own.value(py));
            continue;
        }
        // What has axes is another array: its length must be compared.
        if deferred(operand).is_some() {
            return Ok(None);
        }
        let Some((kind, value)) = Value::of(shim, operand)? else { return Ok(None) };
        if !value.shape().is_empty() {
            return Ok(None);
        }
        kinds.push(kind);
        inputs.push(value);
    }
    let target = match outs {
        None => None,
        Some([out]) => match pending(out) {
            Some(selection) => Some((out, selection.get().parts(py))),
            None => return Ok(None),
        },
        Some(_) => return Ok(None),
    };
    let Some(resolution) = ufuncs::resolve(shim, ufunc, kinds)? else { return Ok(None) };
    let shape = values.shape.shape.clone();
    let targets = match &target {
        None => None,
        Some((_, (own, by))) => {
            if !by.is_same(&mask) || rank(resolution.outputs[0].kind) > rank(own.native.kind) {
                return Ok(None);
            }
            let strides = fresh_strides(&shape, std::slice::from_ref(&own.shape.strides), own.native.item_bytes);
            Some(smallvec![ufuncs::fresh(py, shim, &shape, &strides, own.native)?])
        }
    };
    let map = Map { resolution: &resolution, name: resolution.name, inputs, mask: Some(mask.value(py)), shape, mood };
    let Some(results) = operators::attempt(&map, py, shim, targets)? else { return Ok(None) };
    let mut selections: SmallVec<[Bound<'py, PyAny>; 1]> = SmallVec::new();
    for result in &results {
        let Some(values) = Part::of(py, shim, result.get()) else { return Ok(None) };
        if let Some((out, _)) = &target
            && let Some(array) = deferred(out)
        {
            let selection = Selection::new(py, values, mask.clone_ref(py))?;
            array.get().selection.replace(py, Some(selection));
            return Ok(Some((*out).clone()));
        }
        selections.push(made(py, values, mask.clone_ref(py))?.into_any());
    }
    match selections.len() {
        1 => Ok(selections.pop()),
        _ => Ok(Some(pyo3::types::PyTuple::new(py, selections)?.into_any())),
    }
}

/// `array[key] = value` where the value is a selection by the same mask; `false` for anything else.
pub(crate) fn assign<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let (Some(selection), Some(key)) = (pending(value), deferred(key)) else { return Ok(false) };
    let mood = shim.origins.mood(py)?;
    let (Some(own), Some(by)) = (Part::of(py, shim, array.get()), Part::of(py, shim, key.get())) else {
        return Ok(false);
    };
    let (values, mask) = selection.get().parts(py);
    if mood == Mood::Host || !by.is_same(&mask) || own.shape.shape != mask.shape.shape || !own.shape.is_writeable() {
        return Ok(false);
    }
    if own.is_same(&values) && own.native.letter == values.native.letter {
        return Ok(true);
    }
    let view = legate_runtime::view::View {
        offset: own.shape.offset,
        strides: own.shape.strides.clone(),
        item_bytes: own.native.item_bytes,
    };
    let is_apart = |other: &Part| !own.storage.is(&other.storage);
    // Dropping an imaginary part warns, with a class of NumPy's own.
    let drops = values.native.kind == b'c' && own.native.kind != b'c';
    if view.overlaps_itself(&own.shape.shape) || drops || !is_apart(&values) || !is_apart(&mask) {
        return Ok(false);
    }
    let target = Target { array: array.clone(), shape: own.shape.clone(), native: own.native };
    let (from, shape) = (values.native, own.shape.shape.clone());
    ufuncs::copy(py, shim, values.value(py), from, target, shape, Some(mask.value(py)), mood)
}

/// Makes what a selection stands for, if an object is one.
pub(crate) fn settle_object(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<()> {
    match deferred(object) {
        Some(array) if array.get().is_selection(py) => settle(py, array.get()),
        Some(_) | None => Ok(()),
    }
}

/// Picks out the elements of an array that is a selection: from then on it is a plain one.
pub(crate) fn settle(py: Python<'_>, array: &DeferredArray) -> PyResult<()> {
    let Some(selection) = array.selection.get(py) else { return Ok(()) };
    let shim = crate::state::started(py);
    let (values, mask) = selection.get().parts(py);
    let (values, mask) = (values.array(py, shim)?, mask.array(py, shim)?);
    let picked = match mask::get(py, shim, &values, mask.as_any())? {
        Some(picked) => picked,
        None => {
            let mask = mask.get().alias(py, shim, Purpose::Read)?;
            values.get().alias(py, shim, Purpose::Read)?.get_item(mask)?
        }
    };
    let plain = match deferred(&picked) {
        Some(plain) => plain.clone(),
        None => host::over_memory(shim, &picked)?,
    };
    array.become_plain(py, plain.get());
    Ok(())
}

/// Gives selections that look at fields which are about to be written copies of what they look at.
pub(crate) fn before_writing(py: Python<'_>, shim: &Shim, operands: &[Operand]) -> PyResult<()> {
    for operand in operands.iter().filter(|operand| operand.privilege.writes() && operand.field.is_watched()) {
        keep(py, shim, &operand.field)?;
    }
    Ok(())
}

/// As [`before_writing`], for one field.
pub(crate) fn keep(py: Python<'_>, shim: &Shim, field: &Arc<Field>) -> PyResult<()> {
    if !field.is_watched() {
        return Ok(());
    }
    let live: SmallVec<[Arc<Mutex<Watched>>; 4]> = LIVE.lock().iter().filter_map(Weak::upgrade).collect();
    let mut masks: SmallVec<[(Part, Part); 2]> = SmallVec::new();
    for shared in live {
        let (values, mask) = {
            let parts = &shared.lock().0;
            (parts.values.clone_ref(py), parts.mask.clone_ref(py))
        };
        let (looks, depends) = (Arc::ptr_eq(values.field(), field), Arc::ptr_eq(mask.field(), field));
        if !looks && !depends {
            continue;
        }
        let kept_values = if looks { copied(py, shim, &values, Some(&mask))? } else { values };
        let kept_mask = match masks.iter().find(|(known, _)| known.is_same(&mask)) {
            Some((_, kept)) => kept.clone_ref(py),
            None if depends => {
                let kept = copied(py, shim, &mask, None)?;
                masks.push((mask, kept.clone_ref(py)));
                kept
            }
            None => mask,
        };
        let kept = Parts { values: kept_values, mask: kept_mask };
        kept.watch(true);
        let before = std::mem::replace(&mut *shared.lock(), Watched(kept));
        drop(before);
    }
    Ok(())
}

/// A copy of a part, where a mask holds.
fn copied(py: Python<'_>, shim: &Shim, part: &Part, mask: Option<&Part>) -> PyResult<Part> {
    let resolution = ufuncs::copying(part.native);
    let map = Map {
        resolution: &resolution,
        name: resolution.name,
        inputs: smallvec![part.value(py)],
        mask: mask.map(|mask| mask.value(py)),
        shape: part.shape.shape.clone(),
        mood: Mood::Silent,
    };
    let results = map.issue(py, shim, None)?;
    let result = results.and_then(|results| Part::of(py, shim, results.first()?.get()));
    result.ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("selected elements could not be copied"))
}
