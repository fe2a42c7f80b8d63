//! Boolean masks: elements picked by a mask of an array's leading axes, and assignment to them.
//!
//! Reading `a[mask]` needs the number of set elements, so it waits for a launch that counts (and for nothing that is only read by
//! later ones); the elements are then gathered as one launch, each task at the sum of the counts before it. Assigning what does
//! not depend on the number - one value, or a row for all - is an ordinary masked copy, which fuses and sends nothing; assigning
//! an array spreads it as one launch. On several shards each looks at its own rows alone: picked elements go from where they
//! were found to where the result lives, assigned ones from where they live to where they are wanted.
#![expect(unsafe_code, reason = "binds the gathering kernels to addresses")]

use std::ops::Range;

use legate_kernels::gather;
use legate_kernels::scatter;
use legate_runtime::transport::TransportError;
use legate_runtime::view::{Axes, View};
use legate_runtime::{Exchange, Operand, Privilege};
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::exchange::{at, intersection, issue, parts_of, rows, stretch};
use super::picks::{Picked, found, mask_rows};
use crate::array::{DeferredArray, Shape, deferred};
use crate::dtypes::Native;
use crate::events::Mood;
use crate::host;
use crate::numpy_api;
use crate::ops::create;
use crate::state::{Shim, started};
use crate::storage::{Purpose, Storage};
use crate::ufuncs::{self, Target};
use crate::values::{Value, ordered_strides};

/// A deferred mask and the array that it picks from.
struct Pair<'py> {
    array: Bound<'py, DeferredArray>,
    own: Shape,
    native: Native,
    mask: Bound<'py, DeferredArray>,
    picks: Shape,
}

impl<'py> Pair<'py> {
    /// The pair, where the mask's axes are the array's first ones.
    fn of(
        py: Python<'py>,
        shim: &Shim,
        array: &Bound<'py, DeferredArray>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Pair<'py>>> {
        let own = array.get().describe(py);
        let Some(native) = shim.dtypes.at(own.descr) else { return Ok(None) };
        let Some(mask) = mask_of(shim, key)? else { return Ok(None) };
        let picks = mask.get().describe(py);
        let is_leading = own.shape.starts_with(&picks.shape) && !picks.shape.is_empty();
        if !is_leading || own.size() == 0 || shim.dtypes.at(picks.descr).is_none_or(|native| native.letter != b'?') {
            return Ok(None);
        }
        Ok(Some(Pair { array: array.clone(), own, native, mask, picks }))
    }

    /// Lengths of the axes behind the mask's.
    fn inner(&self) -> &[usize] {
        &self.own.shape[self.picks.shape.len()..]
    }

    /// Bytes that one element of the mask picks.
    fn row_bytes(&self) -> usize {
        self.inner().iter().product::<usize>() * self.native.item_bytes
    }

    /// The domain of launches on it: elements of the mask, and elements that each picks.
    fn domain(&self) -> Axes<usize> {
        smallvec![self.picks.size(), self.inner().iter().product()]
    }

    /// Rows of an unbroken array with so many bytes for each element of the mask.
    fn rows(&self, storage: &Py<Storage>, offset: isize, privilege: Privilege) -> Operand {
        rows(storage, offset, self.row_bytes(), self.native.item_bytes, privilege)
    }

    /// The pair with an unbroken mask.
    fn with_unbroken_mask(mut self, py: Python<'py>, shim: &Shim) -> PyResult<Option<Pair<'py>>> {
        if !self.picks.is_c_contiguous() {
            let Some(copied) = create::copy(py, shim, &self.mask, "C", None)? else { return Ok(None) };
            self.picks = copied.get().describe(py);
            self.mask = copied;
        }
        Ok(Some(self))
    }
}

/// A mask as a deferred array; what the program does to a host array later does not count.
fn mask_of<'py>(shim: &Shim, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    if let Some(mask) = deferred(key) {
        return Ok(Some(mask.clone()));
    }
    if !numpy_api::is_exact_array(key) || numpy_api::geometry(key).size() == 0 {
        return Ok(None);
    }
    let is_mask = shim.dtypes.at(numpy_api::descr_address(key)).is_some_and(|native| native.letter == b'?');
    if is_mask { Ok(Some(host::over_memory(shim, &key.call_method1("copy", ("C",))?)?)) } else { Ok(None) }
}

