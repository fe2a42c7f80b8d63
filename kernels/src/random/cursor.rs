//! A reading position in a bit generator's stream, in units of the size that a draw takes.
//!
//! NumPy cuts 64-bit words into 32-bit ones low half first, and 32-bit words into 16- and 8-bit ones low part first; so on
//! a little-endian machine the units of every draw are the stream's bytes, read at the unit's size. The one exception is
//! MT19937's 64-bit word, which takes its upper half first. A cursor buffers a block of words, so that draws run over
//! slices. It promises NumPy's units from any position; it does not know what a unit is for.

#![expect(unsafe_code, reason = "reading a buffer of 64-bit words at a smaller unit")]

use super::engine::{Engine, State};

#[cfg(target_endian = "big")]
compile_error!("units of a random stream are read from words in little-endian order");

/// Words fetched at a time: 8 KB, a small part of L1.
const BLOCK_WORDS: usize = 1024;
/// Room before the block for units left over from the previous one.
const CARRY_WORDS: usize = 8;
/// A cursor asked to look ahead shows at least this many units.
pub(super) const LOOK_AHEAD: usize = 8;

/// An unsigned integer that draws consume.
///
/// # Safety
/// Any bit pattern is a value, the size divides 8, and `BYTES` is the size.
pub(super) unsafe trait Unit: Copy + Send + Sync + Into<u64> + 'static {
    /// Size in bytes.
    const BYTES: usize = size_of::<Self>();
}

// SAFETY: a primitive integer of this size.
unsafe impl Unit for u8 {}
// SAFETY: a primitive integer of this size.
unsafe impl Unit for u16 {}
// SAFETY: a primitive integer of this size.
unsafe impl Unit for u32 {}
// SAFETY: a primitive integer of this size.
unsafe impl Unit for u64 {}

/// The same memory as 32-bit words.
pub(super) fn as_half_words(words: &mut [u64]) -> &mut [u32] {
    // SAFETY: a u64 is two u32 of no stricter alignment, and both take any bit pattern.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 2 * words.len()) }
}

fn as_units<U: Unit>(words: &[u64]) -> &[U] {
    // SAFETY: `Unit` promises that a u64 is a whole number of units and that any bit pattern is one.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * (8 / U::BYTES)) }
}

fn as_units_mut<U: Unit>(words: &mut [u64]) -> &mut [U] {
    // SAFETY: as in `as_units`; and any unit is a valid part of a u64.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * (8 / U::BYTES)) }
}

#[repr(align(64))]
struct Block([u64; CARRY_WORDS + BLOCK_WORDS]);

/// Where a draw reads.
pub(super) struct Cursor<U> {
    engine: Engine,
    /// Whether a 64-bit unit is two 32-bit words, first word upper.
    joins_upper_first: bool,
    block: Box<Block>,
    /// The unit at `position`, counted from the start of the block's memory.
    at: usize,
    /// One past the last unit in the block.
    end: usize,
    /// Units since the draw began.
    position: u64,
    unit: std::marker::PhantomData<U>,
}

impl<U: Unit> Cursor<U> {
    /// Units of one 64-bit word of memory.
    const PER_WORD: usize = 8 / U::BYTES;
    /// Where fetched words begin.
    const BLOCK_START: usize = CARRY_WORDS * Self::PER_WORD;

    /// A cursor at `position` units from `state`. `near` is the engine at the natural word that holds that unit or at
    /// one before it, `words_before` words from `state`, at an even distance for 32-bit words under larger units.
    pub(super) fn new(state: &State, near: &Engine, words_before: u64, position: u64) -> Self {
        let mut cursor = Cursor {
            engine: near.clone(),
            joins_upper_first: near.word_bytes() == 4 && U::BYTES == 8,
            block: Box::new(Block([0; CARRY_WORDS + BLOCK_WORDS])),
            at: Self::BLOCK_START,
            end: Self::BLOCK_START,
            position,
            unit: std::marker::PhantomData,
        };
        let spare = state.spare_units(U::BYTES as u64);
        if position < spare {
            let place = Self::BLOCK_START - spare as usize;
            let half_words = as_half_words(&mut cursor.block.0);
            half_words[2 * CARRY_WORDS - 1] = state.spare_half.value;
            cursor.at = place + position as usize;
            return cursor;
        }
        let bytes = (position - spare) * U::BYTES as u64 - words_before * near.word_bytes();
        cursor.engine.skip(bytes / near.word_bytes());
        let within = (bytes % near.word_bytes()) as usize / U::BYTES;
        if within > 0 {
            cursor.fetch(1);
            cursor.at += within;
        }
        cursor
    }

    /// Units since the draw began.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Reads `words` 64-bit words of memory behind what is left of the block (fewer than `LOOK_AHEAD` units).
    fn fetch(&mut self, words: usize) {
        let left = self.end - self.at;
        let units = as_units_mut::<U>(&mut self.block.0);
        units.copy_within(self.at..self.end, Self::BLOCK_START - left);
        self.at = Self::BLOCK_START - left;
        let fresh = &mut self.block.0[CARRY_WORDS..CARRY_WORDS + words];
        self.engine.fill(fresh);
        if self.joins_upper_first {
            for word in fresh {
                *word = word.rotate_left(32);
            }
        }
        self.end = Self::BLOCK_START + words * Self::PER_WORD;
    }

    /// At least `LOOK_AHEAD` units from here on; more when about `wanted` will be used.
    #[inline]
    pub(super) fn ahead(&mut self, wanted: u64) -> &[U] {
        if self.end - self.at < LOOK_AHEAD {
            let words =
                (wanted.min(8 * BLOCK_WORDS as u64) as usize).div_ceil(Self::PER_WORD).clamp(LOOK_AHEAD, BLOCK_WORDS);
            self.fetch(words);
        }
        &as_units::<U>(&self.block.0)[self.at..self.end]
    }

    /// Moves on by units that `ahead` showed.
    #[inline]
    pub(super) fn advance(&mut self, units: usize) {
        debug_assert!(self.at + units <= self.end);
        self.at += units;
        self.position += units as u64;
    }

    /// The next unit.
    #[inline]
    pub(super) fn next(&mut self) -> U {
        if self.at == self.end {
            self.fetch(LOOK_AHEAD);
        }
        let unit = as_units::<U>(&self.block.0)[self.at];
        self.advance(1);
        unit
    }
}
