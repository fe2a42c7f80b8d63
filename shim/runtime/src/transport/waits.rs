//! Who this shard is waiting for: looked at by the watch, written by waits that take long.
//!
//! A wait that is over soon leaves no trace here. Holds what is so now, no history.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::Channel;

/// A wait.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Since when.
    pub since: Instant,
    /// Shards from which something is still to come, or that have not taken what is for them.
    pub shards: SmallVec<[usize; 4]>,
}

/// The waits of one shard, one at most on each channel.
#[derive(Debug, Default)]
pub struct Waits([Mutex<Option<Wait>>; 2]);

/// How long a wait is nobody's business.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

impl Waits {
    /// Notes that a channel waits, or no longer.
    pub(crate) fn set(&self, channel: Channel, wait: Option<Wait>) {
        *self.0[channel as usize].lock() = wait;
    }

    /// The waits that there are.
    pub fn now(&self) -> impl Iterator<Item = Wait> {
        self.0.iter().filter_map(|row| row.lock().clone())
    }
}
