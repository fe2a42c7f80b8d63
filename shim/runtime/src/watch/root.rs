//! What shard 0's watch knows of all shards, and what it decides: when the job is stopped, what the user is told.
//!
//! Decisions are values; the watch carries them out. A shard that waits is never a reason to stop by itself: only one that waits
//! for a shard whose program has ended.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::gate::Order;
use super::interrupt::Interrupt;
use super::message::{How, Message};
use super::{STOPPED, names};

/// How long after a shard has ended another one may still wait for it: what was sent may be on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(600);
/// How long shard 0 has to be interrupted too, and to show it.
const SHOWN: Duration = Duration::from_secs(2);
/// How recent the news must be that a shard waits, to say that it is stuck.
const STUCK: Duration = Duration::from_millis(1500);
/// How long shards have to say what they do before a report goes without them.
const ANSWER: Duration = Duration::from_secs(2);
/// How long a difference found at the end is left to the neighbours, who can say where it began.
const FOUND_SOON: Duration = Duration::from_secs(2);
/// Exit code of a program that was interrupted.
const INTERRUPTED: u64 = 130;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Show this to the user.
    Tell(String),
    /// Ask these shards what they do.
    Ask(Vec<u64>),
    /// Stop all shards.
    Stop {
        /// With this exit code.
        code: u64,
        /// And this text for the user; none where all is said.
        text: String,
    },
    /// All programs have ended alike.
    Done,
    /// Give this order to the gates of all shards.
    Gates(Order),
}

/// How a shard's program ended.
#[derive(Debug)]
struct Ended {
    since: Instant,
    how: How,
    did: (u64, u64),
    text: String,
}

/// A report of a long wait that is being made.
#[derive(Debug)]
struct Asked {
    since: Instant,
    text: String,
    about: Vec<u64>,
    answers: BTreeMap<u64, String>,
}

/// What shard 0 knows.
#[derive(Debug)]
pub(super) struct Root {
    shards: usize,
    ended: BTreeMap<u64, Ended>,
    /// Shards whose programs an exception ends.
    raised: BTreeMap<u64, Ended>,
    /// When a shard last said that it waits.
    waiting: BTreeMap<u64, Instant>,
    asked: Option<Asked>,
    /// How long a wait must be for the next report.
    patience: Duration,
    all_ended: Option<Instant>,
    /// When the first shard was interrupted.
    interrupted: Option<Instant>,
    /// An interrupt that is to be raised on all shards.
    interrupt: Option<Interrupt>,
    /// Since when the program does something; none while a prompt waits for the user.
    busy: Option<Instant>,
    decisions: Vec<Decision>,
    over: bool,
}

impl Root {
    pub(super) fn new(shards: usize, patience: Duration) -> Root {
        let (ended, raised, waiting) = Default::default();
        let decisions = Vec::new();
        Root {
            shards,
            ended,
            raised,
            waiting,
            asked: None,
            patience,
            all_ended: None,
            interrupted: None,
            interrupt: None,
            busy: Some(Instant::now()),
            decisions,
            over: false,
        }
    }

    /// Takes a message that was meant for shard 0.
    pub(super) fn hear(&mut self, message: Message) {
        match message {
            Message::Ended { shard, how, count, digest, text } => {
                self.hear_interrupt(shard, how);
                let since = Instant::now();
                self.ended.insert(shard, Ended { since, how, did: (count, digest), text });
            }
            Message::Raised { shard, how, text } => {
                self.hear_interrupt(shard, how);
                self.raised.insert(shard, Ended { since: Instant::now(), how, did: (0, 0), text });
            }
            Message::Waits { shard, for_ms, on, text } => {
                self.hear_wait(shard, Duration::from_millis(for_ms), on, text)
            }
            Message::Report { code, text } => self.stop(code, text),
            Message::Doing { shard, text } => {
                if let Some(asked) = &mut self.asked {
                    asked.answers.insert(shard, text);
                }
            }
            Message::Stands { shard, until, done, stands } => {
                if let Some(interrupt) = &mut self.interrupt {
                    interrupt.hear(shard, until, done, stands);
                }
            }
            Message::Beat { .. }
            | Message::Digests { .. }
            | Message::Differs { .. }
            | Message::Ask { .. }
            | Message::Stop { .. }
            | Message::Shut { .. }
            | Message::Raise
            | Message::Open
            | Message::Done => {}
        }
    }

    /// Takes note of whether a prompt waits for the user, and of an interrupt that the user asks for. It is shard 0's alone where
    /// nothing runs.
    pub(super) fn mind(&mut self, rests: bool, interrupt: bool) {
        if rests {
            self.busy = None;
            if self.interrupt.take().is_some() {
                self.decisions.push(Decision::Gates(Order::Open));
            }
        } else {
            self.busy.get_or_insert_with(Instant::now);
            if interrupt && self.interrupt.is_none() {
                let begun = self.interrupt.insert(Interrupt::new(self.shards));
                self.decisions.push(Decision::Gates(begun.first()));
            }
        }
    }

