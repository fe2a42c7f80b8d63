//! The watch: a thread of each shard that keeps an eye on the others, out of band.
//!
//! Watches are connected by sockets along a binomial tree, so that a shard has at most log2(shards) neighbours. They compare the
//! running digests of what the shards do, tell shard 0 who waits for whom, who has ended and how, and pass its order to stop on.
//! Promises that a job whose shards have gone different ways, or of which one has ended while others wait for it, ends within
//! seconds, with one text for the user; that a slow shard is only reported; that an idle watch wakes a few times a second.
//! Does not end the process or write anything itself: its [`Host`] does.

mod gate;
mod interrupt;
mod link;
mod message;
mod root;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::digest::Digest;
use crate::transport::collective::parent;
use crate::transport::{Stop, Transport, TransportError, Waits};
use gate::Order;
use link::Link;
use message::Message;
use root::{Decision, Root};

pub use gate::Gate;
pub use message::How;

/// How often neighbours compare digests while the program runs.
const BEAT: Duration = Duration::from_millis(200);
/// How often a shard looks where it stands while an interrupt is under way.
const STANCE: Duration = Duration::from_millis(5);
/// A wait of this length is told to shard 0, again and again.
const LONG_WAIT: Duration = Duration::from_millis(700);
/// How long after an order to stop was asked for, or a neighbour was lost, a shard ends by itself.
const ALONE: Duration = Duration::from_secs(4);
/// How long after a neighbour was lost shard 0 is told: whoever started a rank that was killed is quicker and knows more.
const LOST: Duration = Duration::from_millis(1500);
/// Exit code of a job that was stopped for a reason of ours.
const STOPPED: u64 = 1;
/// Most digests sent to find where two shards went different ways.
const MOST_DIGESTS: usize = 16_384;

/// What the watch has done by the process that it lives in.
pub trait Host: Send + Sync {
    /// Shows a text to the user, after what the program has printed.
    fn tell(&self, text: &str);
    /// Ends the process.
    fn end(&self, code: u8);
    /// Has the program's thread look whether [`Gate::take`] has an interrupt for it, even where it sleeps.
    fn interrupt(&self);
}

/// How this shard's program ended.
#[derive(Clone, Debug)]
struct Ending {
    how: How,
    text: String,
}

#[derive(Debug, Default)]
struct Own {
    raised: Option<Ending>,
    ending: Option<Ending>,
    done: bool,
    /// The watch is to end without a word: this process is no shard any more.
    leave: bool,
    /// A prompt waits for the user.
    rests: bool,
    /// The user asks for an interrupt.
    interrupt: bool,
}

#[derive(Default)]
struct Shared {
    own: Mutex<Own>,
    changed: Condvar,
}

/// The watch of one shard.
pub struct Watch {
    shared: Arc<Shared>,
    wake: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What a watch looks at, and whom it tells.
pub struct Charge {
    /// The order that ends this shard's waits.
    pub stop: Arc<Stop>,
    /// Who this shard waits for.
    pub waits: Arc<Waits>,
    /// What this shard has done.
    pub digest: Arc<Digest>,
    /// Where this shard's program stands when it is interrupted.
    pub gate: Arc<Gate>,
    /// The process.
    pub host: Box<dyn Host>,
    /// How long a wait is before it is reported to the user.
    pub patience: Duration,
}

impl Watch {
    /// Connects this shard's watch with its neighbours', which must all do so now, and starts it.
    pub fn start(transport: &dyn Transport, charge: Charge) -> Result<Watch, TransportError> {
        let failed = |why: std::io::Error| TransportError::Failed(format!("the watch does not start: {why}"));
        let links = link::connect(transport)?;
        let (wake, woken) = UnixStream::pair().map_err(failed)?;
        woken.set_nonblocking(true).map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let shard = transport.shard();
        let keeper = Keeper {
            shard,
            root: (shard == 0).then(|| Root::new(transport.shards(), charge.patience)),
            charge,
            shared: shared.clone(),
            links,
            woken,
            told: (0, 0),
            stance: None,
            beaten: Instant::now(),
            waited: Instant::now(),
            differs: false,
            ended: false,
            reported: None,
            lost: None,
        };
        let thread = std::thread::Builder::new().name("legate-watch".to_owned()).spawn(move || keeper.run());
        Ok(Watch { shared, wake, thread: Mutex::new(Some(thread.map_err(failed)?)) })
    }

