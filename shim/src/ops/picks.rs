//! Picks: how many elements of a mask are set in each stretch of a shard's rows, and where those of each shard go.
//!
//! What a count found is kept with the launches that use it, and counted anew only where their rows are shared out otherwise.
#![expect(unsafe_code, reason = "binds the counting kernel to addresses")]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use legate_kernels::gather::{self, Strided};
use legate_runtime::partition::Partition;
use legate_runtime::transport::TransportError;
use legate_runtime::{Division, Exchange, Operand, Privilege, Sequence};
use parking_lot::Mutex;
use pyo3::prelude::*;
use smallvec::smallvec;

use super::exchange::{column, intersection, issue, parts_of};
use crate::array::{DeferredArray, Shape};
use crate::state::Shim;

/// Elements that one task looks at: enough to outweigh its start, small enough to share out evenly.
const TASK_ELEMENTS: usize = 1 << 16;

/// What was found in one sharing out of a mask's rows.
#[derive(Clone)]
pub(crate) struct Picked {
    division: Division,
    first: usize,
    partition: Partition,
    /// For each stretch of this shard's rows, the number of set elements before it in the whole mask.
    before: Vec<usize>,
    /// For each shard, the number of set elements before its rows; and the number of all.
    shards: Vec<usize>,
}

impl Picked {
    /// Number of stretches.
    pub(crate) fn stretches(&self) -> usize {
        self.before.len()
    }

    /// The rows of a stretch, and the number of set elements before it.
    pub(crate) fn stretch(&self, stretch: usize) -> (Range<usize>, usize) {
        let tile = self.partition.tile(stretch);
        (self.first + tile.start..self.first + tile.end, self.before[stretch])
    }

    /// The numbers of the set elements in a shard's rows.
    pub(crate) fn places(&self, shard: usize) -> Range<usize> {
        match self.shards.as_slice() {
            [start, end] => *start..*end,
            edges => edges[shard]..edges[shard + 1],
        }
    }

    /// Sends elements of `bytes` bytes that were picked here to where they live, and takes those that live here.
    pub(crate) fn bring_home(&self, exchange: &Exchange<'_>, bytes: usize) -> Result<(), TransportError> {
        if !exchange.is_divided() {
            return Ok(());
        }
        let scaled = |places: Range<usize>| places.start * bytes..places.end * bytes;
        let sends = parts_of(&scaled(self.places(exchange.shard())), exchange);
        let own = exchange.own(0);
        let others = self.shards_of(&(own.start / bytes..own.end.div_ceil(bytes)));
        let receives: Vec<_> = others
            .filter(|shard| *shard != exchange.shard())
            .filter_map(|shard| Some((shard, intersection(&own, &scaled(self.places(shard)))?)))
            .collect();
        exchange.pass(0, &sends, &receives)
    }

    /// The shards in whose rows the set elements of these numbers are, or a range of shards that holds them.
    pub(crate) fn shards_of(&self, places: &Range<usize>) -> Range<usize> {
        if places.is_empty() {
            return 0..0;
        }
        let first = self.shards.partition_point(|edge| *edge <= places.start).saturating_sub(1);
        let last = self.shards.partition_point(|edge| *edge < places.end);
        first..last.min(self.shards.len() - 1)
    }
}

/// What a launch that counts has found.
#[derive(Default)]
pub(crate) struct Found(OnceLock<Picked>);

impl Found {
    /// Keeps what was found.
    pub(crate) fn keep(&self, picked: Picked) {
        self.0.get_or_init(|| picked);
    }

    /// Number of set elements; 0 before they are counted.
    pub(crate) fn total(&self) -> usize {
        self.0.get().and_then(|picked| picked.shards.last().copied()).unwrap_or(0)
    }

    /// What there is in the rows of a launch on the mask at `address`.
    pub(crate) fn here(&self, address: usize, exchange: &Exchange<'_>) -> Result<Picked, TransportError> {
        match self.0.get() {
            Some(picked) if picked.division == exchange.division() => Ok(picked.clone()),
            Some(_) | None => count(address, exchange),
        }
    }
}

/// The unbroken mask as an operand of a launch over two axes.
pub(crate) fn mask_rows(py: Python<'_>, mask: &Bound<'_, DeferredArray>, picks: &Shape) -> Operand {
    column(&mask.get().storage(py), picks.offset, 1, Privilege::Read)
}

/// A mask whose set elements were counted: its field, the launch that wrote it last, and its place in the field.
type Counted = (u64, Sequence, isize, usize);

/// The last count: programs pick from several arrays by one mask.
static LAST: Mutex<Option<(Counted, Arc<Found>)>> = Mutex::new(None);

/// How many elements of an unbroken mask are set; waits for the mask.
pub(crate) fn found(
    py: Python<'_>,
    shim: &Shim,
    mask: &Bound<'_, DeferredArray>,
    picks: &Shape,
) -> PyResult<Arc<Found>> {
    let storage = mask.get().storage(py);
    let field = storage.get().field();
    let counted: Counted = (field.number(), field.last_write(), picks.offset, picks.size());
    if storage.get().is_unseen()
        && let Some((known, found)) = &*LAST.lock()
        && *known == counted
    {
        return Ok(found.clone());
    }
    let found = Arc::new(Found::default());
    let (kept, offset) = (found.clone(), picks.offset);
    let task = move |addresses: &[usize], exchange: &Exchange<'_>| {
        kept.keep(count(addresses[0].wrapping_add_signed(offset), exchange)?);
        Ok(())
    };
    let operands = smallvec![mask_rows(py, mask, picks)];
    let sequence = issue(py, shim, "count", (1, 0), smallvec![picks.size(), 1], operands, task)?;
    shim.wait(py, sequence)?;
    *LAST.lock() = Some((counted, found.clone()));
    Ok(found)
}

/// Counts the set elements of an unbroken mask in this shard's rows, and tells the other shards.
pub(crate) fn count(address: usize, exchange: &Exchange<'_>) -> Result<Picked, TransportError> {
    let rows = exchange.rows();
    let partition = Partition::natural(rows.len(), rows.len().div_ceil(TASK_ELEMENTS).max(1), 1);
    let found: Vec<AtomicUsize> = (0..partition.colours).map(|_| AtomicUsize::new(0)).collect();
    exchange.workers().each(partition.colours, &|colour| {
        let tile = partition.tile(colour);
        let mask = Strided { address: (address + rows.start + tile.start) as *mut u8, stride: 1 };
        // SAFETY: the rows are an unbroken stretch of the mask inside its field, and are done.
        let set = unsafe { gather::count_set(mask, tile.len()) };
        found[colour].store(set, Ordering::Relaxed);
    });
    let counts = found.into_iter().map(AtomicUsize::into_inner);
    let counts: Vec<usize> = counts.collect();
    let own: usize = counts.iter().sum();
    let mut shards = vec![0];
    for number in exchange.everyone(own as u64)? {
        shards.push(shards[shards.len() - 1] + number as usize);
    }
    let mut next = if exchange.is_divided() { shards[exchange.shard()] } else { 0 };
    let before = counts.iter().map(|count| {
        next += count;
        next - count
    });
    let before = before.collect();
    Ok(Picked { division: exchange.division(), first: rows.start, partition, before, shards })
}
