//! A crash that waits: where `--freeze-on-error` asks for it, a process that the system is about to end stops first, so that a
//! debugger can be attached to it as it is.
//!
//! Promises to end as it would have when it is told to go on (SIGCONT, SIGINT or SIGTERM), and to say so. Python's exceptions are
//! not its business: `legate.freeze` has those.
#![expect(unsafe_code, reason = "handles signals of crashes")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Signals by which a program crashes.
const CRASHES: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];
/// Signals that tell a frozen process to go on.
const GO_ON: [i32; 3] = [libc::SIGCONT, libc::SIGINT, libc::SIGTERM];

/// What is said at a crash, and the stream where it is said.
static TEXT: OnceLock<(Vec<u8>, i32)> = OnceLock::new();
/// Whether somebody has told it to go on.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Has crashes of this process wait, with `text` on the stream of that number.
#[pyfunction]
pub(crate) fn freeze_crashes(text: &str, stream: i32) {
    if TEXT.set((text.as_bytes().to_vec(), stream)).is_err() {
        return;
    }
    for signal in CRASHES {
        handle(signal, crashed, libc::SA_RESETHAND | libc::SA_NODEFER);
    }
}

fn handle(signal: i32, handler: extern "C" fn(i32), flags: i32) {
    // SAFETY: the handlers call nothing but what may be called in one; zeros are an action without a mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn go_on(_: i32) {
    TOLD.store(true, Ordering::Relaxed);
}

/// Says what happened and waits. When this returns, the fault happens again, and ends the process, as its action is the default.
extern "C" fn crashed(signal: i32) {
    if let Some((text, stream)) = TEXT.get() {
        // SAFETY: writes bytes that are never changed.
        unsafe { libc::write(*stream, text.as_ptr().cast(), text.len()) };
    }
    for signal in GO_ON {
        handle(signal, go_on, 0);
    }
    while !TOLD.load(Ordering::Relaxed) {
        let moment = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        // SAFETY: sleeps for a moment; may be interrupted.
        unsafe { libc::nanosleep(&raw const moment, std::ptr::null_mut()) };
    }
    // SAFETY: the default action is in place again; a signal that somebody sent does not come back by itself.
    unsafe { libc::raise(signal) };
}
