//! Sorting on several shards.
//!
//! Each row of an array of several axes is sorted where it lives. A flat array is sorted in parts, each shard its own; then the
//! places at which the shards' parts of the result begin are looked for in all parts at once, by halving the interval of keys,
//! every shard gets what is to live there, and merges it. Where different values are equal (zeros with and without a sign, several
//! kinds of NaN) the whole goes to every shard, and NumPy's sort over it has the last word. Sorts go on without the GIL.
#![expect(unsafe_code, reason = "stretches of a field's memory as slices")]

use std::ffi::c_void;

use legate_kernels::program::Number;
use legate_kernels::sort::{self, Room, Sortable, Survey, Word};
use legate_runtime::partition::Partition;
use legate_runtime::transport::{Receive, Send, TransportError};
use legate_runtime::{Exchange, Privilege};
use parking_lot::Mutex;
use pyo3::prelude::*;
use smallvec::smallvec;

use super::merges::{Memory, merge_all};
use crate::array::{DeferredArray, Shape};
use crate::memory;
use crate::numpy_api::{SortFunction, sort_of};
use crate::ops::exchange::{issue, rows, stretch};
use crate::state::Shim;

/// Elements from which a row, or part of a flat array, is worth a task of its own.
const TASK_ELEMENTS: usize = 1 << 14;

/// What sorts a shard's rows of a flat array, which begins at a byte of its field.
type Sorter = fn(Memory, usize, Room, SortFunction, &Exchange<'_>) -> Result<(), TransportError>;

/// `array.sort()` along the last axis of an unbroken array; `false` when it is for the host.
pub(super) fn in_place<'py>(
    py: Python<'py>,
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    shape: &Shape,
) -> PyResult<bool> {
    let Some(native) = shim.dtypes.at(shape.descr) else { return Ok(false) };
    let Some(sort) = sort_of(&array.get().descr(py)) else { return Ok(false) };
    let Some((&length, outer)) = shape.shape.split_last() else { return Ok(false) };
    let sorter: Option<Sorter> = match native.number {
        Some(Number::I8) => Some(flat::<i8>),
        Some(Number::U8) => Some(flat::<u8>),
        Some(Number::I16) => Some(flat::<i16>),
        Some(Number::U16) => Some(flat::<u16>),
        Some(Number::I32) => Some(flat::<i32>),
        Some(Number::U32) => Some(flat::<u32>),
        Some(Number::I64) => Some(flat::<i64>),
        Some(Number::U64) => Some(flat::<u64>),
        Some(Number::F32) => Some(flat::<f32>),
        Some(Number::F64) => Some(flat::<f64>),
        Some(Number::Bool | Number::F16 | Number::C64 | Number::C128) | None => None,
    };
    let Some(sorter) = sorter.filter(|_| shape.size() >= shim.settings.min_chunk.max(2)) else { return Ok(false) };
    let storage = array.get().storage(py);
    let (offset, item, outer) = (shape.offset, native.item_bytes, outer.iter().product::<usize>());
    if outer > 1 {
        let operands = smallvec![rows(&storage, offset, length * item, item, Privilege::ReadWrite)];
        let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
            let (own, first) = (exchange.rows(), addresses[0].wrapping_add_signed(offset));
            let at_once = (TASK_ELEMENTS / length.max(1)).max(1);
            exchange.workers().each(own.len().div_ceil(at_once), &|task| {
                for row in own.clone().skip(task * at_once).take(at_once) {
                    run(sort, first + row * length * item, length);
                }
            });
            Ok(())
        };
        issue(py, shim, "sort", (1, item), smallvec![outer, length], operands, task)?;
        return Ok(true);
    }
    let operands = smallvec![
        rows(&storage, offset, item, item, Privilege::ReadWrite),
        stretch(&storage, offset, length * item, Privilege::Read),
    ];
    // Of which each shard touches its part.
    let bytes = shim.dtypes.descr(py, b'B');
    let words = memory::field(py, shim, length * item, &[length, item], bytes)?;
    let buckets = memory::field(py, shim, length, &[length], bytes)?;
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let values = Memory { address: addresses[0].wrapping_add_signed(offset), length };
        let room = Room { words: words.field().materialize(), buckets: buckets.field().materialize() };
        sorter(values, offset as usize, room, sort, exchange)
    };
    issue(py, shim, "sort", (1, item), smallvec![length, 1], operands, task)?;
    Ok(true)
}

