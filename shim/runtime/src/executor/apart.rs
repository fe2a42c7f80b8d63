//! Results that are owed on several shards: which ones are, and how each shard makes its part of them again.
//!
//! Promises that nothing here sends anything, so that it does not matter which shard has stored a result and which has not: layouts
//! say where parts live in either case. Does not decide what could stay unstored (`fuse`, `owed`).

use std::sync::Arc;

use super::Executor;
use crate::field::Field;
use crate::fuse::{self, Rules};
use crate::group::Group;
use crate::launch::Backend;
use crate::owed::{self, Owed};
use crate::shards::share::Share;
use crate::transport::TransportError;

/// How the recipe of a result that is owed becomes a group.
const JOINS: Rules = Rules { joins: true, in_blocks: false };

impl<B: Backend> Executor<B> {
    /// Number of shards.
    pub(crate) fn shards(&self) -> usize {
        self.transport.shards()
    }

    /// Of the results that a group need not store, keeps those owed that this shard can make again by itself; the others are stored.
    pub(super) fn keep_apart(&self, group: &mut Group<B::Task>, share: &Share) {
        for mut entry in std::mem::take(&mut group.owed) {
            let mut groups = fuse::plan(std::mem::take(&mut entry.recipe), JOINS, None);
            let single = groups.pop().filter(|_| groups.is_empty());
            let shard = self.transport.shard();
            entry.apart = single.and_then(|again| {
                let share = share.apart(&again, &entry.field, shard)?;
                Some(Box::new((again, share)))
            });
            match entry.apart {
                Some(_) => group.owed.push(entry),
                None => group.store(&entry.field),
            }
        }
    }

    /// Makes this shard's parts of results that are owed. The caller holds the role.
    pub(super) fn make_apart(&self, entries: Vec<Owed<B::Task>>) -> Result<(), TransportError> {
        for entry in entries {
            if let Some(apart) = &entry.apart {
                let (group, share) = &**apart;
                let addresses: Vec<usize> = group.buffers.iter().map(|buffer| buffer.field.materialize()).collect();
                self.run_tiles(group, &addresses, Some(share))?;
            }
            owed::strike(entry);
        }
        Ok(())
    }

    /// Makes this shard's part of a field that the program looks at and, where that may change it, of what was made from it.
    pub(crate) fn settle_apart(&self, field: &Arc<Field>, changes: bool) {
        let _role = self.running.lock();
        self.guard(|| self.make_apart(self.ledger.due_for(field, changes)));
    }
}
