//! The places of set bytes, as a list.
//!
//! Promises the places in order. It writes behind the list what there is room for (`places_of`).

#![expect(unsafe_code, reason = "vector instructions, and a list of unknown length")]

use super::lanes::Width;

/// Writes the places of the bytes that are not 0.
///
/// # Safety
/// There must be room for a place for each byte, and for 16 more.
pub(crate) unsafe fn places_of(bytes: &[u8], places: *mut u32) {
    match Width::best() {
        Width::Plain => plain(bytes, 0, places),
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => plain(bytes, 0, places),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's; the processor has these instructions.
        Width::Avx512 => unsafe { avx512(bytes, places) },
    }
}

/// How many bytes are not 0.
pub(crate) fn count_set(bytes: &[u8]) -> usize {
    match Width::best() {
        Width::Plain => count(bytes),
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => count(bytes),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has these instructions.
        Width::Avx512 => unsafe { count_avx512(bytes) },
    }
}

fn count(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(*byte != 0)).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,popcnt")]
fn count_avx512(bytes: &[u8]) -> usize {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_test_epi8_mask};

    let (groups, rest) = bytes.as_chunks::<64>();
    let mut found = 0;
    for group in groups {
        // SAFETY: sixty-four bytes.
        let group = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
        found += _mm512_test_epi8_mask(group, group).count_ones() as usize;
    }
    found + count(rest)
}

/// As [`places_of`], of bytes of which the first has place `first`.
#[inline(always)]
fn plain(bytes: &[u8], first: usize, places: *mut u32) {
    let mut found = 0;
    for (place, byte) in bytes.iter().enumerate() {
        // SAFETY: the caller of `places_of` has room for a place for each byte.
        unsafe { places.add(found).write((first + place) as u32) };
        found += usize::from(*byte != 0);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,popcnt")]
unsafe fn avx512(bytes: &[u8], places: *mut u32) {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_test_epi8_mask, _mm512_add_epi32, _mm512_maskz_compress_epi32, _mm512_set1_epi32,
        _mm512_setr_epi32, _mm512_storeu_si512,
    };

    let mut next = places;
    let mut sixteen = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let (groups, rest) = bytes.as_chunks::<16>();
    for group in groups {
        // SAFETY: sixteen bytes; a whole vector fits behind the places found so far.
        unsafe {
            let group = _mm_loadu_si128(group.as_ptr().cast::<__m128i>());
            let set = _mm_test_epi8_mask(group, group);
            _mm512_storeu_si512(next.cast(), _mm512_maskz_compress_epi32(set, sixteen));
            next = next.add(set.count_ones() as usize);
        }
        sixteen = _mm512_add_epi32(sixteen, _mm512_set1_epi32(16));
    }
    plain(rest, groups.len() * 16, next);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_list_the_same_places() {
        for count in [0, 1, 15, 16, 17, 100, 1000] {
            let bytes: Vec<u8> = (0..count).map(|place| u8::from(place * place % 7 < 3) * (place % 5) as u8).collect();
            assert_eq!(count_set(&bytes), super::count(&bytes));
            let expected: Vec<u32> = (0..count as u32).filter(|place| bytes[*place as usize] != 0).collect();
            for run in [places_of, |bytes: &[u8], places| plain(bytes, 0, places)] {
                let mut places = vec![0; count + 16];
                // SAFETY: there is room for sixteen more.
                unsafe { run(&bytes, places.as_mut_ptr()) };
                assert_eq!(places[..expected.len()], expected);
            }
        }
    }
}
