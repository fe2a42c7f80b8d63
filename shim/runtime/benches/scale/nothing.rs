//! A backend that computes nothing, so that what is left is planning.

use std::ops::Range;

use legate_runtime::group::Group;
use legate_runtime::transport::TransportError;
use legate_runtime::{Backend, Cut, Effort, Exchange, From, Launch, Parallel, Sequence, Work};

/// Bytes of a node and of the loose values of a part of a pairwise sum of doubles.
const NODE_BYTES: usize = 16;
const LOOSE_BYTES: usize = 256 * 8;

/// Computes nothing; its parts of totals are as long as those of sums of doubles.
pub(crate) struct Nothing;

impl Backend for Nothing {
    type Task = ();
    /// Most bytes of a part of the group's totals.
    type Compiled = usize;
    type Partial = ();

    fn effort(&self, (): &()) -> Effort {
        Effort::More
    }

    fn lower(&self, group: &Group<()>) -> usize {
        let totals = group.members.iter().filter(|member| member.launch.work == Work::Total);
        let nodes = |elements: usize| 2 * (elements.max(1).ilog2() as usize + 1) + 2;
        totals.map(|total| nodes(total.launch.domain.iter().product()) * NODE_BYTES + LOOSE_BYTES).sum()
    }

    fn run(&self, _: &usize, _: &[usize], _: &Cut) {}

    fn finish(&self, _: &usize, _: &[usize], _: Vec<()>) {}

    fn part_bytes(&self, bytes: &usize) -> usize {
        *bytes
    }

    fn pack(&self, bytes: &usize, _: Vec<()>, _: &Range<usize>) -> Vec<u8> {
        Vec::with_capacity(*bytes)
    }

    fn unpack(&self, _: &usize, _: &[u8]) {}

    fn take_events(&self, _: Sequence, _: &mut [u8]) {}

    fn give_events(&self, _: Sequence, _: &[u8]) {}

    fn rows(&self, _: &Launch<()>, _: &[usize], _: &Range<usize>, _: &dyn Parallel) {}

    fn scan(&self, _: &Launch<()>, _: &[usize], _: &Cut, _: From) {}

    fn joins_parts(&self, _: &Launch<()>) -> bool {
        false
    }

    fn add_parts(&self, _: &Launch<()>, _: &[u8], _: usize, _: usize) {}

    fn exchange(&self, _: &Launch<()>, _: &[usize], _: &Exchange<'_>) -> Result<(), TransportError> {
        Ok(())
    }

    fn whole(&self, _: &Launch<()>, _: &[usize], _: &dyn Parallel) {}
}
