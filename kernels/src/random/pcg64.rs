//! PCG64: a 128-bit linear congruential generator with an output permutation, as NumPy's `PCG64` and `PCG64DXSM`.
//!
//! Words come in order from any position: [`Pcg64::skip`] takes a logarithmic number of steps, and [`Pcg64::fill`] runs
//! several lanes at once, each jumping over the words of the others. It promises NumPy's words exactly; it knows
//! nothing of the spare half word that NumPy keeps beside the generator.

#![expect(unsafe_code, reason = "AVX-512 intrinsics, reached only where the machine has them")]

use super::level::Level;

/// Multiplier of the generator under `PCG64` (O'Neill 2014).
const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;
/// The "cheap" 64-bit multiplier of `PCG64DXSM`, also used by its output permutation.
const CHEAP_MULTIPLIER: u64 = 0xDA94_2042_E4DD_58B5;
/// Lanes of the portable loop: enough to hide the latency of a 128-bit product.
const PORTABLE_LANES: usize = 4;

/// Output permutation, and with it the multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permutation {
    /// `PCG64`: step, then xor of the halves rotated by the top six bits.
    XslRr,
    /// `PCG64DXSM`: double xorshift multiply of the state before the step.
    Dxsm,
}

/// The generator's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcg64 {
    /// The 128-bit state.
    pub state: u128,
    /// The stream's increment (odd).
    pub increment: u128,
    /// Which of the two generators.
    pub permutation: Permutation,
}

/// `state -> state * multiplier + addend`: some number of steps as one.
#[derive(Clone, Copy)]
struct Stride {
    multiplier: u128,
    addend: u128,
}

impl Stride {
    /// This stride followed by `next`.
    fn then(self, next: Stride) -> Stride {
        Stride {
            multiplier: self.multiplier.wrapping_mul(next.multiplier),
            addend: self.addend.wrapping_mul(next.multiplier).wrapping_add(next.addend),
        }
    }

    #[inline(always)]
    fn apply(self, state: u128) -> u128 {
        state.wrapping_mul(self.multiplier).wrapping_add(self.addend)
    }
}

impl Pcg64 {
    /// `steps` steps as one, by repeated squaring.
    fn stride(&self, mut steps: u128) -> Stride {
        let multiplier = match self.permutation {
            Permutation::XslRr => MULTIPLIER,
            Permutation::Dxsm => u128::from(CHEAP_MULTIPLIER),
        };
        let mut power = Stride { multiplier, addend: self.increment };
        let mut total = Stride { multiplier: 1, addend: 0 };
        while steps > 0 {
            if steps & 1 == 1 {
                total = total.then(power);
            }
            power = power.then(power);
            steps >>= 1;
        }
        total
    }

    /// Moves on by `words` words.
    pub fn skip(&mut self, words: u64) {
        self.state = self.stride(u128::from(words)).apply(self.state);
    }

    /// Writes the next words.
    pub fn fill(&mut self, words: &mut [u64]) {
        match (self.permutation, Level::detected()) {
            #[cfg(target_arch = "x86_64")]
            (Permutation::XslRr, Level::Avx512) => {
                // SAFETY: the level says that the machine has the features.
                let done = unsafe { self.fill_avx512(words) };
                self.fill_lanes::<1>(&mut words[done..], xsl_rr);
            }
            (Permutation::XslRr, _) => self.fill_lanes::<PORTABLE_LANES>(words, xsl_rr),
            (Permutation::Dxsm, _) => {
                // This permutation reads the state before the step, so the lanes start one step earlier.
                let one = self.stride(1);
                let mut chunks = words.chunks_exact_mut(PORTABLE_LANES);
                let stride = self.stride(PORTABLE_LANES as u128);
                let mut lanes = [self.state; PORTABLE_LANES];
                for lane in 1..PORTABLE_LANES {
                    lanes[lane] = one.apply(lanes[lane - 1]);
                }
                for chunk in &mut chunks {
                    for (word, lane) in chunk.iter_mut().zip(&mut lanes) {
                        *word = dxsm(*lane);
                        *lane = stride.apply(*lane);
                    }
                }
                self.state = lanes[0];
                for word in chunks.into_remainder() {
                    *word = dxsm(self.state);
                    self.state = one.apply(self.state);
                }
            }
        }
    }

    /// Writes all words with `LANES` interleaved lanes; `output` reads a state after its step.
    #[inline(always)]
    fn fill_lanes<const LANES: usize>(&mut self, words: &mut [u64], output: impl Fn(u128) -> u64) {
        let one = self.stride(1);
        let stride = self.stride(LANES as u128);
        let mut chunks = words.chunks_exact_mut(LANES);
        let mut lanes = [one.apply(self.state); LANES];
        for lane in 1..LANES {
            lanes[lane] = one.apply(lanes[lane - 1]);
        }
        for chunk in &mut chunks {
            self.state = lanes[LANES - 1];
            for (word, lane) in chunk.iter_mut().zip(&mut lanes) {
                *word = output(*lane);
                *lane = stride.apply(*lane);
            }
        }
        for word in chunks.into_remainder() {
            self.state = one.apply(self.state);
            *word = output(self.state);
        }
    }

