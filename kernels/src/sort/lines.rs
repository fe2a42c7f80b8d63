//! Many rows of numbers, each sorted for itself: the lines of an array along one of its axes.
//!
//! A thread copies a line's words beside each other, sorts them there and writes what is wanted of them; lines whose elements lie apart
//! are copied several at a time, so that what the memory brings along is used. Promises for each line what `buckets` promises of one row.
#![expect(unsafe_code, reason = "elements at computed addresses")]

use std::sync::atomic::{AtomicBool, Ordering};

use super::Each;
use super::words::{Sortable, Word};

/// Lines that are copied together where their elements lie apart.
const TOGETHER: usize = 16;
/// Numbers that a thread takes at a time, at least.
const AT_ONCE: usize = 1 << 14;

/// The lines of an array along an axis.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Address of the array's first element.
    pub address: usize,
    /// Elements of a line.
    pub length: usize,
    /// Bytes from one to the next.
    pub stride: isize,
    /// Length and stride in bytes of each other axis, that with the nearest elements last.
    pub others: Vec<(usize, isize)>,
}

impl Lines {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.others.iter().map(|(length, _)| length).product()
    }

    /// The elements of a line.
    ///
    /// # Safety
    /// They are there, of this type and aligned, and nobody writes them meanwhile.
    pub unsafe fn elements<T: Copy>(&self, line: usize) -> impl Iterator<Item = T> {
        let (start, stride) = (self.start(line), self.stride);
        // SAFETY: the caller's promise.
        (0..self.length)
            .map(move |place| unsafe { (start.wrapping_add_signed(place.cast_signed() * stride) as *const T).read() })
    }

    /// Address of a line's first element.
    fn start(&self, line: usize) -> usize {
        let mut rest = line;
        let mut address = self.address;
        for (length, stride) in self.others.iter().rev() {
            address = address.wrapping_add_signed((rest % length).cast_signed() * stride);
            rest /= length;
        }
        address
    }
}

/// For each line: loads its words, has `work` done on them, and stores the result in the line of the same number of `to`.
///
/// # Safety
/// All elements of both are there, aligned; nobody else touches them.
unsafe fn run<T: Copy, W: Copy + Default, R: Copy>(
    each: Each<'_>,
    from: &Lines,
    to: &Lines,
    load: impl Fn(T, usize) -> W + Sync,
    work: impl Fn(&mut [W]) + Sync,
    store: impl Fn(W) -> R + Sync,
) {
    let (count, length) = (from.count(), from.length);
    if count == 0 || length == 0 {
        return;
    }
    let together = if from.stride == size_of::<T>().cast_signed() { 1 } else { TOGETHER };
    let lines = (AT_ONCE / length).max(1).next_multiple_of(together).min(count);
    each(count.div_ceil(lines), &|part| {
        let mut words = vec![W::default(); together * length];
        let last = ((part + 1) * lines).min(count);
        for first in (part * lines..last).step_by(together) {
            let group = first..(first + together).min(last);
            let starts: Vec<usize> = group.clone().map(|line| from.start(line)).collect();
            for place in 0..length {
                let ahead = place.cast_signed() * from.stride;
                for (own, start) in starts.iter().enumerate() {
                    // SAFETY: an element of the caller's lines.
                    let value = unsafe { (start.wrapping_add_signed(ahead) as *const T).read() };
                    words[own * length + place] = load(value, place);
                }
            }
            words.chunks_exact_mut(length).take(starts.len()).for_each(&work);
            let starts: Vec<usize> = group.map(|line| to.start(line)).collect();
            for place in 0..length {
                let ahead = place.cast_signed() * to.stride;
                for (own, start) in starts.iter().enumerate() {
                    // SAFETY: as above; each line is one thread's.
                    unsafe { (start.wrapping_add_signed(ahead) as *mut R).write(store(words[own * length + place])) };
                }
            }
        }
    });
}

/// Sorts each line.
///
/// # Safety
/// All elements are there, aligned; nobody else touches them.
pub unsafe fn sort_lines<T: Sortable>(each: Each<'_>, lines: &Lines, nan: T) {
    // SAFETY: the caller's promise.
    unsafe {
        run(each, lines, lines, |value: T, _| value.word(), <[T::Word]>::sort_unstable, |word| T::of_word(word, nan));
    }
}

/// Writes the stable order of each line of numbers as a line of places (`i64`). Whether any two numbers of a line are equal.
///
/// # Safety
/// All elements are there, aligned; nobody else touches them; the two overlap nowhere; lines are shorter than 2^32.
pub unsafe fn place_lines<T: Sortable>(each: Each<'_>, lines: &Lines, places: &Lines) -> bool {
    let tied = AtomicBool::new(false);
    let work = |words: &mut [<T::Word as Word>::WithPlace]| {
        words.sort_unstable();
        if words.windows(2).any(|pair| T::Word::is_tie(pair[0], pair[1])) {
            tied.store(true, Ordering::Relaxed);
        }
    };
    let load = |value: T, place: usize| value.rank().with_place(place);
    // SAFETY: the caller's promise.
    unsafe { run(each, lines, places, load, work, |both| T::Word::place(both) as i64) };
    tied.into_inner()
}

/// Moves the numbers of some ranks (in order, below the length) of each line to those places, no greater ones before them and no smaller ones behind.
///
/// # Safety
/// As for [`sort_lines`].
pub unsafe fn select_lines<T: Sortable>(each: Each<'_>, lines: &Lines, ranks: &[usize], nan: T) {
    let work = |words: &mut [T::Word]| {
        let mut end = words.len();
        for rank in ranks.iter().rev().filter(|rank| **rank < lines.length) {
            if *rank < end {
                words[..end].select_nth_unstable(*rank);
                end = *rank;
            }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { run(each, lines, lines, |value: T, _| value.word(), work, |word| T::of_word(word, nan)) };
}
