//! What an MPI plugin gives: a table of C functions, the same source text on both sides.
//!
//! A plugin is a library of its own, built once for each MPI family, and holds all code that knows MPI's types. It exports
//! [`SYMBOL`], a function without arguments that returns its [`Table`]. No function blocks, except `open` and `close`; they are
//! called by one thread at a time.

use std::ffi::{c_int, c_void};

/// Name of the exported function, of type [`Entry`].
pub const SYMBOL: &std::ffi::CStr = c"legate_mpi_table";
/// Changes whenever the table does.
pub const VERSION: u32 = 2;

/// Type of the exported function.
pub type Entry = unsafe extern "C" fn() -> *const Table;

/// One message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Rank of the other side.
    pub peer: c_int,
    /// Number of the channel.
    pub channel: c_int,
    /// 1 to receive, 0 to send.
    pub receives: c_int,
    /// Where the bytes are, or go to; only read from when sending.
    pub bytes: *mut u8,
    /// How many bytes.
    pub length: usize,
}

/// The functions of a plugin. Those that return a `c_int` give a negative number when MPI failed; `failure` then has the text.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// [`VERSION`] of the source that the plugin was built from.
    pub version: u32,
    /// Starts MPI, unless it runs, and says which rank this is, of how many.
    pub open: unsafe extern "C" fn(rank: *mut c_int, ranks: *mut c_int) -> c_int,
    /// Starts messages. The batch is null when MPI failed; else the bytes must stay where they are until `test` says that it is
    /// done.
    pub start: unsafe extern "C" fn(pieces: *const Piece, count: usize) -> *mut c_void,
    /// Whether a batch is done (1, and the batch is gone) or not yet (0).
    pub test: unsafe extern "C" fn(batch: *mut c_void) -> c_int,
    /// Writes for each piece of a batch that is not done yet whether it is under way (1) or not any more (0).
    pub pending: unsafe extern "C" fn(batch: *mut c_void, pieces: *mut u8, count: usize) -> c_int,
    /// Ends MPI, if `open` started it. All ranks must do so.
    pub close: unsafe extern "C" fn() -> c_int,
    /// Writes the text of the last failure into `room` bytes; how many it has written.
    pub failure: unsafe extern "C" fn(text: *mut u8, room: usize) -> usize,
    /// Writes the name and version of the MPI library into `room` bytes; how many it has written.
    pub describe: unsafe extern "C" fn(text: *mut u8, room: usize) -> usize,
}
