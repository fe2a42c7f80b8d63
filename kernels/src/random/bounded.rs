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

    /// Whether no unit is ever rejected.
    pub(super) fn accepts_all(&self) -> bool {
        self.threshold.into() == 0
    }

    /// The value that `unit` gives, if it is accepted.
    #[inline(always)]
    pub(super) fn value(&self, unit: U) -> (U, bool) {
        let (upper, lower) = U::product(unit, self.factor);
        (upper, lower >= self.threshold)
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

    /// Whether no unit is ever rejected.
    pub(super) fn accepts_all(&self) -> bool {
        self.range == self.mask
    }

    /// The value that `unit` gives, if it is accepted.
    #[inline(always)]
    pub(super) fn value(&self, unit: U) -> (U, bool) {
        let value = U::masked(unit, self.mask);
        (value, value <= self.range)
    }
}

/// Tries every unit, without a branch on the outcome: values are written one after the other, accepted ones kept.
#[inline(always)]
fn keep_accepted<U: Bounded>(units: &[U], values: &mut [U], value: impl Fn(U) -> (U, bool)) -> usize {
    let mut made = 0;
    let values = &mut values[..units.len()];
    for &unit in units {
        let (drawn, accepted) = value(unit);
        values[made] = drawn;
        made += usize::from(accepted);
    }
    made
}

at_best_level! {
    fn run_lemire<U: Bounded>(sampler: &Lemire<U>, units: &[U], values: &mut [U]) -> usize =
        |sampler: &Lemire<U>, units, values| keep_accepted(units, values, |unit| sampler.value(unit))
}

at_best_level! {
    fn run_masked<U: Bounded>(sampler: &Masked<U>, units: &[U], values: &mut [U]) -> usize =
        |sampler: &Masked<U>, units, values| keep_accepted(units, values, |unit| sampler.value(unit))
}

impl<U: Bounded> Sampler for Lemire<U> {
    type Unit = U;
    type Value = U;

    fn attempt(&self, cursor: &mut Cursor<U>, values: &mut [U]) -> usize {
        let (value, accepted) = self.value(cursor.next());
        values[0] = value;
        usize::from(accepted)
    }

    fn run(&self, units: &[U], values: &mut [U]) -> (usize, usize) {
        (units.len(), run_lemire(self, units, values))
    }
}

impl<U: Bounded> Sampler for Masked<U> {
    type Unit = U;
    type Value = U;

    fn attempt(&self, cursor: &mut Cursor<U>, values: &mut [U]) -> usize {
        let (value, accepted) = self.value(cursor.next());
        values[0] = value;
        usize::from(accepted)
    }

    fn run(&self, units: &[U], values: &mut [U]) -> (usize, usize) {
        (units.len(), run_masked(self, units, values))
    }
}
