//! A few ranks of one long row of numbers, without sorting it: a sample tells between which words each rank lies, and one pass by all
//! threads counts what is below and collects what is between.
//!
//! Where the sample misled, all is collected. Does not part the other numbers as a partition would.
#![expect(unsafe_code, reason = "reads and exchanges elements at computed addresses")]

use std::ops::Range;
use std::sync::Mutex;

use super::Each;
use super::buckets::{Shared, at, lock, look_at};
use super::survey::Survey;
use super::words::{Sortable, Word};

/// Words looked at in a sample.
const SAMPLES: usize = 1 << 14;
/// How far from its place in the sample a rank may be, in standard deviations: one rank in a billion is farther.
const DEVIATIONS: f64 = 6.0;
/// Numbers that are looked at before what is found is noted.
const BLOCK: usize = 1 << 10;

/// Words from the first to the last, both included.
type Bracket<W> = (W, W);

/// Brackets, apart from each other, that should hold some ranks of `count` words of which `sample` is a sorted sample.
fn brackets<W: Word>(sample: &[W], count: usize, ranks: &[usize]) -> Vec<Bracket<W>> {
    let most = sample.len() as f64;
    let mut found: Vec<Bracket<W>> = Vec::new();
    for rank in ranks {
        let part = (*rank as f64 + 0.5) / count as f64;
        let off = DEVIATIONS * (part * (1.0 - part) * most).sqrt() + 1.0;
        let (low, high) = (part * most - off, part * most + off);
        // Ends of the row may be beyond those of the sample.
        let first = if low < 0.0 { W::LEAST } else { sample[low as usize] };
        let last = if high >= most - 1.0 { W::GREATEST } else { sample[high.ceil() as usize] };
        found.push((first, last));
    }
    found.sort_unstable();
    let mut apart: Vec<Bracket<W>> = Vec::new();
    for (first, last) in found {
        match apart.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            Some(_) | None => apart.push((first, last)),
        }
    }
    apart
}

/// What one pass found: for each bracket, how many words are below it, and those in it with their places.
struct Found<W: Word> {
    below: Vec<usize>,
    within: Vec<Vec<W::WithPlace>>,
    survey: Survey,
}

/// Looks at the words of a range.
fn look<W: Word>(range: Range<usize>, brackets: &[Bracket<W>], word: impl Fn(usize) -> W) -> Found<W> {
    let mut below = vec![0; brackets.len()];
    let mut within = vec![Vec::new(); brackets.len()];
    let mut words = [W::default(); BLOCK];
    for first in range.clone().step_by(BLOCK) {
        let words = &mut words[..BLOCK.min(range.end - first)];
        words.iter_mut().enumerate().for_each(|(ahead, own)| *own = word(first + ahead));
        for (bracket, (least, greatest)) in brackets.iter().enumerate() {
            below[bracket] += words.iter().map(|word| usize::from(word < least)).sum::<usize>();
            for (ahead, word) in words.iter().enumerate() {
                if word >= least && word <= greatest {
                    within[bracket].push(word.with_place(first + ahead));
                }
            }
        }
    }
    Found { below, within, survey: Survey::NOTHING }
}

/// Exchanges numbers so that those of some ranks (below the count) are at the places where a sort would have them; all others are left
/// where they are. There are fewer than 2^32. `false`, and nothing is exchanged, where values of other bits are equal.
///
/// # Safety
/// The numbers are there, aligned; nobody else touches them.
pub unsafe fn select_values<T: Sortable>(
    each: Each<'_>,
    threads: usize,
    (address, count): (usize, usize),
    ranks: &[usize],
) -> bool {
    let values = Shared(address as *mut T);
    // SAFETY: places are below the count, and nothing is written while threads read.
    let value = |place| unsafe { at(values, place).read() };
    let looks = SAMPLES.min(count);
    let mut sample: Vec<T::Word> = (0..looks).map(|look| value(look_at(look, looks, count)).rank()).collect();
    sample.sort_unstable();
    let everything = vec![(T::Word::LEAST, T::Word::GREATEST)];
    for brackets in [brackets(&sample, count, ranks), everything] {
        let found = pass(each, threads, count, &brackets, value);
        if !found.survey.is_plain() {
            return false;
        }
        let origin = |rank: &usize| {
            let bracket = found.below.partition_point(|below| below <= rank).checked_sub(1)?;
            found.within[bracket].get(rank - found.below[bracket]).map(|both| T::Word::place(*both))
        };
        if let Some(origins) = ranks.iter().map(origin).collect::<Option<Vec<usize>>>() {
            // SAFETY: ranks and origins are below the count, and no thread is at work.
            unsafe { bring(values, ranks, origins) };
            return true;
        }
    }
    false
}

/// One pass over all words, by all threads.
fn pass<T: Sortable>(
    each: Each<'_>,
    threads: usize,
    count: usize,
    brackets: &[Bracket<T::Word>],
    value: impl Fn(usize) -> T + Sync,
) -> Found<T::Word> {
    let stretches = threads * 4;
    let nothing = vec![Vec::new(); brackets.len()];
    let all = Mutex::new(Found { below: vec![0; brackets.len()], within: nothing, survey: Survey::NOTHING });
    each(stretches, &|stretch| {
        let range = stretch * count / stretches..(stretch + 1) * count / stretches;
        let survey = Survey::of(range.clone().map(&value));
        let mut own = look(range, brackets, |place| value(place).rank());
        let mut all = lock(&all);
        all.survey = all.survey.and(survey);
        all.below.iter_mut().zip(own.below).for_each(|(all, own)| *all += own);
        all.within.iter_mut().zip(&mut own.within).for_each(|(all, own)| all.append(own));
    });
    let mut found = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.within.iter_mut().for_each(|within| within.sort_unstable());
    found
}

/// Exchanges values so that each of `ranks` gets that which is at its origin now.
///
/// # Safety
/// All are places of values, which nobody else touches.
unsafe fn bring<T: Copy>(values: Shared<T>, ranks: &[usize], mut origins: Vec<usize>) {
    for (turn, rank) in ranks.iter().enumerate() {
        let origin = origins[turn];
        // SAFETY: the caller's promise.
        unsafe { std::ptr::swap(at(values, *rank), at(values, origin)) };
        // What was at the rank is where the value came from.
        for later in &mut origins[turn + 1..] {
            if *later == *rank {
                *later = origin;
            } else if *later == origin {
                *later = *rank;
            }
        }
    }
}
