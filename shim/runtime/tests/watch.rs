//! Watches over shards that are threads: programs that end alike, go different ways, raise alone, wait too long.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use legate_runtime::digest::{Digest, Place};
use legate_runtime::transport::{Channel, Receive, Stop, Threads, Transport};
use legate_runtime::watch::{Charge, Gate, Host, How, Watch};

/// What a watch had its host do.
#[derive(Debug, PartialEq, Eq)]
enum Deed {
    Tell(String),
    End(u8),
}

struct Notes(Sender<(usize, Deed)>, usize);

impl Host for Notes {
    fn tell(&self, text: &str) {
        drop(self.0.send((self.1, Deed::Tell(text.to_owned()))));
    }

    fn end(&self, code: u8) {
        drop(self.0.send((self.1, Deed::End(code))));
        thread::park();
    }

    fn interrupt(&self) {}
}

struct Shard {
    threads: Threads,
    digest: Arc<Digest>,
    gate: Arc<Gate>,
    watch: Watch,
}

impl Shard {
    fn does(&self, name: &str, line: u32) {
        self.digest.note(name.into(), &[8], 0, Some(Arc::new(Place { file: "app.py".into(), line })));
    }

    fn waits_for(&self, from: usize) {
        drop(self.threads.exchange(Channel::Data, &[], &mut [Receive { from, bytes: &mut [0] }]));
    }

    /// Ends the program; whether all have.
    fn ends(&self, how: How, text: &str) -> bool {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(8) {
            if self.watch.finish(how, text, Duration::from_millis(20)) {
                self.watch.close();
                return true;
            }
        }
        false
    }
}

/// Plays a program on watched shards; gives what their hosts were told to do. Threads that are stuck are left behind.
fn play(
    shards: usize,
    patience: Duration,
    program: impl Fn(&Shard) + Send + Sync + 'static,
) -> Receiver<(usize, Deed)> {
    let stop = Arc::new(Stop::default());
    let (notes, deeds) = channel();
    let program = Arc::new(program);
    for threads in Threads::job(shards, &stop) {
        let (notes, program, stop) = (notes.clone(), program.clone(), stop.clone());
        thread::spawn(move || {
            let digest = Arc::new(Digest::default());
            let host = Box::new(Notes(notes, threads.shard()));
            let (waits, digest_too) = (threads.waits().clone(), digest.clone());
            let gate = Arc::new(Gate::default());
            let charge = Charge { stop, waits, digest: digest_too, gate: gate.clone(), host, patience };
            let watch = Watch::start(&threads, charge).expect("connected");
            program(&Shard { threads, digest, gate, watch });
        });
    }
    deeds
}

