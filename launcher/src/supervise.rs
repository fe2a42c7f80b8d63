#![expect(unsafe_code, reason = "waits for signals and sends them")]
//! Runs a job's command to its end, and looks after its processes.
//!
//! Promises that Ctrl-C reaches the program (rank 0's Python raises KeyboardInterrupt), that SIGTERM ends all ranks within seconds,
//! that no rank is left when this returns or dies, and that its own end is the program's: exit code or signal. What ranks have
//! to do with each other is not its business.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use crate::job::{JOB, Job};

/// How long ranks have to end after SIGTERM before they are killed.
const GRACE: Duration = Duration::from_secs(6);
/// Ctrl-C that often ends the job even where the program goes on.
const INSISTING: usize = 3;
/// Signals that this process waits for.
const SIGNALS: [i32; 4] = [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Variables that hold a rank's number.
const NUMBERS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];

/// Runs the job; gives its exit code, or ends by the signal that ended it.
pub(crate) fn run(job: &Job) -> Result<u8, String> {
    let name = format!(
        "{}-{}",
        std::process::id(),
        fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default().trim()
    );
    let signals = block_signals();
    let mut child = start(job, &name).map_err(|error| format!("cannot run {}: {error}", job.runner.display()))?;
    let status = attend(&mut child, &name, &signals).map_err(|error| format!("lost sight of its ranks: {error}"))?;
    for rank in ranks(&name) {
        send(rank.process, libc::SIGKILL);
    }
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128)).unwrap_or_default();
    if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal) {
        end_by(signal);
    }
    match status.code() {
        Some(code) => Ok(u8::try_from(code).unwrap_or(1)),
        None => Err(format!("{} was ended by signal {signal}", job.runner.display())),
    }
}

/// Starts the runner in a session of its own, so that a terminal's Ctrl-C comes to us alone; it ends when this process does.
fn start(job: &Job, name: &str) -> io::Result<Child> {
    let mut command = Command::new(&job.runner);
    command.args(&job.words).env(JOB, name);
    for (variable, value) in &job.variables {
        if std::env::var_os(variable).is_none() {
            command.env(variable, value);
        }
    }
    // SAFETY: after the fork only functions are called that are safe there.
    unsafe {
        command.pre_exec(|| {
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), null_mut());
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
    command.spawn()
}

/// Waits for the runner's end, and passes signals on.
fn attend(child: &mut Child, name: &str, signals: &libc::sigset_t) -> io::Result<ExitStatus> {
    let runner = child.id() as libc::pid_t;
    let mut interrupts = 0;
    let mut deadline: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let patience = libc::timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        // SAFETY: a set of signals and a time; what else is known of the signal is not wanted.
        let signal = unsafe { libc::sigtimedwait(signals, null_mut(), &raw const patience) };
        match signal {
            libc::SIGINT => {
                interrupts += 1;
                let first = ranks(name).into_iter().find(|rank| rank.number == 0);
                match first {
                    Some(first) if interrupts < INSISTING => send(first.process, libc::SIGINT),
                    _ => {
                        send(runner, libc::SIGTERM);
                        deadline.get_or_insert_with(|| Instant::now() + GRACE);
                    }
                }
            }
            libc::SIGTERM | libc::SIGHUP => {
                send(runner, libc::SIGTERM);
                deadline.get_or_insert_with(|| Instant::now() + GRACE);
            }
            _ => {}
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            ranks(name).iter().for_each(|rank| send(rank.process, libc::SIGKILL));
            send(runner, libc::SIGKILL);
        }
    }
}

/// A process of the job on this machine.
struct RankProcess {
    process: libc::pid_t,
    number: usize,
}

/// The job's ranks on this machine, and forked children of theirs: processes that were started with the job's name.
fn ranks(name: &str) -> Vec<RankProcess> {
    let job = format!("{JOB}={name}");
    let processes =
        fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let found = processes.filter_map(|process: libc::pid_t| {
        let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
        let rows: Vec<&str> =
            environment.split(|&byte| byte == 0).filter_map(|row| std::str::from_utf8(row).ok()).collect();
        let number = |name: &&str| rows.iter().find_map(|row| row.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        let number = rows.contains(&job.as_str()).then(|| NUMBERS.iter().find_map(number)).flatten()?;
        Some(RankProcess { process, number })
    });
    let mut found: Vec<RankProcess> = found.collect();
    found.sort_by_key(|rank| rank.process);
    found
}

fn send(process: libc::pid_t, signal: i32) {
    // SAFETY: a process of this job; one that has ended meanwhile gets nothing.
    unsafe { libc::kill(process, signal) };
}

/// Has the signals wait until they are asked for.
fn block_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is filled in before it is used; this process has one thread.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in SIGNALS {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), null_mut());
        set.assume_init()
    }
}

/// Ends this process by a signal, as one that got it would have ended.
fn end_by(signal: i32) {
    let mut set = MaybeUninit::uninit();
    // SAFETY: default disposition, unblocked, sent to itself.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), null_mut());
        libc::raise(signal);
    }
}
