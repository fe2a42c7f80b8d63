//! Rows of an array by an index array: reading them (`taken`) and writing them (`put`).
//!
//! On several shards each goes through its part of the index array. Rows that live elsewhere are asked of their owners, in
//! chunks: indices go out, rows come back; written rows go to their owners, of several for one place the last in the index
//! array's order stays. A short index array that every shard has sends nothing of itself: a write is done by the owners, and of a
//! read each shard contributes what lives there.
#![expect(unsafe_code, reason = "copies rows between fields and messages")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr;

use legate_kernels::{gather, scatter};
use legate_runtime::partition::Partition;
use legate_runtime::transport::TransportError;
use legate_runtime::view::Axes;
use legate_runtime::{Exchange, Operand, Privilege};
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::exchange::{at, intersection, issue, rows, stretch};
use super::indices::{INDEX_BYTES, Indices};
use super::mask::settled;
use crate::array::{DeferredArray, deferred};
use crate::dtypes::Native;
use crate::events::Mood;
use crate::host;
use crate::ops::create;
use crate::state::{Shim, shim, started};
use crate::storage::Storage;
use crate::ufuncs::{self, Target};
use crate::values::{Value, broadcasts_to, ordered_strides};

/// Bytes that a shard asks for or sends at a time, of all others together.
const CHUNK_BYTES: usize = 1 << 26;
/// Bytes that are always worth a message.
const LEAST_BYTES: usize = 1 << 16;
/// Indices that one task goes through.
const TASK_ELEMENTS: usize = 1 << 15;

/// Rows of an array along its first axis: where they are in its field.
#[derive(Clone, Copy)]
struct Rows {
    /// Byte of the first.
    start: usize,
    /// Bytes from one to the next.
    stride: usize,
    length: usize,
    /// Bytes of one, unbroken.
    bytes: usize,
}

impl Rows {
    /// The bytes of the row that an index names.
    fn range(&self, index: i64) -> Range<usize> {
        // Indices were checked before.
        let start = self.start + gather::place(index, self.length).unwrap_or(0) * self.stride;
        start..start + self.bytes
    }

    /// An operand with all of them.
    fn operand(&self, storage: &Py<Storage>, privilege: Privilege) -> Operand {
        stretch(storage, self.start as isize, (self.length - 1) * self.stride + self.bytes, privilege)
    }
}

/// The rows of an array, where each is unbroken and they do not overlap.
fn rows_of(py: Python<'_>, shim: &Shim, array: &Bound<'_, DeferredArray>) -> Option<(Rows, Native)> {
    let own = array.get().describe(py);
    let native = shim.dtypes.at(own.descr)?;
    let (length, inner) = own.shape.split_first()?;
    if own.size() == 0 {
        return None;
    }
    let order: SmallVec<[usize; 4]> = (0..inner.len()).rev().collect();
    let unbroken = ordered_strides(inner, &order, native.item_bytes);
    let fits =
        inner.iter().zip(&own.strides[1..]).zip(&unbroken).all(|((length, own), wanted)| *length == 1 || own == wanted);
    let bytes = inner.iter().product::<usize>() * native.item_bytes;
    let stride = if *length == 1 { bytes as isize } else { own.strides[0] };
    (fits && stride >= bytes as isize)
        .then_some((Rows { start: own.offset as usize, stride: stride as usize, length: *length, bytes }, native))
}

/// The index at a place of an unbroken index array.
fn index_at(indices: usize, place: usize) -> i64 {
    // SAFETY: callers pass the address of an index array that is done, and a place in it.
    unsafe { (indices as *const i64).add(place).read_unaligned() }
}

/// Whether these are indices into an axis of `length`, the array's axis number `axis`. Raises IndexError where one is out of range.
#[pyfunction]
pub(crate) fn check_indices(indices: &Bound<'_, PyAny>, length: usize, axis: usize) -> PyResult<bool> {
    let py = indices.py();
    Ok(Indices::of(py, shim(py)?, indices, length, axis)?.is_some())
}

