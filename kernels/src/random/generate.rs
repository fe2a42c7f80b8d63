//! Draws in slices as inner loops of block programs: `item = draw(number)`.
//!
//! The loop reads the items' numbers (u32, which are cheap to make) and writes the items, so that a draw fuses with
//! whatever reads it. Numbers of a block follow one another; each thread keeps readers where its last blocks ended, and
//! only jumps at the first block of a tile. Any other order of numbers gives the same items, slowly.

#![expect(unsafe_code, reason = "an inner loop works on raw memory")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fill::Fill;
use super::level::at_best_level;
use crate::program::Loop;

/// Readers that a thread keeps: as many draws can alternate in one program without a jump for each block.
const READERS: usize = 8;
/// Items made at a time where the output is strided.
const PATCH: usize = 64;

/// A draw as a loop's context.
struct Generate {
    /// Tells draws apart in the threads' readers, for as long as the process lives.
    number: u64,
    fill: Fill,
    item_bytes: usize,
}

/// Where a thread's last block of a draw ended.
struct Reader {
    draw: u64,
    item: u64,
    reader: Box<dyn Any>,
}

thread_local! {
    static KEPT: RefCell<Vec<Reader>> = const { RefCell::new(Vec::new()) };
}

impl Fill {
    /// The draw as a loop from u32 numbers to items of `item_bytes` bytes; `None` if it has no slices.
    pub fn into_loop(self, item_bytes: usize, name: &str) -> Option<Loop> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        self.fixed()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let owner = Arc::new(Generate { number, fill: self, item_bytes });
        let context = Arc::as_ptr(&owner).cast();
        Some(Loop { context, owner: Some(owner), ..Loop::of(run, name) })
    }
}

/// The loop's function: `LoopFunction` says what the arguments are.
unsafe extern "C" fn run(
    context: *const c_void,
    data: *const *mut c_char,
    count: *const isize,
    strides: *const isize,
    _auxdata: *mut c_void,
) -> c_int {
    // SAFETY: the context is the `Generate` that the loop owns; one input and one output, each with its stride.
    let (draw, numbers, out, count, number_stride, stride) = unsafe {
        (&*context.cast::<Generate>(), *data, *data.add(1), (*count).cast_unsigned(), *strides, *strides.add(1))
    };
    // SAFETY: callers give `count` aligned numbers along the stride.
    let number = |place: usize| unsafe { *numbers.offset(place.cast_signed() * number_stride).cast::<u32>() };
    let dense = number_stride == size_of::<u32>().cast_signed();
    let in_order = dense && all_follow(numbers.cast(), count);
    let mut done = 0;
    while done < count {
        let first = number(done);
        let follows = |ahead: &usize| number(done + ahead) == first.wrapping_add(*ahead as u32);
        let items = if in_order { count } else { 1 + (1..count - done).take_while(follows).count() };
        KEPT.with_borrow_mut(|kept| {
            // SAFETY: callers give room for `count` items along the stride.
            unsafe { draw.make(kept, u64::from(first), items, out.offset(done.cast_signed() * stride), stride) }
        });
        done += items;
    }
    0
}

/// Whether `count` numbers, one after the other in memory, follow one another: a vector loop.
fn all_follow(numbers: *const u32, count: usize) -> bool {
    // SAFETY: the caller's numbers lie there.
    let numbers = unsafe { std::slice::from_raw_parts(numbers, count) };
    at_best_level(
        #[inline(always)]
        || {
            let first = numbers.first().copied().unwrap_or(0);
            numbers.iter().zip(0u32..).fold(true, |all, (number, ahead)| all & (*number == first.wrapping_add(ahead)))
        },
    )
}

impl Generate {
    /// Makes `count` items from number `first` on, `stride` bytes apart.
    ///
    /// # Safety
    /// `out` is valid for writing them, and aligned.
    unsafe fn make(&self, kept: &mut Vec<Reader>, first: u64, count: usize, out: *mut c_char, stride: isize) {
        let Some((draw, state)) = self.fill.fixed() else { return };
        let known = kept.iter().position(|reader| reader.draw == self.number && reader.item == first);
        let place = known.unwrap_or_else(|| {
            if kept.len() == READERS {
                kept.remove(0);
            }
            kept.push(Reader { draw: self.number, item: first, reader: draw.reader(state, &state.engine, 0, first) });
            kept.len() - 1
        });
        let reader = &mut kept[place];
        reader.item += count as u64;
        if stride == self.item_bytes.cast_signed() {
            // SAFETY: the caller's promise.
            unsafe { draw.fill(&mut *reader.reader, count, out.cast()) };
            return;
        }
        for start in (0..count).step_by(PATCH) {
            let items = PATCH.min(count - start);
            let mut patch = [0u64; PATCH];
            // SAFETY: the patch holds that many items of at most eight bytes; the caller's promise for where they go.
            unsafe {
                draw.fill(&mut *reader.reader, items, patch.as_mut_ptr().cast());
                for item in 0..items {
                    let from = patch.as_ptr().cast::<c_char>().add(item * self.item_bytes);
                    let to = out.offset((start + item).cast_signed() * stride);
                    std::ptr::copy_nonoverlapping(from, to, self.item_bytes);
                }
            }
        }
    }
}
