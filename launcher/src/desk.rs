#![expect(unsafe_code, reason = "hands open streams over a socket")]
//! Where the ranks of a job report to the process that started it, and where rank 0 gets that process's own streams.
//!
//! Promises that a program among many ranks reads and writes the very terminal, pipe or file that `legate` was given, not what
//! an MPI runner makes of it, and that the desk knows which rank ended first. A rank on another machine finds no desk, and
//! keeps the runner's streams.

use std::env;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// The variable that all processes of a job have in common: the desk's name.
pub(crate) const JOB: &str = "LEGATE_JOB";
/// The streams that are handed over.
const STREAMS: [RawFd; 3] = [0, 1, 2];
/// Room for a message's streams.
const CONTROL_BYTES: usize = 64;
/// Numbers for streams that are out of the program's way.
pub(crate) const HIGH: RawFd = 100;

/// How a rank took leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goodbye {
    /// Its program ended.
    Said,
    /// Its program ended by KeyboardInterrupt.
    Interrupted,
    /// Its process ended without a word.
    Missing,
}

/// What a rank writes to say goodbye after an interrupt.
const INTERRUPTED: u8 = b'i';
/// What a rank's prompt writes when it begins, and when it has dealt with all interrupts so far. Any other byte is a goodbye.
const SERVED: u8 = b's';

/// A rank that has reported.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Its number.
    rank: usize,
    goodbye: Goodbye,
    /// Its process.
    pub(crate) process: libc::pid_t,
    /// Open as long as the process, or a child of its, lives.
    line: UnixStream,
}

/// The desk.
#[derive(Debug)]
pub(crate) struct Desk {
    /// The job's name.
    pub(crate) name: String,
    listener: UnixListener,
    /// Ranks that have reported and live.
    guests: Vec<Guest>,
    /// Ranks that have ended, in this order, and how.
    pub(crate) left: Vec<(usize, Goodbye)>,
    /// How many of them the desk saw gone at one look, the first at which any was: it cannot tell who of these was first.
    together: usize,
    /// How often a prompt has said that it waits for the user, with no interrupt to deal with.
    pub(crate) served: usize,
}

impl Desk {
    /// Opens the desk of a new job.
    pub(crate) fn open() -> io::Result<Desk> {
        let unique = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        let name = format!("legate-{}-{}", std::process::id(), unique.trim());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Desk { name, listener, guests: Vec::new(), left: Vec::new(), together: 0, served: 0 })
    }

    /// Looks after whoever has come or gone; never waits.
    pub(crate) fn attend(&mut self) {
        while let Ok((line, _)) = self.listener.accept() {
            // A rank sends its number at once; what does not is no rank of this job.
            if let Ok(guest) = welcome(line) {
                self.guests.push(guest);
            }
        }
        let (left, served) = (&mut self.left, &mut self.served);
        self.guests.retain_mut(|guest| {
            let mut byte = [0];
            loop {
                match guest.line.read(&mut byte) {
                    Ok(0) => {
                        left.push((guest.rank, guest.goodbye));
                        return false;
                    }
                    Ok(_) if byte[0] == SERVED => *served += 1,
                    Ok(_) if byte[0] == INTERRUPTED => guest.goodbye = Goodbye::Interrupted,
                    Ok(_) => guest.goodbye = Goodbye::Said,
                    Err(_) => return true,
                }
            }
        });
        if self.together == 0 {
            self.together = self.left.len();
        }
    }

    /// The rank that ended first, and how. Of those that were gone at one look it is one that took leave: the runner has killed the
    /// others then, while ranks that miss another take leave much later than it.
    pub(crate) fn first_gone(&self) -> Option<(usize, Goodbye)> {
        let took_leave = |gone: &&(usize, Goodbye)| gone.1 != Goodbye::Missing;
        self.left[..self.together].iter().find(took_leave).or(self.left.first()).copied()
    }

    /// What to wait on for something to attend to.
    pub(crate) fn streams(&self) -> impl Iterator<Item = RawFd> {
        [self.listener.as_raw_fd()].into_iter().chain(self.guests.iter().map(|guest| guest.line.as_raw_fd()))
    }

    /// A rank that has reported and lives.
    pub(crate) fn guest(&self, rank: usize) -> Option<&Guest> {
        self.guests.iter().find(|guest| guest.rank == rank)
    }

    /// The processes of all ranks that have reported and live.
    pub(crate) fn processes(&self) -> impl Iterator<Item = libc::pid_t> {
        self.guests.iter().map(|guest| guest.process)
    }

    /// Whether a rank has reported.
    pub(crate) fn has_seen(&self, rank: usize) -> bool {
        self.left.iter().any(|left| left.0 == rank) || self.guest(rank).is_some()
    }
}

