//! Rings: a little memory that stands for a moving window of a field, each byte of which is mapped twice so that the window is
//! always one stretch.
//!
//! Promises that the `bytes` bytes from any position on lie one after the other. Where the system has no memory that can be
//! mapped twice, there is none. Does not know what is in the window.
#![expect(unsafe_code, reason = "mmap and munmap")]

use std::ptr;

/// Rings are whole numbers of pages of this size.
const PAGE_BYTES: usize = 4096;
/// Between the places of one position in neighbouring rings, so that a load from one does not look like the store before it to the
/// other (see `facts/fusion.md`).
const SKEW_BYTES: usize = 1088;

/// A window of a field.
///
/// Invariant: `address..address + 2 * bytes` is mapped, writable and this ring's alone; both halves are the same memory.
pub(crate) struct Ring {
    address: usize,
    bytes: usize,
    skew: usize,
}

impl Ring {
    /// A window of at least `bytes` bytes; those with neighbouring numbers are used together.
    pub(crate) fn new(bytes: usize, number: usize) -> Option<Ring> {
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let address = map_twice(bytes)?;
        Some(Ring { address, bytes, skew: number * SKEW_BYTES % PAGE_BYTES })
    }

    /// Where the byte at a position of the field is; those behind it follow, as many as the window holds.
    pub(crate) fn at(&self, position: usize) -> usize {
        self.address + (position + self.skew) % self.bytes
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the type's invariant; nobody else knows the mapping.
        unsafe { libc::munmap(self.address as *mut libc::c_void, 2 * self.bytes) };
    }
}

fn map_twice(bytes: usize) -> Option<usize> {
    // SAFETY: an unnamed file of this process; closed below.
    let file = unsafe { libc::memfd_create(c"legate-ring".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let length = libc::off_t::try_from(bytes).unwrap_or(-1);
    // SAFETY: the file is open; the first mapping, at an address of the kernel's choice, disturbs nothing, and the other two
    // replace its halves.
    unsafe {
        let mut address = libc::MAP_FAILED;
        if libc::ftruncate(file, length) == 0 {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            address = libc::mmap(ptr::null_mut(), 2 * bytes, libc::PROT_NONE, flags, -1, 0);
        }
        if address != libc::MAP_FAILED {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
            let halves = [address, address.wrapping_byte_add(bytes)];
            let mapped = halves.map(|half| libc::mmap(half, bytes, access, flags, file, 0) == half);
            if mapped != [true, true] {
                libc::munmap(address, 2 * bytes);
                address = libc::MAP_FAILED;
            }
        }
        libc::close(file);
        (address != libc::MAP_FAILED).then_some(address as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_one_stretch_wherever_it_begins() {
        let ring = Ring::new(5000, 1).expect("memory that can be mapped twice");
        for start in [0, 100, 8000, 8191, 100_000] {
            for offset in [0, 4096, 8191] {
                // SAFETY: the window holds 8192 bytes from any position on.
                unsafe { ((ring.at(start) + offset) as *mut u8).write(7) };
                // SAFETY: as above.
                assert_eq!(unsafe { (ring.at(start + offset) as *const u8).read() }, 7);
                // SAFETY: as above.
                unsafe { (ring.at(start + offset) as *mut u8).write(0) };
            }
        }
    }
}
