//! NumPy's OpenBLAS as a good neighbour of our worker threads.
//!
//! After each call OpenBLAS's threads spin for about a tenth of a second in case another one follows. On the cores that our
//! workers need, that costs more than it saves (logistic regression, 2 cores: 2.06 s of CPU with it, 1.36 s without). The
//! time is read from the environment once, when the library is loaded; it is set just before, and taken back after, so
//! that neither the program nor its children see it.
#![expect(unsafe_code, reason = "sets an environment variable for a C library")]

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// OpenBLAS's variable: the logarithm of the number of clock ticks that idle threads spin.
const SPIN_TIME: &CStr = c"OPENBLAS_THREAD_TIMEOUT";
/// About a microsecond; the smallest value that OpenBLAS takes is 4.
const SHORT: &CStr = c"12";

/// Whether the variable is ours.
static SET: AtomicBool = AtomicBool::new(false);

/// Before NumPy is loaded: asks for short spins, unless the user said something.
pub(crate) fn ask_for_short_spins() {
    // SAFETY: called while the module is imported, under the GIL, by the thread that will load NumPy; no thread of ours runs.
    unsafe {
        if libc::getenv(SPIN_TIME.as_ptr()).is_null() && libc::setenv(SPIN_TIME.as_ptr(), SHORT.as_ptr(), 0) == 0 {
            SET.store(true, Ordering::Relaxed);
        }
    }
}

/// After NumPy is loaded: leaves the environment as it was.
pub(crate) fn restore_environment() {
    if SET.swap(false, Ordering::Relaxed) {
        // SAFETY: called under the GIL before the runtime's threads start.
        unsafe { libc::unsetenv(SPIN_TIME.as_ptr()) };
    }
}