/// Takes a rank's number, and gives it the streams.
fn welcome(mut line: UnixStream) -> io::Result<Guest> {
    line.set_read_timeout(Some(std::time::Duration::from_secs(1)))?;
    let process = process_of(&line)?;
    let mut number = [0u8; 8];
    line.read_exact(&mut number)?;
    let rank = u64::from_le_bytes(number) as usize;
    give_streams(&line)?;
    line.set_nonblocking(true)?;
    Ok(Guest { rank, goodbye: Goodbye::Missing, process, line })
}

/// What a rank gets from its desk.
#[derive(Debug)]
pub(crate) struct Seat {
    /// The line to the desk: open until the process ends, also through an `exec`.
    pub(crate) line: RawFd,
    /// The desk's standard streams.
    pub(crate) streams: [RawFd; 3],
}

/// Reports a rank at its job's desk, if there is one on this machine.
pub(crate) fn report(rank: usize) -> Option<Seat> {
    let name = env::var(JOB).ok()?;
    let mut line = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()?;
    line.write_all(&(rank as u64).to_le_bytes()).ok()?;
    let streams = take_streams(&line).ok()?;
    // SAFETY: a copy of an open stream.
    let line = unsafe { libc::fcntl(line.as_raw_fd(), libc::F_DUPFD, HIGH) };
    Some(Seat { line, streams })
}

/// The process at the other end, which must belong to the same user.
fn process_of(line: &UnixStream) -> io::Result<libc::pid_t> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: room for what this option gives; it is read where the call has filled it in.
    let peer = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        if libc::getsockopt(line.as_raw_fd(), level, option, peer.as_mut_ptr().cast(), &raw mut length) != 0 {
            return Err(io::Error::last_os_error());
        }
        peer.assume_init()
    };
    // SAFETY: no preconditions.
    if peer.uid != unsafe { libc::getuid() } {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(peer.pid)
}

/// Room that is aligned for the header of what goes with a message.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// A message of one byte, with room for streams beside it.
fn message(byte: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all zeros are a valid header without anything.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = byte;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    header
}

fn give_streams(line: &UnixStream) -> io::Result<()> {
    let (mut one, mut control) = ([1u8], Control([0; CONTROL_BYTES]));
    let mut byte = libc::iovec { iov_base: one.as_mut_ptr().cast(), iov_len: 1 };
    let mut header = message(&mut byte, &mut control);
    // SAFETY: the header has room for one control message with three numbers; all it points to outlives the call.
    let sent = unsafe {
        let length = size_of_val(&STREAMS) as u32;
        header.msg_controllen = libc::CMSG_SPACE(length) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(length) as _;
        libc::CMSG_DATA(first).cast::<[RawFd; 3]>().write_unaligned(STREAMS);
        libc::sendmsg(line.as_raw_fd(), &raw const header, 0)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for the desk's answer, and takes the streams that come with it.
fn take_streams(line: &UnixStream) -> io::Result<[RawFd; 3]> {
    let (mut one, mut control) = ([0u8], Control([0; CONTROL_BYTES]));
    let mut byte = libc::iovec { iov_base: one.as_mut_ptr().cast(), iov_len: 1 };
    let mut header = message(&mut byte, &mut control);
    // SAFETY: all that the header points to outlives the calls; the control message is read as its type says.
    unsafe {
        if libc::recvmsg(line.as_raw_fd(), &raw mut header, 0) < 1 {
            return Err(io::Error::last_os_error());
        }
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        if first.is_null() || (*first).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(libc::CMSG_DATA(first).cast::<[RawFd; 3]>().read_unaligned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Desk, Goodbye};

    #[test]
    fn who_took_leave_is_first_where_the_runner_killed_the_rest() {
        let mut desk = Desk::open().expect("a socket");
        desk.left = vec![(1, Goodbye::Missing), (0, Goodbye::Said), (2, Goodbye::Missing)];
        desk.together = 2;
        assert_eq!(desk.first_gone(), Some((0, Goodbye::Said)));
        desk.together = 1;
        assert_eq!(desk.first_gone(), Some((1, Goodbye::Missing)));
    }
}
