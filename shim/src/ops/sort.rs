//! Sorting on all threads: `sort`, `argsort`, and the ranks that medians and quantiles ask for.
//!
//! Promises NumPy's values and orders: an array in which values of other bits are equal (zeros with and without a sign, several kinds of
//! NaN), ties of sorts that are not stable, other types and other arguments are left to the host. All finish at their line, as the
//! host does; with several shards `spread` has `sort`, and the host has the others.
#![expect(unsafe_code, reason = "binds the sorting kernels to addresses")]

mod merges;
mod spread;

use legate_kernels::program::Number;
use legate_kernels::sort::{self, Each, Lines, Room, Sortable, Survey, Time};
use legate_runtime::Handle;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::array::{DeferredArray, Shape, deferred};
use crate::memory;
use crate::numpy_api::{self, flag};
use crate::ops::create;
use crate::report::How;
use crate::state::{Shim, started};

/// Places fit beside the words of small numbers in longer rows than this no more.
const LONGEST: usize = 1 << 32;
/// Rows that are sorted by all threads together rather than by one each.
const LONG_ROW: usize = 1 << 16;
/// Elements looked at for ties, about.
const SAMPLES: usize = 1 << 12;
/// NPY_ARRAY_ALIGNED.
const ALIGNED: i32 = 0x0100;

/// What a sorting method is asked for.
struct Request {
    /// `None` stands for all elements in one row.
    axis: Option<isize>,
    stable: bool,
    /// Whether a kind of sort is named.
    named: bool,
}

/// Reads the arguments of `sort` and `argsort`; `None` when the host must look at them.
fn request(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Option<Request>> {
    let mut request = Request { axis: Some(-1), stable: false, named: false };
    let mut given = false;
    if args.len() > 1 {
        return Ok(None);
    }
    for axis in args {
        given = true;
        let Ok(axis) = axis.extract::<Option<isize>>() else { return Ok(None) };
        request.axis = axis;
    }
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        match name.cast::<PyString>()?.to_str()? {
            "axis" if !given => match value.extract::<Option<isize>>() {
                Ok(axis) => request.axis = axis,
                Err(_) => return Ok(None),
            },
            "kind" | "order" | "stable" if value.is_none() => {}
            "kind" => {
                request.named = true;
                match value.cast::<PyString>().ok().and_then(|text| text.to_str().ok()) {
                    Some("stable" | "mergesort") => request.stable = true,
                    Some("quicksort" | "heapsort") => {}
                    Some(_) | None => return Ok(None),
                }
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(request))
}

/// The type of an array's elements, if they can be sorted here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elements {
    Numbers(Number),
    Times,
}

fn elements(py: Python<'_>, shim: &Shim, array: &DeferredArray, shape: &Shape) -> PyResult<Option<Elements>> {
    if let Some(native) = shim.dtypes.at(shape.descr) {
        let sortable = !matches!(native.number, None | Some(Number::Bool | Number::F16 | Number::C64 | Number::C128));
        return Ok(native.number.filter(|_| sortable).map(Elements::Numbers));
    }
    let descr = array.descr(py);
    let kind: char = descr.getattr("kind")?.extract()?;
    let is_time = "mM".contains(kind) && descr.getattr("isnative")?.extract()?;
    Ok(is_time.then_some(Elements::Times))
}

/// Calls a generic function for the type of elements.
macro_rules! by_elements {
    ($elements:expr, $function:ident($($argument:expr),*)) => {
        match $elements {
            Elements::Numbers(Number::I8) => $function::<i8>($($argument),*),
            Elements::Numbers(Number::U8) => $function::<u8>($($argument),*),
            Elements::Numbers(Number::I16) => $function::<i16>($($argument),*),
            Elements::Numbers(Number::U16) => $function::<u16>($($argument),*),
            Elements::Numbers(Number::I32) => $function::<i32>($($argument),*),
            Elements::Numbers(Number::U32) => $function::<u32>($($argument),*),
            Elements::Numbers(Number::I64) => $function::<i64>($($argument),*),
            Elements::Numbers(Number::U64) => $function::<u64>($($argument),*),
            Elements::Numbers(Number::F32) => $function::<f32>($($argument),*),
            Elements::Numbers(Number::F64) => $function::<f64>($($argument),*),
            Elements::Numbers(Number::Bool | Number::F16 | Number::C64 | Number::C128) => Ok(false),
            Elements::Times => $function::<Time>($($argument),*),
        }
    };
}

/// An array whose memory is held for a sort.
struct Held<'py> {
    py: Python<'py>,
    shim: &'py Shim,
    /// Keeps the memory where it is, since others may run while threads work.
    _alias: Bound<'py, PyAny>,
    lines: Lines,
    unbroken: bool,
}

