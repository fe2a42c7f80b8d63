//! Worker threads: a pool that shares the parts of one piece of work with the thread that asks.
//!
//! Promises that whoever asks waits only for parts that others have begun. A thread that wakes up when all parts are taken finds the
//! work closed, and nobody has waited for it: on a busy machine that takes longer than many a piece of work. A part that panics does
//! so for whoever asked.
#![expect(unsafe_code, reason = "work that ends with the call, known to threads that may come later")]

use std::any::Any;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::launch::Parallel;

/// Worker threads that share parts of work with the thread that asks.
pub(crate) struct Workers {
    pool: Option<rayon::ThreadPool>,
    threads: usize,
    /// Whether this is a forked child, which has no other thread.
    alone: AtomicBool,
}

impl Workers {
    pub(crate) fn new(threads: usize) -> Workers {
        let pool = (threads > 1)
            .then(|| {
                let name = |index| format!("legate-worker-{index}");
                rayon::ThreadPoolBuilder::new().num_threads(threads - 1).thread_name(name).build().ok()
            })
            .flatten();
        Workers { threads: if pool.is_some() { threads } else { 1 }, pool, alone: AtomicBool::new(false) }
    }

    /// Whether this is a forked child.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    /// From now on this is a forked child.
    pub(crate) fn leave_alone(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }
}

impl Parallel for Workers {
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        match &self.pool {
            Some(pool) if parts > 1 && !self.alone.load(Ordering::Relaxed) => {
                let work = Arc::new(Piece::new(parts, part));
                {
                    let _closing = Closing(&work);
                    for _ in 1..self.threads.min(parts) {
                        let work = work.clone();
                        pool.spawn(move || work.help());
                    }
                    work.take_parts();
                }
                let panicked = work.panicked.lock().take();
                if let Some(panic) = panicked {
                    resume_unwind(panic);
                }
            }
            Some(_) | None => (0..parts).for_each(part),
        }
    }

    fn threads(&self) -> usize {
        if self.alone.load(Ordering::Relaxed) { 1 } else { self.threads }
    }
}

/// Set in [`Piece::inside`] when nobody may come in any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Looks at whether others are done before the thread that asked goes to sleep: some microseconds, a short part's length.
const PATIENCE: usize = 200;

/// One piece of work.
///
/// Invariant: `part` is good as long as the work is not closed, and after that as long as a thread is inside.
struct Piece {
    part: NonNull<dyn Fn(usize) + Sync>,
    parts: usize,
    /// The first part that nobody has taken.
    next: AtomicUsize,
    /// Threads other than the one that asked, and [`CLOSED`].
    inside: AtomicUsize,
    /// What the first part that panicked had to say.
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
    /// Told, with `panicked` locked once, when the last thread has left closed work.
    left: Condvar,
}

// SAFETY: the parts may be run by any thread, since what runs them is `Sync`; the rest is atomics and locks.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    fn new(parts: usize, part: &(dyn Fn(usize) + Sync)) -> Piece {
        let part = NonNull::from(part);
        Piece {
            // SAFETY: only the name of the lifetime changes; the invariant says when it may be used.
            part: unsafe {
                std::mem::transmute::<NonNull<dyn Fn(usize) + Sync + '_>, NonNull<dyn Fn(usize) + Sync>>(part)
            },
            parts,
            next: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            panicked: Mutex::new(None),
            left: Condvar::new(),
        }
    }

    /// Runs parts until all are taken; for who asked, before closing, and who is inside.
    fn take_parts(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.parts {
                return;
            }
            // SAFETY: the invariant of `Piece`.
            let part = unsafe { self.part.as_ref() };
            part(index);
        }
    }

    /// A worker's share.
    fn help(&self) {
        let enter = |inside: usize| (inside & CLOSED == 0).then_some(inside + 1);
        if self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter).is_err() {
            return;
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.take_parts())) {
            self.panicked.lock().get_or_insert(panic);
        }
        if self.inside.fetch_sub(1, Ordering::AcqRel) == CLOSED + 1 {
            drop(self.panicked.lock());
            self.left.notify_all();
        }
    }

    /// Lets nobody in any more, and waits for those who are.
    fn close(&self) {
        self.inside.fetch_or(CLOSED, Ordering::AcqRel);
        let is_empty = || self.inside.load(Ordering::Acquire) == CLOSED;
        for _ in 0..PATIENCE {
            if is_empty() {
                return;
            }
            hint::spin_loop();
        }
        let mut locked = self.panicked.lock();
        while !is_empty() {
            self.left.wait(&mut locked);
        }
    }
}

/// Closes work at the end of a scope, however it ends.
struct Closing<'a>(&'a Piece);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn each_part_runs_once() {
        let workers = Workers::new(3);
        for parts in [0, 1, 2, 3, 50] {
            let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            workers.each(parts, &|index| {
                counts[index].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn a_part_that_panics_does_so_for_who_asked() {
        let workers = Workers::new(2);
        let asked = || workers.each(8, &|index| assert!(index != 5, "part {index}"));
        assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
        workers.each(8, &|_| ());
    }

    #[test]
    fn nobody_waits_for_a_thread_that_is_busy_elsewhere() {
        let workers = Workers::new(2);
        let (begun, over) = (Barrier::new(3), Barrier::new(3));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                workers.each(2, &|_| {
                    begun.wait();
                    over.wait();
                });
            });
            begun.wait();
            let count = AtomicUsize::new(0);
            workers.each(4, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.into_inner(), 4);
            over.wait();
        });
    }
}
