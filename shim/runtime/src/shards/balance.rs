//! Balance: whether it pays to share out arrays of about a size, told by what the program has done with them so far.
//!
//! Arrays of middling size are shared out at first. Each group that touches them adds what sharing out has saved, and takes off what
//! the steps of its exchanges cost, which wait for other shards. Where arrays of a size have cost too much - a program goes through
//! the columns of one - they are whole on every shard from then on, until it has done so much with them that it is worth another try;
//! so a wrong guess costs little beside the program. Promises to be the same on every shard: all counts follow from the groups'
//! shapes and from layouts, in program order. Nothing is measured.

use parking_lot::Mutex;

use super::{chain, collective};
use crate::group::{Group, Member};
use crate::launch::{Launch, Work};

/// Element operations that take as long as a step of an exchange: an estimate, since nothing is measured.
const STEP: i64 = 50_000;
/// How many times the loss that was too much sharing out must have been able to save, until it is tried again.
const WORTH: i64 = 100;
/// Bytes that take as long on their way as a step, by the same estimate.
const STEP_BYTES: usize = 64 << 10;
/// Collectives that a task takes which looks for elements wherever they live, about.
const EXCHANGE: usize = 6;
/// Sizes are told apart by powers of two.
const SIZES: usize = usize::BITS as usize;

/// What became of arrays of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    /// Whether they stay whole.
    whole: bool,
    /// Element operations saved, less what the steps cost; while they stay whole, what would have been saved.
    saved: i64,
}

/// The accounts of a program.
#[derive(Debug)]
pub(crate) struct Balance {
    /// The loss that is too much.
    most: i64,
    /// Arrays of so many elements are shared out in any case.
    large: usize,
    accounts: Mutex<[Account; SIZES]>,
}

impl Balance {
    /// Without any experience. Arrays of less than `large` elements stay whole once sharing them out has cost `steps` steps more than
    /// it has saved.
    pub(crate) fn new(steps: usize, large: usize) -> Balance {
        let most = i64::try_from(steps).unwrap_or(i64::MAX).saturating_mul(STEP);
        Balance { most, large, accounts: Mutex::new([Account::default(); SIZES]) }
    }

    /// Whether arrays of so many elements stay whole on every shard.
    pub(crate) fn keeps_whole(&self, elements: usize) -> bool {
        elements < self.large && self.accounts.lock()[size(elements)].whole
    }

    /// Notes a group that touches arrays of so many elements: element operations that sharing out saves a shard, and steps of
    /// exchanges that it takes.
    pub(crate) fn note(&self, elements: usize, saved: usize, steps: usize) {
        if elements >= self.large {
            return;
        }
        let mut accounts = self.accounts.lock();
        let account = &mut accounts[size(elements)];
        let change = saved as i64 - (steps as i64).saturating_mul(STEP);
        if account.whole {
            account.saved = account.saved.saturating_add(saved as i64);
            if account.saved > self.most.saturating_mul(WORTH) {
                *account = Account::default();
            }
        } else {
            // What was saved long ago excuses no more than that.
            account.saved = account.saved.saturating_add(change).min(self.most);
            if account.saved < -self.most {
                *account = Account { whole: true, saved: 0 };
            }
        }
    }
}

/// Steps of exchanges amid a group, by its launches' kinds.
pub(crate) fn steps_within<T>(group: &Group<T>, shards: usize) -> usize {
    let all = collective::hops(shards);
    let steps = |member: &Member<T>| match member.launch.work {
        Work::Total => all,
        Work::Rows if member.launch.folds_rows() => all,
        Work::Accumulate | Work::Scan { along_rows: true } => shards - 1 + chain::BLOCKS,
        Work::Exchange { .. } => all * EXCHANGE,
        Work::Map | Work::Fold { .. } | Work::Rows | Work::Scan { along_rows: false } | Work::Whole => 0,
    };
    group.members.iter().map(steps).max().unwrap_or(0)
}

/// Steps of a gather of so many bytes that live on several shards.
pub(crate) fn steps_of_gather(bytes: usize, shards: usize) -> usize {
    collective::hops(shards) + bytes / STEP_BYTES
}

/// Steps by which every shard gets what an undivided launch looks for elements in.
pub(crate) fn steps_of_others<T>(group: &Group<T>, shards: usize) -> usize {
    let steps = |launch: &Launch<T>| {
        let others = launch.operands[launch.along()..].iter().filter(|operand| operand.field.layout().home().is_some());
        others.map(|operand| steps_of_gather(operand.field.bytes(), shards)).sum::<usize>()
    };
    group.members.iter().map(|member| steps(&member.launch)).sum()
}

fn size(elements: usize) -> usize {
    elements.max(1).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_whose_exchanges_cost_more_than_they_save_stay_whole() {
        let balance = Balance::new(4, 1 << 20);
        for _ in 0..4 {
            balance.note(1000, 10, 1);
            assert!(!balance.keeps_whole(1000));
        }
        balance.note(1000, 10, 1);
        assert!(balance.keeps_whole(1000));
        assert!(balance.keeps_whole(600));
        assert!(!balance.keeps_whole(2000));
    }

    #[test]
    fn work_that_would_be_shared_is_shared_again() {
        let balance = Balance::new(1, 1 << 20);
        balance.note(1000, 0, 2);
        assert!(balance.keeps_whole(1000));
        let enough = usize::try_from(STEP * WORTH).expect("a positive number");
        balance.note(1000, enough, 0);
        assert!(balance.keeps_whole(1000));
        balance.note(1000, 1, 0);
        assert!(!balance.keeps_whole(1000));
    }

    #[test]
    fn what_pays_is_shared_for_ever() {
        let balance = Balance::new(2, 1 << 20);
        for _ in 0..1000 {
            balance.note(1000, 60_000, 1);
        }
        assert!(!balance.keeps_whole(1000));
    }
}
