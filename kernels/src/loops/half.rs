//! IEEE half precision as bits: conversions with NumPy's rounding and floating-point events.

use std::hint::black_box;

/// The single of this half's value (exact; a signalling NaN stays as it is).
#[inline]
pub fn to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let exponent = u32::from(half >> 10) & 0x1f;
    let fraction = u32::from(half & 0x3ff);
    f32::from_bits(match exponent {
        0 if fraction == 0 => sign,
        0 => {
            // Subnormal: normalise.
            let shift = fraction.leading_zeros() - 21;
            sign | ((113 - shift) << 23) | ((fraction << (shift + 13)) & 0x7f_ffff)
        }
        31 => sign | 0x7f80_0000 | (fraction << 13),
        _ => sign | ((exponent + 112) << 23) | (fraction << 13),
    })
}

/// The double of this half's value (exact; a signalling NaN stays as it is).
#[inline]
pub fn to_f64(half: u16) -> f64 {
    if half & 0x7c00 == 0x7c00 {
        // Infinity or NaN: a conversion by the processor would quieten it.
        return f64::from_bits((u64::from(half & 0x8000) << 48) | (0x7ff << 52) | (u64::from(half & 0x3ff) << 42));
    }
    f64::from(to_f32(half))
}

/// As [`from_f32`], raising overflow and underflow as NumPy does.
#[inline]
pub fn round_f32(single: f32) -> u16 {
    let half = from_f32(single);
    raise(half, single.is_finite(), || to_f32(half) != single);
    half
}

/// As [`from_f64`], raising overflow and underflow as NumPy does.
#[inline]
pub fn round_f64(double: f64) -> u16 {
    let half = from_f64(double);
    raise(half, double.is_finite(), || f64::from(to_f32(half)) != double);
    half
}

/// Raises overflow for an infinity from a finite value, underflow for a subnormal that is not exact.
#[inline]
fn raise(half: u16, was_finite: bool, is_inexact: impl Fn() -> bool) {
    let magnitude = half & 0x7fff;
    if magnitude == 0x7c00 && was_finite {
        black_box(black_box(f32::MAX) * 2.0);
    } else if magnitude < 0x400 && was_finite && is_inexact() {
        black_box(black_box(f32::MIN_POSITIVE) * f32::MIN_POSITIVE);
    }
}

/// The half nearest to this single, ties to even.
#[inline]
pub fn from_f32(single: f32) -> u16 {
    let bits = single.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude >= 0x7f80_0000 {
        if magnitude == 0x7f80_0000 {
            return sign | 0x7c00;
        }
        // NaN: keep the upper part of its payload, and keep it a NaN.
        let payload = (magnitude >> 13) as u16 & 0x3ff;
        return sign | 0x7c00 | if payload == 0 { 1 } else { payload };
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Subnormal half or zero.
        if magnitude < 0x3300_0000 {
            return sign;
        }
        let shift = 126 - (magnitude >> 23);
        let fraction = (magnitude & 0x7f_ffff) | 0x80_0000;
        return sign | round(fraction, shift) as u16;
    }
    // A carry out of the fraction goes into the exponent, up to infinity, as it should.
    sign | round(magnitude - 0x3800_0000, 13) as u16
}

/// The half nearest to this double, ties to even.
#[inline]
pub fn from_f64(double: f64) -> u16 {
    let bits = double.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff_ffff_ffff;
    if magnitude >= 0x7ff0_0000_0000_0000 {
        if magnitude == 0x7ff0_0000_0000_0000 {
            return sign | 0x7c00;
        }
        let payload = (magnitude >> 42) as u16 & 0x3ff;
        return sign | 0x7c00 | if payload == 0 { 1 } else { payload };
    }
    if magnitude >= 0x40f0_0000_0000_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3f10_0000_0000_0000 {
        if magnitude < 0x3e60_0000_0000_0000 {
            return sign;
        }
        let shift = 1051 - (magnitude >> 52);
        let fraction = (magnitude & 0xf_ffff_ffff_ffff) | 0x10_0000_0000_0000;
        return sign | round64(fraction, shift) as u16;
    }
    sign | round64(magnitude - 0x3f00_0000_0000_0000, 42) as u16
}

fn round(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    kept + u32::from(rest > half || (rest == half && kept & 1 == 1))
}

fn round64(value: u64, shift: u64) -> u64 {
    let kept = value >> shift;
    let rest = value & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
}
