//! One long row of numbers, sorted by all threads: a sample tells where buckets of about equal size end, each thread tells the
//! buckets of its stretch and moves its words there, and then buckets are sorted one by one, each in a cache of its own.
//!
//! Words go to their bucket in the order of the row, so that words with places of one number are in order when they arrive. Numbers of
//! one or two bytes are counted instead. Does not look for what words do not tell (see [`Survey`](super::Survey)).
#![expect(unsafe_code, reason = "threads write disjoint elements of one room")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Each;
use super::words::{Sortable, Word};

/// Buckets: as many as one byte tells.
const BUCKETS: usize = 256;
/// Words looked at for each bucket's end.
const SAMPLES: usize = 16;
/// Shortest row that is parted into buckets.
const SHORTEST: usize = 1 << 13;

/// Memory for a sort to work in, which starts at a multiple of 16.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Address of as many words as there are numbers.
    pub words: usize,
    /// Address of as many bytes.
    pub buckets: usize,
}

/// Memory that several threads write, each other elements.
#[derive(Clone, Copy)]
pub(super) struct Shared<T>(pub(super) *mut T);

// SAFETY: whoever uses it writes disjoint elements; see `Shared::slice`.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Elements from `start` to `end`.
    ///
    /// # Safety
    /// They are there, and no other thread touches them meanwhile.
    #[inline(always)]
    unsafe fn slice<'a>(self, start: usize, end: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), end - start) }
    }
}

/// The buckets' ends as a tree: the children of `node` are `2 * node` and `2 * node + 1`.
struct Ends<W>([W; BUCKETS]);

impl<W: Copy + Ord + Default> Ends<W> {
    fn of(mut sample: Vec<W>) -> Ends<W> {
        sample.sort_unstable();
        let mut tree = [W::default(); BUCKETS];
        for (node, place) in tree.iter_mut().enumerate().skip(1) {
            // The node's place among all of its level, from which follows its rank among the ends.
            let level = node.ilog2();
            let rank = ((2 * (node - (1 << level)) + 1) * BUCKETS) >> (level + 1);
            *place = sample[rank * sample.len() / BUCKETS];
        }
        Ends(tree)
    }

    /// The bucket of each of some words, told for several at once, so that they need not wait for each other.
    #[inline(always)]
    fn tell<const AT_ONCE: usize>(&self, words: [W; AT_ONCE]) -> [u8; AT_ONCE] {
        let mut nodes = [1usize; AT_ONCE];
        for _ in 0..BUCKETS.ilog2() {
            for (node, word) in nodes.iter_mut().zip(&words) {
                *node = 2 * *node + usize::from(*word >= self.0[*node & (BUCKETS - 1)]);
            }
        }
        nodes.map(|node| node as u8)
    }
}

/// Runs the sort of `count` words: `load` and `store` know where they come from and go to, `sample` gives a word that is the first of all
/// those with its number. What is loaded may be where others are stored. Tells whether `is_tie` held for two neighbours.
///
/// # Safety
/// There is room, which nobody else touches.
#[expect(clippy::too_many_arguments, reason = "the ends of one sort")]
unsafe fn run<W: Copy + Ord + Default + Send + Sync>(
    each: Each<'_>,
    threads: usize,
    count: usize,
    room: Room,
    sample: impl Fn(usize) -> W,
    load: impl Fn(usize) -> W + Sync,
    store: impl Fn(usize, W) + Sync,
    is_tie: impl Fn(W, W) -> bool + Sync,
) -> bool {
    let words = Shared(room.words as *mut W);
    let told = Shared(room.buckets as *mut u8);
    let tied = AtomicBool::new(false);
    let finish = |start: usize, end: usize| {
        // SAFETY: the caller's room; buckets are disjoint.
        let own = unsafe { words.slice(start, end) };
        own.sort_unstable();
        own.iter().enumerate().for_each(|(place, word)| store(start + place, *word));
        if own.windows(2).any(|pair| is_tie(pair[0], pair[1])) {
            tied.store(true, Ordering::Relaxed);
        }
    };
    if count < SHORTEST {
        // SAFETY: the caller's room.
        unsafe { words.slice(0, count) }.iter_mut().enumerate().for_each(|(place, word)| *word = load(place));
        finish(0, count);
        return tied.into_inner();
    }
    let looks = BUCKETS * SAMPLES;
    let ends = Ends::of((0..looks).map(|look| sample(look_at(look, looks, count))).collect());
    let stretches = threads * 4;
    let bounds: Vec<usize> = (0..=stretches).map(|stretch| stretch * count / stretches).collect();
    let counts: Vec<Mutex<[usize; BUCKETS]>> = (0..stretches).map(|_| Mutex::new([0; BUCKETS])).collect();
    each(stretches, &|stretch| {
        // SAFETY: the caller's room; stretches are disjoint.
        let told = unsafe { told.slice(bounds[stretch], bounds[stretch + 1]) };
        let mut found = [0; BUCKETS];
        let (start, end) = (bounds[stretch], bounds[stretch + 1]);
        in_eights(
            start..end,
            |eight| ends.tell(eight.map(&load)),
            |place, bucket| {
                told[place - start] = bucket;
                found[usize::from(bucket)] += 1;
            },
        );
        *lock(&counts[stretch]) = found;
    });
    let mut starts = vec![0; BUCKETS + 1];
    let mut next = 0;
    for (bucket, start) in starts.iter_mut().enumerate().take(BUCKETS) {
        *start = next;
        for stretch in &counts {
            let places = &mut lock(stretch)[bucket];
            next += std::mem::replace(places, next);
        }
    }
    starts[BUCKETS] = next;
    each(stretches, &|stretch| {
        let (start, end) = (bounds[stretch], bounds[stretch + 1]);
        // SAFETY: the caller's room; stretches are disjoint.
        let told = unsafe { told.slice(start, end) };
        let mut next = *lock(&counts[stretch]);
        for (ahead, bucket) in told.iter().enumerate() {
            let place = &mut next[usize::from(*bucket)];
            // SAFETY: the counts gave each stretch places of its own in each bucket.
            unsafe { at(words, *place).write(load(start + ahead)) };
            *place += 1;
        }
    });
    each(BUCKETS, &|bucket| finish(starts[bucket], starts[bucket + 1]));
    tied.into_inner()
}

