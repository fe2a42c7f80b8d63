//! IEEE half precision as bits: conversions with NumPy's rounding and floating-point events.

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
