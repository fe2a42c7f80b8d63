//! Fourier transforms of lines of which each shard has a part.
//!
//! Lines are dealt out evenly; a shard gets some of its own at a time, transforms them, and sends every element to where the result
//! lives. Elements travel line by line, so that each is moved across the array once, where it is read or where it is written, and what
//! lives here already goes through no message. Promises that no shard holds more lines at once than those, whatever the array: nothing
//! of the array's size is made. Which loop this is, and how lines are transformed, it leaves to `fourier`.
#![expect(unsafe_code, reason = "arrays and messages as memory")]

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use legate_kernels::execute::watched;
use legate_runtime::Exchange;
use legate_runtime::partition::Partition;
use legate_runtime::transport::{Receive, Send, TransportError};
use parking_lot::Mutex;

use super::{Lines, Room, Side, Transform, turn};

/// Lines of a shard at a time, at least.
const LEAST_LINES: usize = 4;

/// Memory that is used again at each step.
struct Messages {
    /// For each shard, what is sent to it.
    sent: Vec<Vec<u8>>,
    /// For each shard, what comes from it.
    arrived: Vec<Vec<u8>>,
    /// Those that nobody transforms lines in.
    rooms: Mutex<Vec<Room>>,
}

/// Transforms the lines; the floating-point events at this shard. `offset` is the byte of its field at which the array before begins;
/// a step brings about `elements` of them.
///
/// # Safety
/// `addresses` are those of the arrays before and after, which this launch has to itself.
pub(super) unsafe fn run(
    lines: &Lines,
    transform: &Transform,
    addresses: [usize; 2],
    offset: usize,
    elements: usize,
    exchange: &Exchange<'_>,
) -> Result<u8, TransportError> {
    let is_whole = exchange.keeps_whole(0, offset, lines.items[0] as isize, lines.items[0]);
    if !exchange.is_divided() || !is_whole {
        exchange.gather(0, &(offset..offset + lines.bytes(0)))?;
    }
    if !exchange.is_divided() {
        // SAFETY: the caller's.
        return Ok(unsafe { lines.run(transform, addresses, 0..lines.count(), exchange.workers()) });
    }
    let shards = exchange.shards();
    let row_bytes = lines.bytes(1) / exchange.rows_at(shards - 1).end;
    let is_here = !is_whole || !exchange.is_spread(0);
    let lives = |after: usize, shard: usize| match after {
        0 if is_here => 0..if shard == exchange.shard() { lines.bytes(0) } else { 0 },
        0 => {
            let part = exchange.part(0, shard);
            part.start.saturating_sub(offset)..part.end.saturating_sub(offset).min(lines.bytes(0))
        }
        _ => {
            let rows = exchange.rows_at(shard);
            rows.start * row_bytes..rows.end * row_bytes
        }
    };
    let dealt = Partition { length: lines.count(), colours: shards };
    let at_once = (elements / lines.lengths[0].max(lines.lengths[1])).max(LEAST_LINES);
    let none = || vec![Vec::new(); shards];
    let mut messages = Messages { sent: none(), arrived: none(), rooms: Mutex::default() };
    let mut events = 0;
    for step in 0..dealt.length.div_ceil(shards).div_ceil(at_once) {
        let lines_of = |shard: usize| {
            let all = dealt.tile(shard);
            let first = (all.start + step * at_once).min(all.end);
            first..(first + at_once).min(all.end)
        };
        let step = Step { lines, exchange, addresses, is_here, lines_of, lives };
        // SAFETY: the caller's.
        unsafe {
            step.bring(&mut messages)?;
            events |= step.transform_own(transform, &mut messages);
            step.send_home(&mut messages)?;
        }
    }
    Ok(events)
}

/// Lines side by side of which the same places lie in a part of the array.
struct Strip {
    /// The first of them.
    first: usize,
    columns: usize,
    places: Range<usize>,
    /// Byte of the array at which the first place of the first line begins.
    start: usize,
}

