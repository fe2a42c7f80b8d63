//! Bounded integers by rejection: Lemire's multiplication (`Generator.integers`) and masking (`RandomState.randint`).
//!
//! Both take one unit of their own width an attempt. Values are offsets from the low bound; widening and adding it is the
//! caller's. Ranges that never reject are not drawn here but in `fixed`.

use super::attempt::Sampler;
use super::cursor::{Cursor, Unit};
use super::level::at_best_level;

/// A unit with a product of twice its width.
pub(super) trait Bounded: Unit + Default + PartialOrd {
    /// Upper and lower half of `unit * factor`.
    fn product(unit: Self, factor: Self) -> (Self, Self);
    /// The lowest bits of `value`.
    fn truncate(value: u64) -> Self;
    /// `unit & mask`.
    fn masked(unit: Self, mask: Self) -> Self;
}

macro_rules! bounded {
    ($($unit:ty, $double:ty;)*) => {$(
        impl Bounded for $unit {
            #[inline(always)]
            fn product(unit: Self, factor: Self) -> (Self, Self) {
                let product = <$double>::from(unit) * <$double>::from(factor);
                ((product >> Self::BITS) as Self, product as Self)
            }
            #[inline(always)]
            fn truncate(value: u64) -> Self {
                value as Self
            }
            #[inline(always)]
            fn masked(unit: Self, mask: Self) -> Self {
                unit & mask
            }
        }
    )*};
}
bounded! { u8, u16; u16, u32; u32, u64; u64, u128; }

/// The largest value of a unit of this type.
pub(super) fn largest<U: Bounded>() -> u64 {
    u64::MAX >> (64 - 8 * U::BYTES)
}

/// How a unit becomes a value, or is rejected.
pub(super) trait Rule<U>: Send + Sync + 'static {
    /// The value that `unit` gives, and whether it is accepted.
    fn value(&self, unit: U) -> (U, bool);
    /// The share of units that are rejected.
    fn rejected(&self) -> f64;
}

/// Lemire (2019): the upper half of `unit * (range + 1)`, rejecting the lower halves below a threshold.
pub(super) struct Lemire<U> {
    factor: U,
    threshold: U,
}

impl<U: Bounded> Lemire<U> {
    /// Values `0..=range`, where `0 < range <` the unit's largest value.
    pub(super) fn new(range: u64) -> Self {
        let factor = range + 1;
        Lemire { factor: U::truncate(factor), threshold: U::truncate((largest::<U>() - range) % factor) }
    }
}

impl<U: Bounded> Rule<U> for Lemire<U> {
    #[inline(always)]
    fn value(&self, unit: U) -> (U, bool) {
        let (upper, lower) = U::product(unit, self.factor);
        (upper, lower >= self.threshold)
    }

    fn rejected(&self) -> f64 {
        self.threshold.into() as f64 / largest::<U>() as f64
    }
}

/// Rejection of masked units above the range.
pub(super) struct Masked<U> {
    range: U,
    mask: U,
}

impl<U: Bounded> Masked<U> {
    /// Values `0..=range`.
    pub(super) fn new(range: u64) -> Self {
        Masked { range: U::truncate(range), mask: U::truncate(u64::MAX >> range.leading_zeros()) }
    }
}

impl<U: Bounded> Rule<U> for Masked<U> {
    #[inline(always)]
    fn value(&self, unit: U) -> (U, bool) {
        let value = U::masked(unit, self.mask);
        (value, value <= self.range)
    }

    fn rejected(&self) -> f64 {
        let (mask, range): (u64, u64) = (self.mask.into(), self.range.into());
        (mask - range) as f64 / mask as f64
    }
}

/// Draws by a rule, one unit an attempt.
pub(super) struct Tries<U, R> {
    rule: R,
    /// Whether most groups of units hold no rejected one.
    rarely_rejects: bool,
    unit: std::marker::PhantomData<U>,
}

/// Units that are tried together where rejections are rare.
const GROUP: usize = 256;

impl<U: Bounded, R: Rule<U>> Tries<U, R> {
    /// The draw of this rule.
    pub(super) fn new(rule: R) -> Self {
        let rarely_rejects = rule.rejected() * (GROUP as f64) < 0.25;
        Tries { rule, rarely_rejects, unit: std::marker::PhantomData }
    }

    /// Writes the values of all units, and says whether all are accepted: a vector loop.
    #[inline(always)]
    fn take_all(&self, units: &[U], values: &mut [U]) -> bool {
        let mut all = true;
        for (place, &unit) in values.iter_mut().zip(units) {
            let (value, accepted) = self.rule.value(unit);
            *place = value;
            all &= accepted;
        }
        all
    }

    /// Writes the values of accepted units one after the other, without a branch on the outcome; returns their number.
    #[inline(always)]
    fn sieve(&self, units: &[U], values: &mut [U]) -> usize {
        let mut made = 0;
        let values = &mut values[..units.len()];
        for &unit in units {
            let (value, accepted) = self.rule.value(unit);
            values[made] = value;
            made += usize::from(accepted);
        }
        made
    }

    #[inline(always)]
    fn keep_accepted(&self, units: &[U], values: &mut [U]) -> usize {
        if !self.rarely_rejects {
            return self.sieve(units, values);
        }
        let mut made = 0;
        for group in units.chunks(GROUP) {
            let values = &mut values[made..made + group.len()];
            made += if self.take_all(group, values) { group.len() } else { self.sieve(group, values) };
        }
        made
    }
}

impl<U: Bounded, R: Rule<U>> Sampler for Tries<U, R> {
    type Unit = U;
    type Value = U;

    fn attempt(&self, cursor: &mut Cursor<U>, values: &mut [U]) -> usize {
        let (value, accepted) = self.rule.value(cursor.next());
        values[0] = value;
        usize::from(accepted)
    }

    fn run(&self, units: &[U], values: &mut [U]) -> (usize, usize) {
        let made = at_best_level(
            #[inline(always)]
            || self.keep_accepted(units, values),
        );
        (units.len(), made)
    }
}
