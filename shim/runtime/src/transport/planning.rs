//! A transport that plays one shard of any number: nothing is sent, agreements receive zeros, and everything is counted.
//!
//! For the cost and the messages of planning on machines that nobody has. Values that depend on other shards are wrong. Parts of
//! fields that would be received stay as they were: nothing touches memory in proportion to the number of shards.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Channel, Receive, Send, Transport, TransportError};

/// One shard of a job that is only played.
#[derive(Debug)]
pub struct Planning {
    shard: usize,
    shards: usize,
    exchanges: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// What a played shard has exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// Exchanges with anything to send or receive.
    pub exchanges: u64,
    /// Messages sent.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
}

impl Planning {
    /// Shard `shard` of `shards`.
    pub fn new(shard: usize, shards: usize) -> Planning {
        let [exchanges, messages, bytes] = [(); 3].map(|()| AtomicU64::new(0));
        Planning { shard, shards, exchanges, messages, bytes }
    }

    /// What has been exchanged so far.
    pub fn played(&self) -> Played {
        let [exchanges, messages, bytes] =
            [&self.exchanges, &self.messages, &self.bytes].map(|count| count.load(Ordering::Relaxed));
        Played { exchanges, messages, bytes }
    }
}

impl Transport for Planning {
    fn shard(&self) -> usize {
        self.shard
    }

    fn shards(&self) -> usize {
        self.shards
    }

    fn carries(&self) -> bool {
        false
    }

    fn exchange_while(
        &self,
        channel: Channel,
        sends: &[Send<'_>],
        receives: &mut [Receive<'_>],
        _look: &mut dyn FnMut(),
    ) -> Result<(), TransportError> {
        let sent = sends.iter().filter(|send| !send.bytes.is_empty());
        let (messages, bytes) = sent.fold((0, 0), |(messages, bytes), send| (messages + 1, bytes + send.bytes.len()));
        let any = messages > 0 || receives.iter().any(|receive| !receive.bytes.is_empty());
        self.exchanges.fetch_add(u64::from(any), Ordering::Relaxed);
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if channel == Channel::Agreement {
            receives.iter_mut().for_each(|receive| receive.bytes.fill(0));
        }
        Ok(())
    }
}
