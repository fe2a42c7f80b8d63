//! Fourier transforms of lines of which each shard has a part.
//!
//! Lines are dealt out evenly; a shard gets some of its own at a time, transforms them beside each other, and sends every element to
//! where the result lives. Promises that no shard holds more lines at once than those, whatever the array: nothing of the array's
//! size is made. Which loop this is, and how lines side by side are transformed, it leaves to `fourier`.
#![expect(unsafe_code, reason = "arrays' memory as slices")]

use std::ops::Range;

use legate_runtime::Exchange;
use legate_runtime::partition::Partition;
use legate_runtime::transport::{Receive, Send, TransportError};

use super::{Lines, Sheet, Transform};
use crate::ops::exchange::intersection;

/// Lines of a shard at a time, at least.
const LEAST_LINES: usize = 4;

/// Bytes at an address that is a multiple of those of any element.
#[derive(Default)]
struct Aligned(Vec<[u64; 2]>);

impl Aligned {
    /// Room for so many bytes.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.0.resize(bytes.div_ceil(size_of::<[u64; 2]>()), [0; 2]);
        // SAFETY: the vector's memory, of which all bits are values of bytes.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<u8>(), bytes) }
    }
}

/// Memory that is used again at each step.
struct Rooms {
    /// This shard's lines, one element of each beside the other, before and after.
    dense: [Aligned; 2],
    /// For each shard, what is sent to it or comes from it.
    packed: Vec<Vec<u8>>,
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
    if !exchange.is_divided() {
        exchange.gather(0, &(offset..offset + lines.bytes(0)))?;
        // SAFETY: the caller's.
        return Ok(unsafe { lines.run(transform, addresses, 0..lines.count(), exchange.workers()) });
    }
    let shards = exchange.shards();
    let row_bytes = lines.bytes(1) / exchange.rows_at(shards - 1).end;
    let lives = |after: usize, shard: usize| match after {
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
    let mut rooms = Rooms { dense: Default::default(), packed: vec![Vec::new(); shards] };
    let mut events = 0;
    for step in 0..dealt.length.div_ceil(shards).div_ceil(at_once) {
        let lines_of = |shard: usize| {
            let all = dealt.tile(shard);
            let first = (all.start + step * at_once).min(all.end);
            first..(first + at_once).min(all.end)
        };
        let step = Step { lines, exchange, lines_of, lives };
        // SAFETY: the caller's.
        unsafe {
            step.bring(addresses[0], &mut rooms)?;
            events |= step.transform_own(transform, &mut rooms);
            step.send_home(addresses[1], &mut rooms)?;
        }
    }
    Ok(events)
}

/// Visits the bytes of some lines that lie in `part` of the array before or after, in order.
fn stretches(
    lines: &Lines,
    own: &Range<usize>,
    after: usize,
    part: &Range<usize>,
    mut visit: impl FnMut(Range<usize>),
) {
    let item = lines.items[after];
    let row = lines.apart * item;
    for own in lines.blocks_of(own.clone()).filter(|own| !own.is_empty()) {
        let (block, column) = (own.start / lines.apart, own.start % lines.apart);
        let begin = block * lines.lengths[after] * row;
        let first = part.start.saturating_sub(begin) / row;
        let last = part.end.saturating_sub(begin).div_ceil(row).min(lines.used[after]);
        for place in first..last {
            let start = begin + place * row + column * item;
            if let Some(both) = intersection(&(start..start + own.len() * item), part) {
                visit(both);
            }
        }
    }
}

/// How many bytes [`stretches`] visits.
fn length(lines: &Lines, own: &Range<usize>, after: usize, part: &Range<usize>) -> usize {
    let mut sum = 0;
    stretches(lines, own, after, part, |bytes| sum += bytes.len());
    sum
}

/// Copies the bytes of some lines that lie in `part` of the array before to a room, one after the other.
fn copy(lines: &Lines, own: &Range<usize>, array: &[u8], part: &Range<usize>, room: &mut [u8]) {
    let mut next = 0;
    stretches(lines, own, 0, part, |bytes| {
        room[next..next + bytes.len()].copy_from_slice(&array[bytes.clone()]);
        next += bytes.len();
    });
}

/// One step of the deal: some lines for each shard.
struct Step<'a, 'b, L, H> {
    lines: &'a Lines,
    exchange: &'a Exchange<'b>,
    /// The lines that a shard transforms.
    lines_of: L,
    /// The bytes of the array before (0) or after (1) that live at a shard.
    lives: H,
}

impl<L: Fn(usize) -> Range<usize>, H: Fn(usize, usize) -> Range<usize>> Step<'_, '_, L, H> {
    fn own(&self) -> Range<usize> {
        (self.lines_of)(self.exchange.shard())
    }

