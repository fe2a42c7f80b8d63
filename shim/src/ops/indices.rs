//! Integer index arrays: taken in as unbroken `int64`, checked against the axis that they index, before anything is picked by them.
//!
//! The check of a deferred index array is a launch of its own, waited for: an IndexError belongs to its line, on every shard, and
//! names the first index in the array's order that is out of range. Index arrays that were checked are not checked again until
//! something writes them.
#![expect(unsafe_code, reason = "binds the checking kernel to addresses")]

use std::sync::{Arc, OnceLock};

use legate_kernels::gather::{self, OutOfRange};
use legate_runtime::view::Axes;
use legate_runtime::{Exchange, Operand, Privilege, Sequence};
use parking_lot::Mutex;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use smallvec::smallvec;

use super::exchange::{at, column, issue};
use crate::array::{DeferredArray, Shape, deferred};
use crate::host;
use crate::numpy_api;
use crate::ops::create;
use crate::state::Shim;
use crate::storage::Storage;

/// Bytes of an index.
pub(super) const INDEX_BYTES: usize = size_of::<i64>();

/// An index array whose indices are all in range.
pub(super) struct Indices {
    storage: Py<Storage>,
    shape: Shape,
}

impl Indices {
    /// Takes in an index array; `None` when it is nothing of the kind. Raises the IndexError of the first index outside an axis
    /// of `length`, the array's axis number `axis`.
    pub(super) fn of(
        py: Python<'_>,
        shim: &Shim,
        object: &Bound<'_, PyAny>,
        length: usize,
        axis: usize,
    ) -> PyResult<Option<Indices>> {
        let wanted = shim.dtypes.descr(py, b'l').clone();
        let Some(native) = shim.dtypes.at(wanted.as_ptr() as usize) else { return Ok(None) };
        let is_integer =
            |address: usize| shim.dtypes.at(address).is_some_and(|found| matches!(found.kind, b'i' | b'u'));
        if let Some(array) = deferred(object) {
            let mut shape = array.get().describe(py);
            if !is_integer(shape.descr) || shape.size() == 0 {
                return Ok(None);
            }
            let mut array = array.clone();
            let found = shim.dtypes.at(shape.descr);
            if found.is_none_or(|found| found.number != native.number) || !shape.is_c_contiguous() {
                let Some(copied) = create::copy(py, shim, &array, "C", Some(native))? else { return Ok(None) };
                (shape, array) = (copied.get().describe(py), copied);
            }
            let indices = Indices { storage: array.get().storage(py), shape };
            indices.check(py, shim, length, axis)?;
            return Ok(Some(indices));
        }
        if !numpy_api::is_exact_array(object)
            || !is_integer(numpy_api::descr_address(object))
            || numpy_api::geometry(object).size() == 0
        {
            return Ok(None);
        }
        let options = pyo3::types::PyDict::new(py);
        options.set_item("order", "C")?;
        let copy = object.call_method("astype", (wanted,), Some(&options))?;
        let geometry = numpy_api::geometry(&copy);
        // SAFETY: an unbroken array of as many i64, which lives here.
        let checked = unsafe { gather::check(at(geometry.data, INDEX_BYTES), geometry.size(), length) };
        checked.map_err(|wrong| refused(wrong, axis))?;
        let taken: Bound<'_, DeferredArray> = host::over_memory(shim, &copy)?;
        Ok(Some(Indices { storage: taken.get().storage(py), shape: taken.get().describe(py) }))
    }

    /// Lengths of the axes.
    pub(super) fn lengths(&self) -> &Axes<usize> {
        &self.shape.shape
    }

    /// Byte of the first index in its field.
    pub(super) fn offset(&self) -> isize {
        self.shape.offset
    }

    /// Number of indices.
    pub(super) fn size(&self) -> usize {
        self.shape.size()
    }

    /// The indices as an operand of a launch over two axes.
    pub(super) fn operand(&self) -> Operand {
        column(&self.storage, self.shape.offset, INDEX_BYTES, Privilege::Read)
    }

    fn check(&self, py: Python<'_>, shim: &Shim, length: usize, axis: usize) -> PyResult<()> {
        let field = self.storage.get().field();
        let place = (field.number(), field.last_write(), self.shape.offset, self.size(), length);
        if self.storage.get().is_unseen() && *LAST.lock() == Some(place) {
            return Ok(());
        }
        let first: Arc<OnceLock<Option<OutOfRange>>> = Arc::default();
        let (told, offset) = (first.clone(), self.shape.offset);
        let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
            let rows = exchange.rows();
            let start = addresses[0].wrapping_add_signed(offset) + rows.start * INDEX_BYTES;
            // SAFETY: the rows are an unbroken stretch of the indices inside their field, and are done.
            let own = unsafe { gather::check(at(start, INDEX_BYTES), rows.len(), length) };
            let block = match own {
                Ok(()) => [-1; 2],
                Err(wrong) => [(rows.start + wrong.position) as i64, wrong.index],
            };
            let block = block.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
            let size = block.len();
            let block = exchange.merged(block, size, |lower, upper| {
                let found = if position_in(lower) < 0 { upper } else { lower };
                found.to_vec()
            })?;
            let wrong = usize::try_from(position_in(&block)).ok();
            let index = position_in(&block[INDEX_BYTES..]);
            told.get_or_init(|| wrong.map(|position| OutOfRange { index, position, length }));
            Ok(())
        };
        let sequence = issue(py, shim, "check", (1, 0), smallvec![self.size(), 1], smallvec![self.operand()], task)?;
        shim.wait(py, sequence)?;
        match first.get().copied().flatten() {
            Some(wrong) => Err(refused(wrong, axis)),
            None => {
                *LAST.lock() = Some(place);
                Ok(())
            }
        }
    }
}

/// Indices that were checked: their field, the launch that wrote it last, their place in the field, and the axis' length.
type Checked = (u64, Sequence, isize, usize, usize);

/// The last check: programs read and write by one index array.
static LAST: Mutex<Option<Checked>> = Mutex::new(None);

fn position_in(block: &[u8]) -> i64 {
    let mut number = [0; INDEX_BYTES];
    number.copy_from_slice(&block[..INDEX_BYTES]);
    i64::from_ne_bytes(number)
}

/// NumPy's error.
fn refused(wrong: OutOfRange, axis: usize) -> PyErr {
    let OutOfRange { index, length, .. } = wrong;
    PyIndexError::new_err(format!("index {index} is out of bounds for axis {axis} with size {length}"))
}