/// `array[indices]` along the first axis; `None` when it is for the host. Raises IndexError, naming the axis as number `axis`.
#[pyfunction]
#[pyo3(signature = (array, indices, axis = 0))]
pub(crate) fn taken<'py>(
    array: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    axis: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = array.py();
    let shim = shim(py)?;
    let mut array = match deferred(array) {
        Some(array) => array.clone(),
        None => host::over_memory(shim, &array.call_method1("copy", ("C",))?)?,
    };
    let own = array.get().describe(py);
    let (source, native) = match rows_of(py, shim, &array) {
        Some(found) => found,
        // Mirrored and parted arrays are put in order first; where axes are turned, the order of the result is NumPy's to choose.
        None if own.size() > 0 && own.strides.is_sorted_by(|one, next| one.unsigned_abs() >= next.unsigned_abs()) => {
            let Some(copied) = create::copy(py, shim, &array, "C", None)? else { return Ok(None) };
            array = copied;
            let Some(found) = rows_of(py, shim, &array) else { return Ok(None) };
            found
        }
        None => return Ok(None),
    };
    let Some(indices) = Indices::of(py, shim, indices, source.length, axis)? else { return Ok(None) };
    let mut shape: Axes<usize> = indices.lengths().clone();
    shape.extend(own.shape.iter().skip(1).copied());
    if shape.is_empty() {
        return Ok(None);
    }
    let order: SmallVec<[usize; 4]> = (0..shape.len()).rev().collect();
    let target = ufuncs::fresh(py, shim, &shape, &ordered_strides(&shape, &order, native.item_bytes), native)?;
    let domain: Axes<usize> = smallvec![indices.size(), source.bytes / native.item_bytes];
    let operands = smallvec![
        rows(&target.array.get().storage(py), 0, source.bytes, native.item_bytes, Privilege::Write),
        indices.operand(),
        source.operand(&array.get().storage(py), Privilege::Read),
    ];
    let offset = indices.offset();
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let taking =
            Taking { source, from: addresses[2], indices: addresses[1].wrapping_add_signed(offset), to: addresses[0] };
        if exchange.is_spread(0) && !exchange.keeps_whole(0, source.start, source.stride as isize, source.bytes) {
            exchange.gather(0, &(source.start..source.start + (source.length - 1) * source.stride + source.bytes))?;
            taking.here(exchange);
            return Ok(());
        }
        match (exchange.is_spread(0), exchange.is_divided()) {
            (false, _) => taking.here(exchange),
            (true, false) => taking.of_each(exchange)?,
            (true, true) => taking.fetch(exchange)?,
        }
        Ok(())
    };
    issue(py, shim, "take", (2, 0), domain, operands, task)?;
    settled(py, shim, target).map(Some)
}

/// Addresses of what is read by index: the field of the rows, the indices, and the result.
struct Taking {
    source: Rows,
    from: usize,
    indices: usize,
    to: usize,
}

impl Taking {
    /// Copies rows from memory here.
    fn here(&self, exchange: &Exchange<'_>) {
        let (own, bytes) = (exchange.rows(), self.source.bytes);
        let partition = Partition::natural(own.len(), own.len().div_ceil(TASK_ELEMENTS).max(1), 1);
        exchange.workers().each(partition.colours, &|colour| {
            let tile = partition.tile(colour);
            let first = own.start + tile.start;
            // SAFETY: the rows of the indices and of the result are done or this task's own, indices are in range, and the
            // result is another field's. They were checked, so that no index is refused.
            let _ = unsafe {
                gather::take(
                    at(self.from + self.source.start, self.source.stride),
                    self.source.length,
                    at(self.indices + first * INDEX_BYTES, INDEX_BYTES),
                    tile.len(),
                    at(self.to + first * bytes, bytes),
                    bytes,
                )
            };
        });
    }