/// `array[mask]`; `None` when it is for the host.
pub(crate) fn get<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(mut pair) = Pair::of(py, shim, array, key)? else { return Ok(None) };
    if !pair.own.is_c_contiguous() {
        if !pair.inner().is_empty() {
            return Ok(None);
        }
        let Some(copied) = create::copy(py, shim, array, "C", None)? else { return Ok(None) };
        (pair.own, pair.array) = (copied.get().describe(py), copied);
    }
    let Some(pair) = pair.with_unbroken_mask(py, shim)? else { return Ok(None) };
    let found = found(py, shim, &pair.mask, &pair.picks)?;
    let total = found.total();
    let mut shape: Axes<usize> = smallvec![total];
    shape.extend(pair.inner().iter().copied());
    if shape.contains(&0) {
        let descr = shim.dtypes.descr(py, pair.native.letter);
        return Ok(Some(shim.host(py, "empty")?.call1((shape.to_vec(), descr))?));
    }
    let axes: SmallVec<[usize; 4]> = (0..shape.len()).rev().collect();
    let strides = ordered_strides(&shape, &axes, pair.native.item_bytes);
    let target = ufuncs::fresh(py, shim, &shape, &strides, pair.native)?;
    let bytes = pair.row_bytes();
    let operands = smallvec![
        pair.rows(&pair.array.get().storage(py), pair.own.offset, Privilege::Read),
        mask_rows(py, &pair.mask, &pair.picks),
        stretch(&target.array.get().storage(py), 0, total * bytes, Privilege::Write),
    ];
    let (offset, mask_offset) = (pair.own.offset, pair.picks.offset);
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let mask = addresses[1].wrapping_add_signed(mask_offset);
        let picked = found.here(mask, exchange)?;
        let source = addresses[0].wrapping_add_signed(offset);
        exchange.workers().each(picked.stretches(), &|stretch| {
            let (rows, before) = picked.stretch(stretch);
            // SAFETY: the stretch lies inside the unbroken mask and array; the output has room for all set elements, and
            // stretches write disjoint parts of it, each as many elements as were counted.
            unsafe {
                gather::compress(
                    at(mask + rows.start, 1),
                    at(source + rows.start * bytes, bytes),
                    rows.len(),
                    at(addresses[2] + before * bytes, bytes),
                    bytes,
                );
            }
        });
        picked.bring_home(exchange, bytes)
    };
    issue(py, shim, "compress", (2, bytes), pair.domain(), operands, task)?;
    settled(py, shim, target).map(Some)
}

/// The places of the set elements of a mask in its row-major order, as `int64`; `None` when it is for the host.
#[pyfunction]
pub(crate) fn positions<'py>(mask: &Bound<'py, DeferredArray>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = mask.py();
    let shim = started(py);
    let Some(pair) = Pair::of(py, shim, mask, mask.as_any())? else { return Ok(None) };
    let Some(pair) = pair.with_unbroken_mask(py, shim)? else { return Ok(None) };
    let Some(native) = shim.dtypes.at(shim.dtypes.descr(py, b'l').as_ptr() as usize) else { return Ok(None) };
    let found = found(py, shim, &pair.mask, &pair.picks)?;
    let total = found.total();
    if total == 0 {
        return Ok(Some(shim.host(py, "empty")?.call1((0, shim.dtypes.descr(py, b'l')))?));
    }
    let bytes = native.item_bytes;
    let target = ufuncs::fresh(py, shim, &[total], &[bytes as isize], native)?;
    let operands = smallvec![
        mask_rows(py, &pair.mask, &pair.picks),
        stretch(&target.array.get().storage(py), 0, total * bytes, Privilege::Write),
    ];
    let offset = pair.picks.offset;
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let mask = addresses[0].wrapping_add_signed(offset);
        let picked = found.here(mask, exchange)?;
        exchange.workers().each(picked.stretches(), &|stretch| {
            let (rows, before) = picked.stretch(stretch);
            let (mask, output) = ((mask + rows.start) as *const u8, (addresses[1] + before * bytes) as *mut u8);
            // SAFETY: as in `get`.
            unsafe { gather::positions(mask, rows.len(), rows.start as i64, output) };
        });
        picked.bring_home(exchange, bytes)
    };
    issue(py, shim, "positions", (1, bytes), pair.domain(), operands, task)?;
    settled(py, shim, target).map(Some)
}

