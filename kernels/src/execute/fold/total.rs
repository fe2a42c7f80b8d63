//! Totals: what one tile knows about them, and how the parts of all tiles become one element.
//!
//! Promises the bits of one serial run for pairwise sums and positions of extremes; other folds join the parts of tiles in
//! order with the same loop.

#![expect(unsafe_code, reason = "reads elements at computed addresses")]

use std::ffi::c_char;
use std::ops::Range;

use super::count::CountRows;
use super::extreme::{Best, Ordered};
use super::rule::{LoopRows, RowRule, element_as, element_of};
use super::{Elements, Rule, for_number};
use crate::execute::LoopError;
use crate::execute::plan::{Fold, Kernel};
use crate::execute::walk::invoke;
use crate::pairwise::{Collector, Half, Pair, Piece, Summand, combine};
use crate::program::{Element, Extreme, Float, Number, Seed};

/// What a tile knows about one total.
#[derive(Clone, Debug)]
pub(in crate::execute) enum Part {
    /// The tile walks none of its elements.
    Nothing,
    F16(Sums<Half>),
    F32(Sums<f32>),
    F64(Sums<f64>),
    C64(Sums<Pair<f32>>),
    C128(Sums<Pair<f64>>),
    /// The tile's elements folded.
    Folded(Element),
    /// The tile's best element and its number.
    Best(Element, usize),
}

/// Pieces of a pairwise sum.
#[derive(Clone, Debug)]
pub(in crate::execute) struct Sums<T: Summand> {
    /// The value that the sum starts from, where that is the first element and the tile has it.
    pub(super) first: Option<T>,
    pub(super) pieces: Vec<Piece<T>>,
}

/// A tile's part of a total, on its way.
pub(in crate::execute) trait TotalRule {
    /// Takes the next elements.
    ///
    /// # Safety
    /// They must be there and of the rule's type.
    unsafe fn feed(&mut self, input: Elements, count: usize) -> Result<(), LoopError>;

    /// What the tile found.
    fn into_part(self: Box<Self>) -> Part;
}

/// The rule of `fold` for a tile that walks elements `first..last` of `elements`.
pub(super) fn total_rule(fold: &Fold, first: usize, last: usize, elements: usize) -> Box<dyn TotalRule> {
    let seed = fold.seed;
    match &fold.rule {
        Rule::Pairwise(Float::F16) => Box::new(PairwiseTotal::new(seed, first, last, elements, Half(0))),
        Rule::Pairwise(Float::F32) => Box::new(PairwiseTotal::new(seed, first, last, elements, 0.0_f32)),
        Rule::Pairwise(Float::F64) => Box::new(PairwiseTotal::new(seed, first, last, elements, 0.0_f64)),
        Rule::Pairwise(Float::C64) => Box::new(PairwiseTotal::new(seed, first, last, elements, Pair(0.0_f32, 0.0_f32))),
        Rule::Pairwise(Float::C128) => {
            Box::new(PairwiseTotal::new(seed, first, last, elements, Pair(0.0_f64, 0.0_f64)))
        }
        Rule::Fold(kernel) => {
            let seed = if first == 0 { seed } else { Seed::First };
            Box::new(LoopTotal { rule: LoopRows::new(kernel.clone(), seed, fold.item_bytes), fed: 0 })
        }
        Rule::ArgExtreme(extreme, number) => extreme_total(*extreme, *number, first),
        Rule::Count(counted) => Box::new(CountTotal(CountRows::new(*counted, seed))),
    }
}

fn extreme_total(extreme: Extreme, number: Number, first: usize) -> Box<dyn TotalRule> {
    for_number!(number, any => Box::new(ExtremeTotal { best: Best::new(extreme, any), first, fed: 0 }))
}

struct PairwiseTotal<T: Summand> {
    collector: Collector<T>,
    takes_first: bool,
    first: Option<T>,
}

impl<T: Summand> PairwiseTotal<T> {
    fn new(seed: Seed, first: usize, last: usize, elements: usize, any: T) -> PairwiseTotal<T> {
        match seed {
            Seed::Value(_) => {
                PairwiseTotal { collector: Collector::new(first, last, elements, any), takes_first: false, first: None }
            }
            Seed::First => {
                let collector = Collector::new(first.saturating_sub(1), last - 1, elements - 1, any);
                PairwiseTotal { collector, takes_first: first == 0, first: None }
            }
        }
    }
}

