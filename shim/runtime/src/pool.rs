//! The memory pool: instances come from here and go back, because touching fresh pages costs more than most work.
//!
//! Blocks are whole pages from `mmap`, kept by size and handed out again to whatever they are not much too large for,
//! most recently used first.
//! The pool also keeps the account that `--sysmem` limits: bytes reserved by fields that exist, counted at issue, so
//! that MemoryError comes at the user's line. It does not decide when to raise (the shim does, with the array's name).
#![expect(unsafe_code, reason = "mmap and munmap")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Blocks at least this large ask for huge pages (the kernel's huge page on x86-64 and most aarch64).
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Blocks are whole numbers of pages of this size.
const PAGE_BYTES: usize = 4096;

/// A stretch of memory from the pool, returned to it on drop.
///
/// Invariant: `address..address + bytes` is mapped, writable, page-aligned and owned by this block alone.
pub struct Block {
    address: usize,
    bytes: usize,
    pool: Arc<Pool>,
}

impl Block {
    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.put_back(self.address, self.bytes);
    }
}

/// Free blocks and the account of reserved bytes.
pub struct Pool {
    free: Mutex<BTreeMap<usize, Vec<usize>>>,
    free_bytes: AtomicUsize,
    reserved: AtomicUsize,
    /// Bytes of the fields that user handles hold.
    held: AtomicUsize,
    /// Among how many shards fields are shared out.
    shards: usize,
    fresh_blocks: AtomicU64,
    limit: usize,
}

impl Pool {
    /// The pool of one of `shards` shards, whose fields may reserve `limit` bytes on each.
    pub fn new(limit: usize, shards: usize) -> Arc<Pool> {
        Arc::new(Pool {
            free: Mutex::new(BTreeMap::new()),
            free_bytes: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            shards,
            fresh_blocks: AtomicU64::new(0),
            limit,
        })
    }

    /// Bytes that fields may reserve.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes reserved by the fields that exist. With several shards: this shard's part of the fields that the program holds,
    /// which is the same on every shard at the same line.
    pub fn reserved(&self) -> usize {
        if self.shards > 1 {
            self.held.load(Ordering::Acquire) / self.shards
        } else {
            self.reserved.load(Ordering::Acquire)
        }
    }

    /// Blocks that had to be mapped afresh so far.
    pub fn fresh_blocks(&self) -> u64 {
        self.fresh_blocks.load(Ordering::Relaxed)
    }

    /// Whether another `bytes` fit under the limit.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.reserved().saturating_add(bytes / self.shards) <= self.limit
    }

    pub(crate) fn reserve(&self, bytes: usize) {
        self.reserved.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(crate) fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(crate) fn let_go(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::AcqRel);
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.reserved.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// A block of at least `bytes` bytes; its contents are arbitrary.
    pub fn take(self: &Arc<Pool>, bytes: usize) -> Block {
        let rounded = rounded(bytes);
        if let Some((address, length)) = self.reuse(rounded) {
            return Block { address, bytes: length, pool: self.clone() };
        }
        if self.free_bytes.load(Ordering::Acquire) + self.reserved() > self.limit {
            self.trim();
        }
        self.fresh_blocks.fetch_add(1, Ordering::Relaxed);
        let mut address = map(rounded);
        if address == 0 {
            self.trim();
            address = map(rounded);
        }
        assert!(address != 0, "the system has no {rounded} bytes left although --sysmem allows them");
        Block { address, bytes: rounded, pool: self.clone() }
    }

    /// Whether there is a free block for `bytes` bytes.
    pub(crate) fn has_block(&self, bytes: usize) -> bool {
        let rounded = rounded(bytes);
        self.free.lock().range(rounded..=rounded.saturating_mul(2)).next().is_some()
    }

    /// The smallest free block that holds `bytes` without wasting more than half of itself.
    fn reuse(&self, bytes: usize) -> Option<(usize, usize)> {
        let mut free = self.free.lock();
        let (length, addresses) = free.range_mut(bytes..=bytes.saturating_mul(2)).next()?;
        let length = *length;
        let address = addresses.pop()?;
        if addresses.is_empty() {
            free.remove(&length);
        }
        self.free_bytes.fetch_sub(length, Ordering::AcqRel);
        Some((address, length))
    }

    fn put_back(&self, address: usize, bytes: usize) {
        self.free.lock().entry(bytes).or_default().push(address);
        self.free_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Gives all free blocks back to the system.
    pub fn trim(&self) {
        for (bytes, addresses) in std::mem::take(&mut *self.free.lock()) {
            for address in addresses {
                self.free_bytes.fetch_sub(bytes, Ordering::AcqRel);
                // SAFETY: the block was mapped by `map` with this length and, being free, is used by nobody (Block's invariant).
                unsafe { libc::munmap(address as *mut libc::c_void, bytes) };
            }
        }
    }
}

fn rounded(bytes: usize) -> usize {
    let unit = if bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES / 8 } else { PAGE_BYTES };
    bytes.max(1).next_multiple_of(unit)
}

/// Maps fresh pages; 0 when the system has none.
fn map(bytes: usize) -> usize {
    // SAFETY: an anonymous private mapping at an address of the kernel's choice disturbs nothing.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return 0;
    }
    if bytes >= HUGE_PAGE_BYTES {
        // SAFETY: advice on the mapping just made; failure is harmless.
        unsafe { libc::madvise(address, bytes, libc::MADV_HUGEPAGE) };
    }
    address as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_block_is_handed_out_again() {
        let pool = Pool::new(1 << 30, 1);
        let first = pool.take(100_000).address();
        let again = pool.take(99_000).address();
        assert_eq!(first, again);
        assert_eq!(pool.fresh_blocks(), 1);
        pool.trim();
        drop(pool.take(99_000));
        assert_eq!(pool.fresh_blocks(), 2);
    }

    #[test]
    fn the_account_knows_what_fits() {
        let pool = Pool::new(1000, 1);
        assert!(pool.has_room(1000));
        pool.reserve(600);
        assert!(!pool.has_room(401));
        pool.release(600);
        assert!(pool.has_room(1000) && !pool.has_room(usize::MAX));
    }
}
