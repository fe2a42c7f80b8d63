//! Reductions within a run: rows folded one after the other, and totals over everything a tile walks.
//!
//! Promises that each row, and each tile's part of a total, is folded in the order of its elements, wherever blocks cut
//! it. What one fold does is in `rule`; how the parts of tiles become a total is in `total`.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

pub(super) mod columns;
pub(super) mod count;
pub(super) mod extreme;
mod rule;
pub(super) mod total;
pub(super) mod wire;

use smallvec::SmallVec;

use super::LoopError;
use super::nest::Nest;
use super::plan::{Fold, Kernel, Operation, Plan, Target};
use super::walk::Cursor;
use crate::pairwise::{Half, Pair};
use crate::program::{Extreme, Float, Number, Reducer, Seed};
use count::{CountRows, Counted};
use rule::{ExtremeRows, LoopRows, PairwiseRows, RowRule};
use total::TotalRule;

/// Evaluates an expression with a value of the type that a number names.
macro_rules! for_number {
    ($number:expr, $any:ident => $body:expr) => {
        match $number {
            Number::Bool | Number::U8 => for_number!(@0_u8, $any, $body),
            Number::I8 => for_number!(@0_i8, $any, $body),
            Number::I16 => for_number!(@0_i16, $any, $body),
            Number::U16 => for_number!(@0_u16, $any, $body),
            Number::I32 => for_number!(@0_i32, $any, $body),
            Number::U32 => for_number!(@0_u32, $any, $body),
            Number::I64 => for_number!(@0_i64, $any, $body),
            Number::U64 => for_number!(@0_u64, $any, $body),
            Number::F16 => for_number!(@Half(0), $any, $body),
            Number::F32 => for_number!(@0.0_f32, $any, $body),
            Number::F64 => for_number!(@0.0_f64, $any, $body),
            Number::C64 => for_number!(@Pair(0.0_f32, 0.0_f32), $any, $body),
            Number::C128 => for_number!(@Pair(0.0_f64, 0.0_f64), $any, $body),
        }
    };
    (@$value:expr, $any:ident, $body:expr) => {{
        let $any = $value;
        $body
    }};
}

use for_number;

/// What a reduction does to its operand.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Pairwise(Float),
    Fold(Kernel),
    ArgExtreme(Extreme, Number),
    Count(Counted),
}

impl Rule {
    pub(super) fn new(reducer: &Reducer) -> Rule {
        match reducer {
            Reducer::Pairwise(float) => Rule::Pairwise(*float),
            Reducer::Fold(kernel) => Rule::Fold(Kernel(kernel.clone())),
            Reducer::ArgExtreme(extreme, number) => Rule::ArgExtreme(*extreme, *number),
        }
    }
}

/// What a reduction keeps from block to block.
pub(super) enum State {
    Rows(Rows),
    Total(Box<dyn TotalRule>),
}

/// The rows of one pass over a chunk.
pub(super) struct Rows {
    rule: Box<dyn RowRule>,
    /// Rows finished.
    row: usize,
    /// Elements of the current row that have come.
    filled: usize,
}

impl State {
    /// A state for each reduction of `plan`. The tile walks elements `first..last` of each total.
    pub(super) fn for_plan(plan: &Plan, first: usize, last: usize) -> Vec<State> {
        let folds = plan.operations.iter().filter_map(|operation| match operation {
            Operation::Fold(fold, _) => Some(fold),
            Operation::Load(_)
            | Operation::Store(_)
            | Operation::Call(_)
            | Operation::Masked(..)
            | Operation::Enter(_)
            | Operation::Packed(_)
            | Operation::Gather(_)
            | Operation::Scatter(_)
            | Operation::Chain(_)
            | Operation::Woven(_)
            | Operation::Index { .. }
            | Operation::Accumulate { .. } => None,
        });
        folds
            .map(|fold| match fold.target {
                Target::Walk { folded, .. } => State::Rows(Rows { rule: row_rule(fold, folded), row: 0, filled: 0 }),
                Target::Total { elements, .. } => State::Total(total::total_rule(fold, first, last, elements)),
            })
            .collect()
    }

    /// A chunk begins: its rows count from 0.
    pub(super) fn begin_chunk(&mut self) {
        if let State::Rows(rows) = self {
            rows.row = 0;
            rows.filled = 0;
        }
    }
}

fn row_rule(fold: &Fold, folded: usize) -> Box<dyn RowRule> {
    match &fold.rule {
        Rule::Pairwise(float) => pairwise_rows(*float, fold.seed, folded),
        Rule::Fold(kernel) => Box::new(LoopRows::new(kernel.clone(), fold.seed, fold.item_bytes)),
        Rule::ArgExtreme(extreme, number) => extreme_rows(*extreme, *number),
        Rule::Count(counted) => Box::new(CountRows::new(*counted, fold.seed)),
    }
}

