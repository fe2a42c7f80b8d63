//! Bins: how often each index occurs, what its weights sum up to, and where values lie among sorted edges.
//!
//! Counts of shards are added up in steps; sums go from shard to shard, since NumPy adds weights one after the other. Both finish at
//! their line: how many bins there are depends on values anyway. A search is a launch like any other, with the edges on every shard.
#![expect(unsafe_code, reason = "binds the kernels of bins to addresses")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use legate_kernels::bins;
use legate_runtime::partition::Partition;
use legate_runtime::transport::TransportError;
use legate_runtime::{Exchange, Privilege};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smallvec::smallvec;

use super::exchange::{at, column, issue};
use super::mask::settled;
use crate::array::DeferredArray;
use crate::dtypes::Native;
use crate::state::{Shim, started};
use crate::ufuncs;

/// Bytes of an index, a count, a weight, an edge.
const BYTES: usize = 8;
/// Elements that one task goes through.
const TASK_ELEMENTS: usize = 1 << 16;

/// The dtype of a letter, if the array has it and is unbroken.
fn unbroken(
    py: Python<'_>,
    shim: &Shim,
    array: &Bound<'_, DeferredArray>,
    letter: u8,
) -> Option<(isize, usize, Native)> {
    let shape = array.get().describe(py);
    let native = shim.dtypes.at(shape.descr)?;
    let wanted = shim.dtypes.at(shim.dtypes.descr(py, letter).as_ptr() as usize)?;
    let fits = native.number == wanted.number && shape.is_c_contiguous() && shape.size() > 0;
    fits.then(|| (shape.offset, shape.size(), native))
}

/// How often each of `0..count` occurs among unbroken `int64` indices, all of which lie there; or what their weights (unbroken
/// `float64`, as many) sum up to. The numbers' bytes; `None` when it is for the host.
#[pyfunction]
#[pyo3(signature = (indices, count, weights = None))]
pub(crate) fn binned<'py>(
    indices: &Bound<'py, DeferredArray>,
    count: usize,
    weights: Option<&Bound<'py, DeferredArray>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = indices.py();
    let shim = started(py);
    let Some((offset, size, _)) = unbroken(py, shim, indices, b'l') else { return Ok(None) };
    let mut operands = smallvec![column(&indices.get().storage(py), offset, BYTES, Privilege::Read)];
    let mut start = None;
    if let Some(weights) = weights {
        let Some((first, length, _)) = unbroken(py, shim, weights, b'd') else { return Ok(None) };
        if length != size {
            return Ok(None);
        }
        operands.push(column(&weights.get().storage(py), first, BYTES, Privilege::Read));
        start = Some(first);
    }
    let found: Arc<OnceLock<Vec<u8>>> = Arc::default();
    let told = found.clone();
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let indices = addresses[0].wrapping_add_signed(offset);
        let made = match start {
            // SAFETY: the rows are an unbroken stretch of the indices, which are done and inside the bins.
            None => counts(count, exchange, |rows, own| unsafe {
                bins::count(at(indices + rows.start * BYTES, BYTES), rows.len(), own);
            })?,
            Some(first) => sums(indices, addresses[1].wrapping_add_signed(first), count, exchange)?,
        };
        told.get_or_init(|| made);
        Ok(())
    };
    let sequence = issue(py, shim, "bincount", (operands.len(), 0), smallvec![size, 1], operands, task)?;
    shim.wait(py, sequence)?;
    Ok(found.get().map(|bytes| PyBytes::new(py, bytes)))
}

/// How many of the unbroken `float64` values are in each of the bins that lie between edges (their bytes) as far apart as `limits` say,
/// by `numpy.histogram`'s arithmetic. The numbers' bytes; `None` when it is for the host.
#[pyfunction]
pub(crate) fn tallied<'py>(
    values: &Bound<'py, DeferredArray>,
    edges: &[u8],
    limits: (f64, f64),
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = values.py();
    let shim = started(py);
    let Some((offset, size, _)) = unbroken(py, shim, values, b'd') else { return Ok(None) };
    let edges: Vec<f64> = words(edges).map(f64::from_ne_bytes).collect();
    let count = edges.len() - 1;
    let operands = smallvec![column(&values.get().storage(py), offset, BYTES, Privilege::Read)];
    let found: Arc<OnceLock<Vec<u8>>> = Arc::default();
    let told = found.clone();
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let values = addresses[0].wrapping_add_signed(offset);
        // SAFETY: the rows are an unbroken stretch of the values, which are done.
        let made = counts(count, exchange, |rows, own| unsafe {
            bins::tally(at(values + rows.start * BYTES, BYTES), rows.len(), &edges, limits, own);
        })?;
        told.get_or_init(|| made);
        Ok(())
    };
    let sequence = issue(py, shim, "histogram", (1, 0), smallvec![size, 1], operands, task)?;
    shim.wait(py, sequence)?;
    Ok(found.get().map(|bytes| PyBytes::new(py, bytes)))
}