/// A result that is a host array where it is small.
pub(super) fn settled<'py>(py: Python<'py>, shim: &Shim, target: Target<'py>) -> PyResult<Bound<'py, PyAny>> {
    if target.shape.size() < shim.settings.min_chunk {
        return target.array.get().alias(py, shim, Purpose::Read)?.call_method0("copy");
    }
    Ok(target.array.into_any())
}

/// `array[mask] = value`; `false` when it is for the host.
pub(crate) fn set<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    key: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<bool> {
    let Some(pair) = Pair::of(py, shim, array, key)? else { return Ok(false) };
    let mood = shim.origins.mood(py)?;
    let is_same = array.get().storage(py).is(pair.mask.get().storage(py));
    let agrees = pair.own.offset == pair.picks.offset && pair.own.strides == pair.picks.strides;
    if mood == Mood::Host || !pair.own.is_writeable() || (is_same && !agrees) {
        return Ok(false);
    }
    let own = View { offset: pair.own.offset, strides: pair.own.strides.clone(), item_bytes: pair.native.item_bytes };
    if own.overlaps_itself(&pair.own.shape) {
        return Ok(false);
    }
    let Some((taken, from)) = Value::assigned(shim, value, pair.native)? else { return Ok(false) };
    let lengths = taken.shape();
    let axes = pair.inner().len();
    if lengths.len() <= axes
        && lengths.iter().rev().zip(pair.inner().iter().rev()).all(|(one, own)| *one == 1 || one == own)
    {
        return pick_one(py, shim, &pair, taken, from, mood);
    }
    let mut wanted: Axes<usize> = smallvec![lengths[0]];
    wanted.extend(pair.inner().iter().copied());
    if wanted != lengths || is_same {
        return Ok(false);
    }
    let Some(pair) = pair.with_unbroken_mask(py, shim)? else { return Ok(false) };
    spread(py, shim, pair, taken, from, mood)
}

/// Copies a value that is the same for every element of the mask.
fn pick_one<'py>(
    py: Python<'py>,
    shim: &Shim,
    pair: &Pair<'py>,
    value: Value<'py>,
    from: Native,
    mood: Mood,
) -> PyResult<bool> {
    let target = Target { array: pair.array.clone(), shape: pair.own.clone(), native: pair.native };
    let Some((_, mask)) = Value::of_deferred(py, shim, &pair.mask) else { return Ok(false) };
    let Value::Array { storage, mut shape, native, lent } = mask else { return Ok(false) };
    shape.shape.extend(pair.inner().iter().map(|_| 1));
    shape.strides.extend(pair.inner().iter().map(|_| 0));
    let mask = Value::Array { storage, shape, native, lent };
    ufuncs::copy(py, shim, value, from, target, pair.own.shape.clone(), Some(mask), mood)
}

