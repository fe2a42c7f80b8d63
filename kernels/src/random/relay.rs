//! Draws that reject, made by several workers in one pass.
//!
//! A worker claims a stretch of the stream and parses it into its own memory at once, although it does not know yet where
//! the first attempt that belongs to it starts, nor how many values came before. When its turn comes, it learns both from
//! the stretch before, parses the one or two attempts until it meets its own parse (or all of it again, if they never
//! meet), passes on where it ends, and copies its values to their place while the next worker takes its turn. Until
//! then it parses further stretches: a worker that lost its processor for a while does not hold up the others.
//! It promises NumPy's values and NumPy's state afterwards for any number of workers and any length of stretch.

#![expect(unsafe_code, reason = "writes into the caller's memory, which may not be initialised")]

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::attempt::{Sampler, Starts, parse, parse_to_meet, room_for};
use super::claims::{Claim, Claims};
use super::cursor::{Cursor, Unit};
use super::engine::State;
use super::fixed::map_all;

/// Stretches that a worker parses ahead of its turn.
const AHEAD: usize = 32;
/// How often a worker that may not parse further ahead looks for its turn before it gives its processor away.
const SPINS: u32 = 200;

/// A draw in the hands of any number of workers.
pub(super) trait Work: Send + Sync {
    /// Takes part until every item of `kept` is written or in the hands of another worker, and the last item of all is made; the
    /// others are made and left out.
    ///
    /// # Safety
    /// `out`, the place of the first item of all, and `kept` are the same in every call; the kept items' places are valid for
    /// writing, aligned for them, and nobody else accesses them until every call has returned.
    unsafe fn work(&self, out: *mut u8, kept: &Range<u64>);

    /// The state afterwards; None until a call of `work` has made the last item.
    fn after(&self) -> Option<State>;
}

/// Where the stretches up to some point end.
#[derive(Clone, Copy)]
struct Link {
    /// Unit at which the next attempt starts.
    unit: u64,
    /// Items made.
    items: u64,
}

/// A stretch parsed before its turn.
struct Parsed<V> {
    claim: Claim,
    values: Vec<V>,
    /// How many of the values are made.
    made: usize,
    starts: Starts,
    /// Unit at which the attempt after the last one starts.
    end: u64,
}

/// See the file's head. An item is `finish` of a value.
pub(super) struct Relay<S: Sampler, T, F> {
    sampler: S,
    finish: F,
    state: State,
    items: u64,
    units_each: u64,
    claims: Claims,
    /// The stretch whose worker may read and replace `link`.
    turn: AtomicU64,
    link: Mutex<Link>,
    /// A value from before the stream's start, until a worker has written the first item from it.
    waiting: Mutex<Option<S::Value>>,
    /// Whether the last item has been made.
    ended: AtomicBool,
    after: Mutex<Option<State>>,
    /// What becomes of a value left over after the last item.
    keep_spare: fn(&mut State, S::Value),
    types: std::marker::PhantomData<fn() -> T>,
}

impl<S: Sampler, T: Copy, F: Fn(S::Value) -> T + Send + Sync> Relay<S, T, F> {
    /// A draw of `items` items from `state`, in stretches of `words_each` 64-bit words; `waiting` is the first item's
    /// value if that is known.
    pub(super) fn new(
        sampler: S,
        finish: F,
        keep_spare: fn(&mut State, S::Value),
        state: State,
        waiting: Option<S::Value>,
        items: u64,
        words_each: u64,
    ) -> Self {
        let engine = state.engine.clone();
        let natural_words = words_each * 8 / engine.word_bytes();
        let made = u64::from(waiting.is_some());
        let ended = made == items;
        Relay {
            sampler,
            finish,
            items,
            units_each: words_each * 8 / S::Unit::BYTES as u64,
            claims: Claims::new(engine, natural_words),
            turn: AtomicU64::new(0),
            link: Mutex::new(Link { unit: 0, items: made }),
            waiting: Mutex::new(waiting),
            ended: AtomicBool::new(ended),
            after: Mutex::new(ended.then(|| state.clone())),
            state,
            keep_spare,
            types: std::marker::PhantomData,
        }
    }

