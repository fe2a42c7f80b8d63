//! What one value becomes in another type.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "truncates with the processor's own instructions"))]

use crate::loops::half;
use crate::pairwise::{Half, Pair};

/// NumPy's bool: one byte.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bool(u8);

/// Conversion of one value. Any bits are a value of both types.
pub(super) trait Convert<T>: Copy {
    fn convert(self) -> T;
}

macro_rules! as_numbers {
    ($from:ty: $($to:ty)*) => {$(
        impl Convert<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                self as $to
            }
        }
    )*};
}

macro_rules! from_integers {
    ($($from:ty)*) => {$(
        as_numbers!($from: i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

        impl Convert<Bool> for $from {
            #[inline(always)]
            fn convert(self) -> Bool {
                Bool(u8::from(self != 0))
            }
        }

        impl Convert<Half> for $from {
            #[inline(always)]
            fn convert(self) -> Half {
                (self as f32).convert()
            }
        }

        real_to_complex!($from);
    )*};
}

macro_rules! real_to_complex {
    ($from:ty) => {
        impl Convert<Pair<f32>> for $from {
            #[inline(always)]
            fn convert(self) -> Pair<f32> {
                Pair(self.convert(), 0.0)
            }
        }

        impl Convert<Pair<f64>> for $from {
            #[inline(always)]
            fn convert(self) -> Pair<f64> {
                Pair(self.convert(), 0.0)
            }
        }
    };
}

from_integers!(i8 u8 i16 u16 i32 u32 i64 u64);

/// A type whose values convert as those of another, to which they convert exactly.
macro_rules! through {
    ($from:ty, $value:ident => $exact:expr; $($to:ty)*) => {$(
        impl Convert<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                let $value = self;
                $exact.convert()
            }
        }
    )*};
}

// Memory that is looked at as truth values may hold any bytes.
through!(Bool, value => u8::from(value.0 != 0); Bool i8 i16 u16 i32 u32 i64 u64 Half f32 f64 Pair<f32> Pair<f64>);
through!(Half, value => half::to_f32(value.0); i8 u8 i16 u16 i32 i64 u64);
real_to_complex!(Half);

impl Convert<u8> for Bool {
    #[inline(always)]
    fn convert(self) -> u8 {
        u8::from(self.0 != 0)
    }
}

impl Convert<f32> for Half {
    #[inline(always)]
    fn convert(self) -> f32 {
        half::to_f32(self.0)
    }
}

/// NumPy's compiler truncates halves to 64 bits here, floats to 32 (except for up to three elements at the end of a call).
impl Convert<u32> for Half {
    #[inline(always)]
    fn convert(self) -> u32 {
        half::to_f32(self.0).truncate_i64() as u32
    }
}

impl Convert<f64> for Half {
    #[inline(always)]
    fn convert(self) -> f64 {
        half::to_f64(self.0)
    }
}

impl Convert<Half> for Half {
    #[inline(always)]
    fn convert(self) -> Half {
        self
    }
}

impl Convert<Bool> for Half {
    #[inline(always)]
    fn convert(self) -> Bool {
        Bool(u8::from(self.0 & 0x7fff != 0))
    }
}

as_numbers!(f32: f32 f64);
as_numbers!(f64: f32 f64);

impl Convert<Half> for f32 {
    #[inline(always)]
    fn convert(self) -> Half {
        Half(half::round_f32(self))
    }
}

impl Convert<Half> for f64 {
    #[inline(always)]
    fn convert(self) -> Half {
        Half(half::round_f64(self))
    }
}

macro_rules! from_floats {
    ($($from:ty)*) => {$(
        impl Convert<Bool> for $from {
            #[inline(always)]
            fn convert(self) -> Bool {
                Bool(u8::from(self != 0.0))
            }
        }

        real_to_complex!($from);

        // C converts to narrow integers by way of `int`.
        truncates!($from: i8 by truncate_i32, u8 by truncate_i32, i16 by truncate_i32, u16 by truncate_i32);
        truncates!($from: i32 by truncate_i32, u32 by truncate_u32, i64 by truncate_i64, u64 by truncate_u64);
    )*};
}

