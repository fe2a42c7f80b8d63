//! Philox 4x64-10: a counter-based generator (Salmon et al., SC'11), as NumPy's `Philox`.
//!
//! Four words a counter value, so any position is one addition away. It promises NumPy's words and, after any number of
//! them, NumPy's state: the counter is that of the block in the buffer.

/// Words of one block.
const BLOCK: usize = 4;
const ROUNDS: usize = 10;
const MULTIPLIERS: [u64; 2] = [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157];
/// Added to the key each round (golden ratio, square root of three less one).
const WEYL: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];

/// The generator's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    /// Counter of the block in the buffer, least significant word first.
    pub counter: [u64; 4],
    /// The key.
    pub key: [u64; 2],
    /// The block.
    pub buffer: [u64; BLOCK],
    /// Words of the block already used.
    pub used: usize,
}

impl Philox {
    fn add_blocks(&mut self, blocks: u64) {
        let mut carry = blocks;
        for word in &mut self.counter {
            let (sum, overflow) = word.overflowing_add(carry);
            *word = sum;
            carry = u64::from(overflow);
        }
    }

    fn block(&self) -> [u64; BLOCK] {
        let mut value = self.counter;
        let mut key = self.key;
        for round in 0..ROUNDS {
            if round > 0 {
                key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
            }
            let first = u128::from(MULTIPLIERS[0]) * u128::from(value[0]);
            let second = u128::from(MULTIPLIERS[1]) * u128::from(value[2]);
            value = [
                (second >> 64) as u64 ^ value[1] ^ key[0],
                second as u64,
                (first >> 64) as u64 ^ value[3] ^ key[1],
                first as u64,
            ];
        }
        value
    }

    /// Moves on by `words` words.
    pub fn skip(&mut self, words: u64) {
        let left = (BLOCK - self.used) as u64;
        if words <= left {
            self.used += words as usize;
            return;
        }
        let blocks = (words - left).div_ceil(BLOCK as u64);
        self.add_blocks(blocks);
        self.buffer = self.block();
        self.used = (words - left - (blocks - 1) * BLOCK as u64) as usize;
    }

    /// Writes the next words.
    pub fn fill(&mut self, words: &mut [u64]) {
        let head = words.len().min(BLOCK - self.used);
        let (first, rest) = words.split_at_mut(head);
        first.copy_from_slice(&self.buffer[self.used..self.used + head]);
        self.used += head;
        for chunk in rest.chunks_mut(BLOCK) {
            self.add_blocks(1);
            self.buffer = self.block();
            self.used = chunk.len();
            chunk.copy_from_slice(&self.buffer[..self.used]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_equals_filling() {
        let start = Philox { counter: [u64::MAX - 3, u64::MAX, 0, 0], key: [5, 6], buffer: [1, 2, 3, 4], used: 2 };
        for count in 0..30 {
            let mut filled = start;
            filled.fill(&mut vec![0; count]);
            let mut skipped = start;
            skipped.skip(count as u64);
            assert_eq!(filled, skipped, "{count} words");
        }
    }
}
