#![expect(unsafe_code, reason = "waits for signals and sends them")]
//! Runs a job's command to its end, and looks after its processes.
//!
//! Promises that Ctrl-C reaches the program (rank 0's Python raises KeyboardInterrupt) and what it has started, that SIGTERM reaches the program's handler
//! or, where it has none or for the second time, ends all ranks within seconds, that no rank is left when this returns or dies, and that its own end is the program's: exit code or signal. What ranks have
//! to do with each other is not its business.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::children;
use crate::desk::{Desk, Goodbye, JOB};
use crate::job::{Job, srun};
use crate::porter;
use crate::signals;
use crate::terminal::Terminal;
use crate::verdict;

/// How long ranks have to end after SIGTERM before they are killed.
const GRACE: Duration = Duration::from_secs(6);
/// Ctrl-C that often ends the job even where the program goes on.
const INSISTING: usize = 3;
/// How quickly one has to insist with a program on another machine, of which nothing is heard.
const AT_ONCE: Duration = Duration::from_secs(2);
/// How long a prompt has to deal with an interrupt before insisting counts.
const PROMPT: Duration = Duration::from_secs(5);
/// How often it looks around, in milliseconds, where nothing happens.
const LOOK_MS: i32 = 200;
/// What a shell adds to a signal's number to make an exit code.
const FROM_SIGNAL: i32 = 128;
/// Signals that this process waits for.
const SIGNALS: [i32; 6] = [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGTSTP, libc::SIGWINCH];

/// What the user wants to see of a job besides its output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// What the runner and ranks on other machines write while rank 0 runs.
    pub(crate) all: bool,
    /// Times, at the end.
    pub(crate) timing: bool,
    /// What rank 0, on this machine, makes of standard input.
    pub(crate) reads_input: bool,
    /// Ranks that stop at an error: an interrupt has all of them go on, and not rank 0 alone.
    pub(crate) frozen: bool,
}

/// Runs the job; gives its exit code, or ends by the signal that ended it.
pub(crate) fn run(job: &Job, shown: Shown) -> Result<u8, String> {
    let begun = Instant::now();
    let mut desk = Desk::open().map_err(|error| format!("cannot open a socket for its ranks: {error}"))?;
    let signals = signals::wait_for(&SIGNALS).map_err(|error| format!("cannot wait for signals: {error}"))?;
    let mut child = start(job, &desk.name).map_err(|error| format!("cannot run {}: {error}", job.runner.display()))?;
    let terminal = Terminal::remember();
    let complaints = Complaints::gather(&mut child, shown.all);
    let reach = Reach { by_runner: job.hands_on_interrupts, frozen: shown.frozen };
    let outcome = attend(&mut child, &mut desk, &complaints, &terminal, &signals, reach);
    let End { status, asked, interrupted } = outcome.map_err(|error| format!("lost sight of its ranks: {error}"))?;
    members(&desk.name).into_iter().for_each(|member| send(member, libc::SIGKILL));
    desk.attend();
    drop(complaints);
    if !desk.left.contains(&(0, Goodbye::Said)) {
        terminal.restore();
    }
    if shown.timing {
        eprintln!("legate: the job {}", porter::times(begun));
    }
    let code = status.code().unwrap_or_else(|| FROM_SIGNAL + status.signal().unwrap_or_default());
    let is_stopped = code == FROM_SIGNAL + libc::SIGTERM || code == job.signals_from + libc::SIGTERM;
    if (is_stopped || asked == Some(libc::SIGTERM))
        && let Some(why) = verdict::of_slurm()
    {
        eprintln!("legate: {why}");
        signals::end_by(asked.unwrap_or(libc::SIGTERM));
    }
    if let Some(signal) = asked {
        signals::end_by(signal);
    }
    if desk.left.contains(&(0, Goodbye::Interrupted)) || interrupted && code == FROM_SIGNAL + libc::SIGINT {
        signals::end_by(libc::SIGINT);
    }
    if shown.reads_input && code == 0 && !desk.has_seen(0) {
        return Err(
            "rank 0 runs on another machine, where it cannot read this one's standard input: call legate there, on the \
             first node, or name a script"
                .to_owned(),
        );
    }
    match desk.first_gone() {
        // Killed before it could report; other runners say so themselves.
        None if code == libc::SIGKILL && job.signals_from == 0 => {
            eprintln!("legate: a rank was ended by signal {code} ({})", name_of(code));
            return Ok(u8::try_from(FROM_SIGNAL + code).unwrap_or(1));
        }
        None if job.is_elsewhere && code > FROM_SIGNAL => {
            eprintln!("legate: a rank was ended by signal {} ({})", code - FROM_SIGNAL, name_of(code - FROM_SIGNAL));
        }
        Some((rank, Goodbye::Missing)) if code != 0 => {
            let base = if code > FROM_SIGNAL { FROM_SIGNAL } else { job.signals_from };
            let signal = code - base;
            if signal <= 0 {
                eprintln!("legate: rank {rank} ended without leaving the others");
                return Ok(u8::try_from(code).unwrap_or(1));
            }
            eprintln!("legate: rank {rank} was ended by signal {signal} ({})", name_of(signal));
            return Ok(u8::try_from(FROM_SIGNAL + signal).unwrap_or(1));
        }
        Some(_) | None => {}
    }
    Ok(u8::try_from(code).unwrap_or(1))
}