macro_rules! truncates {
    ($from:ty: $($to:ident by $method:ident),*) => {$(
        impl Convert<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                Truncate::$method(self) as $to
            }
        }
    )*};
}

from_floats!(f32 f64);

macro_rules! from_complex {
    ($($part:ty)*) => {$(
        through!(Pair<$part>, value => value.0; i8 u8 i16 u16 i32 u32 i64 u64 Half f32 f64);

        impl Convert<Bool> for Pair<$part> {
            #[inline(always)]
            fn convert(self) -> Bool {
                Bool(u8::from(self.0 != 0.0 || self.1 != 0.0))
            }
        }

        impl Convert<Pair<f32>> for Pair<$part> {
            #[inline(always)]
            fn convert(self) -> Pair<f32> {
                Pair(self.0.convert(), self.1.convert())
            }
        }

        impl Convert<Pair<f64>> for Pair<$part> {
            #[inline(always)]
            fn convert(self) -> Pair<f64> {
                Pair(self.0.convert(), self.1.convert())
            }
        }
    )*};
}

from_complex!(f32 f64);

/// Truncation towards zero by the processor: what is out of range becomes what its instruction gives.
trait Truncate: Copy {
    fn truncate_i32(self) -> i32;
    fn truncate_u32(self) -> u32;
    fn truncate_i64(self) -> i64;
    fn truncate_u64(self) -> u64;
}

#[cfg(target_arch = "x86_64")]
mod instructions {
    use std::arch::x86_64::{
        _mm_cvttsd_si32, _mm_cvttsd_si64, _mm_cvttss_si32, _mm_cvttss_si64, _mm_set_sd, _mm_set_ss,
    };

    use super::Truncate;

    /// 2^31 and 2^63: what compilers subtract from larger values before they convert to a signed integer.
    const SIGN_32: f64 = 2_147_483_648.0;
    const SIGN: f64 = 9_223_372_036_854_775_808.0;

    impl Truncate for f64 {
        #[inline(always)]
        fn truncate_i32(self) -> i32 {
            // SAFETY: every x86-64 has SSE2.
            unsafe { _mm_cvttsd_si32(_mm_set_sd(self)) }
        }

        #[inline(always)]
        fn truncate_u32(self) -> u32 {
            if self >= SIGN_32 {
                (self - SIGN_32).truncate_i32().cast_unsigned() ^ (1 << 31)
            } else {
                self.truncate_i32().cast_unsigned()
            }
        }

        #[inline(always)]
        fn truncate_i64(self) -> i64 {
            // SAFETY: every x86-64 has SSE2.
            unsafe { _mm_cvttsd_si64(_mm_set_sd(self)) }
        }

        #[inline(always)]
        fn truncate_u64(self) -> u64 {
            if self >= SIGN {
                (self - SIGN).truncate_i64().cast_unsigned() ^ (1 << 63)
            } else {
                self.truncate_i64().cast_unsigned()
            }
        }
    }

    impl Truncate for f32 {
        #[inline(always)]
        fn truncate_i32(self) -> i32 {
            // SAFETY: every x86-64 has SSE2.
            unsafe { _mm_cvttss_si32(_mm_set_ss(self)) }
        }

        #[inline(always)]
        fn truncate_u32(self) -> u32 {
            f64::from(self).truncate_u32()
        }

        #[inline(always)]
        fn truncate_i64(self) -> i64 {
            // SAFETY: every x86-64 has SSE2.
            unsafe { _mm_cvttss_si64(_mm_set_ss(self)) }
        }

        #[inline(always)]
        fn truncate_u64(self) -> u64 {
            f64::from(self).truncate_u64()
        }
    }
}

/// Elsewhere conversions saturate, as Rust's do.
#[cfg(not(target_arch = "x86_64"))]
mod instructions {
    use super::Truncate;

    macro_rules! saturating {
        ($($number:ty)*) => {$(
            impl Truncate for $number {
                fn truncate_i32(self) -> i32 {
                    self as i32
                }

                fn truncate_u32(self) -> u32 {
                    self as u32
                }

                fn truncate_i64(self) -> i64 {
                    self as i64
                }

                fn truncate_u64(self) -> u64 {
                    self as u64
                }
            }
        )*};
    }

    saturating!(f32 f64);
}
