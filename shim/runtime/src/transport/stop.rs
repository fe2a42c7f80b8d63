//! The order to stop: given once, seen by every wait.
//!
//! Whoever gives it has told, or will tell, the user why; a wait that sees it only ends.

use std::sync::OnceLock;

/// Whether the job is being stopped, and why.
#[derive(Debug, Default)]
pub struct Stop(OnceLock<String>);

impl Stop {
    /// Gives the order; only the first reason counts.
    pub fn order(&self, why: String) {
        self.0.get_or_init(|| why);
    }

    /// Why the job is being stopped, if it is.
    pub fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
