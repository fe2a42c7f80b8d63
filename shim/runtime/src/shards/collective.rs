//! Collectives: what all shards do together, in steps whose number is the logarithm of the shards.
//!
//! Made of the transport's exchanges alone, so that the order of combination is ours and the same everywhere.

use std::ops::Range;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::moves::Traffic;
use crate::transport::{Channel, Receive, Send, Transport, TransportError};

/// A step of a collective, as one shard takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Who is sent what this shard has so far.
    pub(crate) to: Option<usize>,
    /// Who sends what it has so far.
    pub(crate) from: Option<usize>,
    /// The shards whose blocks this one has before the step.
    pub(crate) has: Range<usize>,
    /// The shards whose blocks arrive: neighbours of those, or everybody.
    pub(crate) gets: Range<usize>,
}

/// The steps by which every shard gets everybody's blocks: neighbours swap theirs, then pairs of neighbours, and so on, so that a
/// shard always has those of a range. Where the shards are no power of two the first few go in pairs, of which one shard
/// speaks for both: one step more at the beginning, and one at the end.
pub(crate) fn steps(shard: usize, shards: usize) -> SmallVec<[Step; 18]> {
    let places = 1 << shards.ilog2();
    let pairs = shards - places;
    // First shard of a place, and the one that speaks for it.
    let first = |place: usize| if place < pairs { 2 * place } else { place + pairs };
    let speaker = |place: usize| if place < pairs { 2 * place + 1 } else { place + pairs };
    let own = shard..shard + 1;
    let mut steps = SmallVec::new();
    let is_paired = shard < 2 * pairs;
    if is_paired && shard.is_multiple_of(2) {
        steps.push(Step { to: Some(shard + 1), from: None, has: own.clone(), gets: 0..0 });
        steps.push(Step { to: None, from: Some(shard + 1), has: own, gets: 0..shards });
        return steps;
    }
    if is_paired {
        steps.push(Step { to: None, from: Some(shard - 1), has: own, gets: shard - 1..shard });
    }
    let place = if is_paired { shard / 2 } else { shard - pairs };
    let mut distance = 1;
    while distance < places {
        let other = place ^ distance;
        let range = |place: usize| {
            let low = place & !(distance - 1);
            first(low)..first(low + distance)
        };
        let peer = Some(speaker(other));
        steps.push(Step { to: peer, from: peer, has: range(place), gets: range(other) });
        distance *= 2;
    }
    if is_paired {
        steps.push(Step { to: Some(shard - 1), from: None, has: 0..shards, gets: 0..0 });
    }
    steps
}

/// About how many of those steps follow one another: one less than there are where the shards are no power of two.
pub(crate) fn hops(shards: usize) -> usize {
    shards.next_power_of_two().ilog2() as usize
}

/// Merges the blocks of all shards into one, which every shard gets: a message is never longer than one block, of `size` bytes at
/// most. `merge` makes one block of two: that of some shards, that of the shards behind them, and which shards they are together.
pub(crate) fn merge_all(
    transport: &dyn Transport,
    traffic: &Traffic,
    mut block: Vec<u8>,
    size: usize,
    merge: impl Fn(&[u8], &[u8], Range<usize>) -> Vec<u8>,
) -> Result<Vec<u8>, TransportError> {
    let mut other = vec![0; size];
    let (mut hops, mut messages) = (0, 0);
    for Step { to, from, has, gets } in steps(transport.shard(), transport.shards()) {
        block.resize(size, 0);
        let sends = to.map(|to| Send { to, bytes: &block });
        let mut receives = from.map(|from| Receive { from, bytes: &mut other });
        transport.exchange(Channel::Data, sends.as_slice(), receives.as_mut_slice())?;
        hops += 1;
        messages += u64::from(to.is_some());
        if gets.is_empty() {
            continue;
        }
        block = if gets.end == has.start {
            merge(&other, &block, gets.start..has.end)
        } else if has.end == gets.start {
            merge(&block, &other, has.start..gets.end)
        } else {
            other.clone()
        };
    }
    traffic.hops.fetch_add(hops, Ordering::Relaxed);
    traffic.messages.fetch_add(messages, Ordering::Relaxed);
    traffic.bytes.fetch_add(messages * size as u64, Ordering::Relaxed);
    Ok(block)
}

