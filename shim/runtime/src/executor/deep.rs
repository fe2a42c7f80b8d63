//! Running joined sweeps on several shards: this shard's rows as one walk or, where it must store what is made on the way, one sweep
//! after the other; both after one exchange, and to the same bits.

use super::Executor;
use crate::launch::Backend;
use crate::pool::Block;
use crate::shards::deep::{self, Deep};
use crate::shards::share;
use crate::sweeps::Sweeps;
use crate::transport::TransportError;

impl<B: Backend> Executor<B> {
    /// Runs this shard's part of sweeps; each as a group of its own where they cannot be shared out together.
    pub(super) fn run_deep(&self, sweeps: &mut Sweeps<B::Task>) -> Result<(), TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let Some(deep) = deep::decide(sweeps, transport) else { return self.run_apart(sweeps) };
        // A result that is owed would have to be made again from the field as it was.
        for stage in &mut sweeps.stages {
            std::mem::take(&mut stage.group.owed).iter().for_each(|entry| stage.group.store(&entry.field));
        }
        let elements = sweeps.stages.iter().map(|stage| stage.group.largest()).max().unwrap_or(0);
        let work: usize = sweeps.stages.iter().map(|stage| stage.group.work()).sum();
        self.balance.note(elements, work - work / transport.shards(), 1);
        deep::begin(sweeps, &deep, transport, traffic)?;
        if !self.walk_deep(sweeps, &deep)? {
            self.run_stages(sweeps, &deep)?;
        }
        sweeps
            .stages
            .iter()
            .zip(&deep.shares)
            .try_for_each(|(stage, share)| share::end(&stage.group, share, transport, traffic))
    }

    /// Runs the rows that live here in one walk; false, and nothing is done, where that cannot be.
    fn walk_deep(&self, sweeps: &Sweeps<B::Task>, deep: &Deep) -> Result<bool, TransportError> {
        let rows = sweeps.rows();
        let own = deep.tile.start.max(rows.start)..deep.tile.end.min(rows.end);
        if sweeps.store_more() || own.is_empty() || !self.transport.carries() {
            return Ok(false);
        }
        let Some((run, partials)) = self.walk_sweeps(sweeps, &own) else { return Ok(false) };
        let ends = run.finish(partials, |index, compiled, addresses, parts| {
            self.finish(compiled, addresses, parts, Some(&deep.shares[index]))
        });
        ends.into_iter().collect::<Result<(), TransportError>>().map(|()| true)
    }

    /// Runs the rows that live here, and those that later sweeps read, sweep by sweep.
    fn run_stages(&self, sweeps: &mut Sweeps<B::Task>, deep: &Deep) -> Result<(), TransportError> {
        sweeps.part();
        let (before, after) = sweeps.reach();
        let kept = sweeps.bytes(&(deep.tile.start - before..deep.tile.end + after));
        let needed = sweeps.needed(&deep.tile);
        for ((stage, share), rows) in sweeps.stages.iter().zip(&deep.shares).zip(needed) {
            let group = &stage.group;
            self.counters.count(group);
            let rows = stage.group_rows(&rows);
            let mut second: Vec<(usize, Block)> = Vec::new();
            let addresses = self.addresses(group, &mut second, |_| Some(vec![kept.clone()]));
            let compiled = self.backend.lower(group);
            let cuts = self.cuts(group, &rows, group.elements());
            let partials = self.run_cuts(&compiled, &addresses, &cuts);
            self.finish(&compiled, &addresses, partials, Some(share))?;
            for (index, block) in second {
                drop(group.buffers[index].field.swap(block));
            }
        }
        Ok(())
    }
}
