//! Sorting on all threads, and on all shards (`spread`): NumPy's own sort on stretches of the array, then merges of ours.
//!
//! NumPy's sort gives up the GIL while it works, so each worker calls it on a stretch. Merging gives what one sort over all would only
//! where no two different values are equal; arrays with NaN or negative zeros, and every other case than a flat, unbroken array of
//! numbers, are left to the host. It finishes at its line, as the host does.
#![expect(unsafe_code, reason = "stretches of a field's memory as slices")]

mod spread;

use legate_kernels::program::Number;
use legate_kernels::sort::{self, Sortable};
use legate_runtime::Parallel;
use legate_runtime::partition::Partition;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};

use crate::array::DeferredArray;
use crate::memory;
use crate::numpy_api::{self, flag};
use crate::report::How;
use crate::state::Shim;

/// Whether the arguments of the method ask for nothing special: the last axis of one, any kind of sort that NumPy may choose.
fn is_plain(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>, axes: usize) -> PyResult<bool> {
    let is_last = |axis: isize| axis == -1 || axis + 1 == axes as isize;
    let is_only_axis = |axis: &Bound<'_, PyAny>| axis.extract::<isize>().is_ok_and(is_last);
    let mut plain = args.len() <= 1 && args.iter().all(|axis| is_only_axis(&axis));
    for (name, value) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
        plain &= if name.eq("axis")? { args.is_empty() && is_only_axis(&value) } else { value.is_none() };
        plain &= ["axis", "kind", "order", "stable"].iter().any(|known| name.eq(known).unwrap_or(false));
    }
    Ok(plain)
}

/// `array.sort(...)` on all threads; `false` when it is for the host.
pub(crate) fn in_place<'py>(
    shim: &Shim,
    array: &Bound<'py, DeferredArray>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<bool> {
    let py = array.py();
    let shape = array.get().describe(py);
    let parts = (shape.size() / shim.settings.min_chunk).min(shim.runtime.workers().threads().next_power_of_two());
    let fits = shape.is_c_contiguous() && shape.is_writeable() && shape.flags & ALIGNED != 0;
    if shim.shards > 1 {
        return Ok(fits && is_plain(args, kwargs, shape.shape.len())? && spread::in_place(py, shim, array, &shape)?);
    }
    if parts < 2 || !fits || shape.shape.len() != 1 || !is_plain(args, kwargs, shape.shape.len())? {
        return Ok(false);
    }
    let Some(number) = shim.dtypes.at(shape.descr).and_then(|native| native.number) else { return Ok(false) };
    match number {
        Number::I8 => parted::<i8>(shim, array, parts),
        Number::U8 => parted::<u8>(shim, array, parts),
        Number::I16 => parted::<i16>(shim, array, parts),
        Number::U16 => parted::<u16>(shim, array, parts),
        Number::I32 => parted::<i32>(shim, array, parts),
        Number::U32 => parted::<u32>(shim, array, parts),
        Number::I64 => parted::<i64>(shim, array, parts),
        Number::U64 => parted::<u64>(shim, array, parts),
        Number::F32 => parted::<f32>(shim, array, parts),
        Number::F64 => parted::<f64>(shim, array, parts),
        Number::Bool | Number::F16 | Number::C64 | Number::C128 => Ok(false),
    }
}

/// NPY_ARRAY_ALIGNED.
const ALIGNED: i32 = 0x0100;

/// Addresses as workers share them.
#[derive(Clone, Copy)]
struct Memory {
    address: usize,
    length: usize,
}

impl Memory {
    /// A stretch.
    ///
    /// # Safety
    /// The memory holds numbers of this type, and nobody writes the stretch meanwhile.
    unsafe fn stretch<'a, T>(self, start: usize, end: usize) -> &'a [T] {
        debug_assert!(start <= end && end <= self.length);
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts((self.address as *const T).add(start), end - start) }
    }

    /// A stretch to be written.
    ///
    /// # Safety
    /// As for [`Memory::stretch`], and nobody else reads it meanwhile.
    unsafe fn stretch_mut<'a, T>(self, start: usize, end: usize) -> &'a mut [T] {
        debug_assert!(start <= end && end <= self.length);
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut((self.address as *mut T).add(start), end - start) }
    }
}

