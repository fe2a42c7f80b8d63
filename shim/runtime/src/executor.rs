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
#![expect(unsafe_code, reason = "copies bytes between instances")]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::field::Sequence;
use crate::fuse;
use crate::group::{Buffer, Group, Split};
use crate::launch::{Backend, Cut, Launch, Parallel, Work};
use crate::mapper::Mapper;
use crate::partition::Partition;
use crate::pool::{Block, Pool};

/// Worker threads that share parts of work with the thread that asks.
pub(crate) struct Workers {
    pool: Option<rayon::ThreadPool>,
    threads: usize,
    alone: AtomicBool,
}

impl Workers {
    fn new(threads: usize) -> Workers {
        let pool = (threads > 1)
            .then(|| {
                let name = |index| format!("legate-worker-{index}");
                rayon::ThreadPoolBuilder::new().num_threads(threads - 1).thread_name(name).build().ok()
            })
            .flatten();
        Workers { threads: if pool.is_some() { threads } else { 1 }, pool, alone: AtomicBool::new(false) }
    }
}

impl Parallel for Workers {
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= parts {
                    break;
                }
                part(index);
            }
        };
        match &self.pool {
            Some(pool) if parts > 1 && !self.alone.load(Ordering::Relaxed) => pool.in_place_scope(|scope| {
                for _ in 1..self.threads.min(parts) {
                    scope.spawn(|_| work());
                }
                work();
            }),
            Some(_) | None => work(),
        }
    }

    fn threads(&self) -> usize {
        if self.alone.load(Ordering::Relaxed) { 1 } else { self.threads }
    }
}

/// Most elements, summed over its launches, of a window that a waiting thread runs itself: well under a tenth of a second.
const SHORT_ELEMENTS: usize = 1 << 24;
/// Elements of a map that take as long as one element of a launch that runs whole (a matrix product, a sort).
const WHOLE_WEIGHT: usize = 32;

/// A closed window.
struct Closed<T> {
    launches: Vec<Launch<T>>,
    short: bool,
}

impl<T> Closed<T> {
    fn new(launches: Vec<Launch<T>>) -> Closed<T> {
        let mut elements = 0usize;
        for launch in &launches {
            let size = match launch.work {
                Work::Whole => launch.operands.iter().map(|operand| operand.field.bytes() / 8 * WHOLE_WEIGHT).sum(),
                Work::Map | Work::Fold { .. } | Work::Total | Work::Accumulate => launch.domain.iter().product(),
            };
            elements = elements.saturating_add(size);
        }
        Closed { launches, short: elements <= SHORT_ELEMENTS }
    }
}

/// Counts that tests compare exactly.
#[derive(Default)]
pub struct Counters {
    /// Groups run.
    pub groups: AtomicU64,
    /// Launches run.
    pub launches: AtomicU64,
    /// Tiles run.
    pub tiles: AtomicU64,
    /// Fields that were never stored.
    pub unstored: AtomicU64,
}

pub(crate) struct Executor<B: Backend> {
    backend: B,
    mapper: Mapper,
    pool: Arc<Pool>,
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
    pub(crate) counters: Counters,
}

