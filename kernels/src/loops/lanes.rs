//! Vectors of floats as wide as the processor has, and one element as the narrowest of them.
//!
//! Promises that every width gives the same bits: only operations that IEEE 754 or the x86 manuals define exactly. The best
//! width is chosen once, when a loop is asked for (`Width::best`).

#![expect(unsafe_code, reason = "vector instructions")]

use std::sync::OnceLock;

/// How wide the processor's vectors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// One element at a time (what the compiler makes of it).
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Width {
    /// The widest that this processor has.
    pub(crate) fn best() -> Width {
        static BEST: OnceLock<Width> = OnceLock::new();
        *BEST.get_or_init(|| Width::ALL.into_iter().find(|width| width.is_available()).unwrap_or(Width::Plain))
    }

    fn is_available(self) -> bool {
        match self {
            Width::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => std::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => {
                std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512dq")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vl")
            }
        }
    }

    /// The widest first.
    #[cfg(target_arch = "x86_64")]
    const ALL: [Width; 3] = [Width::Avx512, Width::Avx2, Width::Plain];
    #[cfg(not(target_arch = "x86_64"))]
    const ALL: [Width; 1] = [Width::Plain];

    /// All that this processor has.
    #[cfg(test)]
    pub(super) fn available() -> impl Iterator<Item = Width> {
        Width::ALL.into_iter().filter(|width| width.is_available())
    }
}

/// Some elements side by side.
///
/// Safety of all methods: the processor must have the vector's instructions, and pointers must be to as many elements.
pub(super) trait Lanes: Copy {
    /// The type of an element.
    type Item: Copy;
    /// How many there are.
    const COUNT: usize;

    unsafe fn load(from: *const Self::Item) -> Self;
    unsafe fn store(self, to: *mut Self::Item);
    unsafe fn splat(value: Self::Item) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// NumPy's maximum: the first operand if it is a NaN, the second of equal ones. May raise an event for a NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// NumPy's minimum.
    unsafe fn min(self, other: Self) -> Self;
    /// NumPy's fmax: the first operand if the second is a NaN, the second of equal ones. May raise an event for a NaN.
    unsafe fn fmax(self, other: Self) -> Self;
    /// NumPy's fmin.
    unsafe fn fmin(self, other: Self) -> Self;
    unsafe fn neg(self) -> Self;
    unsafe fn abs(self) -> Self;
    /// NumPy's sign: 1, 0 (positive) or -1, a NaN as it is.
    unsafe fn sign(self) -> Self;
    unsafe fn one() -> Self;
}

macro_rules! one_lane {
    ($number:ty) => {
        impl Lanes for $number {
            type Item = $number;
            const COUNT: usize = 1;

            #[inline(always)]
            unsafe fn load(from: *const $number) -> $number {
                // SAFETY: the caller's.
                unsafe { from.read() }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $number) {
                // SAFETY: the caller's.
                unsafe { to.write(self) };
            }

            #[inline(always)]
            unsafe fn splat(value: $number) -> $number {
                value
            }

            #[inline(always)]
            unsafe fn add(self, other: $number) -> $number {
                self + other
            }

            #[inline(always)]
            unsafe fn sub(self, other: $number) -> $number {
                self - other
            }

            #[inline(always)]
            unsafe fn mul(self, other: $number) -> $number {
                self * other
            }

            #[inline(always)]
            unsafe fn div(self, other: $number) -> $number {
                self / other
            }

            #[inline(always)]
            unsafe fn sqrt(self) -> $number {
                self.sqrt()
            }

            #[inline(always)]
            unsafe fn max(self, other: $number) -> $number {
                if self.is_nan() || self > other { self } else { other }
            }

            #[inline(always)]
            unsafe fn min(self, other: $number) -> $number {
                if self.is_nan() || self < other { self } else { other }
            }

            #[inline(always)]
            unsafe fn fmax(self, other: $number) -> $number {
                if other.is_nan() || self > other { self } else { other }
            }

            #[inline(always)]
            unsafe fn fmin(self, other: $number) -> $number {
                if other.is_nan() || self < other { self } else { other }
            }

            #[inline(always)]
            unsafe fn neg(self) -> $number {
                -self
            }

            #[inline(always)]
            unsafe fn abs(self) -> $number {
                self.abs()
            }

            #[inline(always)]
            unsafe fn sign(self) -> $number {
                if self > 0.0 {
                    1.0
                } else if self < 0.0 {
                    -1.0
                } else if self == 0.0 {
                    0.0
                } else {
                    self
                }
            }

            #[inline(always)]
            unsafe fn one() -> $number {
                1.0
            }
        }
    };
}