/// Spreads an array over the set elements of an unbroken mask.
fn spread<'py>(
    py: Python<'py>,
    shim: &Shim,
    pair: Pair<'py>,
    value: Value<'py>,
    from: Native,
    mood: Mood,
) -> PyResult<bool> {
    let Value::Array { storage, shape, lent, .. } = &value else { return Ok(false) };
    let (mut storage, mut shape, mut lent) = (storage.clone_ref(py), shape.clone(), *lent);
    let found = found(py, shim, &pair.mask, &pair.picks)?;
    let total = found.total();
    if total != shape.shape[0] {
        return Ok(false);
    }
    let rows_first = |lengths: &[usize]| (0..lengths.len()).rev().collect::<SmallVec<[usize; 4]>>();
    if from.letter != pair.native.letter || !shape.is_c_contiguous() || storage.is(pair.array.get().storage(py)) {
        let strides = ordered_strides(&shape.shape, &rows_first(&shape.shape), pair.native.item_bytes);
        let copied = ufuncs::fresh(py, shim, &shape.shape, &strides, pair.native)?;
        (storage, shape, lent) = (copied.array.get().storage(py), copied.shape.clone(), false);
        let lengths = shape.shape.clone();
        if !ufuncs::copy(py, shim, value, from, copied, lengths, None, mood)? {
            return Ok(false);
        }
    }
    let unbroken = pair.own.is_c_contiguous();
    let target = if unbroken {
        Target { array: pair.array.clone(), shape: pair.own.clone(), native: pair.native }
    } else {
        // The values go to their places in an array of their own first.
        let strides = ordered_strides(&pair.own.shape, &rows_first(&pair.own.shape), pair.native.item_bytes);
        ufuncs::fresh(py, shim, &pair.own.shape, &strides, pair.native)?
    };
    let bytes = pair.row_bytes();
    let (offset, mask_offset, start) = (target.shape.offset, pair.picks.offset, shape.offset);
    let operands = smallvec![
        pair.rows(&target.array.get().storage(py), offset, Privilege::ReadWrite),
        mask_rows(py, &pair.mask, &pair.picks),
        stretch(&storage, start, total * bytes, Privilege::Read),
    ];
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let mask = addresses[1].wrapping_add_signed(mask_offset);
        let picked = found.here(mask, exchange)?;
        fetch(&picked, exchange, start as usize, bytes)?;
        let (own, values) = (addresses[0].wrapping_add_signed(offset), addresses[2].wrapping_add_signed(start));
        exchange.workers().each(picked.stretches(), &|stretch| {
            let (rows, before) = picked.stretch(stretch);
            // SAFETY: as in `get`; stretches write disjoint parts of the array, and the values are another field's.
            unsafe {
                scatter::expand(
                    at(mask + rows.start, 1),
                    at(own + rows.start * bytes, bytes),
                    rows.len(),
                    at(values + before * bytes, bytes),
                    bytes,
                );
            }
        });
        Ok(())
    };
    let sequence = issue(py, shim, "expand", (2, 0), pair.domain(), operands, task)?;
    if lent {
        shim.wait(py, sequence)?;
    }
    if unbroken {
        return Ok(true);
    }
    let Some((_, spread)) = Value::of_deferred(py, shim, &target.array) else { return Ok(false) };
    let native = pair.native;
    pick_one(py, shim, &pair, spread, native, mood)
}

/// Receives the values of elements of `bytes` bytes, the first at byte `start`, that are wanted here, and sends those that live here.
fn fetch(picked: &Picked, exchange: &Exchange<'_>, start: usize, bytes: usize) -> Result<(), TransportError> {
    if !exchange.is_spread(0) {
        return Ok(());
    }
    let scaled = |places: Range<usize>| start + places.start * bytes..start + places.end * bytes;
    let wanted = scaled(picked.places(exchange.shard()));
    if !exchange.is_divided() {
        return exchange.gather(0, &wanted);
    }
    let receives = parts_of(&wanted, exchange);
    let own = exchange.own(0);
    let place = |byte: usize| byte.saturating_sub(start) / bytes;
    let others = picked.shards_of(&(place(own.start)..place(own.end + bytes - 1)));
    let sends: Vec<_> = others
        .filter(|shard| *shard != exchange.shard())
        .filter_map(|shard| Some((shard, intersection(&own, &scaled(picked.places(shard)))?)))
        .collect();
    exchange.pass(0, &sends, &receives)
}
