#![expect(unsafe_code, reason = "forks, waits for signals, and moves streams")]
//! A process that stands between a rank and its streams: it puts the rank's number before each line, keeps a log, measures times.
//!
//! Promises that whatever writes to the rank's streams - Python, C, children - is seen line by line, that lines of several ranks
//! are never mixed within a line, that signals reach the rank, and that this process ends as the rank does. Without `--all-output`,
//! `--log-to-file` or `--timing` there is none.

use std::fs::{self, File};
use std::io::{self, Write};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::time::Instant;

use crate::signals;

/// What the porter does.
#[derive(Debug, Default)]
pub(crate) struct Duties {
    /// What to put before each line.
    pub(crate) prefix: Option<String>,
    /// Where to write a copy of what is printed.
    pub(crate) log: Option<PathBuf>,
    /// Whether to tell times at the end, and of whom.
    pub(crate) timing: Option<String>,
}

/// Signals that are passed on to the rank.
const PASSED: [i32; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
    libc::SIGWINCH,
];
/// How much is read at once.
const ROOM: usize = 1 << 16;

/// Stands between this process's streams and a child, which comes back from here to be the rank. Does nothing where there is
/// nothing to do.
pub(crate) fn stand(duties: &Duties) -> Result<(), String> {
    if duties.prefix.is_none() && duties.log.is_none() && duties.timing.is_none() {
        return Ok(());
    }
    let refused = |error: io::Error| format!("cannot stand between a rank and its streams: {error}");
    let log = match &duties.log {
        Some(path) => {
            let open = || {
                fs::create_dir_all(path.parent().unwrap_or(path))?;
                File::create(path)
            };
            Some(open().map_err(|error| format!("--log-to-file: {}: {error}", path.display()))?)
        }
        None => None,
    };
    let begun = Instant::now();
    let joined = duties.prefix.is_some() || log.is_some();
    let mut streams = Vec::new();
    for own in [1, 2].into_iter().filter(|_| joined) {
        streams.push(Stream::open(own, duties.prefix.clone().unwrap_or_default()).map_err(refused)?);
    }
    let passed = signals::wait_for(&[&PASSED[..], &[libc::SIGCHLD]].concat()).map_err(refused)?;
    // SAFETY: this process has one thread, so that its child may go on with anything.
    match unsafe { libc::fork() } {
        ..0 => Err(refused(io::Error::last_os_error())),
        0 => become_the_rank(&streams).map_err(refused),
        rank => {
            streams.iter_mut().for_each(|stream| stream.given = None);
            let status = attend(rank, &mut streams, log, &passed).map_err(refused)?;
            if let Some(whose) = &duties.timing {
                eprintln!("legate: {whose} {}", times(begun));
            }
            end_as(status)
        }
    }
}

/// How long it took since, and what children that have ended took.
pub(crate) fn times(since: Instant) -> String {
    let mut used = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: room for what the call fills in; zeros are a valid answer where it fails.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, used.as_mut_ptr());
        used.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    format!(
        "took {:.2} s, {:.2} CPU seconds in programs and {:.2} in the kernel; a process had at most {} of memory",
        since.elapsed().as_secs_f64(),
        seconds(used.ru_utime),
        seconds(used.ru_stime),
        crate::size::show_bytes(used.ru_maxrss as u64 * 1024)
    )
}

/// One of the rank's streams.
struct Stream {
    /// The number that the rank knows it by.
    number: RawFd,
    /// The rank's end.
    given: Option<OwnedFd>,
    /// This process's end; none when all has been read.
    read: Option<File>,
    /// What to put before each line; empty for a stream that is passed on as it comes.
    prefix: String,
    /// The line that is not complete yet.
    line: Vec<u8>,
}