    /// Copies what lives here, on every shard for all indices, and puts the shards' rows together.
    fn of_each(&self, exchange: &Exchange<'_>) -> Result<(), TransportError> {
        let (own, bytes, count) = (exchange.own(0), self.source.bytes, exchange.rows().len());
        let mut result = vec![0u8; count * bytes];
        for (place, row) in result.chunks_mut(bytes).enumerate() {
            let range = self.source.range(index_at(self.indices, place));
            if own.start <= range.start && range.end <= own.end {
                // SAFETY: the row is inside its field, and lives here.
                row.copy_from_slice(unsafe {
                    std::slice::from_raw_parts((self.from + range.start) as *const u8, bytes)
                });
            }
        }
        let size = result.len();
        let result = exchange
            .merged(result, size, |lower, upper| lower.iter().zip(upper).map(|(one, other)| one | other).collect())?;
        // SAFETY: the result has as many rows, all this shard's.
        unsafe { ptr::copy_nonoverlapping(result.as_ptr(), self.to as *mut u8, size) };
        Ok(())
    }

    /// Copies this shard's rows of the result from wherever they live.
    fn fetch(&self, exchange: &Exchange<'_>) -> Result<(), TransportError> {
        let (own, bytes) = (exchange.own(0), self.source.bytes);
        for part in chunks(exchange, bytes) {
            let mut asked: BTreeMap<usize, (Vec<u8>, Vec<usize>)> = BTreeMap::new();
            for place in part {
                let range = self.source.range(index_at(self.indices, place));
                if own.start <= range.start && range.end <= own.end {
                    // SAFETY: the row is inside its field and lives here; the result's row is this shard's.
                    unsafe { copy(self.from + range.start, self.to + place * bytes, bytes) };
                    continue;
                }
                let owner = exchange.owners(0, &(range.start..range.start + 1)).start;
                let (request, places) = asked.entry(owner).or_default();
                request.extend_from_slice(&range.start.to_ne_bytes());
                places.push(place);
            }
            let counts =
                exchange.dealt(&counts(exchange, asked.iter().map(|(to, (_, places))| (*to, places.len()))))?;
            let requests = asked.iter().map(|(to, (request, _))| (*to, request.clone())).collect();
            let arrived = exchange.swap(&requests, &sizes(&counts, INDEX_BYTES))?;
            let mut replies = BTreeMap::new();
            for (from, request) in &arrived {
                let mut reply = Vec::with_capacity(request.len() / INDEX_BYTES * bytes);
                for start in request.chunks_exact(INDEX_BYTES).map(number_in) {
                    let start = start.min(own.end.saturating_sub(bytes)).max(own.start);
                    // SAFETY: the row is inside its field, at what lives here.
                    reply.extend_from_slice(unsafe {
                        std::slice::from_raw_parts((self.from + start) as *const u8, bytes)
                    });
                }
                replies.insert(*from, reply);
            }
            let expected = asked.iter().map(|(to, (_, places))| (*to, places.len() * bytes)).collect();
            let rows = exchange.swap(&replies, &expected)?;
            for (owner, (_, places)) in &asked {
                for (place, row) in places.iter().zip(rows[owner].chunks_exact(bytes)) {
                    // SAFETY: the result's row is this shard's.
                    unsafe { copy(row.as_ptr() as usize, self.to + place * bytes, bytes) };
                }
            }
        }
        Ok(())
    }
}

/// The parts of this shard's rows that are gone through one after the other: as many on every shard.
fn chunks(exchange: &Exchange<'_>, bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let own = exchange.rows();
    let length = ((CHUNK_BYTES / exchange.shards()).max(LEAST_BYTES) / (INDEX_BYTES + bytes)).max(1);
    (0..exchange.longest().div_ceil(length)).map(move |round| {
        let start = (own.start + round * length).min(own.end);
        start..(start + length).min(own.end)
    })
}

