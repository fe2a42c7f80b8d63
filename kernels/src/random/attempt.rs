//! Draws that reject: attempts, and how a stretch of a stream is parsed into them.
//!
//! An attempt reads some units and makes some values or none. Where an attempt starts is all the state there is between
//! attempts, so two parses of one stream that start an attempt at the same unit agree from there on: that is what lets
//! `relay` parse stretches before it knows where exactly they begin. Nothing here writes results or knows a dtype.

use super::cursor::{Cursor, Unit};

/// Attempt starts remembered at the head of a stretch, for the previous stretch to meet.
const REMEMBERED: usize = 64;

/// A draw of values by attempts.
pub(super) trait Sampler: Send + Sync + 'static {
    /// What attempts read.
    type Unit: Unit;
    /// What they make.
    type Value: Copy + Default + Send + Sync + 'static;
    /// Values that a successful attempt makes.
    const VALUES: usize = 1;
    /// Units that an attempt reads at least.
    const UNITS: usize = 1;

    /// One attempt. Writes to the front of `values`, and returns how many it made.
    fn attempt(&self, cursor: &mut Cursor<Self::Unit>, values: &mut [Self::Value]) -> usize;

    /// Attempts from the front of `units` as long as they are simple: (units used, values made). Made values are at most
    /// one attempt's for each `UNITS` units.
    fn run(&self, units: &[Self::Unit], values: &mut [Self::Value]) -> (usize, usize);
}

/// Where attempts started at the head of a stretch: (unit, values made before it).
#[derive(Default)]
pub(super) struct Starts(Vec<(u64, usize)>);

impl Starts {
    /// Values made before the attempt that starts at `unit`, if one was seen to.
    pub(super) fn values_before(&self, unit: u64) -> Option<usize> {
        self.0.iter().find(|start| start.0 == unit).map(|start| start.1)
    }
}

/// Values that parsing `units` units can write: those of the attempts that start there.
pub(super) fn room_for<S: Sampler>(units: usize) -> usize {
    (units / S::UNITS + 1) * S::VALUES
}

/// Makes every attempt that starts before unit `end`; returns the values made and the first starts, the end's included.
pub(super) fn parse<S: Sampler>(
    sampler: &S,
    cursor: &mut Cursor<S::Unit>,
    end: u64,
    values: &mut [S::Value],
) -> (usize, Starts) {
    let mut made = 0;
    let mut starts = Vec::with_capacity(REMEMBERED + 1);
    while starts.len() < REMEMBERED && cursor.position() < end {
        starts.push((cursor.position(), made));
        made += sampler.attempt(cursor, &mut values[made..]);
    }
    while cursor.position() < end {
        let left = end - cursor.position();
        let units = cursor.ahead(left);
        let units = &units[..units.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let (used, more) = sampler.run(units, &mut values[made..]);
        let stuck = used < units.len();
        made += more;
        cursor.advance(used);
        if stuck {
            made += sampler.attempt(cursor, &mut values[made..]);
        }
    }
    starts.push((cursor.position(), made));
    (made, Starts(starts))
}

/// Makes attempts until one would start where `starts` saw one start, or at `end` or later; returns the values.
pub(super) fn parse_to_meet<S: Sampler>(
    sampler: &S,
    cursor: &mut Cursor<S::Unit>,
    end: u64,
    starts: &Starts,
) -> Vec<S::Value> {
    let mut values = Vec::new();
    let mut fresh = vec![S::Value::default(); S::VALUES];
    while cursor.position() < end && starts.values_before(cursor.position()).is_none() {
        let made = sampler.attempt(cursor, &mut fresh);
        values.extend_from_slice(&fresh[..made]);
    }
    values
}
