//! Fourier transforms of many lines at once: what `numpy.fft`'s functions come down to, along one axis.
//!
//! Lines are transformed by NumPy's own loop, so that each has NumPy's bits; workers share them, and so do shards: where each has whole
//! lines, and else by `spread`. Lines side by side are copied behind each other first, a few at a time, so that all of what the memory
//! brings along is used. Floating-point events are left to the host, which transforms once more and warns. Which function this is,
//! and what it is given, is the Python side's (`legate.fourier`). It finishes at its line.
#![expect(unsafe_code, reason = "calls NumPy's loop on lines of arrays")]

mod spread;

use std::ffi::c_char;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use legate_kernels::execute::watched;
use legate_kernels::program::Loop;
use legate_runtime::partition::Partition;
use legate_runtime::{Exchange, Parallel, Privilege};
use pyo3::prelude::*;
use pyo3::types::PyFloat;
use smallvec::{SmallVec, smallvec};

use crate::array::DeferredArray;
use crate::dtypes::Native;
use crate::ops::exchange::{column, issue, stretch};
use crate::state::shim;
use crate::ufuncs;
use crate::values::ordered_strides;

/// Elements that one task transforms, if a line is not longer.
const TASK_ELEMENTS: usize = 1 << 16;
/// Bytes of lines that are copied behind each other at a time, about: they stay in a cache.
const TOGETHER_BYTES: usize = 1 << 18;
/// What the memory brings along with each byte.
const CACHE_LINE: usize = 64;
/// Most lines that are copied together.
const MOST_TOGETHER: usize = 64;
/// A shard transforms a tile of the least size for each shard between two exchanges, so that messages do not become small; at most so
/// many.
const MOST_TILES: usize = 32;

/// Adds this file's function to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(transformed, module)?)
}

/// Where the lines of a row-major array are: for each of `blocks`, `apart` of them side by side.
#[derive(Clone, Copy)]
struct Lines {
    blocks: usize,
    apart: usize,
    /// Elements of a line before and after.
    lengths: [usize; 2],
    /// Of these, elements that are looked at and made.
    used: [usize; 2],
    /// Bytes of an element before and after.
    items: [usize; 2],
    /// Bytes of an element that the loop reads: more than of one before where that is only its real part.
    read: usize,
}

/// Lines in memory.
#[derive(Clone, Copy)]
struct Sheet {
    /// Of the first element of the first line, before and after.
    addresses: [usize; 2],
    /// Bytes from an element of a line to the next, before and after.
    pitches: [usize; 2],
    /// Bytes from a line to the next, before and after.
    next: [usize; 2],
    /// Number of lines.
    columns: usize,
}

/// What a line becomes.
struct Transform {
    kernel: Loop,
    factor: Vec<u8>,
}

/// Room for a few lines one behind the other, before and after.
struct Room {
    _memory: Vec<[u64; 2]>,
    /// Address of the first line, before and after.
    starts: [usize; 2],
    /// Bytes from a line to the next.
    next: [usize; 2],
    /// Bytes from an element to the next.
    steps: [usize; 2],
}

impl Room {
    /// Room for as many lines as are transformed together.
    fn of(lines: &Lines) -> Room {
        let steps = [lines.read, lines.items[1]];
        // Lines begin apart by what is no power of two, so that those of one length do not crowd the same places of a cache.
        let next = [0, 1].map(|after| (lines.used[after] * steps[after]).next_multiple_of(CACHE_LINE) + CACHE_LINE);
        let sizes = next.map(|bytes| bytes * lines.together() / size_of::<[u64; 2]>());
        // What is only read, and not copied, stays zero: imaginary parts.
        let mut memory = vec![[0; 2]; sizes[0] + sizes[1]];
        let first = memory.as_mut_ptr() as usize;
        Room { _memory: memory, starts: [first, first + sizes[0] * size_of::<[u64; 2]>()], next, steps }
    }
}

impl Lines {
    fn count(&self) -> usize {
        self.blocks * self.apart
    }

    /// Bytes of the array before or after.
    fn bytes(&self, after: usize) -> usize {
        self.count() * self.lengths[after] * self.items[after]
    }