    /// Says that an exception ends this shard's program, which still finishes what it has begun.
    pub fn raised(&self, how: How, text: &str) {
        self.shared.own.lock().raised = Some(Ending { how, text: text.to_owned() });
        self.nudge();
    }

    /// Says that this shard's program has ended, and waits until all have, for about `patience`; whether they have. Where they
    /// have not ended alike the process ends instead.
    pub fn finish(&self, how: How, text: &str, patience: Duration) -> bool {
        let mut own = self.shared.own.lock();
        let first = own.ending.is_none();
        if first || how == How::Interrupted {
            own.ending = Some(Ending { how, text: text.to_owned() });
            self.nudge();
        }
        if !own.done {
            self.shared.changed.wait_for(&mut own, patience);
        }
        own.done
    }

    /// Says that a prompt waits for the user, or no longer: nobody is late for it, and there is nothing to interrupt.
    pub fn rest(&self, rests: bool) {
        self.shared.own.lock().rests = rests;
    }

    /// Shard 0's: has KeyboardInterrupt raised on all shards, at one place of the program.
    pub fn interrupt(&self) {
        self.shared.own.lock().interrupt = true;
        self.nudge();
    }

    /// Ends the watch, after all shards' programs have ended.
    pub fn close(&self) {
        self.shared.own.lock().leave = true;
        self.nudge();
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the watch has been shown already.
            drop(thread.join());
        }
    }

    fn nudge(&self) {
        // A full pipe wakes as well.
        drop((&self.wake).write(&[1]));
    }
}

/// The watch's thread.
struct Keeper {
    shard: usize,
    root: Option<Root>,
    charge: Charge,
    shared: Arc<Shared>,
    links: Vec<Link>,
    woken: UnixStream,
    /// Count and digest last told to the neighbours.
    told: (u64, u64),
    /// Where this shard stands, as last told.
    stance: Option<(u64, u64, bool)>,
    beaten: Instant,
    waited: Instant,
    /// A difference has been found, and its place is being looked for.
    differs: bool,
    /// This shard's ending has been told.
    ended: bool,
    /// What was asked to be told when the job is stopped, and when.
    reported: Option<(Instant, u64, String)>,
    /// A neighbour that was lost, and when.
    lost: Option<(Instant, usize)>,
}

impl Keeper {
    fn run(mut self) {
        loop {
            let pause = if self.charge.gate.is_minded() { STANCE } else { BEAT };
            link::wait(&self.links, self.woken.as_raw_fd(), pause);
            while matches!(self.woken.read(&mut [0; 64]), Ok(1..)) {}
            if self.shared.own.lock().leave {
                return;
            }
            for index in 0..self.links.len() {
                let neighbour = self.links[index].shard;
                let (messages, broke) = self.links[index].look();
                for message in messages {
                    self.take(index, message);
                }
                if broke && !self.shared.own.lock().done {
                    self.lost.get_or_insert((Instant::now(), neighbour));
                }
            }
            self.tell_ending();
            self.tell_stance();
            self.beat();
            self.tell_waits();
            self.mind_losses();
            if let Some(root) = &mut self.root {
                let mut own = self.shared.own.lock();
                root.mind(own.rests, std::mem::take(&mut own.interrupt));
                drop(own);
                let decisions = root.decide();
                decisions.into_iter().for_each(|decision| self.carry_out(decision));
            }
        }
    }

