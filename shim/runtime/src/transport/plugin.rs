//! The transport between processes: MPI, through a plugin that is opened at run time.
//!
//! Calls into the plugin are made under one lock, and none of them blocks. Messages of a batch are tested together. When the
//! job is being stopped a wait does not return: the process is about to end, and what MPI may still write into stays alive.
#![expect(unsafe_code, reason = "calls the C functions of the plugin")]

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::backoff::Backoff;
use super::stop::Stop;
use super::table::{Entry, Piece, SYMBOL, Table, VERSION};
use super::waits::{SHORT, Wait, Waits};
use super::{Channel, Receive, Send, Transport, TransportError};

/// How often a wait calls its `look`.
const LOOK: Duration = Duration::from_millis(20);
/// How long the watch has to explain a failure: longer than it takes to miss a shard and to find that nobody answers.
const EXPLAINED: Duration = Duration::from_secs(7);
/// Room for a text of the plugin.
const TEXT_BYTES: usize = 1024;

/// This process's place among the ranks of an MPI job.
#[derive(Debug)]
pub struct Plugin {
    table: &'static Table,
    shard: usize,
    shards: usize,
    calls: Mutex<()>,
    stop: Arc<Stop>,
    waits: Arc<Waits>,
}

impl Plugin {
    /// Opens the plugin and starts MPI.
    pub fn open(path: &Path, stop: Arc<Stop>) -> Result<Plugin, TransportError> {
        let failed = |why: &dyn std::fmt::Display| TransportError::Failed(format!("{}: {why}", path.display()));
        // SAFETY: the plugin's initialisers, and those of the MPI library that it needs, have no preconditions. RTLD_GLOBAL,
        // because MPI libraries open components that take their functions from the process.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(|why| failed(&why))?;
        // SAFETY: `Entry` is the type of the symbol in every version.
        let entry: Symbol<Entry> = unsafe { library.get(SYMBOL.to_bytes_with_nul()) }.map_err(|why| failed(&why))?;
        // SAFETY: the entry has no preconditions; its table lives as long as the library, which is never closed.
        let table: &'static Table = unsafe { &*entry() };
        std::mem::forget(library);
        if table.version != VERSION {
            let why =
                format!("is of another version ({} instead of {VERSION}); scripts/setup builds it", table.version);
            return Err(failed(&why));
        }
        let (mut shard, mut shards): (c_int, c_int) = (0, 1);
        // SAFETY: both are places for a number.
        if unsafe { (table.open)(&raw mut shard, &raw mut shards) } < 0 {
            return Err(TransportError::Failed(text_of(table.failure)));
        }
        Ok(Plugin {
            table,
            shard: shard as usize,
            shards: shards as usize,
            calls: Mutex::new(()),
            stop,
            waits: Arc::default(),
        })
    }

    /// Name and version of the MPI library.
    pub fn description(&self) -> String {
        text_of(self.table.describe)
    }

    /// Who this shard waits for.
    pub fn waits(&self) -> &Arc<Waits> {
        &self.waits
    }

    /// Ends MPI. Every shard must do so, and exchange nothing afterwards.
    pub fn close(&self) -> Result<(), TransportError> {
        let _calls = self.calls.lock();
        // SAFETY: called under the lock.
        if unsafe { (self.table.close)() } < 0 {
            return Err(TransportError::Failed(text_of(self.table.failure)));
        }
        Ok(())
    }

    fn start(&self, pieces: &[Piece]) -> Result<*mut c_void, TransportError> {
        let _calls = self.calls.lock();
        // SAFETY: called under the lock; `exchange_while`, the only caller, keeps the bytes until the batch is done.
        let batch = unsafe { (self.table.start)(pieces.as_ptr(), pieces.len()) };
        if batch.is_null() {
            return Err(TransportError::Failed(text_of(self.table.failure)));
        }
        Ok(batch)
    }