    /// Brings this shard's lines together: one element of each beside the other.
    ///
    /// # Safety
    /// The array before is at that address, and nobody writes it.
    unsafe fn bring(&self, address: usize, rooms: &mut Rooms) -> Result<(), TransportError> {
        let (lines, shard, own) = (self.lines, self.exchange.shard(), self.own());
        // SAFETY: the caller's.
        let array = unsafe { std::slice::from_raw_parts(address as *const u8, lines.bytes(0)) };
        let mut rest = rooms.dense[0].room(own.len() * lines.used[0] * lines.items[0]);
        if !self.exchange.is_spread(0) {
            copy(lines, &own, array, &(0..array.len()), rest);
            return Ok(());
        }
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (other, packed) in rooms.packed.iter_mut().enumerate() {
            packed.clear();
            let (place, behind) =
                std::mem::take(&mut rest).split_at_mut(length(lines, &own, 0, &(self.lives)(0, other)));
            rest = behind;
            if other == shard {
                copy(lines, &own, array, &(self.lives)(0, shard), place);
                continue;
            }
            stretches(lines, &(self.lines_of)(other), 0, &(self.lives)(0, shard), |bytes| {
                packed.extend_from_slice(&array[bytes])
            });
            sends.extend((!packed.is_empty()).then_some(Send { to: other, bytes: packed }));
            receives.extend((!place.is_empty()).then_some(Receive { from: other, bytes: place }));
        }
        self.exchange.carry(&sends, &mut receives)
    }

    /// Transforms the lines that were brought together; the floating-point events.
    fn transform_own(&self, transform: &Transform, rooms: &mut Rooms) -> u8 {
        let (lines, own) = (self.lines, self.own());
        let mut next = [0, 1].map(|after| {
            rooms.dense[after].room(own.len() * lines.used[after] * lines.items[after]).as_mut_ptr() as usize
        });
        let mut sheets = Vec::new();
        for block in lines.blocks_of(own).filter(|block| !block.is_empty()) {
            let pitches = lines.items.map(|item| item * block.len());
            sheets.push(Sheet { addresses: next, pitches, next: lines.items, columns: block.len() });
            next = [0, 1].map(|after| next[after] + lines.used[after] * pitches[after]);
        }
        // SAFETY: the rooms have these lines before and after, one block behind the other.
        unsafe { lines.transform_sheets(transform, &sheets, self.exchange.workers()) }
    }

    /// Sends every element of this shard's transformed lines to where it lives.
    ///
    /// # Safety
    /// The array after is at that address, and nobody else touches it.
    unsafe fn send_home(&self, address: usize, rooms: &mut Rooms) -> Result<(), TransportError> {
        let (lines, shard, own) = (self.lines, self.exchange.shard(), self.own());
        // SAFETY: the caller's.
        let array = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, lines.bytes(1)) };
        let mut put = |of: usize, bytes: &[u8]| {
            let mut next = 0;
            stretches(lines, &(self.lines_of)(of), 1, &(self.lives)(1, shard), |place| {
                let length = place.len();
                array[place].copy_from_slice(&bytes[next..next + length]);
                next += length;
            });
        };
        let mut rest: &[u8] = rooms.dense[1].room(own.len() * lines.used[1] * lines.items[1]);
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (other, arrived) in rooms.packed.iter_mut().enumerate() {
            let (sent, behind) = rest.split_at(length(lines, &own, 1, &(self.lives)(1, other)));
            rest = behind;
            if other == shard {
                put(shard, sent);
                continue;
            }
            arrived.resize(length(lines, &(self.lines_of)(other), 1, &(self.lives)(1, shard)), 0);
            sends.extend((!sent.is_empty()).then_some(Send { to: other, bytes: sent }));
            receives.extend((!arrived.is_empty()).then_some(Receive { from: other, bytes: arrived }));
        }
        self.exchange.carry(&sends, &mut receives)?;
        drop(receives);
        for (other, arrived) in rooms.packed.iter().enumerate().filter(|(other, _)| *other != shard) {
            put(other, arrived);
        }
        Ok(())
    }
}
