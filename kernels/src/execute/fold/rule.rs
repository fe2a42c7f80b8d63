//! The folds of a row: pairwise sums, inner loops in reduce form, positions of extremes.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use std::ffi::c_char;
use std::ptr;

use super::Elements;
use super::extreme::{Best, Ordered};
use crate::execute::LoopError;
use crate::execute::plan::Kernel;
use crate::execute::walk::invoke;
use crate::loops;
use crate::pairwise::{Stream, Summand, sum_rows};
use crate::program::{Element, Extreme, Seed};

/// Rows up to this length are folded side by side when there are many: a loop call per element instead of one per row.
const SIDE_BY_SIDE: usize = 16;

/// One kind of fold.
///
/// Safety of all methods: elements and targets must be there and of the rule's type.
pub(super) trait RowRule {
    /// A row begins.
    fn start(&mut self);

    /// Takes elements `first..first + count` of the row.
    unsafe fn feed(&mut self, input: Elements, first: usize, count: usize) -> Result<(), LoopError>;

    /// Writes the row's result.
    unsafe fn finish(&mut self, target: *mut u8);

    /// Folds `rows` whole rows of `count` elements, one after the other in `input`. `stride` leads from one target to the
    /// next if that is always the same.
    unsafe fn fold_rows(
        &mut self,
        input: Elements,
        rows: usize,
        count: usize,
        target: &dyn Fn(usize) -> *mut u8,
        stride: Option<isize>,
    ) -> Result<(), LoopError> {
        let _ = stride;
        for row in 0..rows {
            self.start();
            // SAFETY: the caller's.
            unsafe {
                self.feed(input.from(row * count), 0, count)?;
                self.finish(target(row));
            }
        }
        Ok(())
    }
}

/// Writes an element of type T.
unsafe fn write<T>(target: *mut u8, value: T) {
    // SAFETY: the caller's; targets may be less aligned than T.
    unsafe { target.cast::<T>().write_unaligned(value) };
}

/// The value of type T that an element holds.
pub(super) fn element_as<T: Copy>(element: &Element) -> T {
    const { assert!(size_of::<T>() <= size_of::<Element>()) };
    // SAFETY: large enough and aligned; the callers' types are numbers, for which any bits are a value.
    unsafe { ptr::from_ref(element).cast::<T>().read() }
}

/// The element that holds a value.
pub(super) fn element_of<T: Copy>(value: T) -> Element {
    const { assert!(size_of::<T>() <= size_of::<Element>()) };
    let mut element = Element([0; 32]);
    // SAFETY: large enough and aligned.
    unsafe { ptr::from_mut(&mut element).cast::<T>().write(value) };
    element
}

/// Sums in NumPy's tree.
pub(super) struct PairwiseRows<T: Summand> {
    seed: Option<T>,
    current_seed: T,
    /// Values of a row that go through the tree.
    summed: usize,
    stream: Stream<T>,
}

impl<T: Summand> PairwiseRows<T> {
    pub(super) fn new(seed: Seed, folded: usize, any: T) -> PairwiseRows<T> {
        let (seed, summed) = match seed {
            Seed::Value(value) => (Some(element_as(&value)), folded),
            Seed::First => (None, folded - 1),
        };
        PairwiseRows { seed, current_seed: seed.unwrap_or(any), summed, stream: Stream::new(0, any) }
    }
}

impl<T: Summand> RowRule for PairwiseRows<T> {
    fn start(&mut self) {
        self.stream.restart(self.summed);
    }

    unsafe fn feed(&mut self, input: Elements, first: usize, count: usize) -> Result<(), LoopError> {
        let mut skipped = 0;
        // SAFETY: the caller's.
        unsafe {
            if first == 0 && self.seed.is_none() {
                self.current_seed = input.address.cast::<T>().read();
                skipped = 1;
            }
            self.stream.feed(input.at(skipped), input.stride, count - skipped);
        }
        Ok(())
    }

    unsafe fn finish(&mut self, target: *mut u8) {
        if let Some(sum) = self.stream.result() {
            // SAFETY: the caller's.
            unsafe { write(target, T::finish(self.current_seed, sum)) };
        }
    }

    unsafe fn fold_rows(
        &mut self,
        input: Elements,
        rows: usize,
        count: usize,
        target: &dyn Fn(usize) -> *mut u8,
        stride: Option<isize>,
    ) -> Result<(), LoopError> {
        // SAFETY: the caller's.
        unsafe {
            match (self.seed, stride) {
                (Some(seed), Some(stride)) => {
                    let base = target(0);
                    sum_rows::<T>(input.address, input.stride, rows, count, |row, sum| {
                        write(base.wrapping_offset(stride * row.cast_signed()), T::finish(seed, sum));
                    });
                }
                (Some(seed), None) => sum_rows::<T>(input.address, input.stride, rows, count, |row, sum| {
                    write(target(row), T::finish(seed, sum));
                }),
                (None, _) => {
                    for row in 0..rows {
                        self.start();
                        self.feed(input.from(row * count), 0, count)?;
                        self.finish(target(row));
                    }
                }
            }
        }
        Ok(())
    }
}

