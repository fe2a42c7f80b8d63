//! Picks: how many elements of a mask are set in each stretch of a shard's rows, and where those of each shard go.
//!
//! What a count found is kept with the launches that use it, and counted anew only where their rows are shared out otherwise.
#![expect(unsafe_code, reason = "binds the counting kernel to addresses")]

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use legate_kernels::gather::{self, Strided};
use legate_runtime::partition::Partition;
use legate_runtime::transport::TransportError;
use legate_runtime::{Division, Exchange};

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

/// The bytes that are in both ranges, if there are any.
pub(crate) fn intersection(one: &Range<usize>, other: &Range<usize>) -> Option<Range<usize>> {
    let both = one.start.max(other.start)..one.end.min(other.end);
    (both.start < both.end).then_some(both)
}

/// The parts of a range of the first spread operand's bytes that live at other shards.
pub(crate) fn parts_of(
    bytes: &Range<usize>,
    exchange: &Exchange<'_>,
    part: impl Fn(usize) -> Range<usize>,
) -> Vec<(usize, Range<usize>)> {
    let owners = exchange.owners(0, bytes).filter(|shard| *shard != exchange.shard());
    owners.filter_map(|shard| Some((shard, intersection(bytes, &part(shard))?))).collect()
}
