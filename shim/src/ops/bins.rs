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
/// `float64`, as many) sum up to. With `blocks`, a number of indices and the letter of a dtype, those of so many are summed up by
/// themselves, and their sums then added up as numbers of that dtype. The numbers' bytes; `None` when it is for the host.
#[pyfunction]
#[pyo3(signature = (indices, count, weights = None, blocks = None))]
pub(crate) fn binned<'py>(
    indices: &Bound<'py, DeferredArray>,
    count: usize,
    weights: Option<&Bound<'py, DeferredArray>>,
    blocks: Option<(usize, char)>,
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
            Some(first) => {
                let weighted = Weighted { indices, weights: addresses[1].wrapping_add_signed(first), count };
                match blocks {
                    None => weighted.sums(exchange)?,
                    Some((length, kind)) => weighted.sums_of_blocks(length, kind, size, exchange)?,
                }
            }
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

/// Addresses of indices and their weights, and the number of bins.
#[derive(Clone, Copy)]
struct Weighted {
    indices: usize,
    weights: usize,
    count: usize,
}

impl Weighted {
    /// Adds weights of rows to sums, one after the other.
    fn add(&self, rows: Range<usize>, sums: &mut [f64]) {
        let start = rows.start * BYTES;
        // SAFETY: callers pass rows of unbroken stretches of the indices, which are inside the bins, and of the weights; both are done.
        unsafe { bins::sum(at(self.indices + start, BYTES), at(self.weights + start, BYTES), rows.len(), sums) };
    }

    /// What the weights of all rows sum up to, one after the other.
    fn sums(&self, exchange: &Exchange<'_>) -> Result<Vec<u8>, TransportError> {
        handed_on(self.count, exchange, |before| {
            let mut sums: Vec<f64> = words(before).map(f64::from_ne_bytes).collect();
            self.add(exchange.rows(), &mut sums);
            sums.iter().flat_map(|sum| sum.to_ne_bytes()).collect()
        })
    }

    /// Sums of the sums of blocks of rows. What goes from shard to shard are those of whole blocks, and of the block that goes on.
    fn sums_of_blocks(
        &self,
        length: usize,
        kind: char,
        size: usize,
        exchange: &Exchange<'_>,
    ) -> Result<Vec<u8>, TransportError> {
        let own = exchange.rows();
        let first = own.start.next_multiple_of(length).min(own.end);
        let whole = (own.end - first) / length;
        let block = |number: usize| {
            let (start, mut sums) = (first + number * length, vec![0.0; self.count]);
            self.add(start..start + length, &mut sums);
            sums
        };
        // Whole blocks do not wait for the shards before, where their sums take no more room than they do.
        let ready: Vec<Mutex<Vec<f64>>> = match self.count <= length {
            true => (0..whole).map(|_| Mutex::default()).collect(),
            false => Vec::new(),
        };
        exchange.workers().each(ready.len(), &|number| *ready[number].lock() = block(number));
        let width = self.count * BYTES;
        let sums = handed_on(2 * self.count, exchange, |before| {
            let (before, open) = before.split_at(width);
            let mut total = before.to_vec();
            let mut open: Vec<f64> = words(open).map(f64::from_ne_bytes).collect();
            self.add(own.start..first, &mut open);
            if first > own.start && first.is_multiple_of(length) {
                add_block(kind, &mut total, &std::mem::replace(&mut open, vec![0.0; self.count]));
            }
            for number in 0..whole {
                match ready.get(number) {
                    Some(sums) => add_block(kind, &mut total, &sums.lock()),
                    None => add_block(kind, &mut total, &block(number)),
                }
            }
            self.add(first + whole * length..own.end, &mut open);
            if own.end == size && !size.is_multiple_of(length) && !own.is_empty() {
                add_block(kind, &mut total, &std::mem::replace(&mut open, vec![0.0; self.count]));
            }
            total.extend(open.iter().flat_map(|sum| sum.to_ne_bytes()));
            total
        })?;
        Ok(sums[..width].to_vec())
    }
}

/// Adds a block's sums to totals of a dtype: `f` for `float32`, `l` for `int64`, else `float64`; each takes eight bytes.
fn add_block(kind: char, total: &mut [u8], sums: &[f64]) {
    for (bytes, sum) in total.chunks_exact_mut(BYTES).zip(sums) {
        let Some(word) = words(bytes).next() else { continue };
        bytes.copy_from_slice(&match kind {
            'f' => f64::from((f64::from_ne_bytes(word) as f32) + (*sum as f32)).to_ne_bytes(),
            'l' => (i64::from_ne_bytes(word).wrapping_add(*sum as i64)).to_ne_bytes(),
            _ => (f64::from_ne_bytes(word) + sum).to_ne_bytes(),
        });
    }
}

/// What the last shard makes of `count` numbers when each goes on from those of the shard before, the first from zeros.
fn handed_on(
    count: usize,
    exchange: &Exchange<'_>,
    make: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Result<Vec<u8>, TransportError> {
    let shard = exchange.shard();
    let mut before = vec![0; count * BYTES];
    if exchange.is_divided() && shard > 0 {
        let arrived = exchange.swap(&BTreeMap::new(), &BTreeMap::from([(shard - 1, before.len())]))?;
        arrived.values().for_each(|bytes| before.copy_from_slice(bytes));
    }
    let own = make(&before);
    if !exchange.is_divided() {
        return Ok(own);
    }
    if shard + 1 < exchange.shards() {
        exchange.swap(&BTreeMap::from([(shard + 1, own.clone())]), &BTreeMap::new())?;
    }
    // The last shard's are those of all.
    let size = own.len();
    exchange.merged(own, size, |_, upper| upper.to_vec())
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