impl<'py> Held<'py> {
    /// An aligned array; `None` for others.
    fn of(shim: &'py Shim, array: &Bound<'py, DeferredArray>, axis: usize) -> PyResult<Option<Held<'py>>> {
        let py = array.py();
        let alias = array.get().export(py)?;
        let geometry = numpy_api::geometry(&alias);
        if !geometry.has(ALIGNED) {
            return Ok(None);
        }
        let mut others: Vec<(usize, isize)> = Vec::new();
        for (other, (length, stride)) in geometry.shape.iter().zip(geometry.strides).enumerate() {
            if other != axis {
                others.push((*length as usize, *stride));
            }
        }
        let lines = Lines {
            address: geometry.data,
            length: geometry.shape[axis] as usize,
            stride: geometry.strides[axis],
            others,
        };
        Ok(Some(Held { py, shim, unbroken: geometry.has(flag::C_CONTIGUOUS), _alias: alias, lines }))
    }

    /// Orders the lines as their memory lies, and those of another array alike.
    fn nearest_last(&mut self, other: Option<&mut Held<'py>>) {
        let mut order: Vec<usize> = (0..self.lines.others.len()).collect();
        order.sort_by_key(|axis| std::cmp::Reverse(self.lines.others[*axis].1.unsigned_abs()));
        let arranged = |lines: &Lines| order.iter().map(|axis| lines.others[*axis]).collect();
        if let Some(other) = other {
            other.lines.others = arranged(&other.lines);
        }
        self.lines.others = arranged(&self.lines);
    }

    /// Addresses of long unbroken rows, if the lines are that.
    fn long_rows(&self, item_bytes: usize) -> Option<Vec<usize>> {
        let count = self.lines.count();
        let few = count == 1 || (self.lines.length >= LONG_ROW && count < 4 * self.threads());
        let row = self.lines.length * item_bytes;
        (self.unbroken && few && self.lines.stride == item_bytes.cast_signed())
            .then(|| (0..count).map(|line| self.lines.address + line * row).collect())
    }

    fn threads(&self) -> usize {
        self.shim.runtime.workers().threads()
    }

    /// Runs work on all threads without the GIL.
    fn on_all<R: Send>(&self, work: impl FnOnce(Each<'_>, usize) -> R + Send) -> R {
        let workers = self.shim.runtime.workers();
        let threads = workers.threads();
        self.py.detach(|| work(&|parts, part| workers.each(parts, part), threads))
    }

    /// Memory to sort a row in, of words of `bytes` bytes.
    fn room(&self, bytes: usize) -> PyResult<(Handle, Handle, Room)> {
        let count = self.lines.length;
        let descr = self.shim.dtypes.descr(self.py, b'B');
        let words = memory::field(self.py, self.shim, count * bytes, &[count, bytes], descr)?;
        let buckets = memory::field(self.py, self.shim, count, &[count], descr)?;
        let room = Room { words: words.field().materialize(), buckets: buckets.field().materialize() };
        Ok((words, buckets, room))
    }

    /// What is peculiar among an array's elements.
    fn survey<T: Sortable>(&self) -> Survey {
        let lines = &self.lines;
        let (count, length) = (lines.count(), lines.length);
        let parts = if self.unbroken { self.threads() * 4 } else { count.clamp(1, self.threads() * 4) };
        let (unbroken, total) = (self.unbroken, if self.unbroken { count * length } else { count });
        let found = Mutex::new(Survey::NOTHING);
        self.on_all(|each, _| {
            each(parts, &|part| {
                let range = part * total / parts..(part + 1) * total / parts;
                // SAFETY: elements of the array, which nobody writes now.
                let own = unsafe {
                    if unbroken {
                        let first = (lines.address as *const T).add(range.start);
                        Survey::of(std::slice::from_raw_parts(first, range.len()).iter().copied())
                    } else {
                        Survey::of(range.flat_map(|line| lines.elements::<T>(line)))
                    }
                };
                let mut all = found.lock();
                *all = all.and(own);
            });
        });
        found.into_inner()
    }
}

