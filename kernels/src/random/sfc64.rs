//! SFC64: Chris Doty-Humphrey's small fast chaotic generator, as NumPy's `SFC64`.
//!
//! It has no jump: a position is reached by going through all words before it.

/// The generator's state: three chaotic words and a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sfc64(pub [u64; 4]);

impl Sfc64 {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        let [a, b, c, counter] = self.0;
        let word = a.wrapping_add(b).wrapping_add(counter);
        self.0 = [b ^ (b >> 11), c.wrapping_add(c << 3), c.rotate_left(24).wrapping_add(word), counter.wrapping_add(1)];
        word
    }

    /// Moves on by `words` words.
    pub fn skip(&mut self, words: u64) {
        for _ in 0..words {
            self.next();
        }
    }

    /// Writes the next words.
    pub fn fill(&mut self, words: &mut [u64]) {
        for word in words {
            *word = self.next();
        }
    }
}
