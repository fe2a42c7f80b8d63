//! The window and the runtime's front door: launches are gathered here in program order until a value is needed.
//!
//! A window closes when it is long enough or when someone waits; never by time, load or free memory, so that every shard
//! closes its windows at the same launches.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};

use crate::digest::{Digest, Place};
use crate::executor::{Counters, Executor};
use crate::field::{Field, Handle, Instance, Sequence};
use crate::launch::{Backend, Launch, Operand, Parallel, Privilege, Work};
use crate::mapper::Mapper;
use crate::pool::Pool;
use crate::shards::Traffic;
use crate::timeline::Span;
use crate::transport::Transport;
use crate::view::{Axes, View};

/// Why the runtime could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The limit on memory is reached.
    #[error("{asked} bytes asked for, {used} of {limit} in use")]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes that fields hold.
        used: usize,
        /// The limit.
        limit: usize,
    },
    /// A bug in the runtime or in a task, kept from hanging the program.
    #[error("the runtime failed: {0}")]
    Failed(String),
}

/// What [`Runtime::launch`] did, and what the caller owes.
#[derive(Clone, Copy, Debug)]
pub struct Issued {
    /// Number of the launch.
    pub sequence: Sequence,
    /// Too many windows wait: the caller should wait for [`Runtime::backlog_end`] before issuing more.
    pub backlog: bool,
    /// The launch touches a pinned field: the caller must [`Runtime::wait`] for it before going on.
    pub pinned: bool,
}

/// Notes launches in the digest that the shards compare.
struct Recorder {
    digest: Arc<Digest>,
    place: fn() -> Option<Arc<Place>>,
}

impl Recorder {
    fn note(&self, name: &Arc<str>, work: Work, domain: &[usize], operands: &[Operand]) {
        let views: SmallVec<[_; 4]> = operands
            .iter()
            .map(|operand| {
                (operand.field.bytes(), operand.privilege.writes(), operand.view.offset, &operand.view.strides)
            })
            .collect();
        self.digest.note(name.clone(), domain, (work, views), (self.place)());
    }
}