    fn is_done(&self, batch: *mut c_void) -> Result<bool, TransportError> {
        let _calls = self.calls.lock();
        // SAFETY: called under the lock, with a batch that was not done before.
        match unsafe { (self.table.test)(batch) } {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(TransportError::Failed(text_of(self.table.failure))),
        }
    }
}

impl Plugin {
    /// The shards at the other ends of what is not done yet.
    fn pending(&self, batch: *mut c_void, pieces: &[Piece]) -> Result<SmallVec<[usize; 4]>, TransportError> {
        let _calls = self.calls.lock();
        let mut pending = vec![0u8; pieces.len()];
        // SAFETY: called under the lock, with a batch that is not done, made from as many pieces.
        if unsafe { (self.table.pending)(batch, pending.as_mut_ptr(), pending.len()) } < 0 {
            return Err(TransportError::Failed(text_of(self.table.failure)));
        }
        let rows = pieces.iter().zip(pending).filter(|(_, pending)| *pending != 0);
        let mut shards: SmallVec<[usize; 4]> = rows.map(|(piece, _)| piece.peer as usize).collect();
        shards.sort_unstable();
        shards.dedup();
        Ok(shards)
    }
}

impl Transport for Plugin {
    fn shard(&self) -> usize {
        self.shard
    }

    fn shards(&self) -> usize {
        self.shards
    }

    fn exchange_while(
        &self,
        channel: Channel,
        sends: &[Send<'_>],
        receives: &mut [Receive<'_>],
        look: &mut dyn FnMut(),
    ) -> Result<(), TransportError> {
        let tag = channel;
        let channel = channel as c_int;
        let mut pieces: SmallVec<[Piece; 8]> = SmallVec::new();
        for receive in receives.iter_mut().filter(|receive| !receive.bytes.is_empty()) {
            let (bytes, length) = (receive.bytes.as_mut_ptr(), receive.bytes.len());
            pieces.push(Piece { peer: receive.from as c_int, channel, receives: 1, bytes, length });
        }
        for send in sends.iter().filter(|send| !send.bytes.is_empty()) {
            let (bytes, length) = (send.bytes.as_ptr().cast_mut(), send.bytes.len());
            pieces.push(Piece { peer: send.to as c_int, channel, receives: 0, bytes, length });
        }
        if pieces.is_empty() {
            return Ok(());
        }
        let batch = self.start(&pieces).map_err(|failure| unless_stopped(&self.stop, failure))?;
        let mut backoff = Backoff::new();
        let mut looked = Duration::ZERO;
        while !self.is_done(batch).map_err(|failure| unless_stopped(&self.stop, failure))? {
            let waited = backoff.pause();
            if self.stop.why().is_some() {
                end_of_the_process();
            }
            if waited - looked > LOOK {
                looked = waited;
                if waited > SHORT {
                    let pending = self.pending(batch, &pieces);
                    let shards = pending.map_err(|failure| unless_stopped(&self.stop, failure))?;
                    self.waits.set(tag, Some(Wait { since: backoff.since(), shards }));
                }
                look();
            }
        }
        if looked > SHORT {
            self.waits.set(tag, None);
        }
        Ok(())
    }
}

/// A failure, after the watch had time to find out that it comes from shards that have gone different ways.
fn unless_stopped(stop: &Stop, failure: TransportError) -> TransportError {
    let since = Instant::now();
    while since.elapsed() < EXPLAINED {
        if stop.why().is_some() {
            end_of_the_process();
        }
        std::thread::sleep(LOOK);
    }
    failure
}

/// Waits for another thread to end the process.
fn end_of_the_process() -> ! {
    loop {
        std::thread::park();
    }
}

/// A text of the plugin.
fn text_of(write: unsafe extern "C" fn(*mut u8, usize) -> usize) -> String {
    let mut room = [0u8; TEXT_BYTES];
    // SAFETY: the function writes at most that many bytes.
    let length = unsafe { write(room.as_mut_ptr(), room.len()) };
    String::from_utf8_lossy(&room[..length.min(TEXT_BYTES)]).into_owned()
}
