//! Transports: shards as threads exchange messages in order, agree, gather, and end their waits when told to stop.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use legate_runtime::transport::{
    Channel, Chaos, Planning, Played, Receive, Send, Stop, Threads, Transport, TransportError, collective,
};

/// Runs a function as every shard of a job, and gives what each returned.
fn play<R: std::marker::Send>(shards: usize, part: impl Fn(&Threads) -> R + Sync) -> Vec<R> {
    let job = Threads::job(shards, &Arc::new(Stop::default()));
    thread::scope(|scope| {
        let running: Vec<_> = job.iter().map(|shard| scope.spawn(|| part(shard))).collect();
        running.into_iter().map(|thread| thread.join().expect("a shard")).collect()
    })
}

#[test]
fn messages_arrive_in_the_order_sent_on_each_channel() {
    let got = play(4, |shard| {
        let (right, left) = ((shard.shard() + 1) % 4, (shard.shard() + 3) % 4);
        let sends = [1u8, 2].map(|number| [number; 3]);
        let sends = sends.each_ref().map(|bytes| Send { to: right, bytes });
        let other = [9u8; 5];
        shard.exchange(Channel::Agreement, &[Send { to: right, bytes: &other }], &mut []).expect("sent");
        let (mut first, mut second, mut third) = ([0u8; 3], [0u8; 3], [0u8; 5]);
        let mut receives = [Receive { from: left, bytes: &mut first }, Receive { from: left, bytes: &mut second }];
        shard.exchange(Channel::Data, &sends, &mut receives).expect("received");
        shard.exchange(Channel::Agreement, &[], &mut [Receive { from: left, bytes: &mut third }]).expect("received");
        (first, second, third)
    });
    assert_eq!(got, vec![([1; 3], [2; 3], [9; 5]); 4]);
}

#[test]
fn broadcasts_and_gathers_of_any_length_on_any_number_of_shards() {
    for shards in [1, 2, 3, 4, 7, 8, 13] {
        for length in [0, 1, 248, 249, 100_000] {
            let payload = |shard: usize| vec![shard as u8 + 1; if length == 0 { 0 } else { length + shard }];
            let got = play(shards, |shard| {
                let own = payload(shard.shard());
                let heard = collective::broadcast(shard, own.clone(), &mut || ()).expect("heard");
                let all = collective::gather(shard, &own, &mut || ()).expect("gathered");
                (heard, all)
            });
            for (heard, all) in got {
                assert_eq!(heard, payload(0), "{shards} shards, {length} bytes");
                assert_eq!(all, (0..shards).map(payload).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn an_order_to_stop_ends_a_wait() {
    let stop = Arc::new(Stop::default());
    let job = Threads::job(2, &stop);
    let wait = |shard: &Threads| shard.exchange(Channel::Data, &[], &mut [Receive { from: 1, bytes: &mut [0] }]);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&job[0]));
        stop.order("shard 1 has ended".to_owned());
        assert_eq!(waiting.join().expect("a shard"), Err(TransportError::Stopped("shard 1 has ended".to_owned())));
    });
}

#[test]
fn a_length_that_was_not_sent_is_an_error() {
    let got = play(2, |shard| {
        let (mut room, to) = ([0u8; 2], 1 - shard.shard());
        shard.exchange(Channel::Data, &[Send { to, bytes: &[1; 3] }], &mut [Receive { from: to, bytes: &mut room }])
    });
    assert_eq!(got[0], Err(TransportError::Failed("shard 1 sent 3 bytes, 2 were expected".to_owned())));
}

#[test]
fn chaos_changes_timing_and_nothing_else() {
    for seed in 0..20 {
        let got = play(5, |shard| {
            let chaos = Chaos::new(Arc::new(shard.clone()), seed, Duration::from_millis(2));
            let own = chaos.shard() as u8;
            let mut sum = vec![0u32; 5];
            for round in 0..10u8 {
                let sent = [[own, round, 0], [own, round, 1]];
                let sends: Vec<_> = (0..5).flat_map(|to| sent.iter().map(move |bytes| Send { to, bytes })).collect();
                let mut rooms = [[0u8; 3]; 10];
                let mut receives: Vec<_> =
                    rooms.iter_mut().enumerate().map(|(row, bytes)| Receive { from: row / 2, bytes }).collect();
                chaos.exchange(Channel::Data, &sends, &mut receives).expect("exchanged");
                for (row, room) in rooms.iter().enumerate() {
                    assert_eq!(*room, [row as u8 / 2, round, row as u8 % 2], "seed {seed}");
                    sum[row / 2] += u32::from(room[1]);
                }
            }
            sum
        });
        assert_eq!(got, vec![vec![90; 5]; 5]);
    }
}

#[test]
fn a_played_shard_counts_what_it_sends() {
    let planning = Planning::new(17, 65_536);
    let mut room = [1u8; 4];
    let sends = [Send { to: 16, bytes: &[1; 8] }, Send { to: 18, bytes: &[2; 3] }, Send { to: 19, bytes: &[] }];
    planning.exchange(Channel::Data, &sends, &mut [Receive { from: 16, bytes: &mut room }]).expect("played");
    planning.exchange(Channel::Data, &[], &mut []).expect("played");
    assert_eq!((planning.shard(), planning.shards(), room), (17, 65_536, [1; 4]));
    planning.exchange(Channel::Agreement, &[], &mut [Receive { from: 16, bytes: &mut room }]).expect("played");
    assert_eq!(room, [0; 4]);
    assert_eq!(planning.played(), Played { exchanges: 2, messages: 2, bytes: 11 });
}