    /// Lines of one block each: the parts of a range of lines, and the first line of each.
    fn blocks_of(&self, lines: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let apart = self.apart;
        (lines.start / apart..lines.end.div_ceil(apart))
            .map(move |block| lines.start.max(block * apart)..lines.end.min((block + 1) * apart))
    }

    /// The sheet of some lines of one block, in whole arrays.
    fn sheet(&self, addresses: [usize; 2], lines: &Range<usize>) -> Sheet {
        let (block, column) = (lines.start / self.apart, lines.start % self.apart);
        let start = |after: usize| (block * self.lengths[after] * self.apart + column) * self.items[after];
        Sheet {
            addresses: [addresses[0] + start(0), addresses[1] + start(1)],
            pitches: self.items.map(|item| item * self.apart),
            next: if self.apart > 1 { self.items } else { [0, 1].map(|after| self.lengths[after] * self.items[after]) },
            columns: lines.len(),
        }
    }

    /// Lines that are copied behind each other at a time.
    fn together(&self) -> usize {
        let longest = (self.used[0] * self.read).max(self.used[1] * self.items[1]);
        let least = CACHE_LINE / self.items[0].min(self.items[1]);
        (TOGETHER_BYTES / longest.max(1)).clamp(least, MOST_TOGETHER)
    }

    /// Transforms the lines of some sheets by all workers; the floating-point events.
    ///
    /// # Safety
    /// All elements are there; nobody else writes those before, or touches those after.
    unsafe fn transform_sheets(&self, transform: &Transform, sheets: &[Sheet], workers: &dyn Parallel) -> u8 {
        let columns: usize = sheets.iter().map(|sheet| sheet.columns).sum();
        let together = self.together();
        let tasks = Partition::natural(columns, workers.threads() * 4, together);
        let events = AtomicU8::new(0);
        workers.each(tasks.colours, &|task| {
            let (own, mut before, room) = (tasks.tile(task), 0, Room::of(self));
            let seen = watched(|| {
                for sheet in sheets {
                    let start = own.start.clamp(before, before + sheet.columns) - before;
                    let end = own.end.clamp(before, before + sheet.columns) - before;
                    before += sheet.columns;
                    for first in (start..end).step_by(together) {
                        let columns = together.min(end - first);
                        let addresses = [0, 1].map(|after| sheet.addresses[after] + first * sheet.next[after]);
                        let sheet = Sheet { addresses, columns, ..*sheet };
                        // SAFETY: the caller's; tasks have disjoint lines.
                        unsafe { self.transform_together(transform, sheet, &room) };
                    }
                }
            });
            events.fetch_or(seen, Ordering::Relaxed);
        });
        events.into_inner()
    }

    /// Transforms the lines of a sheet by way of a room, where they lie behind each other.
    ///
    /// # Safety
    /// As for [`Lines::transform_sheets`].
    unsafe fn transform_together(&self, transform: &Transform, sheet: Sheet, room: &Room) {
        let counts = |after: usize| [self.used[after], sheet.columns];
        let outside = |after: usize| (sheet.addresses[after], [sheet.pitches[after], sheet.next[after]]);
        let inside = |after: usize| (room.starts[after], [room.steps[after], room.next[after]]);
        // SAFETY: the caller's elements; the room holds as many.
        unsafe {
            turn(self.items[0], counts(0), outside(0), inside(0));
            self.transform(transform, room.starts, room.next, sheet.columns);
            turn(self.items[1], counts(1), inside(1), outside(1));
        }
    }

    /// Transforms lines one behind the other, at addresses `next` bytes from each other.
    ///
    /// # Safety
    /// As for [`Lines::transform_sheets`].
    unsafe fn transform(&self, transform: &Transform, addresses: [usize; 2], next: [usize; 2], count: usize) {
        let (kernel, factor) = (&transform.kernel, transform.factor.as_ptr());
        let data = [addresses[0] as *mut c_char, factor.cast_mut().cast::<c_char>(), addresses[1] as *mut c_char];
        let lengths = [count, self.used[0], self.used[1]].map(|length| length as isize);
        let strides = [next[0], 0, next[1], self.read, self.items[1]].map(|stride| stride as isize);
        // SAFETY: the caller's, and `Loop`'s invariant; the loop's signature is (n),()->(m).
        let code = unsafe {
            (kernel.function)(kernel.context, data.as_ptr(), lengths.as_ptr(), strides.as_ptr(), kernel.auxdata)
        };
        assert!(code == 0, "inner loop {} failed with code {code}", kernel.name);
    }

