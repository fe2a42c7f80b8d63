//! Counters: how much was run, exactly.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::group::Group;

/// Counts that tests compare exactly.
#[derive(Default)]
pub struct Counters {
    /// Groups run.
    pub groups: AtomicU64,
    /// Launches run.
    pub launches: AtomicU64,
    /// Tiles run.
    pub tiles: AtomicU64,
    /// Groups that ran behind another one, in one walk over memory.
    pub joined_sweeps: AtomicU64,
    /// Groups that were run in blocks.
    pub in_blocks: AtomicU64,
    /// Fields that were never stored.
    pub unstored: AtomicU64,
    /// Bytes of memory that groups read: within a group each byte once.
    pub read_bytes: AtomicU64,
    /// Bytes of memory that groups write.
    pub written_bytes: AtomicU64,
}

impl Counters {
    /// A group is about to be run.
    pub(super) fn count<T>(&self, group: &Group<T>) {
        let (read, written) = group.touched();
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.launches.fetch_add(group.members.len() as u64, Ordering::Relaxed);
        self.unstored.fetch_add(group.temporaries.len() as u64, Ordering::Relaxed);
        self.read_bytes.fetch_add(read as u64, Ordering::Relaxed);
        self.written_bytes.fetch_add(written as u64, Ordering::Relaxed);
    }
}
