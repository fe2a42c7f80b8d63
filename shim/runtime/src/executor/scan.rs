//! Launches of running totals, each a group of its own.
//!
//! A running total along an inner axis is each row's own. Along the rows it is a chain: each shard goes on from the row before its
//! first one, which the shard before it hands on, in blocks of columns, so that the next shard begins while this one works on
//! the rest. Where only one axis is left and parts may be put together in any way, each shard makes its own total first, and
//! learns that of all shards before it in steps whose number is the logarithm of the shards.
#![expect(unsafe_code, reason = "looks at parts of fields")]

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Executor;
use crate::group::Group;
use crate::launch::{Backend, Cut, From, Launch, Parallel};
use crate::partition::Partition;
use crate::shards::share;
use crate::shards::{chain, collective};
use crate::transport::TransportError;
use crate::view::View;

impl<B: Backend> Executor<B> {
    /// Runs a launch of running totals.
    pub(super) fn run_scan(&self, group: &Group<B::Task>, along_rows: bool) -> Result<(), TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let launch = &group.members[0].launch;
        let share = self.begin(group)?;
        let own = share.as_ref().map_or(0..group.rows, |share| share.rows.clone());
        let starts: Vec<usize> = launch.operands.iter().map(|operand| operand.field.materialize()).collect();
        let shared = share.as_ref().is_some_and(|share| !share.is_whole());
        if !along_rows {
            let elements = launch.domain.iter().product::<usize>();
            self.scan_cuts(launch, &starts, &self.cuts(group, &own, elements), From::Nothing);
        } else if !shared {
            self.scan_columns(launch, &starts, &own, None, From::Nothing);
        } else if launch.domain.len() == 1 && self.backend.joins_parts(launch) {
            self.scan_parts(launch, &starts, &own)?;
        } else {
            self.scan_chain(group, &starts, &own)?;
        }
        match share {
            Some(share) => share::end(group, &share, transport, traffic),
            None => Ok(()),
        }
    }

    fn scan_cuts(&self, launch: &Launch<B::Task>, starts: &[usize], cuts: &[Cut], from: From) {
        self.counters.tiles.fetch_add(cuts.len() as u64, Ordering::Relaxed);
        self.workers.each(cuts.len(), &|index| self.backend.scan(launch, starts, &cuts[index], from));
    }

    /// Runs rows in order, the columns of `inner` (or all) shared among the workers.
    fn scan_columns(
        &self,
        launch: &Launch<B::Task>,
        starts: &[usize],
        own: &Range<usize>,
        inner: Option<&Range<usize>>,
        from: From,
    ) {
        let columns = inner.cloned().or_else(|| launch.domain.get(1).map(|length| 0..*length));
        let cuts = match columns {
            None => vec![Cut::Rows(own.clone())],
            Some(columns) => {
                let each = own.len() * launch.domain.iter().skip(2).product::<usize>();
                let partition = Partition { length: columns.len(), colours: self.mapper.colours(columns.len(), each) };
                let part = |colour| columns.start + partition.edge(colour)..columns.start + partition.edge(colour + 1);
                (0..partition.colours).map(|colour| Cut::Inner(own.clone(), part(colour))).collect()
            }
        };
        self.scan_cuts(launch, starts, &cuts, from);
    }

    fn scan_chain(&self, group: &Group<B::Task>, starts: &[usize], own: &Range<usize>) -> Result<(), TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let launch = &group.members[0].launch;
        let length = launch.domain.get(1).copied();
        let blocks = length.map_or(1, |length| length.clamp(1, chain::BLOCKS));
        let from = if own.start == 0 { From::Nothing } else { From::RowBefore };
        for block in 0..blocks {
            let inner = length.map(|length| Partition { length, colours: blocks }.tile(block));
            if own.start > 0 {
                chain::hand_row(group, own.start - 1, inner.as_ref(), true, transport, traffic)?;
            }
            if !own.is_empty() {
                self.scan_columns(launch, starts, own, inner.as_ref(), from);
            }
            if own.end > 0 {
                chain::hand_row(group, own.end - 1, inner.as_ref(), false, transport, traffic)?;
            }
        }
        traffic.hops.fetch_add((transport.shards() - 1 + blocks - 1) as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Totals of one axis: this shard's own, then what all before it come to.
    fn scan_parts(&self, launch: &Launch<B::Task>, starts: &[usize], own: &Range<usize>) -> Result<(), TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let Some(index) = launch.operands.iter().position(|operand| operand.privilege.writes()) else { return Ok(()) };
        let view: &View = &launch.operands[index].view;
        let at = |row: usize| starts[index].wrapping_add_signed(view.offset + row as isize * view.row_stride());
        let item = view.item_bytes;
        let mut total = Vec::new();
        if !own.is_empty() {
            self.scan_columns(launch, starts, own, None, From::Nothing);
            // SAFETY: the last own row is an element inside its field, which only the holder of the running role touches.
            total = unsafe { std::slice::from_raw_parts(at(own.end - 1) as *const u8, item) }.to_vec();
        }
        let joined = |lower: &[u8], upper: &[u8]| {
            let mut sum = vec![0; item];
            self.backend.add_parts(launch, &[lower, upper].concat(), item, sum.as_mut_ptr() as usize);
            sum
        };
        let before = collective::before(transport, traffic, total, item, joined)?;
        if let Some(before) = before.filter(|_| !own.is_empty() && own.start > 0) {
            // The row before lives elsewhere, and has this value there.
            self.backend.add_parts(launch, &before, item, at(own.start - 1));
            self.scan_columns(launch, starts, own, None, From::Added);
        }
        Ok(())
    }
}
