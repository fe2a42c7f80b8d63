//! Exchanges: what the task of a launch is told of the shards when its values decide which elements it touches, and how it
//! brings together what lies apart.
//!
//! A task has its rows of the operands that are walked by rows. Of the others it may read or write in place what lives at its
//! shard ([`Exchange::own`]); what lives elsewhere is asked for or sent. Promises: all that an [`Exchange`] tells but its own
//! rows is the same on every shard; every method that sends must be called by all shards in the same order, and takes
//! a number of steps that is the logarithm of the shards, or one for each shard that there is something for.
#![expect(unsafe_code, reason = "carries parts of fields")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::collective;
use super::home::{Home, RowCut};
use super::moves::{Moves, Traffic};
use super::share::{self, Share};
use super::walk::bytes_of;
use crate::launch::{Operand, Parallel, Privilege};
use crate::transport::{Channel, Receive, Send, Transport, TransportError};

/// How the rows of a launch are shared out; equal ones give every shard the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division(Option<RowCut>);

/// What a task of a [`crate::Work::Exchange`] launch sees of the shards. Operands are named by their place behind those that are
/// walked by rows.
pub struct Exchange<'a> {
    transport: &'a dyn Transport,
    traffic: &'a Traffic,
    workers: &'a dyn Parallel,
    /// This shard's number, and how many there are: one where nothing is shared out.
    place: (usize, usize),
    rows: Range<usize>,
    cut: Option<RowCut>,
    others: &'a [Operand],
    /// Where the others live; None for what every shard has all of.
    homes: Vec<Option<Home>>,
    /// Ranges of pinned fields that exported pointers look at.
    pinned: RefCell<Vec<(usize, Range<usize>)>>,
    /// Bytes of a result that is to be everywhere are fewer.
    least: usize,
    /// Results of which every shard has written all.
    whole: RefCell<Vec<usize>>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        others: &'a [Operand],
        rows: usize,
        (unit, least): (usize, usize),
        share: Option<&Share>,
        transport: &'a dyn Transport,
        traffic: &'a Traffic,
        workers: &'a dyn Parallel,
    ) -> Exchange<'a> {
        let cut = share.and_then(Share::cut);
        let shards = transport.shards();
        let home = |operand: &Operand| {
            share?;
            let extent = operand.view.extent(&[1]);
            let layout = operand.field.layout();
            match operand.privilege {
                Privilege::Read if layout.is_everywhere(&bytes_of(&extent)) => None,
                Privilege::Read => layout.home(),
                Privilege::Write | Privilege::ReadWrite => layout.home().or_else(|| {
                    cut?;
                    let natural = RowCut::natural(operand.view.item_bytes / unit.max(1), 1, shards);
                    natural.home(unit as isize, &(extent.start..extent.start + unit as isize), 0)
                }),
            }
        };
        let homes = others.iter().map(home).collect();
        let rows = share.map_or(0..rows, |share| share.rows.clone());
        let place = share.map_or((0, 1), |_| (transport.shard(), shards));
        let (pinned, whole) = (RefCell::default(), RefCell::default());
        Exchange { transport, traffic, workers, place, rows, cut, others, homes, pinned, least: least * unit, whole }
    }

    /// The rows that this shard runs.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// The rows that a shard runs.
    pub fn rows_at(&self, shard: usize) -> Range<usize> {
        self.cut.map_or(self.rows.clone(), |cut| cut.rows_of(shard))
    }

    /// How the rows are shared out.
    pub fn division(&self) -> Division {
        Division(self.cut)
    }

    /// Whether each shard runs a part of the rows; otherwise each runs them all.
    pub fn is_divided(&self) -> bool {
        self.cut.is_some()
    }

    /// Most rows that a shard runs.
    pub fn longest(&self) -> usize {
        match &self.cut {
            None => self.rows.len(),
            Some(cut) => cut.rows_of(0).len().max(cut.rows_of(self.shards() - 1).len()).max(cut.most_rows()),
        }
    }

    /// This shard's number.
    pub fn shard(&self) -> usize {
        self.place.0
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.place.1
    }

    /// The threads to share work with.
    pub fn workers(&self) -> &dyn Parallel {
        self.workers
    }

    /// Whether parts of an operand live on different shards; otherwise every shard has all of it.
    pub fn is_spread(&self, operand: usize) -> bool {
        self.homes[operand].is_some()
    }

    /// The bytes of an operand's field that live at a shard.
    pub fn part(&self, operand: usize, shard: usize) -> Range<usize> {
        let bytes = self.others[operand].field.bytes();
        self.homes[operand].map_or(0..bytes, |home| home.range(shard, bytes))
    }

    /// For a task that knows all of a result on every shard: whether every shard writes all of it, since it is to be everywhere.
    pub fn writes_all(&self, operand: usize) -> bool {
        let result = &self.others[operand];
        let small = bytes_of(&result.view.extent(&[1])).len() < self.least && result.privilege == Privilege::Write;
        if small && self.is_spread(operand) {
            self.whole.borrow_mut().push(operand);
        }
        small || !self.is_spread(operand)
    }

    /// The bytes of an operand's field that this shard reads and writes in place.
    pub fn own(&self, operand: usize) -> Range<usize> {
        self.part(operand, self.shard())
    }

    /// The shards at which a range of bytes of an operand's field lives.
    pub fn owners(&self, operand: usize, bytes: &Range<usize>) -> Range<usize> {
        let own = self.shard();
        self.homes[operand].map_or(own..own + 1, |home| home.shards_of(bytes))
    }

    /// Whether every element of `width` bytes, `stride` bytes from one to the next and the first at `start`, lives at one shard.
    pub fn keeps_whole(&self, operand: usize, start: usize, stride: isize, width: usize) -> bool {
        let Some(home) = self.homes[operand] else { return true };
        let apart = stride.unsigned_abs().max(width);
        home.row_bytes.is_multiple_of(apart) && {
            let edge = (home.start - start as isize).rem_euclid(apart as isize) as usize;
            edge == 0 || edge >= width
        }
    }

    /// A number of every shard's.
    pub fn everyone(&self, number: u64) -> Result<Vec<u64>, TransportError> {
        let Some(_) = self.cut else { return Ok(vec![number]) };
        let shards = self.shards();
        let mut own = vec![0; shards];
        own[self.shard()] = number;
        let size = shards * size_of::<u64>();
        let merged = self.merged(bytes_from(&own), size, |lower, upper| {
            lower.iter().zip(upper).map(|(one, other)| one | other).collect()
        })?;
        Ok(numbers_in(&merged))
    }

    /// One block made of all shards' blocks of `size` bytes; `merge` makes one of two neighbouring ones.
    pub fn merged(
        &self,
        block: Vec<u8>,
        size: usize,
        merge: impl Fn(&[u8], &[u8]) -> Vec<u8>,
    ) -> Result<Vec<u8>, TransportError> {
        if self.shards() == 1 {
            return Ok(block);
        }
        collective::merge_all(self.transport, self.traffic, block, size, |lower, upper, _| merge(lower, upper))
    }

    /// Sums of numbers, place by place, of all shards before this one.
    pub fn before(&self, numbers: &[u64]) -> Result<Vec<u64>, TransportError> {
        let size = size_of_val(numbers);
        let sums = collective::before(self.transport, self.traffic, bytes_from(numbers), size, added)?;
        Ok(sums.map_or_else(|| vec![0; numbers.len()], |sums| numbers_in(&sums)))
    }

    /// Sums of numbers, place by place, of all shards.
    pub fn total(&self, numbers: &[u64]) -> Result<Vec<u64>, TransportError> {
        self.merged(bytes_from(numbers), size_of_val(numbers), added).map(|sums| numbers_in(&sums))
    }

    /// What each shard has for this one, where this one has `own[shard]` for each.
    pub fn dealt(&self, own: &[u64]) -> Result<Vec<u64>, TransportError> {
        let (shard, shards) = (self.shard(), self.shards());
        // Block i is on its way to the shard i places further on; a step carries it on by one bit of i.
        let mut blocks: Vec<u64> = (0..shards).map(|place| own[(shard + place) % shards]).collect();
        let mut bit = 1;
        while bit < shards {
            let moved: Vec<usize> = (0..shards).filter(|place| place & bit != 0).collect();
            let sent = bytes_from(&moved.iter().map(|place| blocks[*place]).collect::<Vec<u64>>());
            let mut arrived = vec![0; sent.len()];
            let sends = [Send { to: (shard + bit) % shards, bytes: &sent }];
            let mut receives = [Receive { from: (shard + shards - bit) % shards, bytes: &mut arrived }];
            self.carry(&sends, &mut receives)?;
            for (place, number) in moved.iter().zip(numbers_in(&arrived)) {
                blocks[*place] = number;
            }
            bit *= 2;
        }
        Ok((0..shards).map(|from| blocks[(shard + shards - from) % shards]).collect())
    }

    /// Gives bytes to other shards, and takes `incoming` bytes of each that sends some.
    pub fn swap(
        &self,
        outgoing: &BTreeMap<usize, Vec<u8>>,
        incoming: &BTreeMap<usize, usize>,
    ) -> Result<BTreeMap<usize, Vec<u8>>, TransportError> {
        let mut arrived: BTreeMap<usize, Vec<u8>> =
            incoming.iter().map(|(from, length)| (*from, vec![0; *length])).collect();
        let sends: Vec<Send<'_>> = outgoing.iter().map(|(to, bytes)| Send { to: *to, bytes }).collect();
        let mut receives: Vec<Receive<'_>> =
            arrived.iter_mut().map(|(from, bytes)| Receive { from: *from, bytes }).collect();
        self.carry(&sends, &mut receives)?;
        Ok(arrived)
    }

    /// Sends bytes to other shards, and receives others.
    pub fn carry(&self, sends: &[Send<'_>], receives: &mut [Receive<'_>]) -> Result<(), TransportError> {
        if sends.is_empty() && receives.is_empty() {
            return Ok(());
        }
        let sent = sends.iter().filter(|send| !send.bytes.is_empty());
        self.traffic.hops.fetch_add(1, Ordering::Relaxed);
        self.traffic.messages.fetch_add(sent.clone().count() as u64, Ordering::Relaxed);
        self.traffic.bytes.fetch_add(sent.map(|send| send.bytes.len() as u64).sum(), Ordering::Relaxed);
        self.transport.exchange(Channel::Data, sends, receives)
    }

    /// Sends parts of this shard's memory of an operand, and receives others in their places.
    ///
    /// # Panics
    /// Where a part lies outside the field, or one that is received overlaps another.
    pub fn pass(
        &self,
        operand: usize,
        sends: &[(usize, Range<usize>)],
        receives: &[(usize, Range<usize>)],
    ) -> Result<(), TransportError> {
        let field = &self.others[operand].field;
        let mut parts: Vec<&Range<usize>> = receives.iter().map(|(_, part)| part).collect();
        parts.sort_by_key(|part| part.start);
        assert!(parts.windows(2).all(|pair| pair[0].end <= pair[1].start), "parts that are received overlap");
        let mut all = sends.iter().chain(receives).map(|(_, part)| part);
        assert!(all.all(|part| part.end <= field.bytes()), "a part lies outside its field");
        assert!(
            receives
                .iter()
                .all(|(_, one)| sends.iter().all(|(_, other)| one.end <= other.start || other.end <= one.start)),
            "a part is sent and received"
        );
        let address = field.materialize();
        let mut moves = Moves::default();
        for (to, part) in sends.iter().filter(|(_, part)| !part.is_empty()) {
            moves.send(*to, address, std::slice::from_ref(part));
        }
        for (from, part) in receives.iter().filter(|(_, part)| !part.is_empty()) {
            moves.receive(*from, address, std::slice::from_ref(part));
        }
        // SAFETY: the executor's running role is the only one that touches instances, parts lie inside the field and received
        // ones overlap nothing, as was checked.
        unsafe { moves.run(self.transport, self.traffic) }
    }

    /// Gives every shard the newest values of a range of an operand's bytes.
    pub fn gather(&self, operand: usize, bytes: &Range<usize>) -> Result<(), TransportError> {
        if self.shards() == 1 {
            return Ok(());
        }
        share::gather(&self.others[operand].field, bytes, self.transport, self.traffic).map(drop)
    }

    /// Notes where what was written lives; what is small goes to everybody.
    pub(crate) fn end(&self) -> Result<(), TransportError> {
        if self.shards() == 1 {
            return Ok(());
        }
        for (number, operand) in self.others.iter().enumerate().filter(|(_, operand)| operand.privilege.writes()) {
            let extent = operand.view.extent(&[1]);
            let mut layout = operand.field.layout();
            let Some(home) = self.homes[number] else {
                layout.gather(bytes_of(&extent));
                continue;
            };
            if operand.field.is_pinned() {
                self.pinned.borrow_mut().extend(layout.shared().iter().map(|range| (number, range.clone())));
            }
            layout.write(home, &extent);
            drop(layout);
            if self.whole.borrow().contains(&number) {
                operand.field.layout().gather(bytes_of(&extent));
            } else if bytes_of(&extent).len() < self.least && operand.privilege == Privilege::Write {
                self.gather(number, &bytes_of(&extent))?;
            }
        }
        for (number, range) in self.pinned.take() {
            self.gather(number, &range)?;
        }
        Ok(())
    }
}

