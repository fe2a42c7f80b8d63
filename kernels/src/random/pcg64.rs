//! PCG64: a 128-bit linear congruential generator with an output permutation, as NumPy's `PCG64` and `PCG64DXSM`.
//!
//! Words come in order from any position: [`Pcg64::skip`] takes a logarithmic number of steps, and [`Pcg64::fill`] runs
//! several lanes at once, each jumping over the words of the others. It promises NumPy's words exactly; it knows
//! nothing of the spare half word that NumPy keeps beside the generator.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "AVX-512 intrinsics"))]

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

/// A stride for the increment 1; the addend of another increment is that many times this one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct UnitStride(Stride);

#[cfg(target_arch = "x86_64")]
impl UnitStride {
    /// `steps` steps of a generator with this multiplier.
    const fn steps(multiplier: u128, steps: usize) -> UnitStride {
        let mut total = Stride { multiplier: 1, addend: 0 };
        let mut step = 0;
        while step < steps {
            total.addend = total.addend.wrapping_mul(multiplier).wrapping_add(1);
            total.multiplier = total.multiplier.wrapping_mul(multiplier);
            step += 1;
        }
        UnitStride(total)
    }

    #[inline(always)]
    const fn with(&self, increment: u128) -> Stride {
        Stride { multiplier: self.0.multiplier, addend: self.0.addend.wrapping_mul(increment) }
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
            (Permutation::XslRr, Level::Avx512) if wide::available() => {
                // SAFETY: both say that the machine has the features.
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

    /// Writes as many words as fill whole groups of lanes, and returns their number.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
    fn fill_avx512(&mut self, words: &mut [u64]) -> usize {
        use std::arch::x86_64::*;
        const GROUP: usize = wide::PARTS * wide::LANES;
        let groups = words.len() / GROUP;
        if groups == 0 {
            return 0;
        }
        let mut first = [0u128; wide::LANES];
        for (lane, jump) in first.iter_mut().zip(&wide::FIRST) {
            *lane = jump.with(self.increment).apply(self.state);
        }
        let mut parts = [wide::Part::new(&first); wide::PARTS];
        let part_stride = wide::Jump::new(&wide::PART_JUMP.with(self.increment));
        for part in 1..wide::PARTS {
            parts[part] = part_stride.apply(parts[part - 1]);
        }
        let group_stride = wide::Jump::new(&wide::GROUP_JUMP.with(self.increment));
        let mut last = parts[wide::PARTS - 1];
        for group in words.chunks_exact_mut(GROUP) {
            last = parts[wide::PARTS - 1];
            for (part, eight) in parts.iter_mut().zip(group.as_chunks_mut::<{ wide::LANES }>().0) {
                // SAFETY: `eight` is 64 writable bytes.
                unsafe { _mm512_storeu_si512(eight.as_mut_ptr().cast(), part.output()) };
                *part = group_stride.apply(*part);
            }
        }
        self.state = last.lane(wide::LANES - 1);
        groups * GROUP
    }
}

/// Eight states a register, several registers at once.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use super::{MULTIPLIER, Stride, UnitStride};

    /// Whether the machine has the multiply-add that this needs, beside what the level tells.
    pub(super) fn available() -> bool {
        is_x86_feature_detected!("avx512ifma")
    }

    /// States of one part.
    pub(super) const LANES: usize = 8;
    /// Parts that hide each other's latency.
    pub(super) const PARTS: usize = 4;
    /// From a state to those of the next `LANES` words.
    pub(super) const FIRST: [UnitStride; LANES] = {
        let mut jumps = [UnitStride::steps(MULTIPLIER, 1); LANES];
        let mut lane = 1;
        while lane < LANES {
            jumps[lane] = UnitStride::steps(MULTIPLIER, lane + 1);
            lane += 1;
        }
        jumps
    };
    /// From a part to the next.
    pub(super) const PART_JUMP: UnitStride = UnitStride::steps(MULTIPLIER, LANES);
    /// From a part to itself in the next group.
    pub(super) const GROUP_JUMP: UnitStride = UnitStride::steps(MULTIPLIER, LANES * PARTS);

    /// Bits of the first two limbs.
    const LIMB_BITS: u32 = 52;

    /// Limbs of 52, 52 and 24 bits: what the machine's integer multiply-add takes.
    fn limbs(value: u128) -> [u64; 3] {
        [0, 1, 2].map(|limb| (value >> (LIMB_BITS * limb)) as u64 & ((1 << LIMB_BITS) - 1))
    }

    /// Eight 128-bit states, a register for each limb; the last limb may have more bits than belong to it.
    #[derive(Clone, Copy)]
    pub(super) struct Part([__m512i; 3]);

    impl Part {
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        pub(super) fn new(states: &[u128; LANES]) -> Part {
            let spread = states.map(limbs);
            Part([0, 1, 2].map(|limb| {
                let limb = spread.map(|limbs| limbs[limb]);
                // SAFETY: the array is 64 readable bytes.
                unsafe { _mm512_loadu_si512(limb.as_ptr().cast()) }
            }))
        }

        /// One of the states.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        pub(super) fn lane(self, lane: usize) -> u128 {
            let mut state = 0;
            for (limb, register) in (0..).zip(self.0) {
                let mut words = [0u64; LANES];
                // SAFETY: the array is 64 writable bytes.
                unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) };
                state |= u128::from(words[lane]) << (LIMB_BITS * limb);
            }
            state
        }

        /// The words of these states: the halves' bits, xored and rotated, straight from the limbs.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        pub(super) fn output(self) -> __m512i {
            let [first, second, third] = self.0;
            // The second limb lies across both halves: its lowest 12 bits end the lower one, the others start the upper.
            let across = _mm512_rol_epi64::<52>(second);
            let folded = _mm512_xor_si512(_mm512_xor_si512(first, across), _mm512_slli_epi64::<40>(third));
            _mm512_rorv_epi64(folded, _mm512_srli_epi64::<18>(third))
        }
    }

    /// A stride, its limbs spread over the lanes.
    #[derive(Clone, Copy)]
    pub(super) struct Jump {
        multiplier: [__m512i; 3],
        addend: [__m512i; 3],
    }

    impl Jump {
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        pub(super) fn new(stride: &Stride) -> Jump {
            let spread = |value| limbs(value).map(|limb| _mm512_set1_epi64(limb.cast_signed()));
            Jump { multiplier: spread(stride.multiplier), addend: spread(stride.addend) }
        }

        /// The states a stride further on: schoolbook products of limbs, then carries.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
        pub(super) fn apply(self, part: Part) -> Part {
            let [s0, s1, s2] = part.0;
            let [m0, m1, m2] = self.multiplier;
            let [a0, a1, a2] = self.addend;
            let limb = _mm512_set1_epi64((1 << LIMB_BITS) - 1);
            let zero = _mm512_setzero_si512();
            let first = _mm512_madd52lo_epu64(a0, s0, m0);
            let second = _mm512_add_epi64(
                _mm512_madd52lo_epu64(_mm512_madd52hi_epu64(a1, s0, m0), s0, m1),
                _mm512_madd52lo_epu64(zero, s1, m0),
            );
            let third = _mm512_add_epi64(
                _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(_mm512_madd52hi_epu64(a2, s0, m1), s0, m2), s1, m1),
                _mm512_madd52lo_epu64(_mm512_madd52hi_epu64(zero, s1, m0), s2, m0),
            );
            let second = _mm512_add_epi64(second, _mm512_srli_epi64::<{ LIMB_BITS }>(first));
            let third = _mm512_add_epi64(third, _mm512_srli_epi64::<{ LIMB_BITS }>(second));
            Part([_mm512_and_si512(first, limb), _mm512_and_si512(second, limb), third])
        }
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

    #[test]
    fn lanes_change_nothing() {
        let start = Pcg64 { state: 99 << 90 | 7, increment: 5 << 64 | 3, permutation: Permutation::XslRr };
        for count in [0, 1, 3, 4, 31, 32, 33, 100, 1000] {
            let (mut one, mut four, mut best) = (vec![0; count], vec![0; count], vec![0; count]);
            let [mut by_one, mut by_four, mut by_best] = [start; 3];
            by_one.fill_lanes::<1>(&mut one, xsl_rr);
            by_four.fill_lanes::<PORTABLE_LANES>(&mut four, xsl_rr);
            by_best.fill(&mut best);
            assert_eq!((&one, by_one), (&four, by_four), "{count} words in portable lanes");
            assert_eq!((&one, by_one), (&best, by_best), "{count} words in this machine's lanes");
        }
    }
}
