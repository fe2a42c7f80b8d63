//! Workers taking the stretches of a stream one after the other.
//!
//! The stream of an engine without jumps is gone through once, by whoever claims the next stretch, under a lock: skipping
//! costs a small part of what drawing does. Stretches are claimed in the order of the stream, and every claimed stretch
//! is in the hands of a running worker: waiting for an earlier one cannot deadlock.

use std::sync::Mutex;

use super::engine::Engine;

/// The part of a stream not yet claimed.
pub(super) struct Claims {
    words_each: u64,
    front: Mutex<Front>,
}

struct Front {
    number: u64,
    engine: Engine,
}

/// One stretch.
pub(super) struct Claim {
    /// How many stretches were claimed before.
    pub(super) number: u64,
    /// The engine at the stretch's first word.
    pub(super) engine: Engine,
    /// Natural words before it.
    pub(super) words_before: u64,
}

impl Claims {
    /// A stream from `engine` on, in stretches of `words_each` natural words.
    pub(super) fn new(engine: Engine, words_each: u64) -> Claims {
        Claims { words_each, front: Mutex::new(Front { number: 0, engine }) }
    }

    /// The next stretch.
    pub(super) fn next(&self) -> Claim {
        let mut front = self.front.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let claim =
            Claim { number: front.number, engine: front.engine.clone(), words_before: front.number * self.words_each };
        front.number += 1;
        front.engine.skip(self.words_each);
        claim
    }
}
