//! An interrupt under way, as shard 0 sees it: where every shard stands, and when all have come to one place.
//!
//! Each shard is asked to stand before its next operation and tells how many it has done. Those behind are let go on until they have
//! done as many as the foremost. When all have done equally many, and each stands or has done nothing for a while (it computes in
//! Python, sleeps, or waits for its arrays), all raise KeyboardInterrupt: nobody has come to the next operation, so the shards agree
//! on all that was done. Decides only; the watch carries it out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::gate::Order;

/// How long a shard that does not stand has for its way to the next operation.
const STILL: Duration = Duration::from_millis(300);

/// What is known of it.
#[derive(Debug)]
pub(super) struct Interrupt {
    shards: usize,
    until: u64,
    /// For each shard that has answered: operations done, and whether it stands.
    stands: BTreeMap<u64, (u64, bool)>,
    changed: Instant,
}

impl Interrupt {
    pub(super) fn new(shards: usize) -> Interrupt {
        Interrupt { shards, until: 0, stands: BTreeMap::new(), changed: Instant::now() }
    }

    /// The first order.
    pub(super) fn first(&self) -> Order {
        Order::Shut { until: self.until }
    }

    /// Hears where a shard is that obeys the order to stand from `until` on.
    pub(super) fn hear(&mut self, shard: u64, until: u64, done: u64, stands: bool) {
        if until == self.until && self.stands.insert(shard, (done, stands)) != Some((done, stands)) {
            self.changed = Instant::now();
        }
    }

    /// The next order, if it is time for one.
    pub(super) fn decide(&mut self) -> Option<Order> {
        if self.stands.len() < self.shards {
            return None;
        }
        let most = self.stands.values().map(|&(done, _)| done).max()?;
        if self.stands.values().all(|&(done, _)| done == most) {
            let all_stand = self.stands.values().all(|&(_, stands)| stands);
            return (all_stand || self.changed.elapsed() > STILL).then_some(Order::Raise);
        }
        if most > self.until {
            self.until = most;
            self.stands.clear();
            return Some(self.first());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Interrupt, STILL};
    use crate::watch::gate::Order;

    #[test]
    fn those_behind_catch_up_before_all_raise() {
        let mut interrupt = Interrupt::new(2);
        assert_eq!(interrupt.first(), Order::Shut { until: 0 });
        interrupt.hear(0, 0, 7, true);
        assert_eq!(interrupt.decide(), None);
        interrupt.hear(1, 0, 9, true);
        assert_eq!(interrupt.decide(), Some(Order::Shut { until: 9 }));
        interrupt.hear(0, 0, 7, true);
        interrupt.hear(1, 9, 9, true);
        assert_eq!(interrupt.decide(), None);
        interrupt.hear(0, 9, 8, false);
        std::thread::sleep(STILL * 2);
        assert_eq!(interrupt.decide(), None, "one is on its way");
        interrupt.hear(0, 9, 9, true);
        assert_eq!(interrupt.decide(), Some(Order::Raise));
    }

    #[test]
    fn those_that_do_not_stand_raise_after_a_while() {
        let mut interrupt = Interrupt::new(2);
        interrupt.hear(0, 0, 3, true);
        interrupt.hear(1, 0, 3, false);
        assert_eq!(interrupt.decide(), None);
        std::thread::sleep(STILL * 2);
        assert_eq!(interrupt.decide(), Some(Order::Raise));
    }
}
