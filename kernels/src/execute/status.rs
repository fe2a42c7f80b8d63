//! Floating-point events: the processor's sticky status bits, and the table in which a program's steps leave them.
//!
//! Promises that every event of a step reaches its entry, in NumPy's encoding, and that a thread's status and rounding
//! mode are after a run what they were before it. On processors without a status register that we can read, no event is
//! ever seen.

#![expect(unsafe_code, reason = "reads and writes the floating-point status register")]

use std::sync::atomic::{AtomicU8, Ordering};

/// Division of a finite value by zero (NumPy's `NPY_FPE_DIVIDEBYZERO`).
pub const DIVIDE_BY_ZERO: u8 = 1;
/// A result too large for its type.
pub const OVERFLOW: u8 = 2;
/// A result too small for its type.
pub const UNDERFLOW: u8 = 4;
/// A result that is no number.
pub const INVALID: u8 = 8;

/// Sticky floating-point events, one entry for each value of `flags` that a program's steps name.
///
/// Shared by all point tasks of one launch.
#[derive(Debug, Default)]
pub struct FlagTable {
    entries: Vec<AtomicU8>,
}

impl FlagTable {
    /// A table of `entries` entries, all clear.
    pub fn new(entries: usize) -> FlagTable {
        FlagTable { entries: (0..entries).map(|_| AtomicU8::new(0)).collect() }
    }

    /// The events of one entry.
    pub fn get(&self, entry: usize) -> u8 {
        self.entries[entry].load(Ordering::Acquire)
    }