    /// An interrupt of shard 0, which has shown its traceback, ends the job; another shard's leaves it some time to do so.
    fn hear_interrupt(&mut self, shard: u64, how: How) {
        if how == How::Interrupted {
            if shard == 0 {
                self.stop(INTERRUPTED, String::new());
            }
            self.interrupted.get_or_insert_with(Instant::now);
        }
    }

    fn hear_wait(&mut self, shard: u64, length: Duration, on: Vec<u64>, text: String) {
        self.waiting.insert(shard, Instant::now());
        if let Some((gone, ended)) = on.iter().find_map(|&on| Some((on, self.gone(on, shard)?))) {
            let text = alone(gone, ended, &format!("shard {shard} waits for it ({text})"));
            self.stop(STOPPED, text);
        } else if self.busy.is_some_and(|busy| length.min(busy.elapsed()) > self.patience) && self.asked.is_none() {
            self.patience *= 2;
            let text =
                format!("shard {shard} has waited {} s for {} ({text})", length.as_secs(), names(on.iter().copied()));
            self.decisions.push(Decision::Ask(on.clone()));
            self.asked = Some(Asked { since: Instant::now(), text, about: on, answers: BTreeMap::new() });
        }
    }

    /// How a shard that another one waits for has ended: its program has, or it raised alone and waits for others itself.
    fn gone(&self, shard: u64, waits: u64) -> Option<&Ended> {
        let is_late = |ended: &&Ended| ended.since.elapsed() > ON_ITS_WAY;
        let stuck = self.waiting.get(&shard).is_some_and(|since| since.elapsed() < STUCK);
        let raised = self.raised.get(&shard).filter(|_| stuck && !self.raised.contains_key(&waits));
        self.ended.get(&shard).or(raised).filter(is_late)
    }

    /// What is to be done now.
    pub(super) fn decide(&mut self) -> Vec<Decision> {
        if let Some(asked) = &self.asked
            && (asked.answers.len() == asked.about.len() || asked.since.elapsed() > ANSWER)
        {
            let mut text = asked.text.clone();
            for shard in &asked.about {
                let doing =
                    asked.answers.get(shard).map_or("does not answer (stopped, or its machine is)", String::as_str);
                text += &format!("; shard {shard} {doing}");
            }
            self.decisions.push(Decision::Tell(text));
            self.asked = None;
        }
        if let Some(order) = self.interrupt.as_mut().and_then(Interrupt::decide) {
            self.decisions.push(Decision::Gates(order));
            if order == Order::Raise {
                self.interrupt = None;
            }
        }
        if self.interrupted.is_some_and(|since| since.elapsed() > SHOWN) {
            self.stop(INTERRUPTED, String::new());
        }
        if self.ended.len() == self.shards {
            self.compare_endings();
        }
        std::mem::take(&mut self.decisions)
    }

    fn compare_endings(&mut self) {
        let since = *self.all_ended.get_or_insert_with(Instant::now);
        let Some(first) = self.ended.get(&0) else { return };
        if let Some((shard, other)) = self.ended.iter().find(|(_, other)| other.how != first.how) {
            // The one that raised is told of; where that is shard 0, it is the others that are gone.
            let text = match (first.how, other.how) {
                (How::Raised, _) => alone(0, first, &format!("shard {shard} has ended without it")),
                (_, _) => alone(*shard, other, "shard 0 has ended without it"),
            };
            self.stop(STOPPED, text);
        } else if let Some((shard, other)) = self.ended.iter().find(|(_, other)| other.did != first.did) {
            if since.elapsed() > FOUND_SOON {
                let text = format!(
                    "the shards have gone different ways: shard 0 ended after {} operations, shard {shard} after {}",
                    first.did.0, other.did.0
                );
                self.stop(STOPPED, text);
            }
        } else if !self.over {
            self.over = true;
            self.decisions.push(Decision::Done);
        }
    }

    /// Stops the job, once.
    fn stop(&mut self, code: u64, text: String) {
        if !self.over {
            self.over = true;
            self.decisions.push(Decision::Stop { code, text });
        }
    }
}

/// The text about a shard that has ended alone; shard 0's exception has been shown already, and says enough where it has no text.
fn alone(shard: u64, ended: &Ended, others: &str) -> String {
    match (ended.how, shard) {
        (How::Raised, 0) if ended.text.is_empty() => String::new(),
        (How::Raised, 0) => format!("shard 0 alone raised this; {others}"),
        (How::Raised, _) => format!("shard {shard} alone raised an exception; {others}:\n{}", ended.text.trim_end()),
        (How::Returned | How::Interrupted, _) => format!("shard {shard} has ended alone; {others}"),
    }
}