/// The place of one of `looks` words of a sample among `count`: steps of no even size, so that what repeats in the row does not repeat in
/// the sample.
pub(super) fn look_at(look: usize, looks: usize, count: usize) -> usize {
    look * (count / looks) + (look * 7919) % (count / looks).max(1)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sorts `count` numbers without gaps at an address.
///
/// # Safety
/// The numbers are there, aligned; there is room of as many words; nobody else touches either.
pub unsafe fn sort_values<T: Sortable>(
    each: Each<'_>,
    threads: usize,
    (address, count): (usize, usize),
    room: Room,
    nan: T,
) {
    let values = Shared(address as *mut T);
    if T::BITS <= 16 {
        // SAFETY: the caller's promise.
        return unsafe { count_values(each, threads, values, count, nan) };
    }
    // SAFETY: places are below the count; all are loaded before the first is stored, and each is stored once.
    let load = |place| unsafe { at(values, place).read() }.word();
    // SAFETY: as above.
    let store = |place, word| unsafe { at(values, place).write(T::of_word(word, nan)) };
    // SAFETY: the caller's room.
    unsafe { run(each, threads, count, room, load, load, store, |_, _| false) };
}

/// The address of an element.
#[inline(always)]
pub(super) fn at<T>(shared: Shared<T>, place: usize) -> *mut T {
    shared.0.wrapping_add(place)
}

/// Sorts numbers of one or two bytes by counting them.
///
/// # Safety
/// As for [`sort_values`].
unsafe fn count_values<T: Sortable>(each: Each<'_>, threads: usize, values: Shared<T>, count: usize, nan: T) {
    let kinds = 1usize << T::BITS;
    let bounds: Vec<usize> = (0..=threads).map(|part| part * count / threads).collect();
    let all = Mutex::new(vec![0usize; kinds]);
    each(threads, &|part| {
        let mut own = vec![0usize; kinds];
        // SAFETY: the caller's values, which nobody writes yet.
        for value in unsafe { values.slice(bounds[part], bounds[part + 1]) } {
            own[value.word().index()] += 1;
        }
        lock(&all).iter_mut().zip(own).for_each(|(all, own)| *all += own);
    });
    let mut ends = lock(&all).clone();
    let mut next = 0;
    for end in &mut ends {
        next += *end;
        *end = next;
    }
    each(threads, &|part| {
        let (mut place, end) = (bounds[part], bounds[part + 1]);
        let mut kind = ends.partition_point(|end| *end <= place);
        while place < end {
            let last = ends[kind].min(end);
            // SAFETY: the caller's values; parts are disjoint.
            unsafe { values.slice(place, last) }.fill(T::of_word(T::Word::of_index(kind), nan));
            (place, kind) = (last, kind + 1);
        }
    });
}

/// Finds the stable order of `count` numbers without gaps at an address: writes their places (`i64`) at `output`. Whether any two
/// numbers are equal.
///
/// # Safety
/// The numbers are there, aligned; there is room of as many words with places, and for as many places; nobody else touches any of
/// them.
pub unsafe fn sort_places<T: Sortable>(
    each: Each<'_>,
    threads: usize,
    (address, count): (usize, usize),
    room: Room,
    output: usize,
) -> bool {
    let (values, places) = (Shared(address as *mut T), Shared(output as *mut i64));
    // SAFETY: places are below the count.
    let word = |place| unsafe { at(values, place).read() }.rank();
    // SAFETY: as above; each is stored once.
    let store = |place, both| unsafe { at(places, place).write(T::Word::place(both) as i64) };
    let load = |place| word(place).with_place(place);
    // SAFETY: the caller's room.
    unsafe { run(each, threads, count, room, |place| word(place).with_place(0), load, store, T::Word::is_tie) }
}

/// Tells the buckets of all places of a range, eight at a time, and hands each over in order.
#[inline(always)]
fn in_eights(places: std::ops::Range<usize>, tell: impl Fn([usize; 8]) -> [u8; 8], mut take: impl FnMut(usize, u8)) {
    let (mut place, end) = (places.start, places.end);
    while place < end {
        // The last ones are told again and again, but handed over once.
        let eight = std::array::from_fn(|ahead| (place + ahead).min(end - 1));
        for (ahead, bucket) in tell(eight).into_iter().enumerate().take(end - place) {
            take(place + ahead, bucket);
        }
        place += 8;
    }
}