/// Whether an axis is there: its number from the front.
fn axis_of(shape: &Shape, axis: isize) -> Option<usize> {
    let axes = shape.shape.len().cast_signed();
    (-axes..axes).contains(&axis).then(|| axis.rem_euclid(axes).cast_unsigned())
}

/// `array.sort(...)` on all threads; `false` when it is for the host.
pub(crate) fn in_place<'py>(
    shim: &'py Shim,
    array: &Bound<'py, DeferredArray>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<bool> {
    let py = array.py();
    let shape = array.get().describe(py);
    if shape.size() < shim.settings.min_chunk || !shape.is_writeable() {
        return Ok(false);
    }
    let Some(request) = request(args, kwargs)? else { return Ok(false) };
    let Some(axis) = request.axis.and_then(|axis| axis_of(&shape, axis)) else { return Ok(false) };
    if shim.shards > 1 {
        let fits = shape.is_c_contiguous() && shape.flags & ALIGNED != 0;
        let plain = !request.named && axis + 1 == shape.shape.len();
        return Ok(fits && plain && spread::in_place(py, shim, array, &shape)?);
    }
    let Some(elements) = elements(py, shim, array.get(), &shape)? else { return Ok(false) };
    let Some(mut held) = Held::of(shim, array, axis)? else { return Ok(false) };
    held.nearest_last(None);
    let done = by_elements!(elements, sorted(&held))?;
    if done && shim.settings.report {
        shim.report.lock().note(py, "sort", How::Native, 0, 0.0);
    }
    Ok(done)
}

fn sorted<T: Sortable>(held: &Held<'_>) -> PyResult<bool> {
    let survey = held.survey::<T>();
    if !survey.is_plain() {
        return Ok(false);
    }
    let nan = T::of_bits(survey.nan_bits());
    if let Some(rows) = held.long_rows(size_of::<T>()) {
        let (_words, _buckets, room) = held.room(size_of::<T::Word>())?;
        let count = held.lines.length;
        held.on_all(|each, threads| {
            for row in rows {
                // SAFETY: a row of the array, which this thread has; a room of its own.
                unsafe { sort::sort_values::<T>(each, threads, (row, count), room, nan) };
            }
        });
    } else {
        let lines = &held.lines;
        // SAFETY: the lines of the array, which this thread has.
        held.on_all(|each, _| unsafe { sort::sort_lines::<T>(each, lines, nan) });
    }
    Ok(true)
}

/// `array.argsort(...)` on all threads; `None` when it is for the host.
pub(crate) fn order<'py>(
    shim: &'py Shim,
    array: &Bound<'py, DeferredArray>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = array.py();
    let mut shape = array.get().describe(py);
    if shim.shards > 1 || shape.size() < shim.settings.min_chunk || shape.size() >= LONGEST {
        return Ok(None);
    }
    let Some(request) = request(args, kwargs)? else { return Ok(None) };
    let Some(elements) = elements(py, shim, array.get(), &shape)? else { return Ok(None) };
    let mut array = array.clone();
    if request.axis.is_none() {
        let flat = array.call_method0("ravel")?;
        let Some(flat) = deferred(&flat) else { return Ok(None) };
        (shape, array) = (flat.get().describe(py), flat.clone());
    }
    let Some(axis) = axis_of(&shape, request.axis.unwrap_or(-1)) else { return Ok(None) };
    let Some(made) = create::unfilled(shim, &shape.shape, shim.dtypes.descr(py, b'l'), false)? else { return Ok(None) };
    let (Some(mut held), Some(mut places)) = (Held::of(shim, &array, axis)?, Held::of(shim, &made, axis)?) else {
        return Ok(None);
    };
    held.nearest_last(Some(&mut places));
    // Ties of a sort that is not stable are in NumPy's own order; where many are to be expected it does all.
    if !request.stable && by_elements!(elements, repeats(&held))? {
        return Ok(None);
    }
    if !by_elements!(elements, placed(&held, &places, request.stable))? {
        return Ok(None);
    }
    if shim.settings.report {
        shim.report.lock().note(py, "argsort", How::Native, 0, 0.0);
    }
    Ok(Some(made.into_any()))
}

