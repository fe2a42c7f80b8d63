//! A transport that is as unfair as the trait allows: for tests that results do not depend on timing.
//!
//! Delays exchanges by chance and puts messages for different shards in another order; those between two shards keep theirs.
//! Chance comes from a seed, the shard and the count of exchanges, so that a run can be played again. Loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;

use super::{Channel, Receive, Send, Transport, TransportError};

/// Another transport, with chance in its timing.
pub struct Chaos {
    inner: Arc<dyn Transport>,
    seed: u64,
    exchanges: AtomicU64,
    longest: Duration,
}

impl Chaos {
    /// Puts chance into a transport: delays of at most `longest`, most of them far shorter.
    pub fn new(inner: Arc<dyn Transport>, seed: u64, longest: Duration) -> Chaos {
        Chaos { inner, seed, exchanges: AtomicU64::new(0), longest }
    }
}

/// Well mixed bits from a number (SplitMix64's finaliser).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Transport for Chaos {
    fn shard(&self) -> usize {
        self.inner.shard()
    }

    fn shards(&self) -> usize {
        self.inner.shards()
    }

    fn exchange_while(
        &self,
        channel: Channel,
        sends: &[Send<'_>],
        receives: &mut [Receive<'_>],
        look: &mut dyn FnMut(),
    ) -> Result<(), TransportError> {
        let count = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let chance = mixed(mixed(mixed(self.seed) ^ self.shard() as u64) ^ count);
        // One in four waits; the lengths of waits spread over orders of magnitude.
        if chance.is_multiple_of(4) {
            std::thread::sleep(self.longest / (1 << (chance >> 8 & 15)));
        }
        // A stable sort by a key of the other shard alone keeps the order of each pair.
        let key = |shard: usize| mixed(chance ^ shard as u64);
        let mut sends: SmallVec<[Send<'_>; 8]> = sends.iter().copied().collect();
        sends.sort_by_key(|send| key(send.to));
        receives.sort_by_key(|receive| key(receive.from));
        self.inner.exchange_while(channel, &sends, receives, look)
    }
}
