//! Transports: how the shards of one program talk.
//!
//! A transport carries bytes between shards and knows nothing of what they mean. Every exchange is part of the same program
//! on every shard: who sends what to whom is computed by both ends, so no message carries a header and none is unexpected.
//! Promises: messages between two shards on one channel arrive in the order sent; a wait never blocks inside a
//! communication library (it polls with back-off); when the job is being stopped it ends with an error, or never, since the
//! process does.

mod backoff;
mod chaos;
pub mod collective;
mod planning;
mod plugin;
mod stop;
pub mod table;
mod threads;
mod waits;

pub use chaos::Chaos;
pub use planning::{Planning, Played};
pub use plugin::Plugin;
pub use stop::Stop;
pub use threads::Threads;
pub use waits::{Wait, Waits};

/// Independent streams of messages between the same two shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Parts of fields, from the executor, in program order.
    Data,
    /// What the shards agree on (values of clocks, outcomes of outside effects), from the program's main thread.
    Agreement,
}

/// Bytes for another shard.
#[derive(Clone, Copy, Debug)]
pub struct Send<'a> {
    /// Who gets them.
    pub to: usize,
    /// The bytes; not sent when empty.
    pub bytes: &'a [u8],
}

/// Room for bytes from another shard, of exactly the length sent.
#[derive(Debug)]
pub struct Receive<'a> {
    /// Who sends them.
    pub from: usize,
    /// Where they go; nothing is received when empty.
    pub bytes: &'a mut [u8],
}

/// Why an exchange did not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The job is being stopped; the reason is told elsewhere, once.
    #[error("the job is being stopped: {0}")]
    Stopped(String),
    /// The communication library failed.
    #[error("communication failed: {0}")]
    Failed(String),
}

/// A shard's connection to the others.
pub trait Transport: std::marker::Send + Sync {
    /// This shard's number.
    fn shard(&self) -> usize;
    /// Number of shards.
    fn shards(&self) -> usize;
    /// Sends and receives on a channel; returns when all of it is done. One thread at a time on each channel. `look` is called
    /// every now and then while this waits.
    fn exchange_while(
        &self,
        channel: Channel,
        sends: &[Send<'_>],
        receives: &mut [Receive<'_>],
        look: &mut dyn FnMut(),
    ) -> Result<(), TransportError>;
    /// Whether bytes arrive anywhere; where they do not, what messages hold need not be put together.
    fn carries(&self) -> bool {
        true
    }
    /// Sends and receives on a channel; returns when all of it is done.
    fn exchange(
        &self,
        channel: Channel,
        sends: &[Send<'_>],
        receives: &mut [Receive<'_>],
    ) -> Result<(), TransportError> {
        self.exchange_while(channel, sends, receives, &mut || ())
    }
}

/// The transport of a program with one shard.
#[derive(Debug, Default)]
pub struct Alone;

impl Transport for Alone {
    fn shard(&self) -> usize {
        0
    }

    fn shards(&self) -> usize {
        1
    }

    fn exchange_while(
        &self,
        _channel: Channel,
        _sends: &[Send<'_>],
        _receives: &mut [Receive<'_>],
        _look: &mut dyn FnMut(),
    ) -> Result<(), TransportError> {
        Ok(())
    }
}
