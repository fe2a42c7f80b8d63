//! A look at numbers before they are sorted: whether sorting has one result.

use super::words::Sortable;

/// What there is among some numbers that words do not tell apart, or that NumPy takes for equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Least and greatest bits of a NaN.
    nans: Option<(u64, u64)>,
    zero: bool,
    negative_zero: bool,
}

impl Survey {
    /// Of nothing.
    pub const NOTHING: Survey = Survey { nans: None, zero: false, negative_zero: false };

    /// Of some numbers.
    pub fn of<T: Sortable>(numbers: impl Iterator<Item = T>) -> Survey {
        let (mut least, mut greatest) = (u64::MAX, 0);
        let (mut zero, mut negative_zero) = (false, false);
        for number in numbers {
            let (nan, plain, signed) = number.peculiar();
            least = least.min(nan.unwrap_or(u64::MAX));
            greatest = greatest.max(nan.unwrap_or(0));
            zero |= plain;
            negative_zero |= signed;
        }
        Survey { nans: (greatest > 0).then_some((least, greatest)), zero, negative_zero }
    }

    /// Of both.
    pub fn and(self, other: Survey) -> Survey {
        let nans = match (self.nans, other.nans) {
            (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
            (one, two) => one.or(two),
        };
        Survey { nans, zero: self.zero | other.zero, negative_zero: self.negative_zero | other.negative_zero }
    }

    /// A survey as numbers, which [`Survey::of_numbers`] reads.
    pub fn numbers(self) -> [u64; 4] {
        let (least, greatest) = self.nans.unwrap_or((u64::MAX, 0));
        [least, greatest, self.zero.into(), self.negative_zero.into()]
    }

    /// The survey that was made into numbers.
    pub fn of_numbers([least, greatest, zero, negative_zero]: [u64; 4]) -> Survey {
        let nans = (greatest > 0).then_some((least, greatest));
        Survey { nans, zero: zero != 0, negative_zero: negative_zero != 0 }
    }

    /// Whether numbers of different bits are never equal here, so that sorting has one result.
    pub fn is_plain(self) -> bool {
        !(self.zero && self.negative_zero) && self.nans.is_none_or(|(least, greatest)| least == greatest)
    }

    /// Bits of the NaN that is there; of any if there is none.
    pub fn nan_bits(self) -> u64 {
        self.nans.map_or(0, |(least, _)| least)
    }
}