    /// Adds events to one entry.
    pub fn raise(&self, entry: usize, events: u8) {
        if events != 0 {
            self.entries[entry].fetch_or(events, Ordering::AcqRel);
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entries at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Events gathered by one run of one tile, added to the shared table when dropped.
///
/// Invariant: between [`Events::begin`] and the drop the thread's status bits are clear except while a loop runs.
pub(super) struct Events<'a> {
    table: &'a FlagTable,
    gathered: Vec<u8>,
    saved: register::Saved,
}

impl<'a> Events<'a> {
    pub(super) fn begin(table: &'a FlagTable) -> Events<'a> {
        Events { table, gathered: vec![0; table.len()], saved: register::save_and_clear() }
    }

    /// Whether what ran since has raised an event.
    #[inline(always)]
    pub(super) fn pending(&self) -> bool {
        register::is_raised()
    }

    /// Forgets what has been raised.
    pub(super) fn discard(&mut self) {
        register::take();
    }

    /// Moves what the loop just called has raised to `entry`. Long doubles raise events in the x87 status; so does the C
    /// library's `feraiseexcept` for overflow and underflow, by which loops report what the processor does not (halves, the
    /// negative of the smallest integer).
    #[inline(always)]
    pub(super) fn take(&mut self, entry: usize) {
        let events = register::take() | register::take_extended();
        if events != 0 {
            self.gathered[entry] |= events;
        }
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        for (entry, events) in self.gathered.iter().enumerate() {
            self.table.raise(entry, *events);
        }
        register::restore(self.saved);
    }
}

/// The events that some work raises on this thread.
pub fn watched(work: impl FnOnce()) -> u8 {
    let table = FlagTable::new(1);
    let mut events = Events::begin(&table);
    work();
    events.take(0);
    drop(events);
    table.get(0)
}

/// Hides what raises events until it is dropped.
pub(crate) struct Quiet {
    saved: register::Saved,
}

impl Quiet {
    pub(crate) fn begin() -> Quiet {
        Quiet { saved: register::read() }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if register::read() != self.saved {
            register::restore(self.saved);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod register {
    use std::arch::asm;

    use super::{DIVIDE_BY_ZERO, INVALID, OVERFLOW, UNDERFLOW};

    pub(super) type Saved = u32;

    /// Invalid, divide by zero, overflow, underflow: Intel's manual, volume 1, figure 10-3.
    const EVENTS: u32 = 0x1d;

    #[inline(always)]
    pub(super) fn read() -> u32 {
        let mut status = 0_u32;
        // SAFETY: stores four bytes into a local.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut status, options(nostack, preserves_flags)) };
        status
    }

    fn write(status: u32) {
        // SAFETY: `status` was read from the register and differs at most in its sticky bits.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const status, options(nostack, preserves_flags)) };
    }

    fn numpy_events(status: u32) -> u8 {
        let bit = |mask: u32, event: u8| if status & mask != 0 { event } else { 0 };
        bit(1, INVALID) | bit(4, DIVIDE_BY_ZERO) | bit(8, OVERFLOW) | bit(16, UNDERFLOW)
    }

    pub(super) fn save_and_clear() -> Saved {
        let saved = read();
        write(saved & !EVENTS);
        take_extended();
        saved
    }

    pub(super) fn restore(saved: Saved) {
        write(saved);
    }

    #[inline(always)]
    pub(super) fn is_raised() -> bool {
        read() & EVENTS != 0
    }

    #[inline(always)]
    pub(super) fn take() -> u8 {
        let status = read();
        if status & EVENTS == 0 { 0 } else { clear(status) }
    }

    #[cold]
    fn clear(status: u32) -> u8 {
        write(status & !EVENTS);
        numpy_events(status)
    }

    #[inline(always)]
    pub(super) fn take_extended() -> u8 {
        let status: u16;
        // SAFETY: reads the x87 status word.
        unsafe { asm!("fnstsw ax", out("ax") status, options(nomem, nostack, preserves_flags)) };
        if u32::from(status) & EVENTS == 0 {
            return 0;
        }
        // SAFETY: clears the sticky exception bits of the x87 status word and nothing else.
        unsafe { asm!("fnclex", options(nomem, nostack, preserves_flags)) };
        numpy_events(u32::from(status))
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use std::arch::asm;

    use super::{DIVIDE_BY_ZERO, INVALID, OVERFLOW, UNDERFLOW};

    pub(super) type Saved = u64;

    /// Invalid, divide by zero, overflow, underflow of FPSR.
    const EVENTS: u64 = 0xf;

    #[inline(always)]
    pub(super) fn read() -> u64 {
        let status: u64;
        // SAFETY: reads the floating-point status register.
        unsafe { asm!("mrs {}, fpsr", out(reg) status, options(nomem, nostack, preserves_flags)) };
        status
    }

    fn write(status: u64) {
        // SAFETY: `status` was read from the register and differs at most in its sticky bits.
        unsafe { asm!("msr fpsr, {}", in(reg) status, options(nomem, nostack, preserves_flags)) };
    }

    pub(super) fn save_and_clear() -> Saved {
        let saved = read();
        write(saved & !EVENTS);
        saved
    }

    pub(super) fn restore(saved: Saved) {
        write(saved);
    }

    #[inline(always)]
    pub(super) fn is_raised() -> bool {
        read() & EVENTS != 0
    }

    #[inline(always)]
    pub(super) fn take() -> u8 {
        let status = read();
        if status & EVENTS == 0 {
            return 0;
        }
        write(status & !EVENTS);
        let bit = |mask: u64, event: u8| if status & mask != 0 { event } else { 0 };
        bit(1, INVALID) | bit(2, DIVIDE_BY_ZERO) | bit(4, OVERFLOW) | bit(8, UNDERFLOW)
    }

    pub(super) fn take_extended() -> u8 {
        0
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    pub(super) type Saved = ();

    pub(super) fn read() -> Saved {}

    pub(super) fn save_and_clear() -> Saved {}

    pub(super) fn restore(_saved: Saved) {}

    #[inline(always)]
    pub(super) fn is_raised() -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn take() -> u8 {
        0
    }

    pub(super) fn take_extended() -> u8 {
        0
    }
}
