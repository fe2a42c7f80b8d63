//! Collectives: what all shards do together, in steps whose number is the logarithm of the shards.
//!
//! Made of the transport's exchanges alone, so that the order of combination is ours and the same everywhere.
#![expect(unsafe_code, reason = "gathers memory of fields, named by address")]

use std::sync::atomic::Ordering;

use super::moves::Traffic;
use crate::transport::{Channel, Receive, Send, Transport, TransportError};

/// Gives every shard everybody's block: `blocks` holds one block of `size` bytes for each shard, of which this shard has
/// filled its own.
pub(crate) fn all_gather(
    transport: &dyn Transport,
    traffic: &Traffic,
    blocks: &mut [u8],
    size: usize,
) -> Result<(), TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    // Block `i` of `turned` is that of shard `shard + i`.
    let mut turned = vec![0; blocks.len()];
    turned[..size].copy_from_slice(&blocks[shard * size..(shard + 1) * size]);
    let mut step = 1;
    while step < shards {
        let count = step.min(shards - step) * size;
        let (known, unknown) = turned.split_at_mut(step * size);
        let sends = [Send { to: (shard + shards - step) % shards, bytes: &known[..count] }];
        let mut receives = [Receive { from: (shard + step) % shards, bytes: &mut unknown[..count] }];
        transport.exchange(Channel::Data, &sends, &mut receives)?;
        traffic.messages.fetch_add(1, Ordering::Relaxed);
        traffic.bytes.fetch_add(count as u64, Ordering::Relaxed);
        step *= 2;
    }
    let split = (shards - shard) * size;
    blocks[shard * size..].copy_from_slice(&turned[..split]);
    blocks[..shard * size].copy_from_slice(&turned[split..]);
    Ok(())
}

/// Everybody's bytes at an address of its own, in the order of the shards.
pub(crate) fn gather_memory(
    transport: &dyn Transport,
    traffic: &Traffic,
    address: usize,
    bytes: usize,
) -> Result<Vec<u8>, TransportError> {
    let mut blocks = vec![0; bytes * transport.shards()];
    // SAFETY: the executor names memory of a field that only the holder of the running role touches.
    let own = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
    blocks[transport.shard() * bytes..][..bytes].copy_from_slice(own);
    all_gather(transport, traffic, &mut blocks, bytes)?;
    Ok(blocks)
}

/// Ors the bits of all shards into `bits`.
pub(crate) fn all_or(transport: &dyn Transport, traffic: &Traffic, bits: &mut [u8]) -> Result<(), TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    let mut others = vec![0; bits.len()];
    let mut step = 1;
    while step < shards {
        let sends = [Send { to: (shard + shards - step) % shards, bytes: bits }];
        let mut receives = [Receive { from: (shard + step) % shards, bytes: &mut others }];
        transport.exchange(Channel::Data, &sends, &mut receives)?;
        traffic.agreements.fetch_add(1, Ordering::Relaxed);
        for (bit, other) in bits.iter_mut().zip(&others) {
            *bit |= other;
        }
        step *= 2;
    }
    Ok(())
}