    /// Transforms some lines of whole arrays on all workers; the floating-point events.
    ///
    /// # Safety
    /// As for [`Lines::transform_sheets`].
    unsafe fn run(
        &self,
        transform: &Transform,
        addresses: [usize; 2],
        own: Range<usize>,
        workers: &dyn Parallel,
    ) -> u8 {
        if self.apart > 1 || self.read > self.items[0] {
            let sheets: Vec<Sheet> = match self.apart {
                1 => vec![self.sheet(addresses, &own)],
                _ => self.blocks_of(own).map(|lines| self.sheet(addresses, &lines)).collect(),
            };
            // SAFETY: the caller's.
            return unsafe { self.transform_sheets(transform, &sheets, workers) };
        }
        let next = [0, 1].map(|after| self.lengths[after] * self.items[after]);
        let at_once = (TASK_ELEMENTS / self.lengths[0].max(1)).max(1);
        let events = AtomicU8::new(0);
        workers.each(own.len().div_ceil(at_once), &|task| {
            let (first, end) = (own.start + task * at_once, (own.start + (task + 1) * at_once).min(own.end));
            let starts = [addresses[0] + first * next[0], addresses[1] + first * next[1]];
            // SAFETY: the caller's; tasks have disjoint lines.
            let seen = watched(|| unsafe { self.transform(transform, starts, next, end - first) });
            events.fetch_or(seen, Ordering::Relaxed);
        });
        events.into_inner()
    }
}

/// Where elements of a table begin, and the bytes from row to row and from column to column.
type Side = (usize, [usize; 2]);

/// Copies a table of elements with so many rows and columns.
///
/// # Safety
/// All elements are there, and only the caller touches those that are written.
unsafe fn turn(item: usize, counts: [usize; 2], from: Side, to: Side) {
    // SAFETY: the caller's.
    unsafe {
        match item {
            4 => turn_items::<4>(counts, from, to),
            8 => turn_items::<8>(counts, from, to),
            16 => turn_items::<16>(counts, from, to),
            _ => unreachable!("transforms are of single or double precision"),
        }
    }
}

/// As [`turn`], for elements of one size.
///
/// # Safety
/// As for [`turn`].
unsafe fn turn_items<const ITEM: usize>(
    [rows, columns]: [usize; 2],
    (from, [row_from, column_from]): Side,
    (to, [row_to, column_to]): Side,
) {
    if row_from == ITEM && row_to == ITEM {
        for column in 0..columns {
            let (from, to) = (from + column * column_from, to + column * column_to);
            // SAFETY: the caller's.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, rows * ITEM) };
        }
        return;
    }
    for row in 0..rows {
        let (from, to) = (from + row * row_from, to + row * row_to);
        for column in 0..columns {
            // SAFETY: the caller's.
            unsafe {
                let element = ((from + column * column_from) as *const [u8; ITEM]).read();
                ((to + column * column_to) as *mut [u8; ITEM]).write(element);
            }
        }
    }
}