/// What lies in `part` of the array before or after of some lines, in their order.
fn strips(lines: &Lines, own: &Range<usize>, after: usize, part: &Range<usize>) -> Vec<Strip> {
    let item = lines.items[after];
    let row = lines.apart * item;
    let mut strips = Vec::new();
    for own in lines.blocks_of(own.clone()).filter(|own| !own.is_empty()) {
        let block = own.start / lines.apart;
        let (begin, columns) = (block * lines.lengths[after] * row, own.start % lines.apart);
        let columns = columns..columns + own.len();
        let edges = [part.start, part.end].map(|edge| edge.saturating_sub(begin));
        // From such a column on an edge is one place earlier.
        let turns = edges.map(|edge| (edge % row / item).clamp(columns.start, columns.end));
        let bounds = [columns.start, turns[0].min(turns[1]), turns[0].max(turns[1]), columns.end];
        for columns in bounds.windows(2).map(|ends| ends[0]..ends[1]).filter(|columns| !columns.is_empty()) {
            let up_to = |edge: usize| edge.saturating_sub(columns.start * item).div_ceil(row).min(lines.used[after]);
            let places = up_to(edges[0])..up_to(edges[1]);
            if !places.is_empty() {
                let start = begin + places.start * row + columns.start * item;
                strips.push(Strip {
                    first: block * lines.apart + columns.start,
                    columns: columns.len(),
                    places,
                    start,
                });
            }
        }
    }
    strips
}

/// Bytes of what [`strips`] tells.
fn length(lines: &Lines, own: &Range<usize>, after: usize, part: &Range<usize>) -> usize {
    let elements =
        strips(lines, own, after, part).iter().map(|strip| strip.columns * strip.places.len()).sum::<usize>();
    elements * lines.items[after]
}

/// One step of the deal: some lines for each shard.
struct Step<'a, 'b, L, H> {
    lines: &'a Lines,
    exchange: &'a Exchange<'b>,
    /// Of the arrays before and after.
    addresses: [usize; 2],
    /// Whether all of the array before is here.
    is_here: bool,
    /// The lines that a shard transforms.
    lines_of: L,
    /// The bytes of the array before (0) or after (1) that are taken from or live at a shard.
    lives: H,
}

impl<L: Fn(usize) -> Range<usize>, H: Fn(usize, usize) -> Range<usize>> Step<'_, '_, L, H> {
    fn others(&self) -> impl Iterator<Item = usize> + use<L, H> {
        let own = self.exchange.shard();
        (0..self.exchange.shards()).filter(move |shard| *shard != own)
    }

    /// Bytes of a message about a shard's lines, of what lives at another one.
    fn message(&self, dealt_to: usize, after: usize, lives_at: usize) -> usize {
        length(self.lines, &(self.lines_of)(dealt_to), after, &(self.lives)(after, lives_at))
    }

    /// Does something to parts of the lines that a shard transforms, by all workers.
    fn each_part(&self, shard: usize, work: impl Fn(Range<usize>) + Sync) {
        let (all, workers) = ((self.lines_of)(shard), self.exchange.workers());
        let parts = Partition::natural(all.len(), workers.threads() * 2, self.lines.together());
        workers.each(parts.colours, &|part| {
            let part = parts.tile(part);
            work(all.start + part.start..all.start + part.end);
        });
    }

    /// Moves between the array and a message about lines of a shard what lives here of them: into the message, or out of it.
    ///
    /// # Safety
    /// The array is there, and the message has room for it; nobody else touches what is written.
    unsafe fn pack(&self, shard: usize, after: usize, message: usize, into: bool) {
        let (lines, part) = (self.lines, (self.lives)(after, self.exchange.shard()));
        let (item, all, address) = (lines.items[after], (self.lines_of)(shard), self.addresses[after]);
        self.each_part(shard, |own| {
            let mut packed = message + length(lines, &(all.start..own.start), after, &part);
            // A few lines at a time, as they are transformed: more would crowd the same places of a cache.
            let few = own.clone().step_by(lines.together());
            for strip in
                few.flat_map(|first| strips(lines, &(first..own.end.min(first + lines.together())), after, &part))
            {
                let counts = [strip.places.len(), strip.columns];
                let outside = (address + strip.start, [lines.apart * item, item]);
                let inside = (packed, [item, counts[0] * item]);
                let (from, to) = if into { (outside, inside) } else { (inside, outside) };
                // SAFETY: the caller's; parts have disjoint lines.
                unsafe { turn(item, counts, from, to) };
                packed += counts[0] * counts[1] * item;
            }
        });
    }

    /// Brings what other shards have of this one's lines.
    ///
    /// # Safety
    /// The array before is at its address, and nobody writes it.
    unsafe fn bring(&self, messages: &mut Messages) -> Result<(), TransportError> {
        if self.is_here {
            return Ok(());
        }
        let own = self.exchange.shard();
        for other in self.others() {
            messages.sent[other].resize(self.message(other, 0, own), 0);
            messages.arrived[other].resize(self.message(own, 0, other), 0);
            // SAFETY: the caller's; the message is as long as what lives here of the other's lines.
            unsafe { self.pack(other, 0, messages.sent[other].as_mut_ptr() as usize, true) };
        }
        self.carry(messages)
    }

