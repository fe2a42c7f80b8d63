//! Which vector instructions the random loops may use on this machine.
//!
//! Every loop gives the same bits at every level; a level only changes its speed. Nothing here is generated code for a
//! machine that was not asked.

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

/// Defines `fn name(args)` that runs `body(args)` compiled for the best level of this machine.
///
/// `body` must be an `#[inline(always)]` function: it is compiled once for each level.
macro_rules! at_best_level {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident $(<$($generic:ident: $bound:path),*>)? ($($argument:ident: $kind:ty),*) $(-> $result:ty)? = $body:expr) => {
        $(#[$meta])*
        $visibility fn $name $(<$($generic: $bound),*>)? ($($argument: $kind),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
            fn wide $(<$($generic: $bound),*>)? ($($argument: $kind),*) $(-> $result)? {
                $body($($argument),*)
            }
            match $crate::random::level::Level::detected() {
                // SAFETY: `Level::detected` answers Avx512 only where these features exist.
                #[cfg(target_arch = "x86_64")]
                $crate::random::level::Level::Avx512 => unsafe { wide($($argument),*) },
                $crate::random::level::Level::Portable => $body($($argument),*),
            }
        }
    };
}
pub(super) use at_best_level;
