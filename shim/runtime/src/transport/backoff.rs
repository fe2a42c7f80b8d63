//! How a thread waits for something that it can only ask about: it spins, then lets others run, then sleeps.
//!
//! Promises that a wait costs a shared core little: at most [`SPIN`] of asking without a pause, then sleeps that grow to
//! [`LONGEST`], and to [`LONGEST_EVER`] where it is a matter of seconds. Knows nothing of what is waited for.

use std::time::{Duration, Instant};

/// How long asking goes on without a pause: longer than a message takes between cores, shorter than a time slice.
const SPIN: Duration = Duration::from_micros(50);
/// How long after that the thread only yields.
const YIELD: Duration = Duration::from_micros(200);
/// The first sleep.
const SHORTEST: Duration = Duration::from_micros(20);
/// The longest sleep in the first second, and so the latency of a message that was waited for long.
const LONGEST: Duration = Duration::from_millis(1);
/// The longest sleep ever. A wait of more than a second sleeps for a part of what it has waited for already: an hour at a prompt
/// costs no core.
const LONGEST_EVER: Duration = Duration::from_millis(20);
/// Which part.
const PART: u32 = 64;

/// One wait.
pub(crate) struct Backoff {
    since: Instant,
    sleep: Duration,
}

impl Backoff {
    /// Begins to wait.
    pub(crate) fn new() -> Backoff {
        Backoff { since: Instant::now(), sleep: SHORTEST }
    }

    /// When the wait began.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Pauses before the next question; for how long the wait has gone on.
    pub(crate) fn pause(&mut self) -> Duration {
        let waited = self.since.elapsed();
        if waited < SPIN {
            std::hint::spin_loop();
        } else if waited < YIELD {
            std::thread::yield_now();
        } else {
            std::thread::sleep(self.sleep);
            self.sleep = (self.sleep * 2).min(LONGEST.max(waited / PART).min(LONGEST_EVER));
        }
        waited
    }
}