fn added(lower: &[u8], upper: &[u8]) -> Vec<u8> {
    let sums: Vec<u64> = numbers_in(lower).iter().zip(numbers_in(upper)).map(|(one, other)| one + other).collect();
    bytes_from(&sums)
}

fn bytes_from(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn numbers_in(bytes: &[u8]) -> Vec<u64> {
    let number = |chunk: &[u8]| {
        let mut number = [0; size_of::<u64>()];
        number.copy_from_slice(chunk);
        u64::from_ne_bytes(number)
    };
    bytes.chunks_exact(size_of::<u64>()).map(number).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::transport::{Stop, Threads};
    use crate::workers::Workers;

    fn on_all(shards: usize, task: impl Fn(&Exchange<'_>) + Sync) {
        let task = &task;
        std::thread::scope(|scope| {
            for transport in Threads::job(shards, &Arc::new(Stop::default())) {
                scope.spawn(move || {
                    let (traffic, workers) = (Traffic::default(), Workers::new(1));
                    let exchange = Exchange {
                        place: (transport.shard(), shards),
                        transport: &transport,
                        traffic: &traffic,
                        workers: &workers,
                        rows: 0..1,
                        cut: Some(RowCut::natural(shards, 1, shards)),
                        others: &[],
                        homes: Vec::new(),
                        pinned: RefCell::default(),
                        least: 0,
                        whole: RefCell::default(),
                    };
                    task(&exchange);
                    let steps = shards.next_power_of_two().ilog2() as u64;
                    assert!(traffic.hops.into_inner() <= 4 * (steps + 1));
                });
            }
        });
    }

    #[test]
    fn everyone_is_heard_and_dealt_to() {
        for shards in 1..10 {
            on_all(shards, |exchange| {
                let own = exchange.shard() as u64;
                let numbers = exchange.everyone(own * own).expect("threads do not fail");
                assert_eq!(numbers, (0..shards as u64).map(|shard| shard * shard).collect::<Vec<_>>());
                let given: Vec<u64> = (0..shards as u64).map(|to| own * 100 + to).collect();
                let taken = exchange.dealt(&given).expect("threads do not fail");
                let before = exchange.before(&[1, own]).expect("threads do not fail");
                assert_eq!(before, [own, (0..own).sum()]);
                let total = exchange.total(&[1, own]).expect("threads do not fail");
                assert_eq!(total, [shards as u64, (0..shards as u64).sum()]);
                assert_eq!(taken, (0..shards as u64).map(|from| from * 100 + own).collect::<Vec<_>>());
            });
        }
    }
}