/// Sorts this shard's rows of an array of one axis, at byte `offset` of its field, in a room for the whole array.
fn flat<T: Sortable>(
    values: Memory,
    offset: usize,
    room: Room,
    sort: SortFunction,
    exchange: &Exchange<'_>,
) -> Result<(), TransportError> {
    let (rows, size) = (exchange.rows(), size_of::<T>());
    let own = Memory { address: values.address + rows.start * size, length: rows.len() };
    let survey = survey::<T>(own, exchange)?;
    if !survey.is_plain() {
        exchange.gather(0, &(offset..offset + values.length * size))?;
        run(sort, values.address, values.length);
        return Ok(());
    }
    let room = Room { words: room.words + rows.start * size, buckets: room.buckets + rows.start };
    let workers = exchange.workers();
    let each = |parts: usize, part: &(dyn Fn(usize) + Sync)| workers.each(parts, part);
    let nan = T::of_bits(survey.nan_bits());
    // SAFETY: this shard's numbers, and room of its own; words are as long as numbers where these are not counted.
    unsafe { sort::sort_values::<T>(&each, workers.threads(), (own.address, own.length), room, nan) };
    if !exchange.is_divided() {
        return Ok(());
    }
    let room = Memory { address: room.words, length: own.length };
    let cuts = cuts::<T>(own, exchange)?;
    let counts: Vec<u64> = cuts.windows(2).map(|ends| (ends[1] - ends[0]) as u64).collect();
    let mut bounds = vec![0];
    for count in exchange.dealt(&counts)? {
        bounds.push(bounds[bounds.len() - 1] + count as usize);
    }
    assert_eq!(bounds[bounds.len() - 1], own.length, "as much arrives as there is room for");
    trade::<T>(exchange, own, room, &cuts, &bounds)?;
    merge_all::<T>(exchange.workers(), room, own, &bounds, own);
    Ok(())
}

/// Calls a sort function of NumPy's.
fn run(sort: SortFunction, address: usize, length: usize) {
    // SAFETY: so many numbers of the function's dtype, which only the caller touches. It can only fail for lack of memory, which
    // NumPy's default sort of numbers does not ask for.
    unsafe { sort(address as *mut c_void, length as isize, std::ptr::null_mut()) };
}

/// What is peculiar among all shards' numbers.
fn survey<T: Sortable>(own: Memory, exchange: &Exchange<'_>) -> Result<Survey, TransportError> {
    let found = Mutex::new(Survey::NOTHING);
    let parts = Partition::natural(own.length, exchange.workers().threads(), TASK_ELEMENTS);
    exchange.workers().each(parts.colours, &|part| {
        let part = parts.tile(part);
        // SAFETY: aligned memory of T, which this launch has to itself.
        let numbers = unsafe { own.stretch::<T>(part.start, part.end) };
        let seen = Survey::of(numbers.iter().copied());
        let mut all = found.lock();
        *all = all.and(seen);
    });
    let block = found.into_inner().numbers().map(u64::to_ne_bytes).concat();
    let size = block.len();
    let merged = exchange
        .merged(block, size, |one, other| told(one).and(told(other)).numbers().map(u64::to_ne_bytes).concat())?;
    Ok(told(&merged))
}

/// The survey that a shard told as bytes.
fn told(bytes: &[u8]) -> Survey {
    let mut numbers = [0; 4];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(size_of::<u64>())) {
        *number = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    Survey::of_numbers(numbers)
}

