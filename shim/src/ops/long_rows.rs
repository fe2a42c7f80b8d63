//! Products of a large matrix of long rows with a vector, on one shard: by a loop of ours that reads memory as fast as it comes.
//!
//! The product is done when the call returns, as the host's would be, and is a host array or a deferred one by its size. What
//! raises floating-point events is left to NumPy, which tells of them. Layouts that are not rows of neighbouring elements are the
//! host's.
#![expect(unsafe_code, reason = "runs a loop on arrays' memory")]

use std::sync::atomic::{AtomicU8, Ordering};

use legate_kernels::execute::watched;
use legate_kernels::product::Item;
use legate_kernels::product::long::{self, LongRows};
use legate_runtime::Parallel;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::{DeferredArray, deferred};
use crate::events::Mood;
use crate::numpy_api;
use crate::ops::create;
use crate::report::How;
use crate::state::Shim;
use crate::storage::Purpose;

/// Rows, a vector, and where their products go.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) item: Item,
    pub(crate) rows: LongRows,
    pub(crate) count: usize,
    /// Address of the vector's first element.
    pub(crate) vector: usize,
    /// Address of the first product, and bytes from one to the next.
    pub(crate) out: usize,
    pub(crate) apart: isize,
}

impl Job {
    /// Does it on all workers; the floating-point events.
    ///
    /// # Safety
    /// As for [`long::products`].
    pub(crate) unsafe fn run(self, workers: &dyn Parallel) -> u8 {
        let each = long::rows_of_part(self.rows.step.unsigned_abs());
        let events = AtomicU8::new(0);
        workers.each(self.count.div_ceil(each), &|part| {
            let first = part * each;
            let out = self.out.wrapping_add_signed(self.apart * first.cast_signed());
            let count = each.min(self.count - first);
            // SAFETY: the caller's.
            let raised = watched(|| unsafe {
                long::products(self.item, self.rows.from(first), count, self.vector, out, self.apart);
            });
            events.fetch_or(raised, Ordering::Relaxed);
        });
        events.into_inner()
    }
}

/// A deferred matrix whose rows are neighbouring elements of a type that there is a loop for.
pub(crate) struct Rows<'a, 'py> {
    array: &'a Bound<'py, DeferredArray>,
    pub(crate) item: Item,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Address of its dtype.
    pub(crate) descr: usize,
    pub(crate) count: usize,
    pub(crate) length: usize,
    step: isize,
}

impl<'a, 'py> Rows<'a, 'py> {
    pub(crate) fn of(shim: &Shim, array: &'a Bound<'py, PyAny>) -> Option<Rows<'a, 'py>> {
        let py = array.py();
        let array = deferred(array)?;
        let shape = array.get().describe(py);
        let ([count, length], [step, stride]) = (&shape.shape[..], &shape.strides[..]) else { return None };
        let native = shim.dtypes.at(shape.descr)?;
        let item = item(native.letter)?;
        let size = native.item_bytes.cast_signed();
        let fits = *stride == size && step % size == 0;
        let (descr, size) = (shape.descr, native.item_bytes);
        fits.then_some(Rows { array, item, size, descr, count: *count, length: *length, step: *step })
    }

    /// The rows in memory, and what holds that; `None` where elements are not aligned.
    pub(crate) fn bring(&self) -> PyResult<Option<(LongRows, Bound<'py, PyAny>)>> {
        let memory = self.array.get().export_for(self.array.py(), Purpose::Read)?;
        let address = numpy_api::geometry(&memory).data;
        let rows = LongRows { address, step: self.step, length: self.length };
        Ok(address.is_multiple_of(self.size).then_some((rows, memory)))
    }
}

/// The product of a deferred matrix with a vector; `None` for what is left to the host. It is told of in the name given.
pub(crate) fn product<'py>(
    shim: &Shim,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    told: &'static str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = left.py();
    let Some(matrix) = Rows::of(shim, left) else { return Ok(None) };
    if !long::is_long(matrix.count, matrix.length, matrix.size) {
        return Ok(None);
    }
    let vector = match deferred(right) {
        Some(array) => array.get().export_for(py, Purpose::Read)?,
        None if numpy_api::is_exact_array(right) => right.clone(),
        None => return Ok(None),
    };
    let (side, size) = (numpy_api::geometry(&vector), matrix.size.cast_signed());
    let fits =
        side.shape == [matrix.length.cast_signed()] && side.strides == [size] && side.data.is_multiple_of(matrix.size);
    if !fits || numpy_api::descr_address(&vector) != matrix.descr {
        return Ok(None);
    }
    let Some(minded) = minded(shim, py)? else { return Ok(None) };
    crate::prompt::step()?;
    let Some((rows, _memory)) = matrix.bring()? else { return Ok(None) };
    let (result, room) = room(shim, &[matrix.count], &numpy_api::descr(&vector))?;
    let job = Job {
        item: matrix.item,
        rows,
        count: matrix.count,
        vector: side.data,
        out: numpy_api::geometry(&room).data,
        apart: size,
    };
    let workers = shim.runtime.workers();
    // SAFETY: all three arrays are held, and so is their memory; they have these shapes, and nobody knows the result yet.
    let events = py.detach(|| unsafe { job.run(workers) });
    Ok(told_of(shim, (result, told), events & minded))
}

/// The result of a product, which is told of in the name given; `None` where it raised events that somebody minds.
pub(crate) fn told_of<'py>(
    shim: &Shim,
    (result, told): (Bound<'py, PyAny>, &'static str),
    minded_events: u8,
) -> Option<Bound<'py, PyAny>> {
    if minded_events != 0 {
        return None;
    }
    if shim.settings.report {
        shim.report.lock().note(result.py(), told, How::Native, 0, 0.0);
    }
    Some(result)
}

/// A C-ordered array for a result, deferred or not by its size, and the memory to make it in.
pub(crate) fn room<'py>(
    shim: &Shim,
    shape: &[usize],
    descr: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let py = descr.py();
    if let Some(array) = create::unfilled(shim, shape, descr, false)? {
        let memory = array.get().export(py)?;
        return Ok((array.into_any(), memory));
    }
    let array = shim.host(py, "empty")?.call1((PyTuple::new(py, shape)?, descr))?;
    Ok((array.clone(), array))
}

/// The floating-point events that somebody wants to know of; `None` if the host is to see to it.
pub(crate) fn minded(shim: &Shim, py: Python<'_>) -> PyResult<Option<u8>> {
    Ok(match shim.origins.mood(py)? {
        Mood::Silent => Some(0),
        Mood::Warn(flags) | Mood::AtOnce(flags) => Some(flags),
        Mood::Host => None,
    })
}

/// The type of elements of which there is a loop.
pub(crate) fn item(letter: u8) -> Option<Item> {
    match letter {
        b'd' => Some(Item::Double),
        b'f' => Some(Item::Single),
        _ => None,
    }
}