impl<B: Backend> Executor<B> {
    pub(crate) fn new(backend: B, mapper: Mapper, pool: Arc<Pool>) -> Executor<B> {
        Executor {
            workers: Workers::new(mapper.cpus),
            backend,
            mapper,
            pool,
            queue: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
            served: AtomicBool::new(false),
            running: Mutex::new(()),
            progress: Mutex::new(()),
            progressed: Condvar::new(),
            completed: AtomicU64::new(0),
            failure: Mutex::new(None),
            plan: Mutex::new(String::new()),
            counters: Counters::default(),
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

    /// Puts a closed window at the end of the queue; returns how many are waiting.
    pub(crate) fn enqueue(&self, launches: Vec<Launch<B::Task>>) -> usize {
        let window = Closed::new(launches);
        let mut queue = self.queue.lock();
        queue.push_back(window);
        self.arrived.notify_one();
        queue.len()
    }

    /// Whether a background thread is wanted; says that one comes.
    pub(crate) fn start_serving(&self) -> bool {
        !self.workers.alone.load(Ordering::Relaxed) && !self.served.swap(true, Ordering::AcqRel)
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
    /// is done.
    pub(crate) fn wait(&self, sequence: Sequence, patience: Duration) -> Result<bool, String> {
        let deadline = Instant::now() + patience;
        while self.completed() < sequence {
            let short = self.queue.lock().front().is_none_or(|window| window.short);
            if short || !self.served.load(Ordering::Acquire) {
                let Some(_role) = self.running.try_lock_until(deadline) else { return Ok(false) };
                if self.completed() < sequence && !self.run_next() {
                    let lost = format!("launch {sequence} was never queued");
                    return Err(self.failure().unwrap_or(lost));
                }
            } else {
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
        self.workers.alone.store(true, Ordering::Relaxed);
    }

    /// Runs the window at the head of the queue. The caller holds the role.
    fn run_next(&self) -> bool {
        let Some(window) = self.queue.lock().pop_front() else { return false };
        let last = window.launches.last().map_or(0, |launch| launch.sequence);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for group in fuse::plan(window.launches, self.mapper.fusion) {
                if self.mapper.show_plan {
                    self.plan.lock().push_str(&group.to_string());
                }
                let done = group.members.last().map_or(0, |member| member.launch.sequence);
                self.run_group(group);
                self.complete(done);
            }
        }));
        if let Err(panic) = outcome {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "unknown".to_owned());
            self.failure.lock().get_or_insert(text);
        }
        self.complete(last);
        true
    }

    fn run_group(&self, group: Group<B::Task>) {
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        self.counters.launches.fetch_add(group.members.len() as u64, Ordering::Relaxed);
        self.counters.unstored.fetch_add(group.temporaries.len() as u64, Ordering::Relaxed);
        let mut second: Vec<(usize, Block)> = Vec::new();
        let addresses: Vec<usize> = group
            .buffers
            .iter()
            .enumerate()
            .map(|(index, buffer)| {
                if buffer.second {
                    let block = self.second_instance(buffer);
                    let address = block.address();
                    second.push((index, block));
                    address
                } else {
                    buffer.field.materialize()
                }
            })
            .collect();
        if group.members[0].launch.work == Work::Whole {
            let launch = &group.members[0].launch;
            let starts: Vec<usize> = launch.operands.iter().map(|operand| operand.field.materialize()).collect();
            self.backend.whole(launch, &starts, &self.workers);
        } else {
            self.run_tiles(&group, &addresses);
        }
        for (index, block) in second {
            drop(group.buffers[index].field.swap(block));
        }
    }

    fn run_tiles(&self, group: &Group<B::Task>, addresses: &[usize]) {
        let compiled = self.backend.lower(group);
        let elements = group.members.iter().map(|m| m.launch.domain.iter().product::<usize>()).max().unwrap_or(0);
        let cuts: Vec<Cut> = match group.split {
            Split::Single => vec![Cut::Rows(0..group.rows)],
            Split::Rows => {
                let colours = self.mapper.colours(group.rows, elements / group.rows.max(1));
                let partition = Partition { length: group.rows, colours };
                (0..colours).map(|colour| Cut::Rows(partition.tile(colour))).collect()
            }
            Split::Inner => {
                let length = group.members[0].launch.domain[1];
                let colours = self.mapper.colours(length, elements / length.max(1));
                let partition = Partition { length, colours };
                (0..colours).map(|colour| Cut::Inner(partition.tile(colour))).collect()
            }
        };
        self.counters.tiles.fetch_add(cuts.len() as u64, Ordering::Relaxed);
        let partials: Vec<Mutex<Option<B::Partial>>> = cuts.iter().map(|_| Mutex::new(None)).collect();
        self.workers.each(cuts.len(), &|index| {
            *partials[index].lock() = Some(self.backend.run(&compiled, addresses, &cuts[index]));
        });
        let partials = partials.into_iter().filter_map(Mutex::into_inner).collect();
        self.backend.finish(&compiled, addresses, partials);
    }

    /// A second instance of a field, with the bytes that no member will write.
    fn second_instance(&self, buffer: &Buffer) -> Block {
        let block = self.pool.take(buffer.field.bytes());
        let old = buffer.field.materialize();
        for range in &buffer.carried {
            // SAFETY: both instances hold `field.bytes()` bytes and `carried` lies within them (`view::uncovered`);
            // they are different blocks, and only the holder of the running role touches either.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    (old + range.start) as *const u8,
                    (block.address() + range.start) as *mut u8,
                    range.len(),
                );
            }
        }
        block
    }
}
