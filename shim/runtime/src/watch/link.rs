#![expect(unsafe_code, reason = "asks for this machine's addresses, and waits on several streams")]
//! The sockets between neighbours in the tree of shards: how they are made, and messages over them.
//!
//! A shard tells its children, over the transport, where it listens; they connect and prove that they belong to the job. After
//! that no call blocks. A link that breaks says so once.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use super::message::Message;
use crate::transport::collective::{children, parent};
use crate::transport::{Channel, Receive, Send, Transport, TransportError};

/// How long neighbours have to find each other.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one attempt to connect may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Bytes of the secret that shows who belongs to the job.
const SECRET_BYTES: usize = 16;
/// Bytes of a machine's name in the exchange of addresses.
const MACHINE_BYTES: usize = 64;
/// Most addresses of a machine that are told.
const MOST_ADDRESSES: usize = 14;
/// Bytes of the message that tells them: machine, secret, port, number of addresses, addresses.
const TOLD_BYTES: usize = MACHINE_BYTES + SECRET_BYTES + 2 + 2 + 4 * MOST_ADDRESSES;

/// A connection to a neighbour.
#[derive(Debug)]
pub(super) struct Link {
    /// The neighbour.
    pub(super) shard: usize,
    /// Whether it is open still.
    pub(super) open: bool,
    stream: TcpStream,
    read: Vec<u8>,
    unsent: Vec<u8>,
}

impl Link {
    fn new(shard: usize, stream: TcpStream) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Link { shard, open: true, stream, read: Vec::new(), unsent: Vec::new() })
    }

    /// Sends a message, as far as the socket takes it; the rest goes with the next look.
    pub(super) fn send(&mut self, message: &Message) {
        self.unsent.extend(message.frame());
        self.push();
    }

    fn push(&mut self) {
        while self.open && !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => self.open = false,
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.open = false,
            }
        }
    }

    /// What has arrived, and whether the link broke now.
    pub(super) fn look(&mut self) -> (Vec<Message>, bool) {
        let was_open = self.open;
        self.push();
        let mut room = [0u8; 4096];
        while self.open {
            match self.stream.read(&mut room) {
                Ok(0) => self.open = false,
                Ok(length) => self.read.extend(&room[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.open = false,
            }
        }
        let mut messages = Vec::new();
        loop {
            match Message::take(&mut self.read) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(()) => {
                    self.open = false;
                    break;
                }
            }
        }
        (messages, was_open && !self.open)
    }
}

/// Waits until one of the links or `wake` has something to read, or the time is over.
pub(super) fn wait(links: &[Link], wake: RawFd, patience: Duration) {
    let wish = |fd, events| libc::pollfd { fd, events, revents: 0 };
    let mut streams = vec![wish(wake, libc::POLLIN)];
    for link in links.iter().filter(|link| link.open) {
        let more = if link.unsent.is_empty() { 0 } else { libc::POLLOUT };
        streams.push(wish(link.stream.as_raw_fd(), libc::POLLIN | more));
    }
    // SAFETY: open streams of this process.
    unsafe { libc::poll(streams.as_mut_ptr(), streams.len() as libc::nfds_t, patience.as_millis() as i32) };
}

/// The machine's name: what shards that reach each other by the loopback address have in common.
fn machine() -> [u8; MACHINE_BYTES] {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = std::fs::read_link("/proc/self/ns/net").map(|link| link.display().to_string()).unwrap_or_default();
    let mut name = [0u8; MACHINE_BYTES];
    name.iter_mut().zip(boot.trim().bytes().chain(network.bytes())).for_each(|(to, from)| *to = from);
    name
}

/// This machine's IPv4 addresses but the loopback one.
fn addresses() -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the list is walked as it was given, and freed once.
    unsafe {
        if libc::getifaddrs(&raw mut first) != 0 {
            return found;
        }
        let mut row = first;
        while let Some(interface) = row.as_ref() {
            if let Some(address) = interface.ifa_addr.as_ref()
                && i32::from(address.sa_family) == libc::AF_INET
            {
                let address = interface.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                let address = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                if !address.is_loopback() {
                    found.push(address);
                }
            }
            row = interface.ifa_next;
        }
        libc::freeifaddrs(first);
    }
    found.truncate(MOST_ADDRESSES);
    found
}

