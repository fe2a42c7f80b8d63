//! Numbers as unsigned words of the same order.
//!
//! NaN, and NaT among times, have the greatest word, since NumPy sorts them behind all others. Everything else has a word of its own,
//! so that a word tells its number; which bits a NaN has is not in its word.

use std::fmt::Debug;

/// An unsigned word, with room for a place beside it in the next wider one.
pub trait Word: Copy + Ord + Default + Debug + Send + Sync + 'static {
    /// A word and a place as one word that is sorted by both.
    type WithPlace: Copy + Ord + Default + Debug + Send + Sync + 'static;

    /// The least word.
    const LEAST: Self;
    /// The greatest word.
    const GREATEST: Self;

    /// The word as a number of 64 bits.
    fn widened(self) -> u64;
    /// A small word as an index.
    fn index(self) -> usize;
    /// The word of an index.
    fn of_index(index: usize) -> Self;
    /// A word and a place together, of which as many bits count as a word has.
    fn with_place(self, place: usize) -> Self::WithPlace;
    /// The place in one of both.
    fn place(both: Self::WithPlace) -> usize;
    /// Whether two words with places are the same but for their places.
    fn is_tie(one: Self::WithPlace, other: Self::WithPlace) -> bool;
}

macro_rules! words {
    ($($word:ty, $wide:ty;)*) => { $(impl Word for $word {
        type WithPlace = $wide;
        const LEAST: $word = 0;
        const GREATEST: $word = <$word>::MAX;

        #[inline(always)]
        fn widened(self) -> u64 {
            u64::from(self)
        }

        #[inline(always)]
        fn index(self) -> usize {
            self as usize
        }

        #[inline(always)]
        fn of_index(index: usize) -> $word {
            index as $word
        }

        #[inline(always)]
        fn with_place(self, place: usize) -> $wide {
            (<$wide>::from(self) << <$word>::BITS) | place as $wide
        }

        #[inline(always)]
        fn place(both: $wide) -> usize {
            both as $word as usize
        }

        #[inline(always)]
        fn is_tie(one: $wide, other: $wide) -> bool {
            (one ^ other) >> <$word>::BITS == 0
        }
    })* };
}

words! {
    u32, u64;
    u64, u128;
}

/// A number, or a time, that can be sorted.
pub trait Sortable: Copy + Send + Sync + 'static {
    /// The word of such a number; small numbers have one of 32 bits, too, so that a place fits beside it.
    type Word: Word;
    /// Bits that tell a number from all others of its type.
    const BITS: u32;

    /// The word of this number.
    fn word(self) -> Self::Word;
    /// The word of a number that is equal to this one by NumPy's rules; equal numbers have the same.
    #[inline(always)]
    fn rank(self) -> Self::Word {
        self.word()
    }
    /// The number of a word; `last` for the greatest, if that is the word of what is not a number.
    fn of_word(word: Self::Word, last: Self) -> Self;
    /// The number of these bits.
    fn of_bits(bits: u64) -> Self;
    /// What a survey needs to know of it: its bits if it is NaN, whether it is zero with and without a sign.
    #[inline(always)]
    fn peculiar(self) -> (Option<u64>, bool, bool) {
        (None, false, false)
    }
}

macro_rules! whole_numbers {
    ($($number:ty, $unsigned:ty, $word:ty, $flip:expr;)*) => { $(impl Sortable for $number {
        type Word = $word;
        const BITS: u32 = <$number>::BITS;

        #[inline(always)]
        fn word(self) -> $word {
            <$word>::from(self as $unsigned ^ $flip)
        }

        #[inline(always)]
        fn of_word(word: $word, _: $number) -> $number {
            (word as $unsigned ^ $flip) as $number
        }

        fn of_bits(bits: u64) -> $number {
            bits as $number
        }
    })* };
}

whole_numbers! {
    i8, u8, u32, 1 << 7;
    u8, u8, u32, 0;
    i16, u16, u32, 1 << 15;
    u16, u16, u32, 0;
    i32, u32, u32, 1 << 31;
    u32, u32, u32, 0;
    i64, u64, u64, 1 << 63;
    u64, u64, u64, 0;
}

/// A time, or a length of time; the least number is none.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Time(pub i64);

impl Sortable for Time {
    type Word = u64;
    const BITS: u32 = 64;

    #[inline(always)]
    fn word(self) -> u64 {
        (self.0.cast_unsigned() ^ (1 << 63)).wrapping_sub(1)
    }

    #[inline(always)]
    fn of_word(word: u64, _: Time) -> Time {
        Time((word.wrapping_add(1) ^ (1 << 63)).cast_signed())
    }

    fn of_bits(bits: u64) -> Time {
        Time(bits.cast_signed())
    }
}

macro_rules! fractions {
    ($($number:ty, $bits:ty, $infinity:expr;)*) => {
        $(impl Sortable for $number {
            type Word = $bits;
            const BITS: u32 = <$bits>::BITS;

            #[inline(always)]
            fn word(self) -> $bits {
                let bits: $bits = self.to_bits();
                let top = 1 << (<$bits>::BITS - 1);
                let negative = (bits.cast_signed() >> (<$bits>::BITS - 1)).cast_unsigned();
                let ordered = bits ^ (negative | top);
                if bits & !top > $infinity { <$bits>::MAX } else { ordered }
            }

            #[inline(always)]
            fn rank(self) -> $bits {
                let bits: $bits = self.to_bits();
                let top = 1 << (<$bits>::BITS - 1);
                if bits == top { <$number>::from_bits(0).word() } else { self.word() }
            }

            #[inline(always)]
            fn of_word(word: $bits, last: $number) -> $number {
                let top = 1 << (<$bits>::BITS - 1);
                let positive = (word.cast_signed() >> (<$bits>::BITS - 1)).cast_unsigned();
                let bits = word ^ (!positive | top);
                if word == <$bits>::MAX { last } else { <$number>::from_bits(bits) }
            }

            fn of_bits(bits: u64) -> $number {
                <$number>::from_bits(bits as $bits)
            }

            #[inline(always)]
            fn peculiar(self) -> (Option<u64>, bool, bool) {
                let bits: $bits = self.to_bits();
                let top = 1 << (<$bits>::BITS - 1);
                ((bits & !top > $infinity).then_some(u64::from(bits)), bits == 0, bits == top)
            }
        })*
    };
}

fractions! {
    f64, u64, 0x7ff0_0000_0000_0000;
    f32, u32, 0x7f80_0000;
}
