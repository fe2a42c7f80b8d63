//! Normal and exponential deviates by the ziggurat method (Marsaglia and Tsang 2000), with NumPy's tables and order.
//!
//! An attempt takes one word: layer, sign and a multiple of the layer's width. Almost all are accepted at once; the rest
//! read more words (a wedge, or the tail beyond the last layer). Fast runs leave only the rarest to a cursor; their loops
//! go word by word, since looking up several layers at once by vector gathers was slower (3.7 against 3.0 ns a normal,
//! AMD EPYC with AVX-512). Logarithms and exponentials are the C library's, as NumPy's are.

use super::attempt::Sampler;
use super::cursor::Cursor;
use super::fixed::{Doubles, upper24};
use super::ziggurat_tables::{EXPONENTIAL_F32, EXPONENTIAL_F64, NORMAL_F32, NORMAL_F64};

/// Start of the normal tail, and its inverse.
const NORMAL_TAIL: f64 = 3.654_152_885_361_009;
const NORMAL_TAIL_INVERSE: f64 = 0.273_661_237_329_758_3;
/// Start of the exponential tail.
const EXPONENTIAL_TAIL: f64 = 7.697_117_470_131_05;

/// What the first word of an attempt says: the deviate if accepted, whether it is, and what a slow attempt needs.
struct First<X, K> {
    deviate: X,
    accepted: bool,
    layer: usize,
    multiple: K,
}

#[inline(always)]
fn normal_first(word: u64) -> First<f64, u64> {
    let layer = (word & 0xFF) as usize;
    let multiple = (word >> 9) & 0x000F_FFFF_FFFF_FFFF;
    let magnitude = multiple.cast_signed() as f64 * NORMAL_F64.width[layer];
    let sign = ((word >> 8) & 1) << 63;
    First {
        deviate: f64::from_bits(magnitude.to_bits() | sign),
        accepted: multiple < NORMAL_F64.inside[layer],
        layer,
        multiple,
    }
}

#[inline(always)]
fn normal_first_f32(word: u32) -> First<f32, u32> {
    let layer = (word & 0xFF) as usize;
    let multiple = (word >> 9) & 0x007F_FFFF;
    let magnitude = multiple.cast_signed() as f32 * NORMAL_F32.width[layer];
    let sign = ((word >> 8) & 1) << 31;
    First {
        deviate: f32::from_bits(magnitude.to_bits() | sign),
        accepted: multiple < NORMAL_F32.inside[layer],
        layer,
        multiple,
    }
}

#[inline(always)]
fn exponential_first(word: u64) -> First<f64, u64> {
    let layer = ((word >> 3) & 0xFF) as usize;
    let multiple = word >> 11;
    First {
        deviate: multiple.cast_signed() as f64 * EXPONENTIAL_F64.width[layer],
        accepted: multiple < EXPONENTIAL_F64.inside[layer],
        layer,
        multiple,
    }
}

#[inline(always)]
fn exponential_first_f32(word: u32) -> First<f32, u32> {
    let layer = ((word >> 1) & 0xFF) as usize;
    let multiple = word >> 9;
    First {
        deviate: multiple.cast_signed() as f32 * EXPONENTIAL_F32.width[layer],
        accepted: multiple < EXPONENTIAL_F32.inside[layer],
        layer,
        multiple,
    }
}

/// What becomes of a word that is not accepted at once, given the next one.
enum Second<X> {
    /// It is accepted.
    Keep(X),
    /// It is rejected.
    Reject,
    /// More words are needed: left to an attempt.
    More,
}

impl<X> Second<X> {
    #[inline(always)]
    fn of(deviate: Option<X>) -> Second<X> {
        deviate.map_or(Second::Reject, Second::Keep)
    }
}

/// Attempts one after the other, without a cursor; stops where one may need more words than the next, or the last word
/// is not accepted at once.
#[inline(always)]
fn run_attempts<U: Copy, X, K>(
    units: &[U],
    values: &mut [X],
    first: impl Fn(U) -> First<X, K>,
    second: impl Fn(First<X, K>, U) -> Second<X>,
) -> (usize, usize) {
    let (mut used, mut made) = (0, 0);
    while let Some(&unit) = units.get(used) {
        let decided = first(unit);
        used += 1;
        if decided.accepted {
            values[made] = decided.deviate;
            made += 1;
            continue;
        }
        let next = units.get(used);
        match next.map_or(Second::More, |&next| second(decided, next)) {
            Second::Keep(deviate) => {
                values[made] = deviate;
                made += 1;
            }
            Second::Reject => (),
            Second::More => return (used - 1, made),
        }
        used += 1;
    }
    (used, made)
}

fn normal_wedge(first: First<f64, u64>, uniform: f64) -> Option<f64> {
    let [above, below] = [NORMAL_F64.density[first.layer - 1], NORMAL_F64.density[first.layer]];
    let height = (above - below) * uniform + below;
    (height < (-0.5 * first.deviate * first.deviate).exp()).then_some(first.deviate)
}

fn normal_wedge_f32(first: First<f32, u32>, uniform: f32) -> Option<f32> {
    let [above, below] = [NORMAL_F32.density[first.layer - 1], NORMAL_F32.density[first.layer]];
    let height = (above - below) * uniform + below;
    // NumPy compares with the double exponential of a double square.
    let wide = f64::from(first.deviate);
    (f64::from(height) < (-0.5 * wide * wide).exp()).then_some(first.deviate)
}

