//! Bit generators as one type, and what NumPy keeps beside them.
//!
//! An [`Engine`] is a stream of natural words (32 bits for MT19937, 64 for the others) that can be copied, skipped and
//! read in order. A [`State`] adds the spare half word of the 64-bit engines and the spare deviate of the legacy normal
//! draw. Nothing here interprets a word; see `cursor` for the units that draws read.

use super::cursor::as_half_words;
use super::mt19937::Mt19937;
use super::pcg64::Pcg64;
use super::philox::Philox;
use super::sfc64::Sfc64;

/// A bit generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `PCG64` and `PCG64DXSM`.
    Pcg64(Pcg64),
    /// `Philox`.
    Philox(Philox),
    /// `SFC64`.
    Sfc64(Sfc64),
    /// `MT19937`.
    Mt19937(Box<Mt19937>),
}

/// The upper half of a 64-bit word whose lower half served a 32-bit draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpareHalf {
    /// Whether the next 32-bit draw takes it.
    pub waiting: bool,
    /// Its value, kept after use as NumPy keeps it.
    pub value: u32,
}

/// All that decides what comes next.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The generator proper.
    pub engine: Engine,
    /// Spare half word; never waiting for MT19937.
    pub spare_half: SpareHalf,
    /// Second deviate of the last pair that [`super::Draw::LegacyNormal`] made.
    pub spare_normal: Option<f64>,
}

impl Engine {
    /// Size of a natural word in bytes.
    pub(super) fn word_bytes(&self) -> u64 {
        match self {
            Engine::Mt19937(_) => 4,
            Engine::Pcg64(_) | Engine::Philox(_) | Engine::Sfc64(_) => 8,
        }
    }

    /// Whether any position is reached in a time that hardly grows with the distance.
    pub fn jumps(&self) -> bool {
        match self {
            Engine::Pcg64(_) | Engine::Philox(_) => true,
            Engine::Sfc64(_) | Engine::Mt19937(_) => false,
        }
    }

    /// Moves on by this number of natural words.
    pub fn skip(&mut self, words: u64) {
        match self {
            Engine::Pcg64(generator) => generator.skip(words),
            Engine::Philox(generator) => generator.skip(words),
            Engine::Sfc64(generator) => generator.skip(words),
            Engine::Mt19937(generator) => generator.skip(words),
        }
    }

    /// Writes the next natural words, as they lie in memory one after the other.
    pub(super) fn fill(&mut self, words: &mut [u64]) {
        match self {
            Engine::Pcg64(generator) => generator.fill(words),
            Engine::Philox(generator) => generator.fill(words),
            Engine::Sfc64(generator) => generator.fill(words),
            Engine::Mt19937(generator) => generator.fill(as_half_words(words)),
        }
    }
}

impl State {
    /// Units of `unit_bytes` that the waiting half word serves.
    pub(super) fn spare_units(&self, unit_bytes: u64) -> u64 {
        if self.spare_half.waiting && unit_bytes <= 4 { 4 / unit_bytes } else { 0 }
    }

    /// Natural words that have been read, at least in part, once `units` units of `unit_bytes` are used.
    pub(super) fn words_read(&self, units: u64, unit_bytes: u64) -> u64 {
        let bytes = units.saturating_sub(self.spare_units(unit_bytes)) * unit_bytes;
        bytes.div_ceil(self.engine.word_bytes())
    }

    /// The state once `units` units of `unit_bytes` are used. `near` is the engine at the start of a natural word
    /// `words_before` words from here, before the last word that those units read.
    pub(super) fn after(&self, units: u64, unit_bytes: u64, near: &Engine, words_before: u64) -> State {
        let mut state = self.clone();
        if units == 0 {
            return state;
        }
        let spare = self.spare_units(unit_bytes);
        if unit_bytes <= 4 && spare > 0 {
            state.spare_half.waiting = false;
        }
        let words = self.words_read(units, unit_bytes);
        if words == 0 {
            return state;
        }
        state.engine = near.clone();
        if unit_bytes > 4 || self.engine.word_bytes() == 4 {
            state.engine.skip(words - words_before);
            return state;
        }
        state.engine.skip(words - 1 - words_before);
        let mut last = [0];
        state.engine.fill(&mut last);
        let halves = ((units - spare) * unit_bytes).div_ceil(4);
        state.spare_half = SpareHalf { waiting: halves % 2 == 1, value: (last[0] >> 32) as u32 };
        state
    }
}