/// Adds up, over all shards, what `add` counts in ranges of rows.
fn counts(
    count: usize,
    exchange: &Exchange<'_>,
    add: impl Fn(Range<usize>, &mut [u64]) + Sync,
) -> Result<Vec<u8>, TransportError> {
    let rows = exchange.rows();
    // As many tasks as leave each more to count than to add up.
    let most = exchange.workers().threads().min(rows.len() / count.max(TASK_ELEMENTS)).max(1);
    let partition = Partition { length: rows.len(), colours: most };
    let total = Mutex::new(vec![0u64; count]);
    exchange.workers().each(most, &|colour| {
        let tile = partition.tile(colour);
        let mut own = vec![0; count];
        add(rows.start + tile.start..rows.start + tile.end, &mut own);
        total.lock().iter_mut().zip(own).for_each(|(total, own)| *total += own);
    });
    let own: Vec<u8> = total.into_inner().iter().flat_map(|count| count.to_ne_bytes()).collect();
    if !exchange.is_divided() {
        return Ok(own);
    }
    exchange.merged(own, count * BYTES, |lower, upper| {
        let pairs = words(lower).zip(words(upper));
        pairs.flat_map(|(one, other)| (u64::from_ne_bytes(one) + u64::from_ne_bytes(other)).to_ne_bytes()).collect()
    })
}

fn sums(indices: usize, weights: usize, count: usize, exchange: &Exchange<'_>) -> Result<Vec<u8>, TransportError> {
    let (rows, shard) = (exchange.rows(), exchange.shard());
    let mut sums = vec![0.0; count];
    if exchange.is_divided() && shard > 0 {
        let arrived = exchange.swap(&BTreeMap::new(), &BTreeMap::from([(shard - 1, count * BYTES)]))?;
        let before = arrived.values().flat_map(|bytes| words(bytes));
        sums.iter_mut().zip(before).for_each(|(sum, before)| *sum = f64::from_ne_bytes(before));
    }
    let start = rows.start * BYTES;
    // SAFETY: the rows are unbroken stretches of the indices, which are inside the bins, and of the weights; both are done.
    unsafe { bins::sum(at(indices + start, BYTES), at(weights + start, BYTES), rows.len(), &mut sums) };
    let own: Vec<u8> = sums.iter().flat_map(|sum| sum.to_ne_bytes()).collect();
    if !exchange.is_divided() {
        return Ok(own);
    }
    if shard + 1 < exchange.shards() {
        exchange.swap(&BTreeMap::from([(shard + 1, own.clone())]), &BTreeMap::new())?;
    }
    // The last shard's are the sums over all.
    exchange.merged(own, count * BYTES, |_, upper| upper.to_vec())
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; BYTES]> {
    bytes.chunks_exact(BYTES).map(|chunk| {
        let mut word = [0; BYTES];
        word.copy_from_slice(chunk);
        word
    })
}

/// For each value of an unbroken array of `float64` (or `int64`), the number of sorted edges (their bytes, of the same type) before
/// it; `right`: and of those equal to it. `None` when it is for the host.
#[pyfunction]
pub(crate) fn searched<'py>(
    edges: &[u8],
    values: &Bound<'py, DeferredArray>,
    right: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = values.py();
    let shim = started(py);
    let places = shim.dtypes.at(shim.dtypes.descr(py, b'l').as_ptr() as usize);
    let found = unbroken(py, shim, values, b'd').map(|found| (found, true));
    let found = found.or_else(|| unbroken(py, shim, values, b'l').map(|found| (found, false)));
    let (Some(((offset, size, _), is_float)), Some(places)) = (found, places) else { return Ok(None) };
    let shape = values.get().describe(py);
    let target = ufuncs::fresh(py, shim, &shape.shape, &shape.strides, places)?;
    let operands = smallvec![
        column(&target.array.get().storage(py), 0, BYTES, Privilege::Write),
        column(&values.get().storage(py), offset, BYTES, Privilege::Read),
    ];
    let floats: Vec<f64> = words(edges).map(f64::from_ne_bytes).collect();
    let integers: Vec<i64> = words(edges).map(i64::from_ne_bytes).collect();
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        let rows = exchange.rows();
        let partition = Partition::natural(rows.len(), rows.len().div_ceil(TASK_ELEMENTS).max(1), 1);
        exchange.workers().each(partition.colours, &|colour| {
            let tile = partition.tile(colour);
            let place = (rows.start + tile.start) * BYTES;
            let (output, values) = (addresses[0] + place, addresses[1].wrapping_add_signed(offset) + place);
            // SAFETY: the rows are unbroken stretches of the values, which are done, and of the result, another field's.
            unsafe {
                if is_float {
                    bins::search(&floats, at(values, BYTES), tile.len(), at(output, BYTES), right);
                } else {
                    bins::search(&integers, at(values, BYTES), tile.len(), at(output, BYTES), right);
                }
            }
        });
        Ok(())
    };
    issue(py, shim, "searchsorted", (2, 0), smallvec![size, 1], operands, task)?;
    settled(py, shim, target).map(Some)
}