fn pairwise_rows(float: Float, seed: Seed, folded: usize) -> Box<dyn RowRule> {
    match float {
        Float::F16 => Box::new(PairwiseRows::new(seed, folded, Half(0))),
        Float::F32 => Box::new(PairwiseRows::new(seed, folded, 0.0_f32)),
        Float::F64 => Box::new(PairwiseRows::new(seed, folded, 0.0_f64)),
        Float::C64 => Box::new(PairwiseRows::new(seed, folded, Pair(0.0_f32, 0.0_f32))),
        Float::C128 => Box::new(PairwiseRows::new(seed, folded, Pair(0.0_f64, 0.0_f64))),
    }
}

fn extreme_rows(extreme: Extreme, number: Number) -> Box<dyn RowRule> {
    for_number!(number, any => Box::new(ExtremeRows::new(extreme, any)))
}

/// Folds the block's `count` elements.
///
/// # Safety
/// The invariant of `Cursor`.
pub(super) unsafe fn feed(
    cursor: &mut Cursor<'_, '_>,
    fold: &Fold,
    state: usize,
    count: usize,
) -> Result<(), LoopError> {
    let input = Elements { address: cursor.pointers[fold.input.pointer], stride: fold.input.stride };
    // SAFETY: the caller's.
    unsafe {
        match (&mut cursor.states[state], fold.target) {
            (State::Total(rule), _) => rule.feed(input, count)?,
            (State::Rows(rows), Target::Walk { walk, folded, axes }) => {
                let targets = Targets::new(&cursor.plan.nest, walk, axes, cursor.bases[walk]);
                rows.feed(input, count, folded, &targets)?;
            }
            (State::Rows(_), Target::Total { .. }) => unreachable!("`for_plan` makes states by target"),
        }
    }
    cursor.events.take(fold.flags);
    Ok(())
}

/// Elements in a straight line.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    pub(super) address: *mut u8,
    pub(super) stride: isize,
}

impl Elements {
    #[inline(always)]
    pub(super) fn at(self, index: usize) -> *mut u8 {
        self.address.wrapping_offset(self.stride * index.cast_signed())
    }

    #[inline(always)]
    pub(super) fn from(self, index: usize) -> Elements {
        Elements { address: self.at(index), stride: self.stride }
    }
}

impl Rows {
    unsafe fn feed(
        &mut self,
        mut input: Elements,
        mut count: usize,
        folded: usize,
        targets: &Targets<'_>,
    ) -> Result<(), LoopError> {
        while count > 0 {
            let whole = count / folded;
            let taken;
            // SAFETY: the caller's.
            unsafe {
                if self.filled == 0 && whole > 0 {
                    self.rule.fold_rows(
                        input,
                        whole,
                        folded,
                        &|row| targets.address(self.row + row),
                        targets.stride,
                    )?;
                    self.row += whole;
                    taken = whole * folded;
                } else {
                    if self.filled == 0 {
                        self.rule.start();
                    }
                    taken = (folded - self.filled).min(count);
                    self.rule.feed(input, self.filled, taken)?;
                    self.filled += taken;
                    if self.filled == folded {
                        self.rule.finish(targets.address(self.row));
                        self.row += 1;
                        self.filled = 0;
                    }
                }
            }
            input = input.from(taken);
            count -= taken;
        }
        Ok(())
    }
}

/// Where the results of rows go.
struct Targets<'a> {
    base: *mut u8,
    /// Bytes from one row's result to the next, if that is always the same.
    stride: Option<isize>,
    /// Lengths (the outermost is not needed) and strides of the axes that are kept.
    axes: &'a [super::nest::Axis],
    strides: &'a [isize],
}

impl<'a> Targets<'a> {
    /// The results in `walk`, whose first element of the chunk is at `base`; `folded` trailing axes are folded.
    fn new(nest: &'a Nest, walk: usize, folded: usize, base: *mut u8) -> Targets<'a> {
        let kept = nest.axes.len() - folded;
        let axes = &nest.axes[..kept];
        let strides = &nest.walks[walk].strides[..kept];
        let mut stride = Some(strides.last().copied().unwrap_or(0));
        let mut expected = 0;
        for (index, (axis, along)) in axes.iter().zip(strides).enumerate().rev() {
            if index + 1 < kept && *along != expected {
                stride = None;
            }
            expected = along * axis.length.cast_signed();
        }
        Targets { base, stride, axes, strides }
    }

    #[inline(always)]
    fn address(&self, row: usize) -> *mut u8 {
        if let Some(stride) = self.stride {
            return self.base.wrapping_offset(stride * row.cast_signed());
        }
        let mut offset = 0;
        let mut rest = row;
        for (axis, stride) in self.axes.iter().zip(self.strides).skip(1).rev() {
            offset += (rest % axis.length).cast_signed() * stride;
            rest /= axis.length;
        }
        offset += rest.cast_signed() * self.strides[0];
        self.base.wrapping_offset(offset)
    }
}

/// The addresses of the first elements of all walks.
pub(super) type Bases = SmallVec<[*mut u8; 8]>;
