//! What planning costs one shard of many, on the launches of real programs: time, messages, bytes and hops per launch.
//!
//! Plays the first, a middle and the last shard of each number of shards on recorded launches, with nobody to talk to and nothing
//! computed, and prints a table. Arrays grow with the shards, so that each always has a tile of the same volume. Programs and
//! numbers of shards take turns, and the time of a launch is the median of all turns, so that what else the machine does
//! meets them alike. Run by `scripts/scale`.

mod nothing;
mod recorded;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use legate_runtime::transport::Planning;
use legate_runtime::{Mapper, Runtime};

use nothing::Nothing;
use recorded::Program;

const SHARDS: [usize; 4] = [4, 64, 1024, 65_536];
/// How often each is played.
const TURNS: usize = 101;

/// A program, and its size on a number of shards.
struct Case {
    name: &'static str,
    recording: &'static str,
    size: fn(usize) -> i64,
}

/// Side of a square array of which every shard has 262,144 elements.
fn side(shards: usize) -> i64 {
    512 * 2_i64.pow(shards.ilog2() / 2)
}

const CASES: [Case; 4] = [
    Case { name: "stencil2d", recording: include_str!("stencil2d.txt"), size: side },
    Case { name: "cg_poisson", recording: include_str!("cg_poisson.txt"), size: side },
    // Points, of 16 coordinates.
    Case { name: "kmeans", recording: include_str!("kmeans.txt"), size: |shards| 16_384 * shards as i64 },
    Case { name: "jacobi", recording: include_str!("jacobi.txt"), size: side },
];

/// What one shard has done.
#[derive(Clone, Copy, Default)]
struct Counts {
    messages: u64,
    bytes: u64,
    agreements: u64,
    hops: u64,
}

/// One shard of a number of them, ready to play a program again and again.
struct Player {
    size: i64,
    runtime: Runtime<Nothing>,
    times: Vec<Duration>,
}

impl Player {
    fn new(case: usize, shard: usize, shards: usize) -> Player {
        let mapper = Mapper {
            cpus: 1,
            processors: 1,
            // As the launches were recorded.
            min_tile: 512,
            most_steps: usize::MAX,
            window: 1 << 20,
            run_ahead: 1,
            fusion: true,
            blocks: false,
            memory_limit: usize::MAX / 2,
            show_plan: false,
        };
        let runtime = Runtime::new(Nothing, mapper, Arc::new(Planning::new(shard, shards)));
        // Without a background thread, waits run everything themselves.
        runtime.before_fork();
        Player { size: (CASES[case].size)(shards), runtime, times: Vec::new() }
    }

    fn play(&mut self, program: &Program) {
        let begin = Instant::now();
        program.play(self.size, &self.runtime, &|runtime| {
            let done =
                runtime.wait(runtime.newest(), Duration::from_secs(60)).expect("nothing fails where nothing runs");
            assert!(done, "planning a window took a minute");
        });
        self.times.push(begin.elapsed() / program.launches() as u32);
    }

    fn counts(&self) -> Counts {
        let traffic = self.runtime.traffic();
        let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            messages: read(&traffic.messages),
            bytes: read(&traffic.bytes),
            agreements: read(&traffic.agreements),
            hops: read(&traffic.hops),
        }
    }

    fn median(&mut self) -> f64 {
        self.times.sort_unstable();
        self.times[self.times.len() / 2].as_secs_f64() * 1e6
    }
}

fn row(program: &str, what: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    println!("| {program} | {what} | {} |", cells.join(" | "));
}

fn main() {
    println!("| program (launches) | per launch | {} |", SHARDS.map(|shards| format!("{shards}")).join(" | "));
    println!("|---|---|{}", "---|".repeat(SHARDS.len()));
    for (number, case) in CASES.iter().enumerate() {
        let program = Program::parse(case.recording);
        let places = |shards: usize| [0, shards / 2, shards - 1];
        let mut players: Vec<Vec<Player>> = SHARDS
            .iter()
            .map(|shards| places(*shards).map(|shard| Player::new(number, shard, *shards)).into())
            .collect();
        let mut counts = Vec::new();
        for turn in 0..TURNS {
            for players in &mut players {
                players.iter_mut().for_each(|player| player.play(&program));
            }
            if turn == 0 {
                counts = players.iter().map(|players| players.iter().map(Player::counts).collect::<Vec<_>>()).collect();
            }
        }
        let launches = program.launches() as f64;
        let most = |of: fn(&Counts) -> u64| {
            let counts: &Vec<Vec<Counts>> = &counts;
            counts.iter().map(move |counts| counts.iter().map(of).max().unwrap_or(0) as f64 / launches)
        };
        let times: Vec<f64> =
            players.iter_mut().map(|players| players.iter_mut().map(Player::median).fold(0.0, f64::max)).collect();
        row(&format!("{} ({launches})", case.name), "microseconds", times.iter().map(|time| format!("{time:.2}")));
        row("", "times 4 shards", times.iter().map(|time| format!("{:.2}", time / times[0])));
        row("", "messages", most(|counts| counts.messages).map(|count| format!("{count:.2}")));
        row("", "bytes", most(|counts| counts.bytes).map(|count| format!("{count:.0}")));
        row("", "messages of agreement", most(|counts| counts.agreements).map(|count| format!("{count:.2}")));
        row("", "hops", most(|counts| counts.hops).map(|count| format!("{count:.2}")));
    }
}
