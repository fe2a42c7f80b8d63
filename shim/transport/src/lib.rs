//! The MPI plugin: a C table of non-blocking messages over MPI, for `legate_runtime::transport::Plugin`.
//!
//! Knows MPI's types and nothing of what is sent. Built once for each MPI family (`scripts/setup`), since their binary interfaces
//! differ, and opened only by jobs of several ranks. Its caller makes one call at a time, so MPI is asked for no more than that.
#![expect(unsafe_code, reason = "MPI is a C library, and the table is called from one")]

#[path = "../../runtime/src/transport/table.rs"]
pub mod table;

mod fence;

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Mutex;

use mpi::Threading;
use mpi::environment::Universe;
use mpi::ffi;

use table::{Piece, Table, VERSION};

/// Most bytes of one MPI message, whose length is a C int; longer ones are split.
const LONGEST: usize = 1 << 30;
/// Room for the text of an error.
const ERROR_BYTES: usize = ffi::MPI_MAX_ERROR_STRING as usize;

static TABLE: Table = Table { version: VERSION, open, start, test, pending, close, failure, describe };

/// Messages that were started together.
#[derive(Default)]
struct Batch {
    requests: Vec<ffi::MPI_Request>,
    /// For each request, the piece that it belongs to.
    pieces: Vec<usize>,
    /// For each request that receives, how many bytes must come; 0 for one that sends.
    expected: Vec<c_int>,
    statuses: Vec<ffi::MPI_Status>,
}

/// What the plugin holds while MPI runs.
struct Session {
    /// A copy of the world, so that no message of the program's own (mpi4py) meets one of ours.
    world: ffi::MPI_Comm,
    /// Ends MPI when dropped; none when the program itself had started MPI.
    universe: Option<Universe>,
}

// SAFETY: a communicator is a handle that any thread may use, and the table's functions are called by one thread at a time.
unsafe impl Send for Session {}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);
static FAILURE: Mutex<String> = Mutex::new(String::new());

/// The table.
#[unsafe(no_mangle)]
pub extern "C" fn legate_mpi_table() -> *const Table {
    &raw const TABLE
}

/// Locks what only one thread at a time asks for; a panic elsewhere has not harmed it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Keeps the text of an MPI error; whether there was none.
fn succeeded(code: c_int) -> bool {
    if code == ffi::MPI_SUCCESS as c_int {
        return true;
    }
    let mut text = [0u8; ERROR_BYTES];
    let mut length: c_int = 0;
    // SAFETY: the text has as much room as MPI says that it may need.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    *lock(&FAILURE) = String::from_utf8_lossy(&text[..(length.max(0) as usize).min(ERROR_BYTES)]).into_owned();
    false
}

unsafe extern "C" fn open(rank: *mut c_int, ranks: *mut c_int) -> c_int {
    let universe = mpi::initialize_with_threading(Threading::Serialized).map(|(universe, _)| universe);
    if mpi::environment::threading_support() < Threading::Serialized {
        *lock(&FAILURE) = "this MPI allows calls from one thread only".to_owned();
        return -1;
    }
    if universe.is_some()
        && let Err(why) = fence::wait_for_all()
    {
        *lock(&FAILURE) = why;
        return -1;
    }
    let mut world = MaybeUninit::uninit();
    // SAFETY: MPI runs; `world`, `rank` and `ranks` are places for what is returned.
    let world = unsafe {
        if !succeeded(ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, world.as_mut_ptr())) {
            return -1;
        }
        let world = world.assume_init();
        // Errors of several requests at once go to the handler of the world, or of this process alone.
        let mut returned = true;
        for communicator in [world, ffi::RSMPI_COMM_WORLD, ffi::RSMPI_COMM_SELF] {
            returned &= succeeded(ffi::MPI_Comm_set_errhandler(communicator, ffi::RSMPI_ERRORS_RETURN));
        }
        if !(returned && succeeded(ffi::MPI_Comm_rank(world, rank)) && succeeded(ffi::MPI_Comm_size(world, ranks))) {
            return -1;
        }
        world
    };
    *lock(&SESSION) = Some(Session { world, universe });
    0
}