/// The blocks of all shards before this one joined in their order, each `size` bytes or empty; None where there is none. `join`
/// makes one block of two.
pub(crate) fn before(
    transport: &dyn Transport,
    traffic: &Traffic,
    own: Vec<u8>,
    size: usize,
    join: impl Fn(&[u8], &[u8]) -> Vec<u8>,
) -> Result<Option<Vec<u8>>, TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    let both = |lower: &[u8], upper: &[u8]| match (lower.is_empty(), upper.is_empty()) {
        (true, _) => upper.to_vec(),
        (_, true) => lower.to_vec(),
        _ => join(lower, upper),
    };
    let (mut block, mut before) = (own, Vec::new());
    let (mut hops, mut messages, mut distance) = (0, 0, 1);
    while distance < shards {
        // A byte that says whether there is a block, and room for one.
        let mut told = vec![u8::from(!block.is_empty())];
        told.extend_from_slice(&block);
        told.resize(1 + size, 0);
        let mut heard = vec![0; 1 + size];
        let sends = (shard + distance < shards).then(|| Send { to: shard + distance, bytes: &told });
        let mut receives = shard.checked_sub(distance).map(|from| Receive { from, bytes: &mut heard });
        transport.exchange(Channel::Data, sends.as_slice(), receives.as_mut_slice())?;
        hops += 1;
        messages += u64::from(sends.is_some());
        let arrived = if heard[0] == 0 { &[] } else { &heard[1..] };
        block = both(arrived, &block);
        before = both(arrived, &before);
        distance *= 2;
    }
    traffic.hops.fetch_add(hops, Ordering::Relaxed);
    traffic.messages.fetch_add(messages, Ordering::Relaxed);
    traffic.bytes.fetch_add(messages * (1 + size) as u64, Ordering::Relaxed);
    Ok((!before.is_empty()).then_some(before))
}

/// Ors the bits of all shards into `bits`.
pub(crate) fn all_or(transport: &dyn Transport, traffic: &Traffic, bits: &mut [u8]) -> Result<(), TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    let mut others = vec![0; bits.len()];
    let mut agreements = 0;
    let mut step = 1;
    while step < shards {
        let sends = [Send { to: (shard + shards - step) % shards, bytes: bits }];
        let mut receives = [Receive { from: (shard + step) % shards, bytes: &mut others }];
        transport.exchange(Channel::Data, &sends, &mut receives)?;
        agreements += 1;
        for (bit, other) in bits.iter_mut().zip(&others) {
            *bit |= other;
        }
        step *= 2;
    }
    traffic.agreements.fetch_add(agreements, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::steps;

    #[test]
    fn every_shard_gets_every_block_once_and_in_few_steps() {
        for shards in 1..70_usize {
            for shard in 0..shards {
                let mut has = shard..shard + 1;
                let steps = steps(shard, shards);
                assert!(steps.len() <= shards.ilog2() as usize + if shards.is_power_of_two() { 0 } else { 2 });
                for (number, step) in steps.iter().enumerate() {
                    assert_eq!(step.has, has, "step {number} of shard {shard} of {shards}");
                    if step.gets == (0..shards) {
                        has = 0..shards;
                    } else if !step.gets.is_empty() {
                        assert!(step.gets.end == has.start || has.end == step.gets.start);
                        has = has.start.min(step.gets.start)..has.end.max(step.gets.end);
                    }
                }
                assert_eq!(has, 0..shards);
            }
        }
    }

    #[test]
    fn what_one_sends_the_other_receives() {
        for shards in 1..40 {
            for shard in 0..shards {
                let sent = steps(shard, shards).into_iter().filter_map(|step| Some((step.to?, step.has)));
                for (to, has) in sent {
                    let arrives = |step: &super::Step| step.from == Some(shard) && step.gets == has;
                    assert!(steps(to, shards).iter().any(arrives), "{shard} of {shards} to {to}");
                }
            }
        }
    }
}
