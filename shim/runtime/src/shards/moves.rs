//! Moves: bytes that go from shard to shard before a group runs, one message for each pair of shards.
//!
//! Both ends list the same bytes in the same order, so messages have no headers. A list of one stretch is sent from and
//! received into the field's memory itself.
#![expect(unsafe_code, reason = "messages are parts of fields, named by address")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use crate::transport::{Channel, Receive, Send, Transport, TransportError};

/// Messages and bytes that this shard has sent; tests compare them exactly.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Messages that carried parts of fields or of totals.
    pub messages: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Messages by which shards agree on events of a window.
    pub agreements: AtomicU64,
    /// How many of the messages (without the agreements) of all shards one must follow another, at most.
    pub hops: AtomicU64,
}

/// Stretches of memory: address and length.
type Stretches = SmallVec<[(usize, usize); 2]>;

/// What is sent to and received from each shard.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    sends: BTreeMap<usize, Stretches>,
    receives: BTreeMap<usize, Stretches>,
}

impl Moves {
    /// Sends runs of a field whose memory starts at `address`.
    pub(crate) fn send(&mut self, to: usize, address: usize, runs: &[Range<usize>]) {
        add(&mut self.sends, to, address, runs);
    }

    /// Receives runs of a field whose memory starts at `address`.
    pub(crate) fn receive(&mut self, from: usize, address: usize, runs: &[Range<usize>]) {
        add(&mut self.receives, from, address, runs);
    }

    /// Carries the bytes of a step that all shards take at the same time.
    ///
    /// # Safety
    /// As [`Moves::hand_on`].
    pub(crate) unsafe fn run(self, transport: &dyn Transport, traffic: &Traffic) -> Result<(), TransportError> {
        if !self.sends.is_empty() || !self.receives.is_empty() {
            traffic.hops.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's.
        unsafe { self.hand_on(transport, traffic) }
    }

    /// Carries the bytes of a step that shards take one after the other.
    ///
    /// # Safety
    /// All stretches are inside live memory that nobody else touches meanwhile; received ones overlap nothing.
    pub(crate) unsafe fn hand_on(self, transport: &dyn Transport, traffic: &Traffic) -> Result<(), TransportError> {
        if self.sends.is_empty() && self.receives.is_empty() {
            return Ok(());
        }
        let carries = transport.carries();
        let packed: Vec<Vec<u8>> = self.sends.values().map(|stretches| pack(stretches, carries)).collect();
        let sends: Vec<Send<'_>> = self
            .sends
            .iter()
            .zip(&packed)
            .map(|((to, stretches), packed)| Send {
                to: *to,
                bytes: match stretches.as_slice() {
                    // SAFETY: the caller's.
                    [(address, length)] => unsafe { std::slice::from_raw_parts(*address as *const u8, *length) },
                    _ => packed,
                },
            })
            .collect();
        for send in &sends {
            traffic.messages.fetch_add(1, Ordering::Relaxed);
            traffic.bytes.fetch_add(send.bytes.len() as u64, Ordering::Relaxed);
        }
        let mut arrived: Vec<Vec<u8>> = self
            .receives
            .values()
            .map(|stretches| {
                let length = if stretches.len() > 1 { stretches.iter().map(|(_, length)| length).sum() } else { 0 };
                vec![0; length]
            })
            .collect();
        let mut receives: Vec<Receive<'_>> = self
            .receives
            .iter()
            .zip(&mut arrived)
            .map(|((from, stretches), arrived)| Receive {
                from: *from,
                bytes: match stretches.as_slice() {
                    // SAFETY: the caller's.
                    [(address, length)] => unsafe { std::slice::from_raw_parts_mut(*address as *mut u8, *length) },
                    _ => arrived,
                },
            })
            .collect();
        transport.exchange(Channel::Data, &sends, &mut receives)?;
        drop(receives);
        for (stretches, arrived) in self.receives.values().zip(&arrived) {
            if stretches.len() > 1 && carries {
                let mut place = 0;
                for (address, length) in stretches {
                    // SAFETY: the caller's; `arrived` is as long as the stretches together.
                    unsafe { std::ptr::copy_nonoverlapping(arrived[place..].as_ptr(), *address as *mut u8, *length) };
                    place += length;
                }
            }
        }
        Ok(())
    }
}

/// A step of a collective on the field whose memory starts at `address`: sends one run, receives another.
///
/// # Safety
/// As [`Moves::hand_on`].
pub(crate) unsafe fn swap(
    address: usize,
    sent: Option<(usize, Range<usize>)>,
    received: Option<(usize, Range<usize>)>,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    if sent.is_none() && received.is_none() {
        return Ok(());
    }
    traffic.hops.fetch_add(1, Ordering::Relaxed);
    let sends = sent.map(|(to, run)| {
        traffic.messages.fetch_add(1, Ordering::Relaxed);
        traffic.bytes.fetch_add(run.len() as u64, Ordering::Relaxed);
        // SAFETY: the caller's.
        Send { to, bytes: unsafe { std::slice::from_raw_parts((address + run.start) as *const u8, run.len()) } }
    });
    let mut receives = received.map(|(from, run)| {
        // SAFETY: the caller's.
        let bytes = unsafe { std::slice::from_raw_parts_mut((address + run.start) as *mut u8, run.len()) };
        Receive { from, bytes }
    });
    transport.exchange(Channel::Data, sends.as_slice(), receives.as_mut_slice())
}

fn add(messages: &mut BTreeMap<usize, Stretches>, shard: usize, address: usize, runs: &[Range<usize>]) {
    if !runs.is_empty() {
        let stretches = messages.entry(shard).or_default();
        stretches.extend(runs.iter().map(|run| (address + run.start, run.len())));
    }
}

/// The bytes of several stretches, one after the other (zeros, when they are not carried); nothing for a single one.
fn pack(stretches: &[(usize, usize)], carried: bool) -> Vec<u8> {
    if stretches.len() < 2 {
        return Vec::new();
    }
    let length = stretches.iter().map(|(_, length)| length).sum();
    if !carried {
        return vec![0; length];
    }
    let mut packed = Vec::with_capacity(length);
    for (address, length) in stretches {
        // SAFETY: the caller of `Moves::run` promises that the stretches are live memory.
        packed.extend_from_slice(unsafe { std::slice::from_raw_parts(*address as *const u8, *length) });
    }
    packed
}
