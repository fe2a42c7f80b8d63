//! The executor: runs closed windows, group by group, in program order.
//!
//! There is one role, *running*, held by at most one thread at a time: the background thread while Python runs ahead, or
//! the waiting thread itself, which then has no hand-over to wait for. Whoever runs shares the tiles of a group with the
//! worker threads. The executor never takes the GIL.
//!
//! A waiting thread runs short windows itself. Long ones it leaves to the background thread, so that it can give up waiting and
//! look for signals; nothing that was issued is lost by that.
//!
//! Rules: windows enter the queue in program order; `completed` only grows; it is stored after the group's instances
//! are in place; a failure (a bug, caught as a panic) is kept and given to every later wait, so that nothing hangs.
mod apart;
mod blocks;
mod counters;
mod deep;
mod instances;
mod own_way;
mod scan;
mod sweep;

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub use counters::Counters;

use crate::closed::Closed;
use crate::field::{Field, Sequence};
use crate::fuse;
use crate::group::{Group, Split};
use crate::launch::{Backend, Cut, Effort, Launch, Parallel, Work};
use crate::mapper::Mapper;
use crate::owed::{Ledger, Owed, Terms};
use crate::partition::Partition;
use crate::pool::{Block, Pool};
use crate::recording;
use crate::reuse;
use crate::shards::balance::Balance;
use crate::shards::share::{self, Share};
use crate::shards::{Traffic, chain, collective, parts};
use crate::sweeps::{self, Walk};
use crate::timeline::Timeline;
use crate::transport::{Transport, TransportError};
use crate::workers::Workers;

pub(crate) struct Executor<B: Backend> {
    backend: B,
    mapper: Mapper,
    pool: Arc<Pool>,
    transport: Arc<dyn Transport>,
    pub(crate) traffic: Traffic,
    balance: Balance,
    pub(crate) workers: Workers,
    queue: Mutex<VecDeque<Closed<B::Task>>>,
    arrived: Condvar,
    /// Whether a background thread serves the queue.
    served: AtomicBool,
    running: Mutex<()>,
    /// Told of every group that is done.
    progress: Mutex<()>,
    progressed: Condvar,
    completed: AtomicU64,
    failure: Mutex<Option<String>>,
    plan: Mutex<String>,
    /// The windows since [`Executor::record`] was called, as text.
    recorded: Mutex<Option<String>>,
    ledger: Ledger<B::Task>,
    pub(crate) counters: Counters,
    pub(crate) timeline: Timeline,
}

impl<B: Backend> Executor<B> {
    pub(crate) fn new(backend: B, mapper: Mapper, pool: Arc<Pool>, transport: Arc<dyn Transport>) -> Executor<B> {
        Executor {
            workers: Workers::new(mapper.cpus),
            balance: Balance::new(mapper.most_steps, mapper.always_spread()),
            backend,
            mapper,
            pool,
            transport,
            traffic: Traffic::default(),
            queue: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
            served: AtomicBool::new(false),
            running: Mutex::new(()),
            progress: Mutex::new(()),
            progressed: Condvar::new(),
            completed: AtomicU64::new(0),
            failure: Mutex::new(None),
            plan: Mutex::new(String::new()),
            recorded: Mutex::new(None),
            ledger: Ledger::new(),
            counters: Counters::default(),
            timeline: Timeline::default(),
        }
    }

    pub(crate) fn backend(&self) -> &B {
        &self.backend
    }