/// A task runtime for one shard.
pub struct Runtime<B: Backend> {
    executor: Arc<Executor<B>>,
    pool: Arc<Pool>,
    mapper: Mapper,
    window: Mutex<Vec<Launch<B::Task>>>,
    issued: AtomicU64,
    fields: AtomicU64,
    /// Where launches are noted, and what tells the user's line; with several shards only.
    recorder: OnceLock<Recorder>,
    /// The background thread.
    server: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl<B: Backend> Runtime<B> {
    /// Starts a runtime with its threads.
    pub fn new(backend: B, mapper: Mapper, transport: Arc<dyn Transport>) -> Runtime<B> {
        let pool = Pool::new(mapper.memory_limit, transport.shards());
        let executor = Arc::new(Executor::new(backend, mapper.clone(), pool.clone(), transport));
        let runtime = Runtime {
            executor,
            pool,
            mapper,
            window: Mutex::new(Vec::new()),
            issued: AtomicU64::new(0),
            fields: AtomicU64::new(0),
            recorder: OnceLock::new(),
            server: Mutex::new(None),
        };
        runtime.start_server();
        runtime
    }

    /// From now on launches are noted in a digest, each with the line that `place` tells.
    pub fn record(&self, digest: Arc<Digest>, place: fn() -> Option<Arc<Place>>) {
        // A second one would be the same digest.
        drop(self.recorder.set(Recorder { digest, place }));
    }

    /// The tunables in force.
    pub fn mapper(&self) -> &Mapper {
        &self.mapper
    }

    /// The task table.
    pub fn backend(&self) -> &B {
        self.executor.backend()
    }

    /// The memory pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Counts of what ran.
    pub fn counters(&self) -> &Counters {
        &self.executor.counters
    }

    /// Messages and bytes sent to other shards.
    pub fn traffic(&self) -> &Traffic {
        &self.executor.traffic
    }

    /// The worker threads, for work that is done at once.
    pub fn workers(&self) -> &dyn Parallel {
        &self.executor.workers
    }

    /// A new field of `bytes` bytes without memory yet. When the limit does not allow it the caller should wait for what is in
    /// flight (temporaries may end) before giving up.
    pub fn field(&self, bytes: usize) -> Result<Handle, RuntimeError> {
        if !self.pool.has_room(bytes) {
            let used = self.pool.reserved();
            return Err(RuntimeError::OutOfMemory { asked: bytes, used, limit: self.pool.limit() });
        }
        Ok(self.new_field(bytes, None))
    }

    /// A field over memory that someone else owns; `keeper` is dropped when the field ends.
    pub fn adopt(&self, address: usize, bytes: usize, keeper: Box<dyn Any + Send>) -> Handle {
        self.new_field(bytes, Some(Instance::Foreign { address, keeper }))
    }

    /// Shares out a new field, which no launch knows yet, among the shards as large results are: in whole rows of `row_bytes`
    /// bytes, or in items where there are fewer rows than shards. The bytes that this shard is to write, of a field that small
    /// or without other shards all.
    pub fn share_out(&self, field: &Field, row_bytes: usize, item_bytes: usize) -> Range<usize> {
        self.executor.share_out(field, row_bytes, item_bytes)
    }

    /// The bytes of a range of a field that are this shard's to hand on when each byte is wanted once: those that live here, or an
    /// even part of what every shard has. Once all launches that touch the field are done.
    pub fn own_part(&self, field: &Field, bytes: &Range<usize>) -> Range<usize> {
        self.executor.own_part(field, bytes)
    }

    fn new_field(&self, bytes: usize, instance: Option<Instance>) -> Handle {
        let number = self.fields.fetch_add(1, Ordering::Relaxed);
        Handle::new(Field::new(number, bytes, self.pool.clone(), instance))
    }

    /// Appends a launch to the window.
    pub fn launch(
        &self,
        name: Arc<str>,
        work: Work,
        domain: Axes<usize>,
        operands: SmallVec<[Operand; 4]>,
        task: B::Task,
    ) -> Issued {
        if let Some(recorder) = self.recorder.get() {
            recorder.note(&name, work, &domain, &operands);
        }
        let mut window = self.window.lock();
        let sequence = self.issued.fetch_add(1, Ordering::AcqRel) + 1;
        let mut pinned = false;
        let large = domain.iter().product::<usize>() >= self.mapper.min_tile;
        for operand in &operands {
            operand.field.touched_by(sequence, operand.privilege.writes(), large);
            pinned |= operand.field.is_pinned();
        }
        window.push(Launch { sequence, to_come: 0, name, work, domain, operands, task });
        let mut waiting = 0;
        if window.len() >= self.mapper.window {
            // The next window is likely to grow as long.
            let next = Vec::with_capacity(self.mapper.window);
            waiting = self.executor.enqueue(std::mem::replace(&mut *window, next));
        }
        Issued { sequence, backlog: waiting > self.mapper.run_ahead, pinned }
    }

    /// Once all that was issued on a field is done: has its values in memory and, where the caller may change them there, all that
    /// is owed and would be made from them (see `owed`). Whether there is something to wait for. `nothing` is a task of
    /// [`Work::Whole`] that does nothing.
    pub fn settle(&self, field: &Arc<Field>, changes: bool, nothing: B::Task) -> bool {
        if field.is_settled() || !(changes || field.is_owed()) {
            return false;
        }
        if self.executor.shards() > 1 {
            self.executor.settle_apart(field, changes);
            return false;
        }
        let view = View { offset: 0, strides: smallvec![1], item_bytes: 1 };
        let privilege = if changes { Privilege::ReadWrite } else { Privilege::Read };
        let operands = smallvec![Operand { field: field.clone(), view, privilege }];
        self.launch("settle".into(), Work::Whole, smallvec![field.bytes()], operands, nothing);
        true
    }

    /// Whether launch `sequence` has been run.
    pub fn is_done(&self, sequence: Sequence) -> bool {
        self.executor.completed() >= sequence
    }

    /// Waits until launch `sequence` has been run, closing the window if it is in there, for about `patience` at most; whether it
    /// has been run. Call without the GIL.
    pub fn wait(&self, sequence: Sequence, patience: Duration) -> Result<bool, RuntimeError> {
        if self.is_done(sequence) {
            return match self.executor.failure() {
                Some(failure) => Err(RuntimeError::Failed(failure)),
                None => Ok(true),
            };
        }
        {
            let mut window = self.window.lock();
            if let Some(first) = window.first().map(|launch| launch.sequence) {
                // The next one is likely to grow as long.
                let next = Vec::with_capacity(window.len());
                let closed = std::mem::replace(&mut *window, next);
                // What comes after the awaited launch is the background thread's.
                if first <= sequence {
                    self.executor.append(closed)
                } else {
                    self.executor.enqueue(closed)
                };
            }
        }
        self.executor.wait(sequence, patience).map_err(RuntimeError::Failed)
    }

    /// Number of the last launch issued.
    pub fn newest(&self) -> Sequence {
        self.issued.load(Ordering::Acquire)
    }

    /// The launch to wait for so that only the newest windows are left.
    pub fn backlog_end(&self) -> Sequence {
        let slack = (self.mapper.window * self.mapper.run_ahead / 2) as u64;
        let open = self.window.lock().len() as u64;
        self.newest().saturating_sub(open).saturating_sub(slack)
    }

    /// Before a fork, when all that was issued is done: ends the background thread, so that it holds no lock in the child, which
    /// will not have it. [`Runtime::after_fork`] or [`Runtime::forked`] must follow.
    pub fn before_fork(&self) {
        if let Some(server) = self.server.lock().take() {
            self.executor.stop_serving();
            drop(server.join());
        }
    }

    /// After a fork, in the parent: starts the background thread again.
    pub fn after_fork(&self) {
        self.start_server();
    }

    /// After a fork, in the child: it has no threads but the calling one, and does everything itself.
    pub fn forked(&self) {
        self.executor.forked();
    }

    fn start_server(&self) {
        if self.executor.start_serving() {
            let executor = self.executor.clone();
            let server = std::thread::Builder::new().name("legate-executor".to_owned()).spawn(move || executor.serve());
            match server {
                Ok(server) => *self.server.lock() = Some(server),
                // Without its background thread nothing is lost: waits run the queue themselves.
                Err(_) => self.executor.stop_serving(),
            }
        }
    }

    /// Begins to record the launches of windows that close from now on; what was recorded before, as text.
    pub fn record_launches(&self) -> String {
        self.executor.record()
    }

    /// Keeps from now on when each group ran.
    pub fn keep_times(&self) {
        self.executor.timeline.start();
    }

    /// When times began to be kept, in microseconds since 1970, and each group that has run since.
    pub fn times(&self) -> (u64, Vec<Span>) {
        self.executor.timeline.spans()
    }

    /// The plan of everything run so far, as text (empty unless asked for by the mapper).
    pub fn plan_text(&self) -> String {
        self.executor.plan_text()
    }
}

impl<B: Backend> Drop for Runtime<B> {
    fn drop(&mut self) {
        self.before_fork();
    }
}