/// Where, in this shard's sorted part, what is to live at each shard begins; and its end. Equal numbers go by shards.
fn cuts<T: Sortable>(own: Memory, exchange: &Exchange<'_>) -> Result<Vec<usize>, TransportError> {
    // SAFETY: see `flat`; nobody writes it meanwhile.
    let own = unsafe { own.stretch::<T>(0, own.length) };
    let shards = exchange.shards();
    let all = exchange.rows_at(shards - 1).end;
    let edges: Vec<usize> = (1..shards).map(|shard| exchange.rows_at(shard).start).collect();
    let up_to = |key: u64| own.partition_point(|value| value.word().widened() <= key) as u64;
    // For each edge the key of the number that is to be the first behind it lies between these.
    let (least, most) = ends(own, exchange)?;
    let (mut low, mut high) = (vec![least; edges.len()], vec![most; edges.len()]);
    while low.iter().zip(&high).any(|(low, high)| low < high) {
        let middle: Vec<u64> = low.iter().zip(&high).map(|(low, high)| low.midpoint(*high)).collect();
        let counts = exchange.total(&middle.iter().map(|key| up_to(*key)).collect::<Vec<u64>>())?;
        for (place, edge) in edges.iter().enumerate() {
            if low[place] >= high[place] {
                continue;
            }
            if counts[place] > *edge as u64 {
                high[place] = middle[place];
            } else {
                low[place] = middle[place] + 1;
            }
        }
    }
    let less: Vec<u64> =
        low.iter().map(|key| own.partition_point(|value| value.word().widened() < *key) as u64).collect();
    let equal: Vec<u64> = low.iter().zip(&less).map(|(key, less)| up_to(*key) - less).collect();
    let all_less = exchange.total(&less)?;
    let before = exchange.before(&equal)?;
    let mut cuts = vec![0];
    for (place, edge) in edges.iter().enumerate() {
        let wanted = (*edge as u64).saturating_sub(all_less[place]).saturating_sub(before[place]);
        cuts.push(if *edge >= all { own.len() } else { (less[place] + wanted.min(equal[place])) as usize });
    }
    cuts.push(own.len());
    Ok(cuts)
}

/// The least and the greatest key of all shards' sorted parts.
fn ends<T: Sortable>(own: &[T], exchange: &Exchange<'_>) -> Result<(u64, u64), TransportError> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    // Both as the largest of all: the least one with its bits turned.
    let found =
        (own.first().map_or(0, |first| !first.word().widened()), own.last().map_or(0, |last| last.word().widened()));
    let block = [found.0.to_ne_bytes(), found.1.to_ne_bytes()].concat();
    let half = size_of::<u64>();
    let merged = exchange.merged(block, 2 * half, |one, other| {
        let larger = |from: usize| number(&one[from..from + half]).max(number(&other[from..from + half]));
        [larger(0).to_ne_bytes(), larger(half).to_ne_bytes()].concat()
    })?;
    Ok((!number(&merged[..half]), number(&merged[half..])))
}

/// Sends each shard its numbers of this one's sorted part, and takes those of the others into the room, one shard's behind the
/// other's.
fn trade<T: Sortable>(
    exchange: &Exchange<'_>,
    own: Memory,
    room: Memory,
    cuts: &[usize],
    bounds: &[usize],
) -> Result<(), TransportError> {
    let (shard, size) = (exchange.shard(), size_of::<T>());
    let in_bytes = |memory: Memory| Memory { address: memory.address, length: memory.length * size };
    let (own, room) = (in_bytes(own), in_bytes(room));
    // SAFETY: two pieces of memory, which this launch has to itself.
    let (own, mut rest) = unsafe { (own.stretch::<u8>(0, own.length), room.stretch_mut::<u8>(0, room.length)) };
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (other, (sent, taken)) in cuts.windows(2).zip(bounds.windows(2)).enumerate() {
        let sent = &own[sent[0] * size..sent[1] * size];
        let (place, behind) = std::mem::take(&mut rest).split_at_mut((taken[1] - taken[0]) * size);
        rest = behind;
        if other == shard {
            place.copy_from_slice(sent);
            continue;
        }
        sends.extend((!sent.is_empty()).then_some(Send { to: other, bytes: sent }));
        receives.extend((!place.is_empty()).then_some(Receive { from: other, bytes: place }));
    }
    exchange.carry(&sends, &mut receives)
}