/// The first thing that any host was told to do.
fn first(deeds: &Receiver<(usize, Deed)>) -> (usize, Deed) {
    deeds.recv_timeout(Duration::from_secs(10)).expect("something is done within seconds")
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn programs_that_end_alike_end_in_silence() {
    for shards in [2, 5] {
        let deeds = play(shards, MINUTE, |shard| {
            (1..2000).for_each(|line| shard.does("add", line));
            assert!(shard.ends(How::Returned, ""));
        });
        assert_eq!(deeds.recv(), Err(std::sync::mpsc::RecvError), "{shards} shards");
    }
}

#[test]
fn shards_that_go_different_ways_are_stopped_with_both_lines() {
    let deeds = play(3, MINUTE, |shard| {
        (1..50).for_each(|line| shard.does("add", line));
        shard.does(if shard.threads.shard() == 2 { "multiply" } else { "add" }, 60 + shard.threads.shard() as u32 / 2);
        (61..80).for_each(|line| shard.does("add", line));
        shard.waits_for(0);
    });
    let text = "the shards have gone different ways at operation 50: shard 0 did add [8] at app.py:60, \
                shard 2 did multiply [8] at app.py:61";
    assert_eq!(first(&deeds), (0, Deed::Tell(text.to_owned())));
    let ends: Vec<_> = (0..3).map(|_| first(&deeds).1).collect();
    assert_eq!(ends, [Deed::End(1), Deed::End(1), Deed::End(1)]);
}

#[test]
fn a_shard_that_raises_alone_stops_the_others_with_its_traceback() {
    let deeds = play(4, MINUTE, |shard| {
        shard.does("add", 3);
        match shard.threads.shard() {
            3 => drop(shard.ends(How::Raised, "ValueError: x\n")),
            _ => shard.waits_for(3),
        }
    });
    let Deed::Tell(text) = first(&deeds).1 else { panic!("a text comes first") };
    assert!(text.starts_with("shard 3 alone raised an exception; shard "), "{text}");
    assert!(text.ends_with(" waits for it (add [8] at app.py:3):\nValueError: x"), "{text}");
    assert_eq!(first(&deeds).1, Deed::End(1));
}

#[test]
fn a_shard_that_raises_alone_and_waits_is_named() {
    let deeds = play(2, MINUTE, |shard| {
        let other = 1 - shard.threads.shard();
        if other == 0 {
            shard.watch.raised(How::Raised, "ValueError: x");
        }
        shard.waits_for(other);
    });
    let text = "shard 1 alone raised an exception; shard 0 waits for it (nothing yet):\nValueError: x";
    assert_eq!(first(&deeds), (0, Deed::Tell(text.to_owned())));
}

#[test]
fn a_shard_that_raises_alone_at_the_end_is_named() {
    let deeds = play(2, MINUTE, |shard| {
        let how = if shard.threads.shard() == 1 { How::Raised } else { How::Returned };
        assert!(!shard.ends(how, "ValueError: x"));
    });
    let text = "shard 1 alone raised an exception; shard 0 has ended without it:\nValueError: x";
    assert_eq!(first(&deeds), (0, Deed::Tell(text.to_owned())));
}

#[test]
fn an_interrupt_ends_all_in_silence() {
    let deeds = play(3, MINUTE, |shard| match shard.threads.shard() {
        0 => drop(shard.ends(How::Interrupted, "")),
        _ => shard.waits_for(0),
    });
    let ends: Vec<_> = (0..3).map(|_| first(&deeds).1).collect();
    assert_eq!(ends, [Deed::End(130), Deed::End(130), Deed::End(130)]);
}

#[test]
fn a_slow_shard_is_reported_and_nothing_else() {
    let deeds = play(3, Duration::from_secs(1), |shard| {
        shard.does("add", 3);
        if shard.threads.shard() == 1 {
            shard.does("sum", 4);
            thread::sleep(Duration::from_millis(1800));
            let sends = [0, 2].map(|to| legate_runtime::transport::Send { to, bytes: &[1] });
            shard.threads.exchange(Channel::Data, &sends, &mut []).expect("sent");
        } else {
            shard.waits_for(1);
            shard.does("sum", 4);
        }
        assert!(shard.ends(How::Returned, ""));
    });
    let Deed::Tell(text) = first(&deeds).1 else { panic!("nothing ends") };
    assert!(
        text.ends_with(
            " has waited 1 s for shard 1 (add [8] at app.py:3); shard 1 runs; its latest: sum [8] at app.py:4"
        ),
        "{text}"
    );
    assert_eq!(deeds.recv(), Err(std::sync::mpsc::RecvError));
}

#[test]
fn an_interrupt_takes_effect_at_one_place() {
    let deeds = play(3, MINUTE, |shard| {
        let mut line = 0;
        while !(shard.gate.is_minded() && shard.gate.stand(shard.digest.now().0)) {
            line += 1;
            shard.does("add", line);
            thread::sleep(Duration::from_millis(1 + shard.threads.shard() as u64));
            if line == 20 && shard.threads.shard() == 0 {
                shard.watch.interrupt();
            }
        }
        assert!(shard.ends(How::Returned, ""), "all have done as much");
    });
    assert_eq!(deeds.recv(), Err(std::sync::mpsc::RecvError));
}

#[test]
fn an_interrupt_reaches_shards_that_do_nothing() {
    let deeds = play(3, MINUTE, |shard| {
        shard.does("add", 1);
        if shard.threads.shard() == 0 {
            shard.watch.interrupt();
        }
        while !shard.gate.take() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(shard.ends(How::Returned, ""));
    });
    assert_eq!(deeds.recv(), Err(std::sync::mpsc::RecvError));
}

#[test]
fn a_prompt_that_waits_for_the_user_is_not_reported() {
    let deeds = play(3, Duration::from_secs(1), |shard| {
        shard.watch.rest(true);
        match shard.threads.shard() {
            0 => thread::sleep(Duration::from_secs(3)),
            _ => {
                let bytes = &mut [0];
                drop(shard.threads.exchange(Channel::Agreement, &[], &mut [Receive { from: 0, bytes }]));
            }
        }
        for to in [1, 2].into_iter().filter(|_| shard.threads.shard() == 0) {
            drop(shard.threads.exchange(
                Channel::Agreement,
                &[legate_runtime::transport::Send { to, bytes: &[1] }],
                &mut [],
            ));
        }
        assert!(shard.ends(How::Returned, ""));
    });
    assert_eq!(deeds.recv(), Err(std::sync::mpsc::RecvError));
}