/// Sorts in `parts` stretches, a power of two.
fn parted<'py, T: Sortable>(shim: &Shim, array: &Bound<'py, DeferredArray>, parts: usize) -> PyResult<bool> {
    let py = array.py();
    // Pinned, since others may run while workers do.
    let alias = array.get().export(py)?;
    let geometry = numpy_api::geometry(&alias);
    if !geometry.has(flag::WRITEABLE) {
        return Ok(false);
    }
    let parts = if parts.is_power_of_two() { parts } else { parts.next_power_of_two() / 2 };
    let values = Memory { address: geometry.data, length: geometry.size() };
    let bounds: Vec<usize> = (0..=parts).map(|part| part * values.length / parts).collect();
    let workers = shim.runtime.workers();
    // SAFETY (of the stretches here and below): an unbroken, aligned array of T that all launches are done with, and this thread, which
    // has the array, is at this very line; what several workers write are disjoint stretches.
    let told_apart = Mutex::new(true);
    py.detach(|| {
        workers.each(parts, &|part| {
            // SAFETY: see above.
            let all = sort::is_told_apart(unsafe { values.stretch::<T>(bounds[part], bounds[part + 1]) });
            *told_apart.lock() &= all;
        });
    });
    if !told_apart.into_inner() {
        return Ok(false);
    }
    let descr = numpy_api::descr(&alias);
    let scratch = memory::field(py, shim, values.length * size_of::<T>(), &[values.length], &descr)?;
    let scratch = Memory { address: scratch.field().materialize(), length: values.length };
    let stretches: Vec<Py<PyAny>> = bounds
        .windows(2)
        .map(|ends| Ok(alias.get_item(PySlice::new(py, ends[0] as isize, ends[1] as isize, 1))?.unbind()))
        .collect::<PyResult<_>>()?;
    let failure = Mutex::new(None);
    py.detach(|| {
        workers.each(parts, &|part| {
            let sorted = Python::attach(|py| stretches[part].call_method0(py, pyo3::intern!(py, "sort")).map(drop));
            if let Err(error) = sorted {
                *failure.lock() = Some(error);
            }
        });
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    py.detach(|| merge_all::<T>(workers, values, scratch, &bounds, values));
    if shim.settings.report {
        shim.report.lock().note(py, "sort", How::Native, 0, 0.0);
    }
    Ok(true)
}

/// Merges sorted stretches of `values` that end at `bounds` into one, by way of `scratch`; it ends up in `result`, which is one of
/// the two.
fn merge_all<T: Sortable>(workers: &dyn Parallel, values: Memory, scratch: Memory, bounds: &[usize], result: Memory) {
    let (mut from, mut to) = (values, scratch);
    let mut ends = bounds.to_vec();
    // Pairs of pairs: empty stretches make up for those that lack.
    ends.resize((bounds.len() - 1).next_power_of_two() + 1, values.length);
    let pieces = Partition::natural(values.length, workers.threads() * 4, 1);
    while ends.len() > 2 {
        let merged: Vec<usize> = ends.iter().copied().step_by(2).collect();
        workers.each(pieces.colours, &|piece| {
            let piece = pieces.tile(piece);
            for (pair, stretch) in merged.windows(2).enumerate() {
                let (start, end) = (piece.start.max(stretch[0]), piece.end.min(stretch[1]));
                if start >= end {
                    continue;
                }
                let middle = ends[2 * pair + 1];
                // SAFETY: see `parted`: pieces are disjoint, and what is read is not written in this round.
                unsafe {
                    let (left, right) = (from.stretch::<T>(stretch[0], middle), from.stretch::<T>(middle, stretch[1]));
                    sort::merge(left, right, start - stretch[0], to.stretch_mut::<T>(start, end));
                }
            }
        });
        std::mem::swap(&mut from, &mut to);
        ends = merged;
    }
    if from.address != result.address {
        workers.each(pieces.colours, &|piece| {
            let piece = pieces.tile(piece);
            // SAFETY: see `parted`.
            unsafe {
                to.stretch_mut::<T>(piece.start, piece.end).copy_from_slice(from.stretch(piece.start, piece.end))
            };
        });
    }
}
