//! Which vector instructions the random loops may use on this machine.
//!
//! Every loop gives the same bits at every level; a level only changes its speed. Nothing here is generated code for a
//! machine that was not asked.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls for instructions that are there"))]

use std::sync::OnceLock;

/// Instruction sets that the loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// What the crate's target guarantees.
    Portable,
    /// AVX-512 F, DQ and VL, with BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best level of this machine, asked once.
    pub(super) fn detected() -> Level {
        static DETECTED: OnceLock<Level> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("bmi2")
            {
                return Level::Avx512;
            }
            Level::Portable
        })
    }
}

/// Runs a body compiled for the best level of this machine, given that it inlines (`#[inline(always)]`, all the way down).
pub(super) fn at_best_level<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn wide<R>(body: impl FnOnce() -> R) -> R {
        body()
    }
    match Level::detected() {
        // SAFETY: `Level::detected` answers Avx512 only where these features exist.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { wide(body) },
        Level::Portable => body(),
    }
}
