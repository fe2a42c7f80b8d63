//! Running groups whose shares are blocks: this shard's rectangle, cut by rows for its workers.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Executor;
use crate::fuse::Rules;
use crate::group::{Group, Split};
use crate::launch::{Backend, Cut};
use crate::partition::Partition;
use crate::pool::Block;
use crate::shards::rectangles;
use crate::transport::TransportError;

impl<B: Backend> Executor<B> {
    /// Whether the policy of blocks is in force.
    pub(super) fn in_blocks(&self) -> bool {
        self.mapper.blocks && !self.is_alone()
    }

    /// What may be joined.
    pub(super) fn rules(&self) -> Rules {
        Rules { joins: self.mapper.fusion, in_blocks: self.in_blocks() }
    }

    /// Runs a group in blocks; false, and what it touches lives in rows, where it must be run in rows.
    pub(super) fn run_blocks(&self, group: &mut Group<B::Task>) -> Result<bool, TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let Some(share) = rectangles::decide(group, &self.mapper, transport) else {
            rectangles::to_rows(group, transport, traffic)?;
            if group.split == Split::Rows && !group.members[0].launch.work.is_alone() {
                group.merge_axes();
            }
            return Ok(false);
        };
        rectangles::begin(group, &share, transport, traffic)?;
        let (rows, columns) = share.ranges();
        if columns.is_some() {
            group.split = Split::Inner;
        }
        let mut second: Vec<(usize, Block)> = Vec::new();
        let addresses =
            self.addresses(group, &mut second, |index| Some(share.carries(group, index, transport.shard())));
        let compiled = self.backend.lower(group);
        let cuts = self.block_cuts(group, &rows, columns.as_ref());
        let partials = self.run_cuts(&compiled, &addresses, &cuts);
        self.finish(&compiled, &addresses, partials, None)?;
        for (index, block) in second {
            drop(group.buffers[index].field.swap(block));
        }
        rectangles::end(group, &share);
        self.counters.in_blocks.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    fn block_cuts(&self, group: &Group<B::Task>, rows: &Range<usize>, columns: Option<&Range<usize>>) -> Vec<Cut> {
        let (outer, width) = (columns.map_or(1, |_| 2), columns.map_or(1, Range::len));
        let inner: usize = group.members[0].launch.domain[outer..].iter().product();
        let colours = if width == 0 { 0 } else { self.mapper.colours(rows.len(), width * inner) };
        let partition = Partition { length: rows.len(), colours };
        let tiles = (0..colours).map(|colour| partition.tile(colour)).filter(|tile| !tile.is_empty());
        let tiles = tiles.map(|tile| rows.start + tile.start..rows.start + tile.end);
        tiles
            .map(|rows| columns.map_or_else(|| Cut::Rows(rows.clone()), |own| Cut::Inner(rows.clone(), own.clone())))
            .collect()
    }
}
