//! Shards as threads of one process: for tests of the runtime, without Python.
//!
//! Promises what the trait does, and that a receive whose length is not what was sent fails instead of mixing messages up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::stop::Stop;
use super::waits::{SHORT, Wait, Waits};
use super::{Channel, Receive, Send, Transport, TransportError};

/// How long a wait sleeps between looks at the order to stop.
const LOOK: Duration = Duration::from_millis(5);

/// Messages by who sent them and the channel, in order.
type Messages = FxHashMap<(usize, Channel), VecDeque<Vec<u8>>>;

/// What has arrived at one shard and was not received yet.
#[derive(Debug, Default)]
struct Mailbox {
    messages: Mutex<Messages>,
    arrived: Condvar,
}

/// One shard of a job whose shards are threads.
#[derive(Clone, Debug)]
pub struct Threads {
    shard: usize,
    mailboxes: Arc<[Mailbox]>,
    stop: Arc<Stop>,
    waits: Arc<Waits>,
}

impl Threads {
    /// All shards of a new job.
    pub fn job(shards: usize, stop: &Arc<Stop>) -> Vec<Threads> {
        let mailboxes: Arc<[Mailbox]> = (0..shards).map(|_| Mailbox::default()).collect();
        (0..shards)
            .map(|shard| Threads { shard, mailboxes: mailboxes.clone(), stop: stop.clone(), waits: Arc::default() })
            .collect()
    }

    /// Who this shard waits for.
    pub fn waits(&self) -> &Arc<Waits> {
        &self.waits
    }

    fn receive(
        &self,
        channel: Channel,
        receive: &mut Receive<'_>,
        look: &mut dyn FnMut(),
    ) -> Result<(), TransportError> {
        let mailbox = &self.mailboxes[self.shard];
        let since = Instant::now();
        let mut messages = mailbox.messages.lock();
        loop {
            if let Some(message) = messages.get_mut(&(receive.from, channel)).and_then(VecDeque::pop_front) {
                if message.len() != receive.bytes.len() {
                    let (sent, room) = (message.len(), receive.bytes.len());
                    let from = receive.from;
                    return Err(TransportError::Failed(format!(
                        "shard {from} sent {sent} bytes, {room} were expected"
                    )));
                }
                receive.bytes.copy_from_slice(&message);
                self.waits.set(channel, None);
                return Ok(());
            }
            if let Some(why) = self.stop.why() {
                return Err(TransportError::Stopped(why.to_owned()));
            }
            if mailbox.arrived.wait_for(&mut messages, LOOK).timed_out() {
                if since.elapsed() > SHORT {
                    self.waits.set(channel, Some(Wait { since, shards: smallvec![receive.from] }));
                }
                look();
            }
        }
    }
}

impl Transport for Threads {
    fn shard(&self) -> usize {
        self.shard
    }

    fn shards(&self) -> usize {
        self.mailboxes.len()
    }

    fn exchange_while(
        &self,
        channel: Channel,
        sends: &[Send<'_>],
        receives: &mut [Receive<'_>],
        look: &mut dyn FnMut(),
    ) -> Result<(), TransportError> {
        for send in sends.iter().filter(|send| !send.bytes.is_empty()) {
            let mailbox = &self.mailboxes[send.to];
            mailbox.messages.lock().entry((self.shard, channel)).or_default().push_back(send.bytes.to_vec());
            mailbox.arrived.notify_all();
        }
        for receive in receives.iter_mut().filter(|receive| !receive.bytes.is_empty()) {
            self.receive(channel, receive, look)?;
        }
        Ok(())
    }
}