    /// Deals with a neighbour's message.
    fn take(&mut self, index: usize, message: Message) {
        match message {
            Message::Beat { count, digest } => {
                let differs = self.charge.digest.after(count).is_some_and(|own| own != digest);
                if differs && !self.differs {
                    self.differs = true;
                    let (first, digests) = self.charge.digest.before(count, MOST_DIGESTS);
                    self.links[index].send(&Message::Digests { first, digests });
                }
            }
            Message::Digests { first, digests } => {
                let differs = |number: u64, digest| self.charge.digest.after(number).is_some_and(|own| own != digest);
                let found = (first..).zip(digests).find(|&(number, digest)| differs(number, digest));
                let number = found.map_or(first, |(number, _)| number);
                let text = self.charge.digest.describe(number);
                self.links[index].send(&Message::Differs { number, shard: self.shard as u64, text });
            }
            Message::Differs { number, shard, text } => {
                let own = self.charge.digest.describe(number);
                let mut rows = [(self.shard as u64, own), (shard, text)];
                rows.sort();
                let [(first, its), (second, other)] = rows;
                let text = format!(
                    "the shards have gone different ways at operation {number}: shard {first} did {its}, shard {second} did {other}"
                );
                self.report(STOPPED, text);
            }
            Message::Ask { ref shards } => {
                if shards.contains(&(self.shard as u64)) {
                    let text = self.doing();
                    self.upwards(Message::Doing { shard: self.shard as u64, text });
                }
                self.downwards(&message);
            }
            Message::Stop { code } => {
                self.downwards(&message);
                self.end(code);
            }
            Message::Done => {
                self.downwards(&message);
                self.done();
            }
            Message::Shut { until } => {
                self.downwards(&message);
                self.obey(Order::Shut { until });
            }
            Message::Raise => {
                self.downwards(&message);
                self.obey(Order::Raise);
            }
            Message::Open => {
                self.downwards(&message);
                self.obey(Order::Open);
            }
            Message::Raised { .. }
            | Message::Ended { .. }
            | Message::Stands { .. }
            | Message::Waits { .. }
            | Message::Report { .. }
            | Message::Doing { .. } => {
                self.upwards(message);
            }
        }
    }

    /// What this shard does now, for people.
    fn doing(&self) -> String {
        let latest = self.charge.digest.describe(self.charge.digest.now().0);
        let waits: Vec<String> =
            self.charge.waits.now().map(|wait| names(wait.shards.iter().map(|&s| s as u64))).collect();
        if waits.is_empty() {
            format!("runs; its latest: {latest}")
        } else {
            format!("waits for {} ({latest})", waits.join(" and "))
        }
    }

    /// Gives an order to this shard's gate.
    fn obey(&mut self, order: Order) {
        self.stance = None;
        let stood = self.charge.gate.standing().is_some_and(|(_, stands)| stands);
        self.charge.gate.order(order);
        if order == Order::Raise && !stood {
            self.charge.host.interrupt();
        }
    }

    /// Tells shard 0 where this shard stands, while an interrupt is under way.
    fn tell_stance(&mut self) {
        let Some((until, stands)) = self.charge.gate.standing() else { return };
        let done = self.charge.digest.now().0 + self.charge.gate.steps();
        if self.stance.replace((until, done, stands)) != Some((until, done, stands)) {
            self.upwards(Message::Stands { shard: self.shard as u64, until, done, stands });
        }
    }

    fn tell_ending(&mut self) {
        let raised = self.shared.own.lock().raised.take();
        if let Some(Ending { how, text }) = raised {
            self.upwards(Message::Raised { shard: self.shard as u64, how, text });
        }
        let Some(ending) = self.shared.own.lock().ending.clone() else { return };
        if self.ended && ending.how != How::Interrupted {
            return;
        }
        if !self.ended {
            self.told = (u64::MAX, 0);
            self.beat();
        }
        self.ended = true;
        let (count, digest) = self.charge.digest.now();
        self.upwards(Message::Ended { shard: self.shard as u64, how: ending.how, count, digest, text: ending.text });
    }

