//! Fourier transforms of many lines at once: what `numpy.fft`'s functions come down to, along one axis.
//!
//! Lines are transformed by NumPy's own loop, so that each has NumPy's bits; workers share them, and shards where each has whole
//! lines. Floating-point events are left to the host, which transforms once more and warns. Which function this is, and what
//! it is given, is the Python side's (`legate.fourier`). It finishes at its line.
#![expect(unsafe_code, reason = "calls NumPy's loop on lines of arrays")]

use std::ffi::c_char;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use legate_kernels::execute::watched;
use legate_kernels::program::Loop;
use legate_runtime::{Exchange, Privilege};
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
    /// Bytes of an element before and after.
    items: [usize; 2],
}

impl Lines {
    fn count(&self) -> usize {
        self.blocks * self.apart
    }

    /// The byte at which a line begins, before or after.
    fn start(&self, line: usize, after: usize) -> usize {
        let (block, place) = (line / self.apart, line % self.apart);
        (block * self.lengths[after] * self.apart + place) * self.items[after]
    }

    /// Transforms lines that lie side by side, or one behind the other.
    ///
    /// # Safety
    /// The addresses are those of the arrays' first elements; nobody else writes these lines of the second, or the first.
    unsafe fn transform(&self, kernel: &Loop, addresses: [usize; 2], first: usize, count: usize, factor: &[u8]) {
        let data = [
            (addresses[0] + self.start(first, 0)) as *mut c_char,
            factor.as_ptr().cast_mut().cast::<c_char>(),
            (addresses[1] + self.start(first, 1)) as *mut c_char,
        ];
        let stride = |after: usize| (self.items[after] * self.apart) as isize;
        let next = |after: usize| match self.apart {
            1 => (self.lengths[after] * self.items[after]) as isize,
            _ => self.items[after] as isize,
        };
        let lengths = [count, self.lengths[0], self.lengths[1]].map(|length| length as isize);
        let strides = [next(0), 0, next(1), stride(0), stride(1)];
        // SAFETY: the caller's, and `Loop`'s invariant; the loop's signature is (n),()->(m).
        let code = unsafe {
            (kernel.function)(kernel.context, data.as_ptr(), lengths.as_ptr(), strides.as_ptr(), kernel.auxdata)
        };
        assert!(code == 0, "inner loop {} failed with code {code}", kernel.name);
    }

    /// Transforms some lines on all workers; the floating-point events.
    fn run(
        &self,
        kernel: &Loop,
        addresses: [usize; 2],
        own: Range<usize>,
        factor: &[u8],
        exchange: &Exchange<'_>,
    ) -> u8 {
        let at_once = (TASK_ELEMENTS / self.lengths[0].max(1)).max(1);
        let events = AtomicU8::new(0);
        exchange.workers().each(own.len().div_ceil(at_once), &|task| {
            let (mut line, end) = (own.start + task * at_once, (own.start + (task + 1) * at_once).min(own.end));
            let seen = watched(|| {
                while line < end {
                    let together =
                        if self.apart == 1 { end - line } else { (end - line).min(self.apart - line % self.apart) };
                    // SAFETY: lines of the arrays of this launch; tasks have disjoint ones.
                    unsafe { self.transform(kernel, addresses, line, together, factor) };
                    line += together;
                }
            });
            events.fetch_or(seen, Ordering::Relaxed);
        });
        events.into_inner()
    }
}

/// The transforms of an array's lines along an axis by a loop of `numpy.fft`, `length` elements each, times a factor; `None` for what
/// is left to the host.
#[pyfunction]
fn transformed<'py>(
    ufunc: &Bound<'py, PyAny>,
    array: &Bound<'py, DeferredArray>,
    axis: usize,
    length: usize,
    factor: &Bound<'py, PyFloat>,
) -> PyResult<Option<Bound<'py, DeferredArray>>> {
    let py = ufunc.py();
    let shim = shim(py)?;
    let shape = array.get().describe(py);
    let Some(from) = shim.dtypes.at(shape.descr) else { return Ok(None) };
    let apart = shape.shape[axis + 1..].iter().product();
    let real = if b"fF".contains(&from.letter) { b'f' } else { b'd' };
    let descr = |letter: u8| shim.dtypes.descr(py, letter).clone();
    let types = (descr(from.letter), descr(real), py.None());
    let answer = ufunc.call_method1("_resolve_dtypes_and_context", (types,))?;
    let native_at = |place: usize| -> PyResult<Option<Native>> {
        Ok(shim.dtypes.at(answer.get_item(0)?.get_item(place)?.as_ptr() as usize))
    };
    let (Some(read), Some(native)) = (native_at(0)?, native_at(2)?) else { return Ok(None) };
    let plain = shape.is_c_contiguous() && shape.size() > 0 && read.letter == from.letter;
    if !plain || (shim.shards > 1 && apart > 1) {
        return Ok(None);
    }
    let Some((kernel, _)) = ufuncs::borrow(ufunc, &answer.get_item(1)?, "fft")? else { return Ok(None) };
    let mut lengths = shape.shape.clone();
    lengths[axis] = length;
    let order: SmallVec<[usize; 4]> = (0..lengths.len()).rev().collect();
    let target = ufuncs::fresh(py, shim, &lengths, &ordered_strides(&lengths, &order, native.item_bytes), native)?;
    let lines = Lines {
        blocks: shape.shape[..axis].iter().product(),
        apart,
        lengths: [shape.shape[axis], length],
        items: [from.item_bytes, native.item_bytes],
    };
    let (source, storage) = (array.get().storage(py), target.array.get().storage(py));
    let bytes = [0, 1].map(|after| lines.lengths[after] * lines.items[after]);
    let (along, operands) = if apart == 1 {
        let read = column(&source, shape.offset, bytes[0], Privilege::Read);
        (2, smallvec![read, column(&storage, 0, bytes[1], Privilege::Write)])
    } else {
        let read = stretch(&source, shape.offset, bytes[0] * lines.count(), Privilege::Read);
        (0, smallvec![read, stretch(&storage, 0, bytes[1] * lines.count(), Privilege::Write)])
    };
    let factor: f64 = factor.extract()?;
    let factor = if real == b'f' { (factor as f32).to_ne_bytes().to_vec() } else { factor.to_ne_bytes().to_vec() };
    let (seen, offset) = (Arc::new(AtomicU8::new(0)), shape.offset);
    let noted = seen.clone();
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let starts = [addresses[0].wrapping_add_signed(offset), addresses[1]];
        let events = lines.run(&kernel, starts, exchange.rows(), &factor, exchange);
        let all = exchange.merged(vec![events], 1, |one, other| vec![one[0] | other[0]])?;
        noted.store(all[0], Ordering::Release);
        Ok(())
    };
    // Lines are one element each to the launch; the second axis says how much work each is.
    let domain = smallvec![lines.count(), shape.shape[axis]];
    let sequence = issue(py, shim, "fft", (along, native.item_bytes), domain, operands, task)?;
    shim.wait(py, sequence)?;
    Ok((seen.load(Ordering::Acquire) == 0).then_some(target.array))
}