unsafe extern "C" fn start(pieces: *const Piece, count: usize) -> *mut c_void {
    let session = lock(&SESSION);
    let Some(session) = session.as_ref() else {
        *lock(&FAILURE) = "MPI has ended".to_owned();
        return std::ptr::null_mut();
    };
    // SAFETY: the caller gives `count` pieces.
    let pieces = unsafe { std::slice::from_raw_parts(pieces, count) };
    let mut batch = Batch::default();
    for (index, piece) in pieces.iter().enumerate() {
        let mut done = 0;
        while done < piece.length {
            let length = (piece.length - done).min(LONGEST);
            let mut request = MaybeUninit::uninit();
            // SAFETY: the caller keeps `length` bytes there until the batch is done; receives have them to themselves.
            let code = unsafe {
                let (bytes, count, byte) = (piece.bytes.add(done).cast(), length as c_int, ffi::RSMPI_UINT8_T);
                let (peer, channel) = (piece.peer, piece.channel);
                if piece.receives != 0 {
                    ffi::MPI_Irecv(bytes, count, byte, peer, channel, session.world, request.as_mut_ptr())
                } else {
                    ffi::MPI_Isend(bytes, count, byte, peer, channel, session.world, request.as_mut_ptr())
                }
            };
            if !succeeded(code) {
                return std::ptr::null_mut();
            }
            // SAFETY: MPI has filled it in.
            batch.requests.push(unsafe { request.assume_init() });
            batch.pieces.push(index);
            batch.expected.push(if piece.receives != 0 { length as c_int } else { 0 });
            done += length;
        }
    }
    // SAFETY: plain numbers, which MPI overwrites.
    batch.statuses = vec![unsafe { MaybeUninit::zeroed().assume_init() }; batch.requests.len()];
    Box::into_raw(Box::new(batch)).cast()
}

unsafe extern "C" fn test(batch: *mut c_void) -> c_int {
    let batch = batch.cast::<Batch>();
    let mut done: c_int = 0;
    // SAFETY: `start` made the batch, and it is not done yet; there is a status for each request.
    let code = unsafe {
        let Batch { requests, statuses, .. } = &mut *batch;
        ffi::MPI_Testall(requests.len() as c_int, requests.as_mut_ptr(), &raw mut done, statuses.as_mut_ptr())
    };
    if !succeeded(code) {
        return -1;
    }
    if done == 0 {
        return 0;
    }
    // SAFETY: it came from a box in `start`, and the caller forgets it now.
    let batch = unsafe { Box::from_raw(batch) };
    if batch.expected.iter().zip(&batch.statuses).all(|(expected, status)| came(*expected, status)) { 1 } else { -1 }
}

/// Whether as many bytes came as were expected: others come from a shard that has gone another way.
fn came(expected: c_int, status: &ffi::MPI_Status) -> bool {
    if expected == 0 {
        return true;
    }
    let mut bytes = 0;
    // SAFETY: the status of a receive that is done.
    let known = succeeded(unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &raw mut bytes) });
    if known && bytes != expected {
        *lock(&FAILURE) = format!("a message of {bytes} bytes came where {expected} were expected");
    }
    known && bytes == expected
}

unsafe extern "C" fn pending(batch: *mut c_void, pieces: *mut u8, count: usize) -> c_int {
    // SAFETY: `start` made the batch, it is not done yet, and the caller has room for its pieces.
    let (batch, pieces) = unsafe { (&*batch.cast::<Batch>(), std::slice::from_raw_parts_mut(pieces, count)) };
    pieces.fill(0);
    for (request, &piece) in batch.requests.iter().zip(&batch.pieces) {
        let mut done: c_int = 0;
        // SAFETY: an active request, which stays one; its status is not wanted.
        if !succeeded(unsafe { ffi::MPI_Request_get_status(*request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) }) {
            return -1;
        }
        pieces[piece] |= u8::from(done == 0);
    }
    0
}

unsafe extern "C" fn close() -> c_int {
    if let Some(mut session) = lock(&SESSION).take() {
        // SAFETY: MPI runs and no message is under way.
        if session.universe.is_some() && !succeeded(unsafe { ffi::MPI_Comm_free(&raw mut session.world) }) {
            return -1;
        }
        drop(session.universe);
    }
    0
}

unsafe extern "C" fn failure(text: *mut u8, room: usize) -> usize {
    write(&lock(&FAILURE), text, room)
}

unsafe extern "C" fn describe(text: *mut u8, room: usize) -> usize {
    let version = mpi::environment::library_version().unwrap_or_default();
    write(version.lines().next().unwrap_or_default(), text, room)
}

/// Writes what fits of a text.
fn write(from: &str, text: *mut u8, room: usize) -> usize {
    let length = from.len().min(room);
    // SAFETY: the table's caller gives `room` bytes.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), text, length) };
    length
}