    pub(crate) fn completed(&self) -> Sequence {
        self.completed.load(Ordering::Acquire)
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    pub(crate) fn plan_text(&self) -> String {
        self.plan.lock().clone()
    }

    /// Begins to record windows; what was recorded before.
    pub(crate) fn record(&self) -> String {
        self.recorded.lock().replace(String::new()).unwrap_or_default()
    }

    /// Puts a closed window at the end of the queue, for the background thread; returns how many are waiting.
    pub(crate) fn enqueue(&self, launches: Vec<Launch<B::Task>>) -> usize {
        let waiting = self.append(launches);
        self.arrived.notify_one();
        waiting
    }

    /// As [`Executor::enqueue`], for a thread that comes to [`Executor::wait`] next: the background thread is not woken.
    pub(crate) fn append(&self, launches: Vec<Launch<B::Task>>) -> usize {
        if let Some(text) = &mut *self.recorded.lock() {
            recording::write(&launches, text);
        }
        let window = Closed::new(launches);
        let mut queue = self.queue.lock();
        queue.push_back(window);
        queue.len()
    }

    /// Whether a background thread is wanted; says that one comes.
    pub(crate) fn start_serving(&self) -> bool {
        !self.workers.is_alone() && !self.served.swap(true, Ordering::AcqRel)
    }

    /// Body of the background thread, until [`Executor::stop_serving`].
    pub(crate) fn serve(&self) {
        loop {
            {
                let mut queue = self.queue.lock();
                while queue.is_empty() {
                    if !self.served.load(Ordering::Acquire) {
                        return;
                    }
                    self.arrived.wait(&mut queue);
                }
            }
            let _role = self.running.lock();
            self.run_next();
        }
    }

    /// Runs or waits until launch `sequence` is done, whose window must have been closed, or until `patience` is over; whether it
    /// is done. What the caller leaves is the background thread's.
    pub(crate) fn wait(&self, sequence: Sequence, patience: Duration) -> Result<bool, String> {
        let done = self.run_until(sequence, patience);
        if !matches!(done, Ok(true)) {
            self.arrived.notify_one();
        }
        done
    }

    fn run_until(&self, sequence: Sequence, patience: Duration) -> Result<bool, String> {
        let deadline = Instant::now() + patience;
        while self.completed() < sequence {
            // With several shards a group may have to wait for others, and signals must be seen meanwhile.
            let short = self.is_alone() && self.queue.lock().front().is_none_or(|window| window.short);
            if short || !self.served.load(Ordering::Acquire) {
                let Some(_role) = self.running.try_lock_until(deadline) else { return Ok(false) };
                if self.completed() < sequence && !self.run_next() {
                    let lost = format!("launch {sequence} was never queued");
                    return Err(self.failure().unwrap_or(lost));
                }
            } else {
                self.arrived.notify_one();
                let mut progress = self.progress.lock();
                if self.completed() < sequence && self.progressed.wait_until(&mut progress, deadline).timed_out() {
                    return Ok(self.completed() >= sequence);
                }
            }
        }
        match self.failure() {
            Some(failure) => Err(failure),
            None => Ok(true),
        }
    }

    fn complete(&self, sequence: Sequence) {
        self.completed.fetch_max(sequence, Ordering::AcqRel);
        drop(self.progress.lock());
        self.progressed.notify_all();
    }

    /// Has the background thread end as soon as it is idle.
    pub(crate) fn stop_serving(&self) {
        let _queue = self.queue.lock();
        self.served.store(false, Ordering::Release);
        self.arrived.notify_all();
    }

    /// In a forked child: there are no threads left but this one, so it does everything itself.
    pub(crate) fn forked(&self) {
        self.workers.leave_alone();
    }

    /// Runs the window at the head of the queue. The caller holds the role.
    fn run_next(&self) -> bool {
        let Some(window) = self.queue.lock().pop_front() else { return false };
        let first = window.launches.first().map_or(0, |launch| launch.sequence);
        let last = window.launches.last().map_or(0, |launch| launch.sequence);
        self.guard(|| {
            let effort = |task: &B::Task| self.backend.effort(task);
            let regrets = |kind| self.ledger.regrets(kind);
            let least_bytes = self.mapper.min_owed();
            // A fork's child of a shard stores what it makes.
            let owes = !self.in_blocks() && (self.transport.shards() == 1 || !self.is_alone());
            let keeps_made = self.transport.shards() == 1;
            let terms = owes.then_some(Terms { least_bytes, effort: &effort, regrets: &regrets, keeps_made });
            self.ledger.forget(self.completed());
            let launches = match self.transport.shards() {
                1 => self.ledger.settle(window.launches),
                _ => {
                    self.make_apart(self.ledger.due(&window.launches))?;
                    window.launches
                }
            };
            for mut walk in self.walks(fuse::plan(launches, self.rules(), terms.as_ref())) {
                if self.mapper.show_plan {
                    self.plan.lock().push_str(&walk.to_string());
                }
                let groups = walk.groups();
                let launches = || groups.iter().flat_map(|group| &group.members).map(|member| &member.launch);
                let done = launches().last().map_or(0, |launch| launch.sequence);
                let repaid = self.ledger.repaid(launches());
                let begun = self.timeline.begin(&groups, &self.traffic);
                match &mut walk {
                    Walk::Group(group) => self.run_group(group, &repaid)?,
                    Walk::Sweeps(sweeps) => self.run_sweeps(sweeps)?,
                }
                self.timeline.end(begun, &self.traffic);
                self.ledger.close(repaid, walk.take_owed());
                if self.is_alone() {
                    self.complete(done);
                }
            }
            self.ledger.forget(last);
            self.agree_on_events(first, last)
        });
        self.complete(last);
        true
    }

    /// Does something that may fail or, having a defect, panic: either is kept for every later wait.
    fn guard(&self, work: impl FnOnce() -> Result<(), TransportError>) {
        let failure = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_else(|| "unknown".to_owned())
            }
        };
        self.failure.lock().get_or_insert(failure);
    }

    /// What of a window's groups runs as one.
    fn walks(&self, groups: Vec<Group<B::Task>>) -> Vec<Walk<B::Task>> {
        let shards = self.transport.shards();
        if self.in_blocks() || (shards > 1 && self.is_alone()) {
            return groups.into_iter().map(Walk::Group).collect();
        }
        sweeps::join(groups, &self.mapper, shards)
    }

    fn is_alone(&self) -> bool {
        self.transport.shards() == 1 || self.workers.is_alone()
    }

    /// See [`crate::Runtime::share_out`].
    pub(crate) fn share_out(&self, field: &Field, row_bytes: usize, item_bytes: usize) -> Range<usize> {
        let least = self.mapper.min_spread(self.transport.shards());
        if self.is_alone() || field.bytes() < least * item_bytes {
            return 0..field.bytes();
        }
        parts::share_out(field, row_bytes, item_bytes, &*self.transport)
    }

    /// See [`crate::Runtime::own_part`].
    pub(crate) fn own_part(&self, field: &Field, bytes: &Range<usize>) -> Range<usize> {
        if self.is_alone() { bytes.clone() } else { parts::own_part(field, bytes, &*self.transport) }
    }

    /// Has every shard see the floating-point events that any shard has seen in launches `first..=last`.
    fn agree_on_events(&self, first: Sequence, last: Sequence) -> Result<(), TransportError> {
        if self.is_alone() {
            return Ok(());
        }
        let mut bits = vec![0; (last - first + 1) as usize];
        self.backend.take_events(first, &mut bits);
        collective::all_or(&*self.transport, &self.traffic, &mut bits)?;
        self.backend.give_events(first, &bits);
        Ok(())
    }

    fn run_group(&self, group: &mut Group<B::Task>, repaid: &[Owed<B::Task>]) -> Result<(), TransportError> {
        self.counters.count(group);
        if self.workers.is_alone() && self.transport.shards() > 1 {
            share::check_whole(group)?;
        }
        if self.in_blocks() && self.run_blocks(group)? {
            return Ok(());
        }
        if group.members[0].launch.work == Work::Whole {
            return self.run_whole(&group.members[0].launch);
        }
        match group.members[0].launch.work {
            Work::Rows => return self.run_rows(group),
            Work::Scan { along_rows } => return self.run_scan(group, along_rows),
            Work::Exchange { along, unit } => return self.run_exchange(group, along, unit),
            Work::Map | Work::Fold { .. } | Work::Total | Work::Accumulate | Work::Whole => {}
        }
        let share = self.begin(group)?;
        if let Some(share) = &share {
            self.keep_apart(group, share);
        }
        reuse::take_over(group, repaid, &self.pool);
        let mut second: Vec<(usize, Block)> = Vec::new();
        let addresses = self.addresses(group, &mut second, |index| {
            share.as_ref().map(|share| share.carries(group, index, &*self.transport))
        });
        self.run_tiles(group, &addresses, share.as_ref())?;
        for (index, block) in second {
            drop(group.buffers[index].field.swap(block));
        }
        if let Some(share) = share {
            share::end(group, &share, &*self.transport, &self.traffic)?;
        }
        Ok(())
    }

    /// This shard's part of a group, what it reads being here; None where there is one shard.
    fn begin(&self, group: &Group<B::Task>) -> Result<Option<Share>, TransportError> {
        match self.is_alone() {
            true => Ok(None),
            false => share::begin(group, &self.mapper, &self.balance, &*self.transport, &self.traffic).map(Some),
        }
    }

    fn run_tiles(
        &self,
        group: &Group<B::Task>,
        addresses: &[usize],
        share: Option<&Share>,
    ) -> Result<(), TransportError> {
        let compiled = self.backend.lower(group);
        let own = share.map_or(0..group.rows, |share| share.rows.clone());
        let chained = group.serial && share.is_some_and(|share| !share.is_whole());
        let partials = if chained {
            self.run_chain(group, &compiled, addresses, &own)?
        } else {
            self.run_cuts(&compiled, addresses, &self.cuts(group, &own, group.elements()))
        };
        self.finish(&compiled, addresses, partials, share)
    }

    /// Stores totals of the parts that tiles have left, on all shards.
    fn finish(
        &self,
        compiled: &B::Compiled,
        addresses: &[usize],
        mut partials: Vec<B::Partial>,
        share: Option<&Share>,
    ) -> Result<(), TransportError> {
        let size = self.backend.part_bytes(compiled);
        if let Some(share) = share.filter(|share| !share.is_whole() && size > 0) {
            partials = self.gather_parts(compiled, partials, share, size)?;
        }
        self.backend.finish(compiled, addresses, partials);
        Ok(())
    }

    /// How this shard's rows of a group are cut for its workers.
    fn cuts(&self, group: &Group<B::Task>, own: &Range<usize>, elements: usize) -> Vec<Cut> {
        match group.split {
            Split::Single => vec![Cut::Rows(own.clone())],
            Split::Rows => {
                let row_elements = elements / group.rows.max(1);
                let brief = self.mapper.is_brief(own.len() * row_elements * group.members.len())
                    && group.members.iter().all(|member| self.backend.effort(&member.launch.task) == Effort::Reading);
                let colours = if brief { 1 } else { self.mapper.colours(own.len(), row_elements) };
                let partition = Partition { length: own.len(), colours };
                let tiles = (0..colours).map(|colour| partition.tile(colour)).filter(|tile| !tile.is_empty());
                tiles.map(|tile| Cut::Rows(own.start + tile.start..own.start + tile.end)).collect()
            }
            Split::Inner => {
                let (length, row_bytes) = columns(group);
                let colours = self.mapper.column_colours(length, elements / length.max(1), row_bytes);
                let partition = Partition { length, colours };
                (0..colours).map(|colour| Cut::Inner(own.clone(), partition.tile(colour))).collect()
            }
        }
    }

    /// Runs tiles on the workers; their parts of totals, in order.
    fn run_cuts(&self, compiled: &B::Compiled, addresses: &[usize], cuts: &[Cut]) -> Vec<B::Partial> {
        self.counters.tiles.fetch_add(cuts.len() as u64, Ordering::Relaxed);
        if let [only] = cuts {
            return vec![self.backend.run(compiled, addresses, only)];
        }
        let partials: Vec<Mutex<Option<B::Partial>>> = cuts.iter().map(|_| Mutex::new(None)).collect();
        self.workers.each(cuts.len(), &|index| {
            *partials[index].lock() = Some(self.backend.run(compiled, addresses, &cuts[index]));
        });
        partials.into_iter().filter_map(Mutex::into_inner).collect()
    }

    /// Runs a group with sums over its rows, from the sums of the shards before on.
    fn run_chain(
        &self,
        group: &Group<B::Task>,
        compiled: &B::Compiled,
        addresses: &[usize],
        own: &Range<usize>,
    ) -> Result<Vec<B::Partial>, TransportError> {
        let (transport, traffic) = (&*self.transport, &self.traffic);
        let length = match group.split {
            Split::Inner => Some(columns(group)),
            Split::Rows | Split::Single => None,
        };
        let blocks = length.map_or(1, |(length, _)| length.clamp(1, chain::BLOCKS));
        for block in 0..blocks {
            let inner = length.map(|(length, _)| Partition { length, colours: blocks }.tile(block));
            chain::hand_on(group, inner.as_ref(), true, transport, traffic)?;
            let cuts = match &inner {
                _ if own.is_empty() => Vec::new(),
                None => vec![Cut::Rows(own.clone())],
                Some(inner) => {
                    let row_bytes = length.map_or(0, |(length, row_bytes)| row_bytes / length.max(1) * inner.len());
                    let colours = self.mapper.column_colours(inner.len(), own.len(), row_bytes);
                    let partition = Partition { length: inner.len(), colours };
                    let part = |colour| inner.start + partition.edge(colour)..inner.start + partition.edge(colour + 1);
                    (0..colours).map(|colour| Cut::Inner(own.clone(), part(colour))).collect()
                }
            };
            self.run_cuts(compiled, addresses, &cuts);
            chain::hand_on(group, inner.as_ref(), false, transport, traffic)?;
        }
        // Each block of columns starts at the first shard when the one before it has left.
        traffic.hops.fetch_add((transport.shards() - 1 + blocks - 1) as u64, Ordering::Relaxed);
        chain::publish(group, transport, traffic)?;
        Ok(Vec::new())
    }

    /// The parts of totals of all shards' rows, merged into one.
    fn gather_parts(
        &self,
        compiled: &B::Compiled,
        partials: Vec<B::Partial>,
        share: &Share,
        size: usize,
    ) -> Result<Vec<B::Partial>, TransportError> {
        let packed = self.backend.pack(compiled, partials, &share.rows);
        let merge = |lower: &[u8], upper: &[u8], shards: Range<usize>| {
            let parts = vec![self.backend.unpack(compiled, lower), self.backend.unpack(compiled, upper)];
            self.backend.pack(compiled, parts, &share.rows_of(&shards))
        };
        let merged = collective::merge_all(&*self.transport, &self.traffic, packed, size, merge)?;
        Ok(vec![self.backend.unpack(compiled, &merged)])
    }
}

/// Length of a group's first inner axis, and the bytes along it and the axes within it in a row of a fresh result.
fn columns<T>(group: &Group<T>) -> (usize, usize) {
    let launch = &group.members[0].launch;
    let item_bytes = launch.operands.iter().map(|operand| operand.view.item_bytes).max().unwrap_or(1);
    (launch.domain[1], launch.domain[1..].iter().product::<usize>() * item_bytes)
}