/// Whether some of the first line's elements are equal.
fn repeats<T: Sortable>(held: &Held<'_>) -> PyResult<bool> {
    let step = (held.lines.length / SAMPLES).max(1);
    // SAFETY: elements of the array, which this thread has.
    let mut sample: Vec<T::Word> = unsafe { held.lines.elements::<T>(0) }.step_by(step).map(T::rank).collect();
    sample.sort_unstable();
    Ok(sample.windows(2).any(|pair| pair[0] == pair[1]))
}

fn placed<T: Sortable>(held: &Held<'_>, places: &Held<'_>, stable: bool) -> PyResult<bool> {
    let count = held.lines.length;
    let rows = held.long_rows(size_of::<T>()).zip(places.long_rows(size_of::<i64>()));
    let tied = if let Some((rows, outputs)) = rows {
        let (_words, _buckets, room) = held.room(2 * size_of::<T::Word>())?;
        held.on_all(|each, threads| {
            let mut tied = false;
            for (row, output) in rows.into_iter().zip(outputs) {
                // SAFETY: rows of the array and of the result, which this thread has; a room of its own.
                tied |= unsafe { sort::sort_places::<T>(each, threads, (row, count), room, output) };
            }
            tied
        })
    } else {
        let (lines, places) = (&held.lines, &places.lines);
        // SAFETY: the lines of the array and of the result, which this thread has.
        held.on_all(|each, _| unsafe { sort::place_lines::<T>(each, lines, places) })
    };
    Ok(stable || !tied)
}

/// Exchanges elements of each line along an axis so that those of some ranks are where a sort would have them; `false` when it is
/// for the host.
#[pyfunction]
pub(crate) fn select(array: &Bound<'_, DeferredArray>, ranks: Vec<usize>, axis: isize) -> PyResult<bool> {
    let py = array.py();
    let shim = started(py);
    let shape = array.get().describe(py);
    let Some(axis) = axis_of(&shape, axis) else { return Ok(false) };
    let length = shape.shape[axis];
    let fits = shim.shards == 1 && shape.size() > 0 && shape.size() < LONGEST && shape.is_writeable();
    if !fits || ranks.iter().any(|rank| *rank >= length) {
        return Ok(false);
    }
    let Some(elements) = elements(py, shim, array.get(), &shape)? else { return Ok(false) };
    let Some(mut held) = Held::of(shim, array, axis)? else { return Ok(false) };
    held.nearest_last(None);
    let mut ranks = ranks;
    ranks.sort_unstable();
    ranks.dedup();
    by_elements!(elements, selected(&held, &ranks))
}

fn selected<T: Sortable>(held: &Held<'_>, ranks: &[usize]) -> PyResult<bool> {
    if let Some(rows) = held.long_rows(size_of::<T>()) {
        let count = held.lines.length;
        return Ok(held.on_all(|each, threads| {
            // SAFETY: a row of the array, which this thread has.
            rows.into_iter().all(|row| unsafe { sort::select_values::<T>(each, threads, (row, count), ranks) })
        }));
    }
    let survey = held.survey::<T>();
    if survey.is_plain() {
        let (lines, nan) = (&held.lines, T::of_bits(survey.nan_bits()));
        // SAFETY: the lines of the array, which this thread has.
        held.on_all(|each, _| unsafe { sort::select_lines::<T>(each, lines, ranks, nan) });
    }
    Ok(survey.is_plain())
}