impl Stream {
    /// A terminal of its own where the stream leads to one, so that the rank writes as it would there; else a pipe.
    fn open(number: RawFd, prefix: String) -> io::Result<Stream> {
        let (mut read, mut given) = (0, 0);
        // SAFETY: plain calls; the numbers are those of streams that were just opened and belong to nothing else.
        unsafe {
            if libc::isatty(number) == 1 {
                let mut size: libc::winsize = zeroed();
                libc::ioctl(number, libc::TIOCGWINSZ, &raw mut size);
                if libc::openpty(&raw mut read, &raw mut given, null_mut(), null_mut(), &raw const size) != 0 {
                    return Err(io::Error::last_os_error());
                }
                let mut modes: libc::termios = zeroed();
                libc::tcgetattr(given, &raw mut modes);
                libc::cfmakeraw(&raw mut modes);
                libc::tcsetattr(given, libc::TCSANOW, &raw const modes);
                libc::fcntl(read, libc::F_SETFD, libc::FD_CLOEXEC);
                libc::fcntl(given, libc::F_SETFD, libc::FD_CLOEXEC);
            } else {
                let mut ends = [0; 2];
                if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                    return Err(io::Error::last_os_error());
                }
                [read, given] = ends;
            }
            libc::fcntl(read, libc::F_SETFL, libc::O_NONBLOCK);
            let (read, given) = (File::from_raw_fd(read), OwnedFd::from_raw_fd(given));
            Ok(Stream { number, given: Some(given), read: Some(read), prefix, line: Vec::new() })
        }
    }

    /// Passes on what is there; never waits for more.
    fn pump(&mut self, log: &mut Option<File>) {
        let mut room = [0; ROOM];
        while let Some(read) = &mut self.read {
            match io::Read::read(read, &mut room) {
                Ok(length @ 1..) => self.take(&room[..length], log),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A terminal whose other end was closed gives an error.
                Ok(0) | Err(_) => self.read = None,
            }
        }
    }

    fn take(&mut self, bytes: &[u8], log: &mut Option<File>) {
        if self.prefix.is_empty() {
            put(self.number, bytes);
        }
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.note(&lines, log);
        }
    }

    /// Writes lines where lines go.
    fn note(&self, lines: &[u8], log: &mut Option<File>) {
        if let Some(log) = log {
            // A full disk does not stop the program.
            let _ = log.write_all(lines);
        }
        if !self.prefix.is_empty() {
            self.show(lines);
        }
    }

    fn show(&self, lines: &[u8]) {
        let mut text = Vec::with_capacity(lines.len() + 64);
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            text.extend_from_slice(self.prefix.as_bytes());
            text.extend_from_slice(line);
        }
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        // Ranks write to one stream: each locks it meanwhile, as long lines are written in pieces.
        lock(self.number, libc::F_WRLCK);
        put(self.number, &text);
        lock(self.number, libc::F_UNLCK);
    }

    /// The last line, which has no end.
    fn finish(&mut self, log: &mut Option<File>) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.note(&line, log);
        }
    }
}

/// Locks a stream against other ranks' porters, or lets it go; where it cannot be locked, lines of a page are still whole.
fn lock(stream: RawFd, kind: i32) {
    // SAFETY: zeros are a lock on all of a stream; the call only reads it.
    unsafe {
        let mut whole: libc::flock = zeroed();
        whole.l_type = kind as _;
        libc::fcntl(stream, libc::F_SETLKW, &raw const whole);
    }
}

/// Writes everything, or as much as somebody takes.
fn put(stream: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the bytes are ours; a stream that is gone is an error.
        let written = unsafe { libc::write(stream, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => {
                let mut wish = libc::pollfd { fd: stream, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one open stream.
                unsafe { libc::poll(&raw mut wish, 1, -1) };
            }
            Err(_) => return,
        }
    }
}

/// In the child: its streams lead to the porter, it has signals again, and it ends with the porter.
fn become_the_rank(streams: &[Stream]) -> io::Result<()> {
    signals::unblock()?;
    for stream in streams {
        let Some(given) = &stream.given else { continue };
        // SAFETY: both are open streams of this process.
        if unsafe { libc::dup2(given.as_raw_fd(), stream.number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: asks for a signal at the parent's end; runs nothing.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    Ok(())
}

/// Passes on what the rank writes, and signals to it, until it has ended; its status.
fn attend(rank: libc::pid_t, streams: &mut [Stream], mut log: Option<File>, passed: &OwnedFd) -> io::Result<i32> {
    loop {
        let mut status = 0;
        // SAFETY: the child of this process.
        let ended = unsafe { libc::waitpid(rank, &raw mut status, libc::WNOHANG) } == rank;
        streams.iter_mut().for_each(|stream| stream.pump(&mut log));
        if ended {
            streams.iter_mut().for_each(|stream| stream.finish(&mut log));
            return Ok(status);
        }
        let reads = streams.iter().filter_map(|stream| Some(stream.read.as_ref()?.as_raw_fd()));
        let wish = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut wishes: Vec<_> = reads.chain([passed.as_raw_fd()]).map(wish).collect();
        // SAFETY: open streams.
        unsafe { libc::poll(wishes.as_mut_ptr(), wishes.len() as libc::nfds_t, -1) };
        while let Some(signal) = signals::next(passed) {
            // A terminal's signals reach the rank by themselves.
            if signal.number != libc::SIGCHLD && !signal.from_kernel {
                // SAFETY: the child of this process, which has not been waited for.
                unsafe { libc::kill(rank, signal.number) };
            }
        }
    }
}

/// Ends this process as the rank ended.
fn end_as(status: i32) -> ! {
    if libc::WIFSIGNALED(status) {
        signals::end_by(libc::WTERMSIG(status));
    }
    std::process::exit(libc::WEXITSTATUS(status))
}
