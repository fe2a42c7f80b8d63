#![expect(unsafe_code, reason = "reads and sets the terminal's attributes, and stops this process")]
//! The user's terminal while rank 0 works on it: its line editor changes how the terminal behaves, and only this process, which the
//! terminal knows, gets its signals.
//!
//! Promises that Ctrl-Z stops rank 0 too, and gives the shell the terminal as it was; and that what a rank that died at its prompt
//! left behind is put right. Does nothing where standard input is no terminal.

use std::mem::MaybeUninit;

/// How the terminal was.
pub(crate) struct Terminal {
    was: Option<libc::termios>,
}

impl Terminal {
    /// Remembers how the terminal is.
    pub(crate) fn remember() -> Terminal {
        Terminal { was: attributes() }
    }

    /// Makes the terminal what it was, where it is ours to change.
    pub(crate) fn restore(&self) {
        if let Some(was) = self.was.filter(|_| is_in_front()) {
            set(&was);
        }
    }

    /// Stops this process, and rank 0 with it, until the shell lets it go on. A prompt goes on only in front: in the background there
    /// is nothing to read.
    pub(crate) fn suspend(&self, first: Option<libc::pid_t>, is_prompt: bool) {
        let edited = attributes();
        tell(first, libc::SIGSTOP);
        self.restore();
        loop {
            // SAFETY: no preconditions; this call is where the process stops.
            unsafe { libc::raise(libc::SIGSTOP) };
            if is_in_front() || !is_prompt || self.was.is_none() {
                break;
            }
        }
        if let Some(edited) = edited.filter(|_| is_in_front()) {
            set(&edited);
        }
        tell(first, libc::SIGCONT);
        // The line editor draws its line again.
        tell(first, libc::SIGWINCH);
    }
}

/// How the terminal at standard input is.
fn attributes() -> Option<libc::termios> {
    let mut found = MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: room for what the call fills in; it is read where it did.
    unsafe { (libc::tcgetattr(0, found.as_mut_ptr()) == 0).then(|| found.assume_init()) }
}

fn set(attributes: &libc::termios) {
    // SAFETY: attributes that a terminal had.
    unsafe { libc::tcsetattr(0, libc::TCSADRAIN, attributes) };
}

/// Whether the terminal is this process's to use now.
fn is_in_front() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::tcgetpgrp(0) == libc::getpgrp() }
}

fn tell(process: Option<libc::pid_t>, signal: i32) {
    if let Some(process) = process {
        // SAFETY: a process of this job; one that has ended meanwhile gets nothing.
        unsafe { libc::kill(process, signal) };
    }
}