/// Numbers by shard as a list for all shards.
fn counts(exchange: &Exchange<'_>, numbers: impl Iterator<Item = (usize, usize)>) -> Vec<u64> {
    let mut counts = vec![0; exchange.shards()];
    for (shard, number) in numbers {
        counts[shard] = number as u64;
    }
    counts
}

/// Bytes that arrive from each shard that sends elements of `bytes` bytes.
fn sizes(counts: &[u64], bytes: usize) -> BTreeMap<usize, usize> {
    let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    some.map(|(shard, count)| (shard, *count as usize * bytes)).collect()
}

fn number_in(bytes: &[u8]) -> usize {
    let mut number = [0; INDEX_BYTES];
    number.copy_from_slice(bytes);
    usize::from_ne_bytes(number)
}

/// Copies bytes.
///
/// # Safety
/// Both stretches must be there, and not overlap.
unsafe fn copy(from: usize, to: usize, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            4 => (to as *mut u32).write_unaligned((from as *const u32).read_unaligned()),
            8 => (to as *mut u64).write_unaligned((from as *const u64).read_unaligned()),
            _ => ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes),
        }
    }
}

/// `array[indices] = value` along the first axis; `false` when it is for the host. Raises IndexError as [`taken`].
#[pyfunction]
#[pyo3(signature = (array, indices, value, axis = 0))]
pub(crate) fn put<'py>(
    array: &Bound<'py, DeferredArray>,
    indices: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    axis: usize,
) -> PyResult<bool> {
    let py = array.py();
    let shim = started(py);
    let own = array.get().describe(py);
    let Some((target, native)) = rows_of(py, shim, array) else { return Ok(false) };
    let mood = shim.origins.mood(py)?;
    let is_own = deferred(indices).is_some_and(|indices| array.get().storage(py).is(indices.get().storage(py)));
    if mood == Mood::Host || !own.is_writeable() || is_own {
        return Ok(false);
    }
    let Some((value, from)) = Value::assigned(shim, value, native)? else { return Ok(false) };
    let Some(indices) = Indices::of(py, shim, indices, target.length, axis)? else { return Ok(false) };
    let mut shape: Axes<usize> = indices.lengths().clone();
    shape.extend(own.shape.iter().skip(1).copied());
    let lengths = value.shape();
    if shape.is_empty() || !broadcasts_to(&lengths, &shape) {
        return Ok(false);
    }
    // The values as they are written: of the array's type, one after the other.
    let (storage, offset) = match &value {
        Value::Array { storage, shape: given, lent: false, .. }
            if from.letter == native.letter
                && given.shape == shape
                && given.is_c_contiguous()
                && !storage.is(array.get().storage(py)) =>
        {
            (storage.clone_ref(py), given.offset)
        }
        Value::Weak(_) | Value::Constant { .. } | Value::Array { .. } => {
            let order: SmallVec<[usize; 4]> = (0..shape.len()).rev().collect();
            let copied = ufuncs::fresh(py, shim, &shape, &ordered_strides(&shape, &order, native.item_bytes), native)?;
            let storage = copied.array.get().storage(py);
            let copied = Target { array: copied.array.clone(), shape: copied.shape, native };
            if !ufuncs::copy(py, shim, value, from, copied, shape.clone(), None, mood)? {
                return Ok(false);
            }
            (storage, 0)
        }
    };
    let domain: Axes<usize> = smallvec![indices.size(), target.bytes / native.item_bytes];
    let operands = smallvec![
        indices.operand(),
        rows(&storage, offset, target.bytes, native.item_bytes, Privilege::Read),
        target.operand(&array.get().storage(py), Privilege::ReadWrite),
    ];
    let first = indices.offset();
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let putting = Putting {
            target,
            to: addresses[2],
            indices: addresses[0].wrapping_add_signed(first),
            from: addresses[1].wrapping_add_signed(offset),
        };
        match (exchange.is_spread(0), exchange.is_divided()) {
            (false, _) => putting.everywhere(exchange),
            (true, false) => putting.at_owners(exchange),
            (true, true) => putting.to_afar(exchange)?,
        }
        Ok(())
    };
    issue(py, shim, "put", (2, target.stride), domain, operands, task)?;
    Ok(true)
}