/// The name of a signal, as `Killed`.
fn name_of(signal: i32) -> String {
    // SAFETY: the text is static, or stays until the next call; there is one thread that calls.
    unsafe { CStr::from_ptr(libc::strsignal(signal)) }.to_string_lossy().into_owned()
}

/// What the runner itself says: it is shown until rank 0, which has streams of its own, has reported, and then only where all
/// is to be told. Rank 0 on another machine has no streams but the runner's.
struct Complaints {
    shown: Arc<AtomicBool>,
    readers: Vec<JoinHandle<()>>,
}

impl Complaints {
    fn gather(child: &mut Child, all: bool) -> Complaints {
        let shown = Arc::new(AtomicBool::new(true));
        let mut readers = Vec::new();
        if let Some(stream) = child.stdout.take() {
            let shown = shown.clone();
            readers.push(std::thread::spawn(move || {
                pass_on(stream, io::stdout(), true, || all || shown.load(Ordering::Relaxed))
            }));
        }
        if let Some(stream) = child.stderr.take() {
            let shown = shown.clone();
            readers.push(std::thread::spawn(move || {
                pass_on(stream, io::stderr(), all, || all || shown.load(Ordering::Relaxed))
            }));
        }
        Complaints { shown, readers }
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        for reader in self.readers.drain(..) {
            // A panic of the reader has been shown already.
            let _ = reader.join();
        }
    }
}

/// Copies a stream to its end, or takes it in silence; `says_all` where what only repeats the exit code counts, too.
fn pass_on(mut from: impl Read, mut to: impl Write, says_all: bool, shown: impl Fn() -> bool) {
    let mut room = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut room) {
        let piece = &room[..length];
        let mut lines =
            piece.split_inclusive(|&byte| byte == b'\n').filter(|line| says_all || !srun::only_repeats(line));
        if shown() {
            // Whoever closed the stream does not want to know.
            let _ = lines.try_for_each(|line| to.write_all(line)).and_then(|()| to.flush());
        }
    }
}

/// Gives the runner what comes on this process's standard input, for rank 0 on another machine.
fn pass_input(child: &mut Child) {
    if let Some(to) = child.stdin.take() {
        // It ends with this process: nobody can end a read of a terminal.
        std::thread::spawn(move || pass_on(io::stdin(), to, true, || true));
    }
}