/// Connects this shard with its neighbours in the tree, the parent first.
pub(super) fn connect(transport: &dyn Transport) -> Result<Vec<Link>, TransportError> {
    let (shard, shards) = (transport.shard(), transport.shards());
    let below: Vec<usize> = children(shard, shards).collect();
    let failed = |why: io::Error| TransportError::Failed(format!("shard {shard} cannot reach its neighbours: {why}"));
    let own = machine();
    let mut theirs = vec![[0u8; MACHINE_BYTES]; below.len()];
    let sends = parent(shard).map(|to| Send { to, bytes: &own });
    let mut receives: Vec<Receive<'_>> =
        below.iter().zip(&mut theirs).map(|(&from, bytes)| Receive { from, bytes }).collect();
    transport.exchange(Channel::Agreement, sends.as_slice(), &mut receives)?;
    let near = theirs.iter().all(|machine| *machine == own);
    let address = if near { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
    let listener = TcpListener::bind((address, 0)).map_err(failed)?;
    let mut secret = [0u8; SECRET_BYTES];
    std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut secret)).map_err(failed)?;

    let mut told = own.to_vec();
    told.extend(secret);
    told.extend(listener.local_addr().map_err(failed)?.port().to_le_bytes());
    let addresses = addresses();
    told.extend((addresses.len() as u16).to_le_bytes());
    told.extend(addresses.iter().flat_map(Ipv4Addr::octets));
    told.resize(TOLD_BYTES, 0);
    let mut heard = [0u8; TOLD_BYTES];
    let sends: Vec<Send<'_>> = below.iter().map(|&to| Send { to, bytes: &told }).collect();
    let mut receive = parent(shard).map(|from| Receive { from, bytes: &mut heard });
    transport.exchange(Channel::Agreement, &sends, receive.as_mut_slice())?;

    let mut links = Vec::new();
    if let Some(above) = parent(shard) {
        links.push(call(above, shard, &heard, &own).map_err(failed)?);
    }
    links.extend(answer(&listener, &below, &secret).map_err(failed)?);
    Ok(links)
}

/// Connects to the parent, which told where it listens.
fn call(above: usize, shard: usize, heard: &[u8; TOLD_BYTES], own: &[u8; MACHINE_BYTES]) -> io::Result<Link> {
    let (machine, rest) = heard.split_at(MACHINE_BYTES);
    let (secret, rest) = rest.split_at(SECRET_BYTES);
    let port = u16::from_le_bytes([rest[0], rest[1]]);
    let count = usize::from(u16::from_le_bytes([rest[2], rest[3]])).min(MOST_ADDRESSES);
    let mut addresses: Vec<Ipv4Addr> =
        rest[4..4 + 4 * count].chunks_exact(4).map(|four| Ipv4Addr::new(four[0], four[1], four[2], four[3])).collect();
    if machine == own {
        addresses = vec![Ipv4Addr::LOCALHOST];
    }
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&SocketAddrV4::new(address, port).into(), ATTEMPT) {
            Ok(mut stream) => {
                stream.write_all(secret)?;
                stream.write_all(&(shard as u64).to_le_bytes())?;
                return Link::new(above, stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Waits for the children to connect.
fn answer(listener: &TcpListener, below: &[usize], secret: &[u8; SECRET_BYTES]) -> io::Result<Vec<Link>> {
    listener.set_nonblocking(true)?;
    let since = Instant::now();
    let mut links = Vec::new();
    while links.len() < below.len() {
        match listener.accept() {
            Ok((mut stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(ATTEMPT))?;
                let (mut theirs, mut number) = ([0u8; SECRET_BYTES], [0u8; 8]);
                let told = stream.read_exact(&mut theirs).and_then(|()| stream.read_exact(&mut number));
                let shard = u64::from_le_bytes(number) as usize;
                if told.is_ok() && theirs == *secret && below.contains(&shard) {
                    links.push(Link::new(shard, stream)?);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if since.elapsed() > PATIENCE {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(links)
}