/// Types whose pieces have a place in [`Part`].
trait HasPart: Summand {
    fn part(sums: Sums<Self>) -> Part;
    fn sums(part: Part) -> Option<Sums<Self>>;
}

macro_rules! has_part {
    ($($variant:ident $number:ty)*) => {$(
        impl HasPart for $number {
            fn part(sums: Sums<Self>) -> Part {
                Part::$variant(sums)
            }

            fn sums(part: Part) -> Option<Sums<Self>> {
                if let Part::$variant(sums) = part { Some(sums) } else { None }
            }
        }
    )*};
}

has_part!(F16 Half F32 f32 F64 f64 C64 Pair<f32> C128 Pair<f64>);

impl<T: HasPart> TotalRule for PairwiseTotal<T> {
    unsafe fn feed(&mut self, input: Elements, count: usize) -> Result<(), LoopError> {
        let mut skipped = 0;
        // SAFETY: the caller's.
        unsafe {
            if self.takes_first && self.first.is_none() {
                self.first = Some(input.address.cast::<T>().read());
                skipped = 1;
            }
            self.collector.feed(input.at(skipped), input.stride, count - skipped);
        }
        Ok(())
    }

    fn into_part(self: Box<Self>) -> Part {
        T::part(Sums { first: self.first, pieces: self.collector.into_pieces() })
    }
}

struct LoopTotal {
    rule: LoopRows,
    fed: usize,
}

impl TotalRule for LoopTotal {
    unsafe fn feed(&mut self, input: Elements, count: usize) -> Result<(), LoopError> {
        if self.fed == 0 {
            self.rule.start();
        }
        // SAFETY: the caller's.
        unsafe { self.rule.feed(input, self.fed, count)? };
        self.fed += count;
        Ok(())
    }

    fn into_part(self: Box<Self>) -> Part {
        if self.fed == 0 { Part::Nothing } else { Part::Folded(self.rule.accumulator()) }
    }
}

struct CountTotal(CountRows);

impl TotalRule for CountTotal {
    unsafe fn feed(&mut self, input: Elements, count: usize) -> Result<(), LoopError> {
        // SAFETY: the caller's.
        unsafe { self.0.feed(input, 0, count) }
    }

    fn into_part(self: Box<Self>) -> Part {
        Part::Folded(element_of(self.0.sum()))
    }
}

struct ExtremeTotal<T: Ordered> {
    best: Best<T>,
    /// Number of the tile's first element.
    first: usize,
    fed: usize,
}

impl<T: Ordered> TotalRule for ExtremeTotal<T> {
    unsafe fn feed(&mut self, input: Elements, count: usize) -> Result<(), LoopError> {
        // SAFETY: the caller's.
        unsafe { self.best.feed(input, self.fed, count) };
        self.fed += count;
        Ok(())
    }

    fn into_part(self: Box<Self>) -> Part {
        if self.fed == 0 {
            Part::Nothing
        } else {
            Part::Best(element_of(self.best.value()), self.first + self.best.index())
        }
    }
}

/// The total of `fold` over `elements` elements, from the parts of all tiles in order.
pub(in crate::execute) fn join(fold: &Fold, elements: usize, parts: Vec<Part>) -> Result<Element, LoopError> {
    match &fold.rule {
        Rule::Pairwise(Float::F16) => Ok(join_sums::<Half>(fold.seed, elements, parts)),
        Rule::Pairwise(Float::F32) => Ok(join_sums::<f32>(fold.seed, elements, parts)),
        Rule::Pairwise(Float::F64) => Ok(join_sums::<f64>(fold.seed, elements, parts)),
        Rule::Pairwise(Float::C64) => Ok(join_sums::<Pair<f32>>(fold.seed, elements, parts)),
        Rule::Pairwise(Float::C128) => Ok(join_sums::<Pair<f64>>(fold.seed, elements, parts)),
        Rule::Fold(kernel) => join_folded(kernel, fold.seed, parts),
        Rule::ArgExtreme(extreme, number) => Ok(for_number!(*number, any => join_best(*extreme, any, parts))),
        Rule::Count(counted) => Ok(counted.result(fold.seed, joined_counts(parts))),
    }
}

