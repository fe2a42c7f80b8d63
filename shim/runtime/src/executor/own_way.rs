//! Launches whose tasks work in their own way, each a group of its own: on whole operands, on any range of rows, or on elements
//! wherever they live.
//!
//! This decides nothing about what is shared out (`shards::share`); it brings what the task needs and notes where results live.
#![expect(unsafe_code, reason = "looks at sums of parts by address")]

use std::ops::Range;

use super::Executor;
use crate::group::Group;
use crate::launch::{Backend, Launch};
use crate::shards::{Exchange, collective, share};
use crate::transport::TransportError;

impl<B: Backend> Executor<B> {
    /// Runs a launch that is not divided: with several shards, each does all of it.
    pub(super) fn run_whole(&self, launch: &Launch<B::Task>) -> Result<(), TransportError> {
        if !self.is_alone() {
            for operand in &launch.operands {
                let bytes = operand.view.extent(&launch.domain);
                let bytes = bytes.start.max(0) as usize..bytes.end.max(0) as usize;
                let steps = share::gather(&operand.field, &bytes, &*self.transport, &self.traffic)?;
                self.balance.note(operand.field.bytes() / operand.view.item_bytes.max(1), 0, steps);
            }
        }
        let starts: Vec<usize> = launch.operands.iter().map(|operand| operand.field.materialize()).collect();
        self.backend.whole(launch, &starts, &self.workers);
        Ok(())
    }

    /// Runs a launch whose task takes any rows at once: this shard's, and all without others.
    pub(super) fn run_rows(&self, group: &Group<B::Task>) -> Result<(), TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let launch = &group.members[0].launch;
        let share = self.begin(group)?;
        let own = share.as_ref().map_or(0..group.rows, |share| share.rows.clone());
        let starts: Vec<usize> = launch.operands.iter().map(|operand| operand.field.materialize()).collect();
        self.backend.rows(launch, &starts, &own, &self.workers);
        let Some(share) = share else { return Ok(()) };
        let folded = launch.operands.iter().zip(&starts).find(|(operand, _)| operand.privilege.writes());
        if let Some((output, start)) = folded
            && launch.folds_rows()
            && !share.is_whole()
        {
            let extent = output.view.extent(&launch.domain);
            let (address, bytes) = (start.wrapping_add_signed(extent.start), (extent.end - extent.start) as usize);
            // SAFETY: the output's elements are these bytes of its field, which only the holder of the running role touches.
            let sums = || unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.to_vec();
            let merge = |lower: &[u8], upper: &[u8], _: Range<usize>| {
                self.backend.add_parts(launch, &[lower, upper].concat(), bytes, address);
                sums()
            };
            let all = collective::merge_all(transport, traffic, sums(), bytes, merge)?;
            self.backend.add_parts(launch, &all, bytes, address);
        }
        share::end(group, &share, transport, traffic)
    }

    /// Runs a launch whose task looks for elements wherever they live.
    pub(super) fn run_exchange(&self, group: &Group<B::Task>, along: usize, unit: usize) -> Result<(), TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let launch = &group.members[0].launch;
        let share = self.begin(group)?;
        let (share, least) = (share.as_ref(), self.mapper.min_tile);
        let others = &launch.operands[along..];
        let exchange = Exchange::new(others, group.rows, (unit, least), share, transport, traffic, &self.workers);
        let starts: Vec<usize> = launch.operands.iter().map(|operand| operand.field.materialize()).collect();
        self.backend.exchange(launch, &starts, &exchange)?;
        exchange.end()?;
        match share {
            Some(share) => share::end(group, share, transport, traffic),
            None => Ok(()),
        }
    }
}
