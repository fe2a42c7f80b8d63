//! What all shards do together on the agreement channel: shard 0's bytes for everyone, everyone's bytes for everyone.
//!
//! Both go along a binomial tree: log2(shards) messages one after the other, and no shard sends or receives more than that many.
//! Every shard must call the same ones in the same order.

use super::{Channel, Receive, Send, Transport, TransportError};

/// Bytes of the first message of a broadcast: the length, and what fits of the payload. Longer payloads take a second one.
const HEAD_BYTES: usize = 256;
/// Bytes of a length.
const LENGTH_BYTES: usize = 8;

/// The shard that a shard hears from; none for shard 0.
pub(crate) fn parent(shard: usize) -> Option<usize> {
    (shard != 0).then_some(shard & (shard.wrapping_sub(1)))
}

/// The shards that a shard tells, those with the most others beneath first.
pub(crate) fn children(shard: usize, shards: usize) -> impl DoubleEndedIterator<Item = usize> {
    let bits = if shard == 0 { usize::BITS - shards.leading_zeros() } else { shard.trailing_zeros() };
    (0..bits).rev().map(move |bit| shard + (1 << bit)).filter(move |&child| child < shards)
}

/// Shard 0's bytes, on every shard; the others' `payload` counts for nothing.
pub fn broadcast(
    transport: &dyn Transport,
    payload: Vec<u8>,
    look: &mut dyn FnMut(),
) -> Result<Vec<u8>, TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    let mut head = [0u8; HEAD_BYTES];
    let mut whole = payload;
    match parent(shard) {
        None => {
            head[..LENGTH_BYTES].copy_from_slice(&(whole.len() as u64).to_le_bytes());
            let fits = whole.len().min(HEAD_BYTES - LENGTH_BYTES);
            head[LENGTH_BYTES..LENGTH_BYTES + fits].copy_from_slice(&whole[..fits]);
        }
        Some(from) => {
            receive(transport, from, &mut head, look)?;
            let length = length_in(&head);
            whole = vec![0; length];
            if length <= HEAD_BYTES - LENGTH_BYTES {
                whole.copy_from_slice(&head[LENGTH_BYTES..LENGTH_BYTES + length]);
            } else {
                receive(transport, from, &mut whole, look)?;
            }
        }
    }
    let second: &[u8] = if whole.len() <= HEAD_BYTES - LENGTH_BYTES { &[] } else { &whole };
    let sends: Vec<Send<'_>> =
        children(shard, shards).flat_map(|to| [Send { to, bytes: &head }, Send { to, bytes: second }]).collect();
    transport.exchange_while(Channel::Agreement, &sends, &mut [], look)?;
    Ok(whole)
}

/// The bytes of every shard, in the order of the shards, on every shard.
pub fn gather(transport: &dyn Transport, own: &[u8], look: &mut dyn FnMut()) -> Result<Vec<Vec<u8>>, TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    // The entries of this shard and all beneath it: a binomial subtree is a range of shards, which arrive in order.
    let mut entries = (own.len() as u64).to_le_bytes().to_vec();
    entries.extend_from_slice(own);
    for from in children(shard, shards).rev() {
        let mut length = [0u8; LENGTH_BYTES];
        receive(transport, from, &mut length, look)?;
        let start = entries.len();
        entries.resize(start + length_in(&length), 0);
        receive(transport, from, &mut entries[start..], look)?;
    }
    if let Some(to) = parent(shard) {
        let length = (entries.len() as u64).to_le_bytes();
        let sends = [Send { to, bytes: &length }, Send { to, bytes: &entries }];
        transport.exchange_while(Channel::Agreement, &sends, &mut [], look)?;
    }
    let all = broadcast(transport, entries, look)?;
    let mut rest = all.as_slice();
    let mut rows = Vec::with_capacity(shards);
    while !rest.is_empty() {
        let (row, after) = rest[LENGTH_BYTES..].split_at(length_in(rest));
        rows.push(row.to_vec());
        rest = after;
    }
    Ok(rows)
}

fn receive(
    transport: &dyn Transport,
    from: usize,
    bytes: &mut [u8],
    look: &mut dyn FnMut(),
) -> Result<(), TransportError> {
    transport.exchange_while(Channel::Agreement, &[], &mut [Receive { from, bytes }], look)
}

fn length_in(bytes: &[u8]) -> usize {
    let mut length = [0u8; LENGTH_BYTES];
    length.copy_from_slice(&bytes[..LENGTH_BYTES]);
    u64::from_le_bytes(length) as usize
}

#[cfg(test)]
mod tests {
    use super::{children, parent};

    #[test]
    fn the_tree_reaches_every_shard_once_and_is_shallow() {
        for shards in 1..70 {
            for shard in 1..shards {
                let above = parent(shard).expect("only shard 0 has none");
                assert!(children(above, shards).any(|child| child == shard), "{shard} of {shards}");
            }
            let edges: usize = (0..shards).map(|shard| children(shard, shards).count()).sum();
            assert_eq!(edges, shards - 1);
            assert!(children(0, shards).count() <= usize::BITS as usize - shards.leading_zeros() as usize);
        }
    }
}