/// Wedge or tail.
fn exponential_second(first: First<f64, u64>, uniform: f64) -> Option<f64> {
    if first.layer == 0 {
        return Some(EXPONENTIAL_TAIL - (-uniform).ln_1p());
    }
    let [above, below] = [EXPONENTIAL_F64.density[first.layer - 1], EXPONENTIAL_F64.density[first.layer]];
    let height = (above - below) * uniform + below;
    (height < (-first.deviate).exp()).then_some(first.deviate)
}

/// Wedge or tail.
fn exponential_second_f32(first: First<f32, u32>, uniform: f32) -> Option<f32> {
    if first.layer == 0 {
        return Some(EXPONENTIAL_TAIL as f32 - (-uniform).ln_1p());
    }
    let [above, below] = [EXPONENTIAL_F32.density[first.layer - 1], EXPONENTIAL_F32.density[first.layer]];
    let height = (above - below) * uniform + below;
    (height < (-first.deviate).exp()).then_some(first.deviate)
}

/// Standard normal doubles.
pub(super) struct Normal {
    /// How a word becomes a double.
    pub(super) doubles: Doubles,
}

/// Standard normal singles.
pub(super) struct NormalF32;

/// Standard exponential doubles.
pub(super) struct Exponential {
    /// How a word becomes a double.
    pub(super) doubles: Doubles,
}

/// Standard exponential singles.
pub(super) struct ExponentialF32;

/// Writes the deviate if there is one.
fn keep<X>(deviate: Option<X>, values: &mut [X]) -> usize {
    match deviate {
        Some(deviate) => {
            values[0] = deviate;
            1
        }
        None => 0,
    }
}

impl Sampler for Normal {
    type Unit = u64;
    type Value = f64;

    fn attempt(&self, cursor: &mut Cursor<u64>, values: &mut [f64]) -> usize {
        let first = normal_first(cursor.next());
        let mut uniform = || self.doubles.of(cursor.next());
        let deviate = if first.accepted {
            Some(first.deviate)
        } else if first.layer == 0 {
            loop {
                let beyond = -NORMAL_TAIL_INVERSE * (-uniform()).ln_1p();
                let other = -(-uniform()).ln_1p();
                if other + other > beyond * beyond {
                    let deviate = NORMAL_TAIL + beyond;
                    break Some(if (first.multiple >> 8) & 1 == 1 { -deviate } else { deviate });
                }
            }
        } else {
            normal_wedge(first, uniform())
        };
        keep(deviate, values)
    }

    fn run(&self, units: &[u64], values: &mut [f64]) -> (usize, usize) {
        let second = |first: First<f64, u64>, next| match first.layer {
            0 => Second::More,
            _ => Second::of(normal_wedge(first, self.doubles.of(next))),
        };
        run_attempts(units, values, normal_first, second)
    }
}

impl Sampler for NormalF32 {
    type Unit = u32;
    type Value = f32;

    fn attempt(&self, cursor: &mut Cursor<u32>, values: &mut [f32]) -> usize {
        let first = normal_first_f32(cursor.next());
        let mut uniform = || upper24(cursor.next());
        let deviate = if first.accepted {
            Some(first.deviate)
        } else if first.layer == 0 {
            loop {
                let beyond = -(NORMAL_TAIL_INVERSE as f32) * (-uniform()).ln_1p();
                let other = -(-uniform()).ln_1p();
                if other + other > beyond * beyond {
                    let deviate = NORMAL_TAIL as f32 + beyond;
                    break Some(if (first.multiple >> 8) & 1 == 1 { -deviate } else { deviate });
                }
            }
        } else {
            normal_wedge_f32(first, uniform())
        };
        keep(deviate, values)
    }

    fn run(&self, units: &[u32], values: &mut [f32]) -> (usize, usize) {
        let second = |first: First<f32, u32>, next| match first.layer {
            0 => Second::More,
            _ => Second::of(normal_wedge_f32(first, upper24(next))),
        };
        run_attempts(units, values, normal_first_f32, second)
    }
}

impl Sampler for Exponential {
    type Unit = u64;
    type Value = f64;

    fn attempt(&self, cursor: &mut Cursor<u64>, values: &mut [f64]) -> usize {
        let first = exponential_first(cursor.next());
        let deviate = match first.accepted {
            true => Some(first.deviate),
            false => exponential_second(first, self.doubles.of(cursor.next())),
        };
        keep(deviate, values)
    }

    fn run(&self, units: &[u64], values: &mut [f64]) -> (usize, usize) {
        let second = |first, next| Second::of(exponential_second(first, self.doubles.of(next)));
        run_attempts(units, values, exponential_first, second)
    }
}

impl Sampler for ExponentialF32 {
    type Unit = u32;
    type Value = f32;

    fn attempt(&self, cursor: &mut Cursor<u32>, values: &mut [f32]) -> usize {
        let first = exponential_first_f32(cursor.next());
        let deviate = match first.accepted {
            true => Some(first.deviate),
            false => exponential_second_f32(first, upper24(cursor.next())),
        };
        keep(deviate, values)
    }

    fn run(&self, units: &[u32], values: &mut [f32]) -> (usize, usize) {
        let second = |first, next| Second::of(exponential_second_f32(first, upper24(next)));
        run_attempts(units, values, exponential_first_f32, second)
    }
}
