//! NumPy's OpenBLAS as a good neighbour of our worker threads.
//!
//! After each call OpenBLAS's threads spin for about a tenth of a second in case another one follows. On the cores that our
//! workers need, that costs more than it saves (logistic regression, 2 cores: 2.06 s of CPU with it, 1.36 s without). The
//! time is read from the environment once, when the library is loaded; it is set just before, and taken back after, so
//! that neither the program nor its children see it. A process that has a share of the CPUs keeps to it in the same way, also where
//! OMP_NUM_THREADS asks for more.
#![expect(unsafe_code, reason = "sets an environment variable for a C library")]

use std::ffi::{CStr, CString};
use std::sync::Mutex;

/// OpenBLAS's variable: the logarithm of the number of clock ticks that idle threads spin.
const SPIN_TIME: &CStr = c"OPENBLAS_THREAD_TIMEOUT";
/// About a microsecond; the smallest value that OpenBLAS takes is 4.
const SHORT: &str = "12";
/// OpenBLAS's variable: its number of threads.
const THREADS: &CStr = c"OPENBLAS_NUM_THREADS";
/// Variables with which the user tells OpenBLAS itself how many threads to use.
const SAID: [&str; 2] = ["OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS"];
/// The variable with which the user tells every library.
const TOLD_ALL: &str = "OMP_NUM_THREADS";

/// The variables that are ours.
static SET: Mutex<Vec<&CStr>> = Mutex::new(Vec::new());

/// Before NumPy is loaded: asks for short spins and for this process's share of the CPUs, unless the user said something.
pub(crate) fn prepare_environment() {
    set(SPIN_TIME, SHORT);
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    if !SAID.into_iter().any(|name| std::env::var_os(name).is_some())
        && let Some(share) = number("LEGATE_CPUS")
    {
        set(THREADS, &number(TOLD_ALL).map_or(share, |told| told.min(share)).to_string());
    }
}

fn set(name: &'static CStr, value: &str) {
    let (Ok(value), Ok(mut ours)) = (CString::new(value), SET.lock()) else { return };
    // SAFETY: called while the module is imported, under the GIL, by the thread that will load NumPy; no thread of ours runs.
    unsafe {
        if libc::getenv(name.as_ptr()).is_null() && libc::setenv(name.as_ptr(), value.as_ptr(), 0) == 0 {
            ours.push(name);
        }
    }
}

/// After NumPy is loaded: leaves the environment as it was.
pub(crate) fn restore_environment() {
    for name in SET.lock().map(|mut ours| std::mem::take(&mut *ours)).unwrap_or_default() {
        // SAFETY: called under the GIL before the runtime's threads start.
        unsafe { libc::unsetenv(name.as_ptr()) };
    }
}