/// The transforms of an array's lines along an axis by a loop of `numpy.fft`: the first of each, or all, become others, as many as
/// `points` says of both, times a factor. `None` for what is left to the host.
#[pyfunction]
fn transformed<'py>(
    ufunc: &Bound<'py, PyAny>,
    array: &Bound<'py, DeferredArray>,
    axis: usize,
    points: (usize, usize),
    factor: &Bound<'py, PyFloat>,
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let (py, (used, length)) = (ufunc.py(), points);
    let shim = shim(py)?;
    let shape = array.get().describe(py);
    let Some(from) = shim.dtypes.at(shape.descr) else { return Ok(None) };
    let real = if b"fF".contains(&from.letter) { b'f' } else { b'd' };
    let descr = |letter: u8| shim.dtypes.descr(py, letter).clone();
    let types = (descr(from.letter), descr(real), py.None());
    let answer = ufunc.call_method1("_resolve_dtypes_and_context", (types,))?;
    let native_at = |place: usize| -> PyResult<Option<Native>> {
        Ok(shim.dtypes.at(answer.get_item(0)?.get_item(place)?.as_ptr() as usize))
    };
    let (Some(read), Some(native)) = (native_at(0)?, native_at(2)?) else { return Ok(None) };
    let is_real_part = matches!((from.letter, read.letter), (b'f', b'F') | (b'd', b'D'));
    if !shape.is_c_contiguous() || shape.size() == 0 || !(is_real_part || read.letter == from.letter) {
        return Ok(None);
    }
    let Some((kernel, _)) = ufuncs::borrow(ufunc, &answer.get_item(1)?, "fft")? else { return Ok(None) };
    let mut lengths = shape.shape.clone();
    lengths[axis] = length;
    let order: SmallVec<[usize; 4]> = (0..lengths.len()).rev().collect();
    let target = ufuncs::fresh(py, shim, &lengths, &ordered_strides(&lengths, &order, native.item_bytes), native)?;
    let lines = Lines {
        blocks: shape.shape[..axis].iter().product(),
        apart: shape.shape[axis + 1..].iter().product(),
        lengths: [shape.shape[axis], length],
        used: [used.min(shape.shape[axis]), length],
        items: [from.item_bytes, native.item_bytes],
        read: read.item_bytes,
    };
    let (source, storage) = (array.get().storage(py), target.array.get().storage(py));
    let factor: f64 = factor.extract()?;
    let factor = if real == b'f' { (factor as f32).to_ne_bytes().to_vec() } else { factor.to_ne_bytes().to_vec() };
    let transform = Transform { kernel, factor };
    let (seen, offset) = (Arc::new(AtomicU8::new(0)), shape.offset);
    let noted = seen.clone();
    let note = move |events: u8, exchange: &Exchange<'_>| {
        let all = exchange.merged(vec![events], 1, |one, other| vec![one[0] | other[0]])?;
        noted.store(all[0], Ordering::Release);
        Ok(())
    };
    let sequence = if shim.shards == 1 || lines.blocks >= shim.shards {
        // Each shard has whole blocks. The second axis says how much work each is.
        let bytes = [0, 1].map(|after| lines.bytes(after) / lines.blocks);
        let read = column(&source, shape.offset, bytes[0], Privilege::Read);
        let operands = smallvec![read, column(&storage, 0, bytes[1], Privilege::Write)];
        let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
            let starts = [addresses[0].wrapping_add_signed(offset), addresses[1]];
            let blocks = exchange.rows();
            let own = blocks.start * lines.apart..blocks.end * lines.apart;
            // SAFETY: lines of the arrays of this launch.
            let events = unsafe { lines.run(&transform, starts, own, exchange.workers()) };
            note(events, exchange)
        };
        let domain = smallvec![lines.blocks, shape.size() / lines.blocks];
        issue(py, shim, "fft", (2, native.item_bytes), domain, operands, task)?
    } else {
        // The result lives in whole rows, or in parts of rows where there are fewer rows than shards.
        let made = lines.count() * length;
        let rows = if lengths[0] >= shim.shards { lengths[0] } else { made };
        let row = column(&storage, 0, lines.bytes(1) / rows, Privilege::Write);
        let operands = smallvec![row, stretch(&source, shape.offset, lines.bytes(0), Privilege::Read)];
        let elements = shim.settings.min_chunk.saturating_mul(shim.shards.min(MOST_TILES));
        let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
            let starts = [addresses[1].wrapping_add_signed(offset), addresses[0]];
            // SAFETY: the arrays of this launch.
            let events = unsafe { spread::run(&lines, &transform, starts, offset as usize, elements, exchange)? };
            note(events, exchange)
        };
        issue(py, shim, "fft", (1, native.item_bytes), smallvec![rows, made / rows], operands, task)?
    };
    shim.wait(py, sequence)?;
    Ok((seen.load(Ordering::Acquire) == 0).then_some(target.array))
}