/// The part of elements `first..last` of `elements`, from the parts of neighbouring tiles in order.
pub(in crate::execute) fn merge(
    fold: &Fold,
    elements: usize,
    range: &Range<usize>,
    parts: Vec<Part>,
) -> Result<Part, LoopError> {
    if range.is_empty() {
        return Ok(Part::Nothing);
    }
    match &fold.rule {
        Rule::Pairwise(Float::F16) => Ok(merge_sums::<Half>(fold.seed, elements, range, parts)),
        Rule::Pairwise(Float::F32) => Ok(merge_sums::<f32>(fold.seed, elements, range, parts)),
        Rule::Pairwise(Float::F64) => Ok(merge_sums::<f64>(fold.seed, elements, range, parts)),
        Rule::Pairwise(Float::C64) => Ok(merge_sums::<Pair<f32>>(fold.seed, elements, range, parts)),
        Rule::Pairwise(Float::C128) => Ok(merge_sums::<Pair<f64>>(fold.seed, elements, range, parts)),
        Rule::Fold(kernel) => Ok(Part::Folded(join_folded(kernel, Seed::First, parts)?)),
        Rule::ArgExtreme(extreme, number) => Ok(for_number!(*number, any => merge_best(*extreme, any, parts))),
        Rule::Count(_) => Ok(Part::Folded(element_of(joined_counts(parts)))),
    }
}

fn merge_sums<T: HasPart>(seed: Seed, elements: usize, range: &Range<usize>, parts: Vec<Part>) -> Part {
    let mut first = None;
    let mut pieces = Vec::new();
    for sums in parts.into_iter().filter_map(T::sums) {
        first = first.or(sums.first);
        pieces.extend(sums.pieces);
    }
    let pieces = match seed {
        Seed::Value(_) => crate::pairwise::merge(range.start, range.end, elements, pieces),
        Seed::First => crate::pairwise::merge(range.start.saturating_sub(1), range.end - 1, elements - 1, pieces),
    };
    T::part(Sums { first, pieces })
}

fn join_sums<T: HasPart>(seed: Seed, elements: usize, parts: Vec<Part>) -> Element {
    let mut first = None;
    let mut pieces = Vec::new();
    for sums in parts.into_iter().filter_map(T::sums) {
        first = first.or(sums.first);
        pieces.extend(sums.pieces);
    }
    match (seed, first) {
        (Seed::Value(value), _) => element_of(T::finish(element_as(&value), combine(elements, pieces))),
        (Seed::First, Some(first)) => element_of(T::finish(first, combine(elements - 1, pieces))),
        (Seed::First, None) => Element([0; 32]),
    }
}

fn join_folded(kernel: &Kernel, seed: Seed, parts: Vec<Part>) -> Result<Element, LoopError> {
    let mut accumulator = None;
    for part in parts {
        let Part::Folded(mut value) = part else { continue };
        match &mut accumulator {
            None => accumulator = Some(value),
            Some(accumulator) => {
                let target: *mut c_char = accumulator.0.as_mut_ptr().cast();
                let data = [target, value.0.as_mut_ptr().cast(), target];
                // SAFETY: one element each, aligned, of the loop's types.
                unsafe { invoke(kernel, &data, 1, &[0, 0, 0])? };
            }
        }
    }
    Ok(match (accumulator, seed) {
        (Some(value), _) | (None, Seed::Value(value)) => value,
        (None, Seed::First) => Element([0; 32]),
    })
}

fn joined_counts(parts: Vec<Part>) -> u64 {
    parts.iter().map(|part| if let Part::Folded(sum) = part { element_as::<u64>(sum) } else { 0 }).sum()
}

fn join_best<T: Ordered>(extreme: Extreme, any: T, parts: Vec<Part>) -> Element {
    element_of(best_of(extreme, any, parts).map_or(0, |best| best.index().cast_signed()))
}

fn merge_best<T: Ordered>(extreme: Extreme, any: T, parts: Vec<Part>) -> Part {
    best_of(extreme, any, parts).map_or(Part::Nothing, |best| Part::Best(element_of(best.value()), best.index()))
}

fn best_of<T: Ordered>(extreme: Extreme, _any: T, parts: Vec<Part>) -> Option<Best<T>> {
    let mut best: Option<Best<T>> = None;
    for part in parts {
        let Part::Best(value, index) = part else { continue };
        let value = element_as(&value);
        best.get_or_insert_with(|| Best::starting(extreme, value, index)).join(value, index);
    }
    best
}
