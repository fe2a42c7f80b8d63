//! Worker threads: a pool that shares the parts of one piece of work with the thread that asks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= parts {
                    break;
                }
                part(index);
            }
        };
        match &self.pool {
            Some(pool) if parts > 1 && !self.alone.load(Ordering::Relaxed) => pool.in_place_scope(|scope| {
                for _ in 1..self.threads.min(parts) {
                    scope.spawn(|_| work());
                }
                work();
            }),
            Some(_) | None => work(),
        }
    }

    fn threads(&self) -> usize {
        if self.alone.load(Ordering::Relaxed) { 1 } else { self.threads }
    }
}