    /// What the stretches before `number` tell, once they have.
    fn link_before(&self, number: u64) -> Option<Link> {
        let turn = self.turn.load(Ordering::Acquire) == number;
        turn.then(|| *self.link.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The cursor at `unit`, inside the claimed stretch.
    fn cursor(&self, claim: &Claim, unit: u64) -> Cursor<S::Unit> {
        Cursor::new(&self.state, &claim.engine, claim.words_before, unit)
    }

    /// The first unit that stretch `number` is to parse.
    fn first_unit(&self, number: u64) -> u64 {
        match number {
            0 => 0,
            _ => self.state.spare_units(S::Unit::BYTES as u64) + number * self.units_each,
        }
    }

    /// Claims and parses the next stretch, into old memory.
    fn parse(&self, mut values: Vec<S::Value>) -> Parsed<S::Value> {
        let claim = self.claims.next();
        let end = self.first_unit(claim.number + 1);
        let mut cursor = self.cursor(&claim, self.first_unit(claim.number));
        values.resize(room_for::<S>(self.first_unit(1) as usize), S::Value::default());
        let (made, starts) = parse(&self.sampler, &mut cursor, end, &mut values);
        Parsed { claim, values, made, starts, end: cursor.position() }
    }

    /// Joins a parsed stretch to those before it, lets the next one have its turn, and writes its items.
    ///
    /// # Safety
    /// As for [`Work::work`].
    unsafe fn settle(&self, parsed: &Parsed<S::Value>, link: Link, out: *mut u8, kept: &Range<u64>) {
        let claim = &parsed.claim;
        let end = self.first_unit(claim.number + 1);
        let mut head = Vec::new();
        let mut tail = 0..0;
        let mut next = link;
        if link.unit < end {
            if parsed.starts.values_before(link.unit).is_none() {
                let mut cursor = self.cursor(claim, link.unit);
                head = parse_to_meet(&self.sampler, &mut cursor, end, &parsed.starts);
                next.unit = cursor.position();
            }
            if let Some(before) = parsed.starts.values_before(next.unit) {
                tail = before..parsed.made;
                next.unit = parsed.end;
            }
        }
        next.items += (head.len() + tail.len()) as u64;
        if next.items >= self.items {
            self.end(claim, link, self.items - link.items);
            self.ended.store(true, Ordering::Release);
        } else {
            *self.link.lock().unwrap_or_else(PoisonError::into_inner) = next;
            self.turn.store(claim.number + 1, Ordering::Release);
        }
        let wanted = (next.items.min(self.items) - link.items) as usize;
        let head = &head[..head.len().min(wanted)];
        let tail = &parsed.values[tail.start..][..wanted - head.len()];
        // SAFETY: the caller's promise; the items from `link` to `next` are this stretch's alone.
        unsafe {
            self.copy(head, out, link.items, kept);
            self.copy(tail, out, link.items + head.len() as u64, kept);
        }
    }

    /// Finds the state after the last item: `wanted` more items from `link`, the last of them in the claimed stretch.
    fn end(&self, claim: &Claim, link: Link, wanted: u64) {
        let mut cursor = self.cursor(claim, link.unit);
        let mut values = vec![S::Value::default(); S::VALUES];
        let mut left = wanted as usize;
        let spare = loop {
            let made = self.sampler.attempt(&mut cursor, &mut values);
            if made >= left {
                break (made > left).then(|| values[left]);
            }
            left -= made;
        };
        let mut after = self.state.after(cursor.position(), S::Unit::BYTES as u64, &claim.engine, claim.words_before);
        if let Some(value) = spare {
            (self.keep_spare)(&mut after, value);
        }
        *self.after.lock().unwrap_or_else(PoisonError::into_inner) = Some(after);
    }

    /// Writes those items of `kept` that are made from the values, the first of which makes item `place`.
    ///
    /// # Safety
    /// As for [`Work::work`], and no other worker writes these items.
    unsafe fn copy(&self, values: &[S::Value], out: *mut u8, place: u64, kept: &Range<u64>) {
        let end = place + values.len() as u64;
        let wanted = kept.start.clamp(place, end)..kept.end.clamp(place, end);
        if wanted.is_empty() {
            return;
        }
        let values = &values[(wanted.start - place) as usize..(wanted.end - place) as usize];
        let place = wanted.start;
        // SAFETY: the caller's promise; MaybeUninit takes memory in any state.
        let items =
            unsafe { std::slice::from_raw_parts_mut(out.cast::<MaybeUninit<T>>().add(place as usize), values.len()) };
        map_all(&self.finish, values, items);
    }
}

impl<S: Sampler, T: Copy, F: Fn(S::Value) -> T + Send + Sync> Work for Relay<S, T, F> {
    unsafe fn work(&self, out: *mut u8, kept: &Range<u64>) {
        if let Some(value) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // SAFETY: `work`'s promise; no stretch makes the first item.
            unsafe { self.copy(&[value], out, 0, kept) };
        }
        let mut parsed = VecDeque::new();
        let mut spare = Vec::new();
        let mut spins = 0;
        while !self.ended.load(Ordering::Acquire) {
            let first = parsed.front().map(|first: &Parsed<S::Value>| first.claim.number);
            if let Some(link) = first.and_then(|number| self.link_before(number)) {
                let first = parsed.pop_front().expect("it was there");
                // SAFETY: `work`'s promise.
                unsafe { self.settle(&first, link, out, kept) };
                spare.push(first.values);
                spins = 0;
            } else if parsed.len() < AHEAD {
                parsed.push_back(self.parse(spare.pop().unwrap_or_default()));
            } else {
                spins += 1;
                if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
        }
    }

    fn after(&self) -> Option<State> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