/// Addresses of what is written by index: the field of the rows, the indices, and the values.
struct Putting {
    target: Rows,
    to: usize,
    indices: usize,
    from: usize,
}

impl Putting {
    /// Writes all rows, in order.
    fn everywhere(&self, exchange: &Exchange<'_>) {
        let (bytes, count) = (self.target.bytes, exchange.rows().len());
        let target = at(self.to + self.target.start, self.target.stride);
        let (indices, values) = (at(self.indices, INDEX_BYTES), at(self.from, bytes));
        // SAFETY: the operands are there, the indices in range, and the values another field's.
        unsafe { scatter::put(target, self.target.length, indices, values, count, bytes) };
    }

    /// Writes what lives here, on every shard for all indices.
    fn at_owners(&self, exchange: &Exchange<'_>) {
        let (own, bytes) = (exchange.own(0), self.target.bytes);
        for place in exchange.rows() {
            let range = self.target.range(index_at(self.indices, place));
            // SAFETY: the value is there.
            unsafe { self.write(&range, self.from + place * bytes, &own) };
        }
    }

    /// Writes the part of a row that lives here from its value at an address.
    ///
    /// # Safety
    /// The value must be there.
    unsafe fn write(&self, range: &Range<usize>, value: usize, own: &Range<usize>) {
        if let Some(part) = intersection(range, own) {
            // SAFETY: the part is inside the field, at what lives here; the value is the caller's.
            unsafe { copy(value + part.start - range.start, self.to + part.start, part.len()) };
        }
    }

    /// Sends this shard's values to where they live, and writes those of all shards that live here.
    fn to_afar(&self, exchange: &Exchange<'_>) -> Result<(), TransportError> {
        let (own, bytes, shard) = (exchange.own(0), self.target.bytes, exchange.shard());
        let record = INDEX_BYTES + bytes;
        let chunks: Vec<_> = chunks(exchange, bytes).collect();
        // The shard that wrote each row here last: a later one's value stays, whenever it arrives.
        let row = |byte: usize| byte.saturating_sub(self.target.start) / self.target.stride;
        let first = row(own.start);
        let mut writers = vec![0u32; if chunks.len() > 1 { row(own.end) - first + 1 } else { 0 }];
        for part in chunks {
            let mut sent: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
            for place in part {
                let range = self.target.range(index_at(self.indices, place));
                for owner in exchange.owners(0, &range) {
                    let message = sent.entry(owner).or_default();
                    message.extend_from_slice(&range.start.to_ne_bytes());
                    // SAFETY: the value is this shard's row of an operand that is done.
                    let value = unsafe { std::slice::from_raw_parts((self.from + place * bytes) as *const u8, bytes) };
                    message.extend_from_slice(value);
                }
            }
            let mine = sent.remove(&shard).unwrap_or_default();
            let counts = exchange.dealt(&counts(exchange, sent.iter().map(|(to, list)| (*to, list.len() / record))))?;
            let mut arrived = exchange.swap(&sent, &sizes(&counts, record))?;
            arrived.insert(shard, mine);
            for (writer, message) in arrived {
                for entry in message.chunks_exact(record) {
                    let (start, value) = entry.split_at(INDEX_BYTES);
                    let start = number_in(start);
                    if let Some(last) = writers.get_mut(row(start).wrapping_sub(first)) {
                        if *last > writer as u32 {
                            continue;
                        }
                        *last = writer as u32;
                    }
                    // SAFETY: the value is as long as a row.
                    unsafe { self.write(&(start..start + bytes), value.as_ptr() as usize, &own) };
                }
            }
        }
        Ok(())
    }
}