    fn carry(&self, messages: &mut Messages) -> Result<(), TransportError> {
        let Messages { sent, arrived, .. } = messages;
        let own = self.exchange.shard();
        let sends = sent.iter().enumerate().filter(|(to, bytes)| *to != own && !bytes.is_empty());
        let sends: Vec<Send<'_>> = sends.map(|(to, bytes)| Send { to, bytes }).collect();
        let receives = arrived.iter_mut().enumerate().filter(|(from, bytes)| *from != own && !bytes.is_empty());
        let mut receives: Vec<Receive<'_>> = receives.map(|(from, bytes)| Receive { from, bytes }).collect();
        self.exchange.carry(&sends, &mut receives)
    }

    /// Transforms this shard's lines, a few at a time, of what has arrived and what is here, to what is sent and what stays here; the
    /// floating-point events.
    ///
    /// # Safety
    /// The arrays are at their addresses; nobody writes that before, or touches that after.
    unsafe fn transform_own(&self, transform: &Transform, messages: &mut Messages) -> u8 {
        let (lines, own) = (self.lines, self.exchange.shard());
        for other in self.others() {
            messages.sent[other].resize(self.message(own, 1, other), 0);
        }
        let arrived: Vec<usize> = messages.arrived.iter().map(|bytes| bytes.as_ptr() as usize).collect();
        let sent: Vec<usize> = messages.sent.iter_mut().map(|bytes| bytes.as_mut_ptr() as usize).collect();
        let lives = [0, 1].map(|after| (0..self.exchange.shards()).map(|shard| (self.lives)(after, shard)).collect());
        let lives: [Vec<Range<usize>>; 2] = lives;
        let (all, addresses) = ((self.lines_of)(own), self.addresses);
        let (events, rooms) = (AtomicU8::new(0), &messages.rooms);
        self.each_part(own, |part| {
            let room = rooms.lock().pop().unwrap_or_else(|| Room::of(lines));
            let seen = watched(|| {
                for first in part.clone().step_by(lines.together()) {
                    let some = first..(first + lines.together()).min(part.end);
                    // What a shard has of these lines, and where they are in the messages and in the room.
                    let visit = |after: usize, messages: &[usize], move_one: &dyn Fn([usize; 2], Side, Side)| {
                        let (item, step) = (lines.items[after], room.steps[after]);
                        for (shard, lives) in lives[after].iter().enumerate() {
                            let mut packed = messages[shard] + length(lines, &(all.start..some.start), after, lives);
                            for Strip { first, columns, places, start } in strips(lines, &some, after, lives) {
                                let place = (first - some.start) * room.next[after] + places.start * step;
                                let inside = (room.starts[after] + place, [step, room.next[after]]);
                                let outside = match shard == own {
                                    true => (addresses[after] + start, [lines.apart * item, item]),
                                    false => (packed, [item, places.len() * item]),
                                };
                                packed += places.len() * columns * item;
                                move_one([places.len(), columns], outside, inside);
                            }
                        }
                    };
                    // SAFETY: the caller's; messages and the room are as long as what is moved, and parts have disjoint lines.
                    unsafe {
                        visit(0, &arrived, &|counts, outside, inside| turn(lines.items[0], counts, outside, inside));
                        lines.transform(transform, room.starts, room.next, some.len());
                        visit(1, &sent, &|counts, outside, inside| turn(lines.items[1], counts, inside, outside));
                    }
                }
            });
            events.fetch_or(seen, Ordering::Relaxed);
            rooms.lock().push(room);
        });
        events.into_inner()
    }

    /// Sends what lives elsewhere of this shard's transformed lines, and puts what arrives in its place.
    ///
    /// # Safety
    /// The array after is at its address, and nobody else touches it.
    unsafe fn send_home(&self, messages: &mut Messages) -> Result<(), TransportError> {
        let own = self.exchange.shard();
        for other in self.others() {
            messages.arrived[other].resize(self.message(other, 1, own), 0);
        }
        self.carry(messages)?;
        for other in self.others() {
            // SAFETY: the caller's; the message is as long as what lives here of the other's lines.
            unsafe { self.pack(other, 1, messages.arrived[other].as_mut_ptr() as usize, false) };
        }
        Ok(())
    }
}