    fn beat(&mut self) {
        let now = self.charge.digest.now();
        if now != self.told && (self.beaten.elapsed() >= BEAT || self.told.0 == u64::MAX) {
            self.told = now;
            self.beaten = Instant::now();
            let (count, digest) = now;
            self.links.iter_mut().for_each(|link| link.send(&Message::Beat { count, digest }));
        }
    }

    fn tell_waits(&mut self) {
        if self.waited.elapsed() < LONG_WAIT {
            return;
        }
        let waits: Vec<_> = self.charge.waits.now().filter(|wait| wait.since.elapsed() > LONG_WAIT).collect();
        for wait in waits {
            self.waited = Instant::now();
            let text = self.charge.digest.describe(self.charge.digest.now().0);
            let (for_ms, on) = (wait.since.elapsed().as_millis() as u64, wait.shards.iter().map(|&shard| shard as u64));
            self.upwards(Message::Waits { shard: self.shard as u64, for_ms, on: on.collect(), text });
        }
    }

    /// Neighbours that are gone, and reports that nobody answers.
    fn mind_losses(&mut self) {
        if self.shared.own.lock().done {
            return;
        }
        if let Some((since, neighbour)) = self.lost
            && self.reported.is_none()
            && since.elapsed() > LOST
        {
            self.report(STOPPED, format!("shard {neighbour} has gone without a word"));
        }
        if let Some((since, code, text)) = &self.reported
            && since.elapsed() > ALONE
        {
            let code = *code;
            self.charge.stop.order(text.clone());
            self.charge.host.tell(text);
            self.end(code);
        }
    }

    /// Asks shard 0 to stop the job.
    fn report(&mut self, code: u64, text: String) {
        self.reported.get_or_insert((Instant::now(), code, text.clone()));
        self.upwards(Message::Report { code, text });
    }

    /// To shard 0, by way of the parent.
    fn upwards(&mut self, message: Message) {
        if let Some(root) = &mut self.root {
            root.hear(message);
            return;
        }
        let above = parent(self.shard);
        if let Some(link) = self.links.iter_mut().find(|link| Some(link.shard) == above) {
            link.send(&message);
        }
    }

    /// To all children.
    fn downwards(&mut self, message: &Message) {
        let above = parent(self.shard);
        self.links.iter_mut().filter(|link| Some(link.shard) != above).for_each(|link| link.send(message));
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Tell(text) => self.charge.host.tell(&text),
            Decision::Ask(shards) => {
                self.take_own_question(&shards);
                self.downwards(&Message::Ask { shards });
            }
            Decision::Stop { code, text } => {
                self.charge.stop.order(text.clone());
                if !text.is_empty() {
                    self.charge.host.tell(&text);
                }
                self.downwards(&Message::Stop { code });
                self.end(code);
            }
            Decision::Done => {
                self.downwards(&Message::Done);
                self.done();
            }
            Decision::Gates(order) => {
                self.downwards(&match order {
                    Order::Open => Message::Open,
                    Order::Shut { until } => Message::Shut { until },
                    Order::Raise => Message::Raise,
                });
                self.obey(order);
            }
        }
    }

    fn take_own_question(&mut self, shards: &[u64]) {
        if shards.contains(&0) {
            let text = self.doing();
            self.upwards(Message::Doing { shard: 0, text });
        }
    }

    fn done(&self) {
        self.shared.own.lock().done = true;
        self.shared.changed.notify_all();
    }

    fn end(&self, code: u64) {
        self.charge.stop.order("the job is being stopped".to_owned());
        self.charge.host.end(u8::try_from(code).unwrap_or(1));
    }
}

/// Shards by name: `shard 1`, `shards 1, 2`.
fn names(shards: impl Iterator<Item = u64>) -> String {
    let shards: Vec<String> = shards.map(|shard| shard.to_string()).collect();
    let plural = if shards.len() == 1 { "shard" } else { "shards" };
    format!("{plural} {}", shards.join(", "))
}
