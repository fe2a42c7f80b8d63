//! MT19937, the Mersenne twister (Matsumoto and Nishimura, 1998), as NumPy's `MT19937` and the legacy `RandomState`.
//!
//! Its natural word has 32 bits; positions count those. A position is reached by twisting through the blocks before it
//! (about 0.1 ns a word with AVX-512), so several workers take turns at a shared state: see `relay`.
//! It promises NumPy's words and NumPy's lazy state: a block is twisted when its first word is asked for.

use super::level::at_best_level;

/// Words of the state.
pub const WORDS: usize = 624;
/// Distance to the word that a twist mixes in.
const MIDDLE: usize = 397;
const UPPER_BIT: u32 = 0x8000_0000;
const LOWER_BITS: u32 = 0x7FFF_FFFF;
const TWIST: u32 = 0x9908_B0DF;

/// The generator's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mt19937 {
    /// The block of untempered words.
    pub key: [u32; WORDS],
    /// Words of the block already used.
    pub used: usize,
}

impl Mt19937 {
    /// Moves on by `words` 32-bit words.
    pub fn skip(&mut self, words: u64) {
        let left = (WORDS - self.used) as u64;
        if words <= left {
            self.used += words as usize;
            return;
        }
        let blocks = (words - left).div_ceil(WORDS as u64);
        for _ in 0..blocks {
            at_best_level(
                #[inline(always)]
                || twist(&mut self.key),
            );
        }
        self.used = (words - left - (blocks - 1) * WORDS as u64) as usize;
    }

    /// Writes the next 32-bit words.
    pub fn fill(&mut self, mut words: &mut [u32]) {
        while !words.is_empty() {
            if self.used == WORDS {
                at_best_level(
                    #[inline(always)]
                    || twist(&mut self.key),
                );
                self.used = 0;
            }
            let (now, later) = words.split_at_mut(words.len().min(WORDS - self.used));
            let raw = &self.key[self.used..self.used + now.len()];
            at_best_level(
                #[inline(always)]
                || temper(raw, now),
            );
            self.used += now.len();
            words = later;
        }
    }
}

/// The next value of a word from it, its successor and the word `MIDDLE` further on.
#[inline(always)]
fn twisted(word: u32, next: u32, middle: u32) -> u32 {
    let joined = (word & UPPER_BIT) | (next & LOWER_BITS);
    middle ^ (joined >> 1) ^ ((joined & 1).wrapping_neg() & TWIST)
}

/// Replaces the block by the next one.
#[inline(always)]
fn twist(key: &mut [u32; WORDS]) {
    // Three stretches, each reading words that the one before it made: every loop is free of dependences.
    const FIRST: usize = WORDS - MIDDLE;
    const LAST: usize = WORDS - 2 * FIRST - 1;
    let old = *key;
    let (first, rest) = key.split_at_mut(FIRST);
    let (second, third) = rest.split_at_mut(FIRST);
    for at in 0..FIRST {
        first[at] = twisted(old[at], old[at + 1], old[at + MIDDLE]);
    }
    for at in 0..FIRST {
        second[at] = twisted(old[FIRST + at], old[FIRST + at + 1], first[at]);
    }
    for at in 0..LAST {
        third[at] = twisted(old[2 * FIRST + at], old[2 * FIRST + at + 1], second[at]);
    }
    third[LAST] = twisted(old[WORDS - 1], first[0], second[LAST]);
}

/// Writes the tempered form of `raw`.
#[inline(always)]
fn temper(raw: &[u32], words: &mut [u32]) {
    for (word, &value) in words.iter_mut().zip(raw) {
        let mut value = value;
        value ^= value >> 11;
        value ^= (value << 7) & 0x9D2C_5680;
        value ^= (value << 15) & 0xEFC6_0000;
        *word = value ^ (value >> 18);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_of_the_reference_seed() {
        // init_genrand(5489), the default of the reference implementation; its 10000th word is in the C++ standard.
        let mut key = [5489u32; WORDS];
        for at in 1..WORDS {
            key[at] = 1_812_433_253u32.wrapping_mul(key[at - 1] ^ (key[at - 1] >> 30)).wrapping_add(at as u32);
        }
        let start = Mt19937 { key, used: WORDS };
        let mut words = vec![0; 10_000];
        let mut generator = start;
        generator.fill(&mut words);
        assert_eq!((words[0], words[9_999]), (3_499_211_612, 4_123_659_995));
        let mut skipped = start;
        skipped.skip(10_000);
        assert_eq!(generator, skipped);
    }
}
