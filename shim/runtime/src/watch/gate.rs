//! The gate: before each operation the program's thread passes it, and stands still where shards are about to agree on an interrupt.
//!
//! Promises that an open gate costs one load, that a thread which stands comes to the next operation only by an order, and that an
//! order to raise is taken once. Does not know other shards: the watch gives the orders.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// What holds at a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// Pass.
    #[default]
    Open,
    /// Stand, once so many operations are done.
    Shut {
        /// So many.
        until: u64,
    },
    /// Raise KeyboardInterrupt.
    Raise,
}

#[derive(Debug, Default)]
struct State {
    order: Order,
    stands: bool,
}

/// The gate of one shard.
#[derive(Debug, Default)]
pub struct Gate {
    /// Whether there is any order but to pass.
    minded: AtomicBool,
    /// Operations that were done at once, and so are in no digest.
    steps: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// Whether the thread has to [`Gate::stand`].
    #[inline]
    pub fn is_minded(&self) -> bool {
        self.minded.load(Ordering::Acquire)
    }

    /// Counts an operation that is done at once.
    #[inline]
    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Release);
    }

    /// Number of these.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Acquire)
    }

    /// Obeys the order, `done` operations having been done: stands for as long as it says so; whether an interrupt is to be raised.
    pub fn stand(&self, done: u64) -> bool {
        let mut state = self.state.lock();
        loop {
            match state.order {
                Order::Shut { until } if done >= until => {
                    state.stands = true;
                    self.changed.wait(&mut state);
                }
                Order::Open | Order::Shut { .. } => {
                    state.stands = false;
                    return false;
                }
                Order::Raise => {
                    state.stands = false;
                    self.put(&mut state, Order::Open);
                    return true;
                }
            }
        }
    }

    /// Takes an order to raise, if there is one.
    pub fn take(&self) -> bool {
        let mut state = self.state.lock();
        let taken = state.order == Order::Raise;
        if taken {
            self.put(&mut state, Order::Open);
        }
        taken
    }

    /// Forgets the order.
    pub fn open(&self) {
        self.order(Order::Open);
    }

    pub(super) fn order(&self, order: Order) {
        self.put(&mut self.state.lock(), order);
        self.changed.notify_all();
    }

    fn put(&self, state: &mut State, order: Order) {
        state.order = order;
        self.minded.store(order != Order::Open, Ordering::Release);
    }

    /// From which count on threads stand, where they are to, and whether one does.
    pub(super) fn standing(&self) -> Option<(u64, bool)> {
        let state = self.state.lock();
        match state.order {
            Order::Shut { until } => Some((until, state.stands)),
            Order::Open | Order::Raise => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, Order};
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn an_interrupt_is_raised_once() {
        let gate = Gate::default();
        assert!(!gate.is_minded() && !gate.stand(0) && !gate.take());
        gate.order(Order::Raise);
        assert!(gate.is_minded() && gate.stand(0) && !gate.take() && !gate.is_minded());
        gate.order(Order::Raise);
        assert!(gate.take() && !gate.stand(0));
    }

    #[test]
    fn a_shut_gate_lets_pass_until_the_count() {
        let gate = Arc::new(Gate::default());
        gate.order(Order::Shut { until: 5 });
        assert!(!gate.stand(4));
        let other = gate.clone();
        let stands = thread::spawn(move || other.stand(5));
        while gate.standing() != Some((5, true)) {
            thread::sleep(Duration::from_millis(1));
        }
        gate.order(Order::Shut { until: 6 });
        assert!(!stands.join().expect("it passed"));
        assert_eq!(gate.standing(), Some((6, false)));
        gate.open();
        assert_eq!(gate.standing(), None);
    }
}