/// An inner loop in reduce form.
pub(super) struct LoopRows {
    kernel: Kernel,
    seed: Seed,
    item_bytes: usize,
    accumulator: Element,
}

impl LoopRows {
    pub(super) fn new(kernel: Kernel, seed: Seed, item_bytes: usize) -> LoopRows {
        LoopRows { kernel, seed, item_bytes, accumulator: Element([0; 32]) }
    }

    pub(super) fn accumulator(&self) -> Element {
        self.accumulator
    }
}

impl RowRule for LoopRows {
    fn start(&mut self) {
        if let Seed::Value(value) = self.seed {
            self.accumulator = value;
        }
    }

    unsafe fn feed(&mut self, input: Elements, first: usize, count: usize) -> Result<(), LoopError> {
        let mut skipped = 0;
        // SAFETY: the caller's.
        unsafe {
            if first == 0 && self.seed == Seed::First {
                ptr::copy_nonoverlapping(input.address, self.accumulator.0.as_mut_ptr(), self.item_bytes);
                skipped = 1;
            }
            if count == skipped {
                return Ok(());
            }
            let accumulator: *mut c_char = self.accumulator.0.as_mut_ptr().cast();
            let data = [accumulator, input.at(skipped).cast(), accumulator];
            invoke(&self.kernel, &data, count - skipped, &[0, input.stride, 0])
        }
    }

    unsafe fn finish(&mut self, target: *mut u8) {
        // SAFETY: the caller's.
        unsafe { ptr::copy_nonoverlapping(self.accumulator.0.as_ptr(), target, self.item_bytes) };
    }

    unsafe fn fold_rows(
        &mut self,
        input: Elements,
        rows: usize,
        count: usize,
        target: &dyn Fn(usize) -> *mut u8,
        stride: Option<isize>,
    ) -> Result<(), LoopError> {
        // SAFETY: the caller's.
        unsafe {
            if let (Some(stride), true) = (stride, count <= SIDE_BY_SIDE && rows >= 8)
                && stride != 0
            {
                let base = target(0);
                let row_stride = input.stride * count.cast_signed();
                let mut first = 0;
                match self.seed {
                    Seed::First => {
                        loops::copy_strided(base, stride, input.address, row_stride, rows, self.item_bytes);
                        first = 1;
                    }
                    Seed::Value(value) => {
                        loops::copy_strided(base, stride, value.0.as_ptr(), 0, rows, self.item_bytes);
                    }
                }
                for index in first..count {
                    let data = [base.cast(), input.at(index).cast(), base.cast()];
                    invoke(&self.kernel, &data, rows, &[stride, row_stride, stride])?;
                }
                return Ok(());
            }
            for row in 0..rows {
                self.start();
                self.feed(input.from(row * count), 0, count)?;
                self.finish(target(row));
            }
        }
        Ok(())
    }
}

/// Positions of the smallest or largest element.
pub(super) struct ExtremeRows<T: Ordered> {
    best: Best<T>,
}

impl<T: Ordered> ExtremeRows<T> {
    pub(super) fn new(extreme: Extreme, any: T) -> ExtremeRows<T> {
        ExtremeRows { best: Best::new(extreme, any) }
    }
}

impl<T: Ordered> RowRule for ExtremeRows<T> {
    fn start(&mut self) {}

    unsafe fn feed(&mut self, input: Elements, first: usize, count: usize) -> Result<(), LoopError> {
        // SAFETY: the caller's.
        unsafe { self.best.feed(input, first, count) };
        Ok(())
    }

    unsafe fn finish(&mut self, target: *mut u8) {
        // SAFETY: the caller's.
        unsafe { write(target, self.best.index().cast_signed()) };
    }

    unsafe fn fold_rows(
        &mut self,
        input: Elements,
        rows: usize,
        count: usize,
        target: &dyn Fn(usize) -> *mut u8,
        _stride: Option<isize>,
    ) -> Result<(), LoopError> {
        for row in 0..rows {
            // SAFETY: the caller's.
            unsafe {
                let position = self.best.of_row(input.from(row * count), count);
                write(target(row), position.cast_signed());
            }
        }
        Ok(())
    }
}
