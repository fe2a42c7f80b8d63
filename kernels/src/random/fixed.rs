//! Draws that take a fixed part of the stream for each item: uniform ones, inversions, and integers that never reject.
//!
//! Item `i` is a function of its own units, so any range of items is filled by itself. Writes exactly the items asked for.

#![expect(unsafe_code, reason = "writes into the caller's memory, which may not be initialised")]

use std::any::Any;
use std::mem::MaybeUninit;

use super::cursor::{Cursor, Unit};
use super::engine::{Engine, State};
use super::level::at_best_level;

/// 2^-53, the weight of a double's last bit in [0.5, 1).
const ULP_DOUBLE: f64 = 1.0 / 9_007_199_254_740_992.0;
/// 2^-24, the weight of a single's last bit in [0.5, 1).
const ULP_SINGLE: f32 = 1.0 / 16_777_216.0;

/// How a 64-bit unit becomes a double in [0, 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubles {
    /// Its upper 53 bits.
    Upper53,
    /// The upper 27 bits of its upper half, then the upper 26 bits of its lower half (MT19937).
    Halves,
}

impl Doubles {
    /// The rule of this engine.
    pub(super) fn of_engine(engine: &Engine) -> Doubles {
        match engine {
            Engine::Mt19937(_) => Doubles::Halves,
            Engine::Pcg64(_) | Engine::Philox(_) | Engine::Sfc64(_) => Doubles::Upper53,
        }
    }

    /// The double of one unit.
    #[inline(always)]
    pub(super) fn of(self, unit: u64) -> f64 {
        match self {
            Doubles::Upper53 => upper53(unit),
            Doubles::Halves => halves(unit),
        }
    }
}

#[inline(always)]
pub(super) fn upper53(unit: u64) -> f64 {
    (unit >> 11) as f64 * ULP_DOUBLE
}

#[inline(always)]
pub(super) fn halves(unit: u64) -> f64 {
    ((unit >> 37 << 26) | (unit as u32 >> 6) as u64) as f64 * ULP_DOUBLE
}

/// The single in [0, 1) of one 32-bit unit.
#[inline(always)]
pub(super) fn upper24(unit: u32) -> f32 {
    (unit >> 8) as f32 * ULP_SINGLE
}

/// A draw of fixed consumption.
pub(super) trait Fixed: Send + Sync {
    /// Size of a unit in bytes.
    fn unit_bytes(&self) -> u64;

    /// Items that one unit serves.
    fn items_each_unit(&self) -> u64;

    /// Units that the first `items` items take.
    fn units(&self, items: u64) -> u64 {
        items.div_ceil(self.items_each_unit())
    }

    /// A reader at `item`. `near` is the engine `words_before` natural words from `state`, not behind the item's unit.
    fn reader(&self, state: &State, near: &Engine, words_before: u64, item: u64) -> Box<dyn Any>;

    /// Writes the next `count` items one after the other from `out`; `reader` is one of this draw's.
    ///
    /// # Safety
    /// `out` is valid for writing that many items, aligned for them, and nobody else accesses them meanwhile.
    unsafe fn fill(&self, reader: &mut dyn Any, count: usize, out: *mut u8);
}

/// What `Fixed::fill` was given, as the reader that `Fixed::reader` made.
fn own<R: 'static>(reader: &mut dyn Any) -> &mut R {
    reader.downcast_mut().expect("a reader is used by the draw that made it")
}

/// One item a unit: `item = map(unit)`.
pub(super) struct EachUnit<U, T, F> {
    map: F,
    types: std::marker::PhantomData<fn(U) -> T>,
}

impl<U, T, F: Fn(U) -> T> EachUnit<U, T, F> {
    /// A draw that gives `map` of every unit.
    pub(super) fn new(map: F) -> Self {
        EachUnit { map, types: std::marker::PhantomData }
    }
}

impl<U: Unit, T: Copy, F: Fn(U) -> T + Send + Sync> Fixed for EachUnit<U, T, F> {
    fn unit_bytes(&self) -> u64 {
        U::BYTES as u64
    }

    fn items_each_unit(&self) -> u64 {
        1
    }

    fn reader(&self, state: &State, near: &Engine, words_before: u64, item: u64) -> Box<dyn Any> {
        Box::new(Cursor::<U>::new(state, near, words_before, item))
    }

    unsafe fn fill(&self, reader: &mut dyn Any, count: usize, out: *mut u8) {
        let cursor = own::<Cursor<U>>(reader);
        // SAFETY: the caller's promise; MaybeUninit takes memory in any state.
        let mut out = unsafe { std::slice::from_raw_parts_mut(out.cast::<MaybeUninit<T>>(), count) };
        while !out.is_empty() {
            let units = cursor.ahead(out.len() as u64);
            let now = units.len().min(out.len());
            let (items, later) = out.split_at_mut(now);
            map_all(&self.map, &units[..now], items);
            cursor.advance(now);
            out = later;
        }
    }
}

/// `items[i] = map(values[i])`.
pub(super) fn map_all<U: Copy, T: Copy, F: Fn(U) -> T>(map: &F, values: &[U], items: &mut [MaybeUninit<T>]) {
    at_best_level(
        #[inline(always)]
        || {
            for (item, &value) in items.iter_mut().zip(values) {
                item.write(map(value));
            }
        },
    );
}

/// Booleans: one bit an item, lowest first, from 32-bit words that are thrown away at the end.
pub(super) struct Bits;

impl Fixed for Bits {
    fn unit_bytes(&self) -> u64 {
        4
    }

    fn items_each_unit(&self) -> u64 {
        32
    }

    fn reader(&self, state: &State, near: &Engine, words_before: u64, item: u64) -> Box<dyn Any> {
        let mut reader = BitReader { cursor: Cursor::new(state, near, words_before, item / 32), word: 0, left: 0 };
        let used = item % 32;
        if used > 0 {
            reader.word = reader.cursor.next() >> used;
            reader.left = 32 - used as usize;
        }
        Box::new(reader)
    }

    unsafe fn fill(&self, reader: &mut dyn Any, count: usize, out: *mut u8) {
        let reader = own::<BitReader>(reader);
        // SAFETY: the caller's promise; MaybeUninit takes memory in any state.
        let mut out = unsafe { std::slice::from_raw_parts_mut(out.cast::<MaybeUninit<u8>>(), count) };
        while !out.is_empty() {
            if reader.left == 0 {
                reader.word = reader.cursor.next();
                reader.left = 32;
            }
            let (items, later) = out.split_at_mut(out.len().min(reader.left));
            for (place, item) in items.iter_mut().enumerate() {
                item.write(((reader.word >> place) & 1) as u8);
            }
            reader.left -= items.len();
            reader.word = reader.word.checked_shr(items.len() as u32).unwrap_or(0);
            out = later;
        }
    }
}

/// A position within a 32-bit word.
struct BitReader {
    cursor: Cursor<u32>,
    /// The word's bits that are left, lowest first.
    word: u32,
    /// How many those are.
    left: usize,
}
