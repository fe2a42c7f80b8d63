//! The timeline: when each group of launches ran, and what it sent, for a profile.
//!
//! Promises to cost a look at one flag where nobody asked for it. Times are this shard's own; nothing is decided by them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::group::Group;
use crate::shards::Traffic;

/// A group that has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Names of its launches, in program order.
    pub names: Vec<Arc<str>>,
    /// Rows of the group.
    pub rows: usize,
    /// Microseconds since the timeline began.
    pub start_us: u64,
    /// Microseconds that it ran.
    pub length_us: u64,
    /// Messages sent meanwhile.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// A group that runs.
pub(crate) struct Begun {
    names: Vec<Arc<str>>,
    rows: usize,
    at: Instant,
    sent: (u64, u64),
}

#[derive(Default)]
struct Kept {
    /// When it began: by a clock that only grows, and in microseconds since 1970.
    began: Option<(Instant, u64)>,
    spans: Vec<Span>,
}

/// Groups and their times.
#[derive(Default)]
pub(crate) struct Timeline {
    on: AtomicBool,
    kept: Mutex<Kept>,
}

impl Timeline {
    /// Keeps times from now on.
    pub(crate) fn start(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
        self.kept.lock().began = Some((Instant::now(), now));
        self.on.store(true, Ordering::Relaxed);
    }

    /// When it began, in microseconds since 1970, and what was kept since.
    pub(crate) fn spans(&self) -> (u64, Vec<Span>) {
        let kept = self.kept.lock();
        (kept.began.map_or(0, |began| began.1), kept.spans.clone())
    }

    /// Notes that groups that run as one begin, where times are kept.
    pub(crate) fn begin<T>(&self, groups: &[&Group<T>], traffic: &Traffic) -> Option<Begun> {
        self.on.load(Ordering::Relaxed).then(|| Begun {
            names: groups.iter().flat_map(|group| &group.members).map(|member| member.launch.name.clone()).collect(),
            rows: groups.iter().map(|group| group.rows).max().unwrap_or(0),
            at: Instant::now(),
            sent: sent(traffic),
        })
    }

    /// Notes that it has ended.
    pub(crate) fn end(&self, begun: Option<Begun>, traffic: &Traffic) {
        let Some(begun) = begun else { return };
        let length_us = begun.at.elapsed().as_micros() as u64;
        let (messages, bytes) = sent(traffic);
        let mut kept = self.kept.lock();
        let Some((began, _)) = kept.began else { return };
        kept.spans.push(Span {
            names: begun.names,
            rows: begun.rows,
            start_us: begun.at.duration_since(began).as_micros() as u64,
            length_us,
            messages: messages - begun.sent.0,
            bytes: bytes - begun.sent.1,
        });
    }
}

fn sent(traffic: &Traffic) -> (u64, u64) {
    (traffic.messages.load(Ordering::Relaxed), traffic.bytes.load(Ordering::Relaxed))
}