one_lane!(f32);
one_lane!(f64);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Lanes;

    /// Methods that are one instruction, named in a list, and those that each width spells out.
    macro_rules! vector {
        (
            $name:ident, $vector:ty, $item:ty, $count:literal,
            $load:ident $store:ident $splat:ident $add:ident $sub:ident $mul:ident $div:ident $sqrt:ident
            $xor:ident $andnot:ident,
            max($a:ident, $b:ident) $max:expr,
            min $min:expr,
            fmax $fmax:expr,
            fmin $fmin:expr,
            sign($value:ident) $sign:expr
        ) => {
            #[derive(Clone, Copy)]
            pub(crate) struct $name($vector);

            impl Lanes for $name {
                type Item = $item;
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn load(from: *const $item) -> Self {
                    // SAFETY: the caller's, here and in all methods below.
                    $name(unsafe { $load(from) })
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $item) {
                    // SAFETY: the caller's.
                    unsafe { $store(to, self.0) };
                }

                #[inline(always)]
                unsafe fn splat(value: $item) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $splat(value) })
                }

                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $add(self.0, other.0) })
                }

                #[inline(always)]
                unsafe fn sub(self, other: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $sub(self.0, other.0) })
                }

                #[inline(always)]
                unsafe fn mul(self, other: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $mul(self.0, other.0) })
                }

                #[inline(always)]
                unsafe fn div(self, other: Self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $div(self.0, other.0) })
                }

                #[inline(always)]
                unsafe fn sqrt(self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $sqrt(self.0) })
                }

                #[inline(always)]
                unsafe fn max(self, other: Self) -> Self {
                    let ($a, $b) = (self.0, other.0);
                    // SAFETY: the caller's.
                    $name(unsafe { $max })
                }

                #[inline(always)]
                unsafe fn min(self, other: Self) -> Self {
                    let ($a, $b) = (self.0, other.0);
                    // SAFETY: the caller's.
                    $name(unsafe { $min })
                }

                #[inline(always)]
                unsafe fn fmax(self, other: Self) -> Self {
                    let ($a, $b) = (self.0, other.0);
                    // SAFETY: the caller's.
                    $name(unsafe { $fmax })
                }

                #[inline(always)]
                unsafe fn fmin(self, other: Self) -> Self {
                    let ($a, $b) = (self.0, other.0);
                    // SAFETY: the caller's.
                    $name(unsafe { $fmin })
                }

                #[inline(always)]
                unsafe fn neg(self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $xor(self.0, $splat(-0.0)) })
                }

                #[inline(always)]
                unsafe fn abs(self) -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $andnot($splat(-0.0), self.0) })
                }

                #[inline(always)]
                unsafe fn sign(self) -> Self {
                    let $value = self.0;
                    // SAFETY: the caller's.
                    $name(unsafe { $sign })
                }

                #[inline(always)]
                unsafe fn one() -> Self {
                    // SAFETY: the caller's.
                    $name(unsafe { $splat(1.0) })
                }
            }
        };
    }

    vector!(
        Double8, __m512d, f64, 8,
        _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd
        _mm512_sqrt_pd _mm512_xor_pd _mm512_andnot_pd,
        max(a, b) _mm512_mask_mov_pd(_mm512_max_pd(a, b), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a), a),
        min _mm512_mask_mov_pd(_mm512_min_pd(a, b), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a), a),
        fmax _mm512_mask_mov_pd(_mm512_max_pd(a, b), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(b, b), a),
        fmin _mm512_mask_mov_pd(_mm512_min_pd(a, b), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(b, b), a),
        sign(a) {
            let zero = _mm512_setzero_pd();
            let signed = _mm512_or_pd(_mm512_and_pd(a, _mm512_set1_pd(-0.0)), _mm512_set1_pd(1.0));
            let nan = _mm512_mask_mov_pd(a, _mm512_cmp_pd_mask::<_CMP_NEQ_OQ>(a, zero), signed);
            _mm512_mask_mov_pd(nan, _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(a, zero), zero)
        }
    );
    vector!(
        Single16, __m512, f32, 16,
        _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps
        _mm512_sqrt_ps _mm512_xor_ps _mm512_andnot_ps,
        max(a, b) _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
        min _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
        fmax _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(b, b), a),
        fmin _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(b, b), a),
        sign(a) {
            let zero = _mm512_setzero_ps();
            let signed = _mm512_or_ps(_mm512_and_ps(a, _mm512_set1_ps(-0.0)), _mm512_set1_ps(1.0));
            let nan = _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask::<_CMP_NEQ_OQ>(a, zero), signed);
            _mm512_mask_mov_ps(nan, _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, zero), zero)
        }
    );
    vector!(
        Double4, __m256d, f64, 4,
        _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd
        _mm256_sqrt_pd _mm256_xor_pd _mm256_andnot_pd,
        max(a, b) _mm256_blendv_pd(_mm256_max_pd(a, b), a, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a)),
        min _mm256_blendv_pd(_mm256_min_pd(a, b), a, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a)),
        fmax _mm256_blendv_pd(_mm256_max_pd(a, b), a, _mm256_cmp_pd::<_CMP_UNORD_Q>(b, b)),
        fmin _mm256_blendv_pd(_mm256_min_pd(a, b), a, _mm256_cmp_pd::<_CMP_UNORD_Q>(b, b)),
        sign(a) {
            let zero = _mm256_setzero_pd();
            let signed = _mm256_or_pd(_mm256_and_pd(a, _mm256_set1_pd(-0.0)), _mm256_set1_pd(1.0));
            let nan = _mm256_blendv_pd(a, signed, _mm256_cmp_pd::<_CMP_NEQ_OQ>(a, zero));
            _mm256_blendv_pd(nan, zero, _mm256_cmp_pd::<_CMP_EQ_OQ>(a, zero))
        }
    );
    vector!(
        Single8, __m256, f32, 8,
        _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps
        _mm256_sqrt_ps _mm256_xor_ps _mm256_andnot_ps,
        max(a, b) _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a)),
        min _mm256_blendv_ps(_mm256_min_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a)),
        fmax _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(b, b)),
        fmin _mm256_blendv_ps(_mm256_min_ps(a, b), a, _mm256_cmp_ps::<_CMP_UNORD_Q>(b, b)),
        sign(a) {
            let zero = _mm256_setzero_ps();
            let signed = _mm256_or_ps(_mm256_and_ps(a, _mm256_set1_ps(-0.0)), _mm256_set1_ps(1.0));
            let nan = _mm256_blendv_ps(a, signed, _mm256_cmp_ps::<_CMP_NEQ_OQ>(a, zero));
            _mm256_blendv_ps(nan, zero, _mm256_cmp_ps::<_CMP_EQ_OQ>(a, zero))
        }
    );
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Double4, Double8, Single8, Single16};
