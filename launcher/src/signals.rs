#![expect(unsafe_code, reason = "blocks signals, and sends one to this process")]
//! Signals that wait in a stream until they are asked for, and an end by a signal.
//!
//! For processes with one thread that look after others. Passes nothing on by itself.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

/// A signal that has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    /// Its number.
    pub(crate) number: i32,
    /// Whether the kernel sent it, as for a key of the terminal, to all processes in front of it.
    pub(crate) from_kernel: bool,
}

/// What the kernel says where it sent a signal itself.
const SI_KERNEL: i32 = 0x80;

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is filled in before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Has the signals wait in a stream until they are asked for.
pub(crate) fn wait_for(signals: &[i32]) -> io::Result<OwnedFd> {
    let set = set_of(signals);
    // SAFETY: this process has one thread; the stream is new and belongs to nothing else.
    unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
            ..0 => Err(io::Error::last_os_error()),
            stream => Ok(OwnedFd::from_raw_fd(stream)),
        }
    }
}

/// The next signal that has come; never waits.
pub(crate) fn next(stream: &OwnedFd) -> Option<Signal> {
    let mut signal = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    // SAFETY: the signal is looked at when all of it has been read.
    unsafe {
        let whole = size_of::<libc::signalfd_siginfo>();
        if libc::read(stream.as_raw_fd(), signal.as_mut_ptr().cast(), whole) != whole as isize {
            return None;
        }
        let signal = signal.assume_init();
        Some(Signal { number: signal.ssi_signo as i32, from_kernel: signal.ssi_code == SI_KERNEL })
    }
}

/// Lets all signals come again.
pub(crate) fn unblock() -> io::Result<()> {
    let none = set_of(&[]);
    // SAFETY: an empty set; only reads it. Called between a fork and an exec too, where it is safe.
    if unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Ends this process by a signal, as one that got it would have ended; comes back only where it does not end processes.
pub(crate) fn end_by(signal: i32) {
    // SAFETY: default disposition, unblocked, sent to itself.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if unblock().is_ok() {
            libc::raise(signal);
        }
    }
}
