//! How this process ends when the job is stopped: what the program printed comes out, the text for the user follows, and nothing
//! of the program runs any more.
//!
//! Promises to end within seconds whatever Python is doing: its streams are flushed by a thread of their own, which is waited for
//! only so long. Does not decide that the job stops: the watch does.
#![expect(unsafe_code, reason = "writes to streams by number, and ends the process at once")]

use std::ffi::c_int;
use std::sync::mpsc::channel;
use std::time::Duration;

use legate_runtime::watch::Host;
use pyo3::prelude::*;

/// How long Python has to let its output go.
const FLUSH: Duration = Duration::from_secs(1);
/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// This process, as its watch sees it.
pub(crate) struct Process {
    /// Where texts for the user go.
    pub(crate) errors: c_int,
    /// The line to whoever started the job; a goodbye there says that this is no crash.
    pub(crate) line: Option<c_int>,
}

impl Host for Process {
    fn tell(&self, text: &str) {
        flush();
        write(self.errors, format!("legate: {text}\n").as_bytes());
    }

    fn end(&self, code: u8) {
        flush();
        say_goodbye(self.line, code == INTERRUPTED);
        // SAFETY: ends the process without running anything of it.
        unsafe { libc::_exit(c_int::from(code)) }
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