/// Starts the runner in a session of its own, so that a terminal's Ctrl-C comes to us alone; it ends when this process does.
fn start(job: &Job, name: &str) -> io::Result<Child> {
    let mut command = Command::new(&job.runner);
    command.args(&job.words).envs(job.variables.iter().map(|(name, value)| (*name, value)));
    for name in &job.without {
        command.env_remove(name);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if job.is_elsewhere {
        command.stdin(Stdio::piped());
    } else {
        command.stdin(Stdio::null()).env(JOB, name);
    }
    // SAFETY: after the fork only functions are called that are safe there.
    unsafe {
        command.pre_exec(|| {
            signals::unblock()?;
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    pass_input(&mut child);
    Ok(child)
}

/// Whom signals reach.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// Whether the runner hands on interrupts to a rank 0 that has not reported.
    by_runner: bool,
    /// Whether ranks stop at errors and all must be told to go on; SIGTERM is then no business of the program's handler.
    frozen: bool,
}

/// How the runner ended.
struct End {
    status: ExitStatus,
    /// The signal with which someone ended the job.
    asked: Option<i32>,
    /// Whether the program was sent an interrupt.
    interrupted: bool,
}

/// Waits for the runner's end, and passes signals on.
fn attend(
    child: &mut Child,
    desk: &mut Desk,
    complaints: &Complaints,
    terminal: &Terminal,
    signals: &OwnedFd,
    reach: Reach,
) -> io::Result<End> {
    let runner = child.id() as libc::pid_t;
    let (mut interrupts, mut served) = (0, 0);
    let mut since = Instant::now();
    // Whether the program's handler of SIGTERM was told: who sends it again wants an end.
    let mut has_told = false;
    let mut asked: Option<(i32, Instant)> = None;
    loop {
        desk.attend();
        if desk.has_seen(0) {
            complaints.shown.store(false, Ordering::Relaxed);
        }
        if let Some(status) = child.try_wait()? {
            return Ok(End { status, asked: asked.map(|(signal, _)| signal), interrupted: interrupts > 0 });
        }
        if std::mem::replace(&mut served, desk.served) != desk.served {
            interrupts = 0;
        }
        let signal = next_signal(desk, signals);
        match signal {
            libc::SIGINT => {
                if interrupts == 0 || desk.guest(0).is_none() && since.elapsed() > AT_ONCE {
                    (interrupts, since) = (0, Instant::now());
                }
                interrupts += 1;
                let is_early = served > 0 && since.elapsed() < PROMPT;
                match desk.guest(0) {
                    Some(_) if interrupts < INSISTING && reach.frozen => {
                        desk.processes().for_each(|process| send(process, libc::SIGINT));
                    }
                    Some(first) if interrupts < INSISTING || is_early => interrupt(first.process),
                    None if interrupts < INSISTING && reach.by_runner => send(runner, libc::SIGINT),
                    _ => {
                        send(runner, libc::SIGTERM);
                        asked.get_or_insert((signal, Instant::now()));
                    }
                }
            }
            libc::SIGTSTP => terminal.suspend(desk.guest(0).map(|first| first.process), served > 0),
            libc::SIGWINCH => {
                if let Some(first) = desk.guest(0) {
                    send(first.process, signal);
                }
            }
            libc::SIGTERM | libc::SIGHUP => match desk.guest(0) {
                Some(first)
                    if signal == libc::SIGTERM && !has_told && !reach.frozen && catches(first.process, signal) =>
                {
                    has_told = true;
                    send(first.process, signal);
                }
                _ => {
                    send(runner, libc::SIGTERM);
                    asked.get_or_insert((signal, Instant::now()));
                }
            },
            _ => {}
        }
        if asked.is_some_and(|(_, since)| since.elapsed() > GRACE) {
            members(&desk.name).into_iter().for_each(|member| send(member, libc::SIGKILL));
            send(runner, libc::SIGKILL);
        }
    }
}

/// Waits until a signal is there, something happens at the desk, or some time is over; the signal, or 0.
fn next_signal(desk: &Desk, signals: &OwnedFd) -> i32 {
    let wish = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut streams: Vec<libc::pollfd> = [signals.as_raw_fd()].into_iter().chain(desk.streams()).map(wish).collect();
    // SAFETY: open streams.
    unsafe { libc::poll(streams.as_mut_ptr(), streams.len() as libc::nfds_t, LOOK_MS) };
    signals::next(signals).map_or(0, |signal| signal.number)
}

/// Processes on this machine that were started with the job's name: ranks, what the runner needs, and forked children.
fn members(name: &str) -> Vec<libc::pid_t> {
    let job = format!("{JOB}={name}");
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|process: &libc::pid_t| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|row| row == job.as_bytes())
        })
        .collect()
}

/// Whether a rank has a handler for a signal; a process that blocks it stands before the rank, its child, and passes it on.
fn catches(process: libc::pid_t, signal: i32) -> bool {
    has(process, "SigCgt", signal)
        || has(process, "SigBlk", signal) && children::of(process).into_iter().any(|child| catches(child, signal))
}

/// Whether one of a process's sets of signals, by its name in `/proc`, has a signal.
fn has(process: libc::pid_t, mask: &str, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(mask)?.strip_prefix(':'));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal - 1) & 1 == 1
}

/// Ctrl-C as it comes from a terminal: to the rank, and to what it has started and may be waiting for. A process that stands before
/// the rank passes it on to its child by itself.
fn interrupt(process: libc::pid_t) {
    let mut others = children::beside(process);
    if has(process, "SigBlk", libc::SIGINT) {
        let passed_on = children::of(process);
        others.retain(|other| !passed_on.contains(other));
    }
    send(process, libc::SIGINT);
    others.into_iter().for_each(|other| send(other, libc::SIGINT));
}

fn send(process: libc::pid_t, signal: i32) {
    // SAFETY: a process of this job; one that has ended meanwhile gets nothing.
    unsafe { libc::kill(process, signal) };
}