    /// Writes as many words as fill whole groups of 16 lanes, and returns their number.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn fill_avx512(&mut self, words: &mut [u64]) -> usize {
        use std::arch::x86_64::*;
        const LANES: usize = 16;
        let groups = words.len() / LANES;
        if groups == 0 {
            return 0;
        }
        let one = self.stride(1);
        let stride = self.stride(LANES as u128);
        let mut states = [0u128; LANES];
        let mut state = self.state;
        for lane in &mut states {
            state = one.apply(state);
            *lane = state;
        }
        let half = |first: usize, shift: u32| {
            let mut halves = [0u64; 8];
            for (part, lane) in halves.iter_mut().zip(&states[first..first + 8]) {
                *part = (lane >> shift) as u64;
            }
            // SAFETY: `halves` is 64 readable bytes.
            unsafe { _mm512_loadu_si512(halves.as_ptr().cast()) }
        };
        let mut low = [half(0, 0), half(8, 0)];
        let mut high = [half(0, 64), half(8, 64)];
        let word = |value: u64| _mm512_set1_epi64(value.cast_signed());
        let multiplier_low = word(stride.multiplier as u64);
        let multiplier_low_upper = word(u64::from((stride.multiplier >> 32) as u32));
        let multiplier_high = word((stride.multiplier >> 64) as u64);
        let addend_low = word(stride.addend as u64);
        let addend_high = word((stride.addend >> 64) as u64);
        let lower_half = word(0xFFFF_FFFF);
        let one_word = word(1);
        for group in words.chunks_exact_mut(LANES) {
            for part in 0..2 {
                let (l, h) = (low[part], high[part]);
                let folded = _mm512_rorv_epi64(_mm512_xor_si512(h, l), _mm512_srli_epi64::<58>(h));
                // SAFETY: the group has 16 words, and part is 0 or 1.
                unsafe { _mm512_storeu_si512(group.as_mut_ptr().add(8 * part).cast(), folded) };
                // The low 64 x 64 -> 128 product from four 32-bit ones, schoolbook.
                let l_upper = _mm512_srli_epi64::<32>(l);
                let p00 = _mm512_mul_epu32(l, multiplier_low);
                let p10 = _mm512_mul_epu32(l_upper, multiplier_low);
                let p01 = _mm512_mul_epu32(l, multiplier_low_upper);
                let p11 = _mm512_mul_epu32(l_upper, multiplier_low_upper);
                let middle = _mm512_add_epi64(_mm512_srli_epi64::<32>(p00), p10);
                let carried = _mm512_add_epi64(_mm512_and_si512(middle, lower_half), p01);
                let product_low = _mm512_mask_blend_epi32(0x5555, _mm512_slli_epi64::<32>(carried), p00);
                let product_high = _mm512_add_epi64(
                    _mm512_add_epi64(p11, _mm512_srli_epi64::<32>(middle)),
                    _mm512_srli_epi64::<32>(carried),
                );
                let cross =
                    _mm512_add_epi64(_mm512_mullo_epi64(l, multiplier_high), _mm512_mullo_epi64(h, multiplier_low));
                let sum_low = _mm512_add_epi64(product_low, addend_low);
                let carry = _mm512_cmplt_epu64_mask(sum_low, addend_low);
                let sum_high = _mm512_add_epi64(_mm512_add_epi64(product_high, cross), addend_high);
                low[part] = sum_low;
                high[part] = _mm512_mask_add_epi64(sum_high, carry, sum_high, one_word);
            }
        }
        self.state = self.stride((groups * LANES) as u128).apply(self.state);
        groups * LANES
    }
}

#[inline(always)]
fn xsl_rr(state: u128) -> u64 {
    (((state >> 64) as u64) ^ (state as u64)).rotate_right((state >> 122) as u32)
}

#[inline(always)]
fn dxsm(state: u128) -> u64 {
    let mut high = (state >> 64) as u64;
    high ^= high >> 32;
    high = high.wrapping_mul(CHEAP_MULTIPLIER);
    high ^= high >> 48;
    high.wrapping_mul(state as u64 | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_do_not_depend_on_how_they_are_asked_for() {
        for permutation in [Permutation::XslRr, Permutation::Dxsm] {
            let start = Pcg64 { state: 0x1234_5678_9ABC_DEF0 << 40, increment: 0xDEAD_BEEF << 70 | 1, permutation };
            let mut whole = [0; 200];
            start.clone().fill(&mut whole);
            for cut in [0, 1, 3, 15, 16, 17, 64, 199] {
                let mut pieces = [0; 200];
                let mut generator = start;
                generator.fill(&mut pieces[..cut]);
                let mut skipped = start;
                skipped.skip(cut as u64);
                assert_eq!(generator, skipped, "{permutation:?} after {cut}");
                generator.fill(&mut pieces[cut..]);
                assert_eq!(pieces, whole, "{permutation:?} cut at {cut}");
            }
        }
    }
}
