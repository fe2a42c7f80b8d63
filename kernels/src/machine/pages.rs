//! Memory that holds code: written once, then only run.

#![expect(unsafe_code, reason = "maps memory and makes it executable")]

use std::ptr;

/// Code in memory of its own.
///
/// Invariant: `address` is a mapping of `bytes` bytes, which can be read and run and which nobody writes.
#[derive(Debug)]
pub(super) struct Pages {
    address: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the mapping is owned, and never written after it is made.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// A copy of `code` that can be run; none where the system forbids it.
    pub(super) fn new(code: &[u8]) -> Option<Pages> {
        let bytes = code.len();
        let (writable, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a mapping of our own, which nobody knows before it is complete.
        unsafe {
            let address = libc::mmap(ptr::null_mut(), bytes, writable, private, -1, 0);
            if address == libc::MAP_FAILED {
                return None;
            }
            let pages = Pages { address, bytes };
            ptr::copy_nonoverlapping(code.as_ptr(), address.cast(), bytes);
            (libc::mprotect(address, bytes, libc::PROT_READ | libc::PROT_EXEC) == 0).then_some(pages)
        }
    }

    /// Where the code begins.
    pub(super) fn start(&self) -> *const u8 {
        self.address.cast()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the type's invariant; whoever runs the code holds this.
        unsafe { libc::munmap(self.address, self.bytes) };
    }
}

/// Whether the processor has the vectors that code is made for.
pub(super) fn has_vectors() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        false
    }
}
