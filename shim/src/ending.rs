//! How this process ends when the job is stopped: what the program printed comes out, the text for the user follows, and nothing
//! of the program runs any more.
//!
//! Promises to end within seconds whatever Python is doing: its streams are flushed by a thread of their own, which is waited for
//! only so long. Does not decide that the job stops: the watch does.
#![expect(unsafe_code, reason = "writes to streams by number, and ends the process at once")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use legate_runtime::watch::Host;
use pyo3::prelude::*;

/// How long Python has to let its output go.
const FLUSH: Duration = Duration::from_secs(1);
/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// Whether the program's thread was sent a signal by this process itself.
pub(crate) static POKED: AtomicBool = AtomicBool::new(false);

/// This process, as its watch sees it.
pub(crate) struct Process {
    /// Where texts for the user go.
    errors: c_int,
    /// The line to whoever started the job; a goodbye there says that this is no crash.
    line: Option<c_int>,
    /// The thread that runs the program.
    program: libc::pthread_t,
}

impl Process {
    /// This process, whose program runs in the calling thread.
    pub(crate) fn new(errors: c_int, line: Option<c_int>) -> Process {
        // SAFETY: no preconditions.
        Process { errors, line, program: unsafe { libc::pthread_self() } }
    }
}

impl Host for Process {
    fn tell(&self, text: &str) {
        flush();
        write(self.errors, format!("legate: {text}\n").as_bytes());
    }

    fn end(&self, code: u8) {
        // First of all: the runner may kill this rank as soon as another has ended.
        say_goodbye(self.line, code == INTERRUPTED);
        flush();
        // SAFETY: ends the process without running anything of it.
        unsafe { libc::_exit(c_int::from(code)) }
    }

    fn interrupt(&self) {
        POKED.store(true, Ordering::Release);
        // SAFETY: the main thread, which lives as long as the process. Python's handler runs in it, and its sleep ends.
        unsafe { libc::pthread_kill(self.program, libc::SIGINT) };
    }
}

/// Tells whoever started the job, where there is a line to it, that an interrupt was dealt with.
pub(crate) fn say_served(line: Option<c_int>) {
    if let Some(line) = line {
        write(line, b"s");
    }
}

/// Tells whoever started the job, where there is a line to it, that this rank's program has ended: an end without it is a crash.
pub(crate) fn say_goodbye(line: Option<c_int>, interrupted: bool) {
    if let Some(line) = line {
        write(line, if interrupted { b"i" } else { b"." });
    }
}

/// Flushes Python's streams, unless it does not come to that in time.
fn flush() {
    let (done, is_done) = channel();
    let flusher = std::thread::Builder::new().name("legate-flush".to_owned()).spawn(move || {
        Python::attach(|py| {
            for name in ["stdout", "stderr"] {
                // A stream that is closed, or was replaced by something else, has nothing for us.
                drop(py.import("sys").and_then(|sys| sys.getattr(name)?.call_method0("flush")));
            }
        });
        // Nobody listens any more when it took too long.
        let _ = done.send(());
    });
    if flusher.is_ok() {
        // Output that does not come out in time is lost, as at a crash.
        let _ = is_done.recv_timeout(FLUSH);
    }
}

fn write(stream: c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the bytes are ours; a stream that is gone is an error.
        let written = unsafe { libc::write(stream, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written @ 1..) => bytes = &bytes[written..],
            Ok(_) | Err(_) => return,
        }
    }
}
