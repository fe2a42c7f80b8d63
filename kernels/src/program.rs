//! A block program: what one fused group does to its operands, as data.
//!
//! A program walks a *row axis* that all of its passes share (`0..rows`, the group coordinate). A tile is a range of
//! rows (or, for programs that accumulate over the rows, a range of one inner axis). Within a tile the executor takes
//! *chunks* of rows and runs every pass over the chunk, in order, so that what one pass leaves in memory or in a slot
//! is still in cache when the next one reads it. Within a pass it takes *blocks* of a few hundred elements and runs
//! every step over the block, so that registers stay in L1.
//!
//! This file only describes programs; it promises that any two programs that print alike, or are equal, do alike. It does not run them
//! (see `execute`), decide what is fused (the runtime), or know what a dtype is beyond its size.

#![expect(unsafe_code, reason = "inner loops carry raw pointers between threads")]

mod print;
mod regions;
mod slots;

use std::any::Any;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;

/// NumPy's strided inner loop: `loop(context, data[nin + nout], &n, byte_strides[nin + nout], auxdata)`, not 0 on error.
pub type LoopFunction =
    unsafe extern "C" fn(*const c_void, *const *mut c_char, *const isize, *const isize, *mut c_void) -> c_int;

/// One inner loop, NumPy's or ours (ours ignore context and auxdata).
///
/// Invariant: `function` may be called from any thread without the GIL, on any aligned operands that do not partly
/// overlap, for as long as `owner` lives.
#[derive(Clone)]
pub struct Loop {
    /// The function itself.
    pub function: LoopFunction,
    /// First argument of every call.
    pub context: *const c_void,
    /// Last argument of every call.
    pub auxdata: *mut c_void,
    /// Name for printed plans, as `add dd->d`.
    pub name: Arc<str>,
    /// Whether it never touches the processor's floating-point status, which then need not be looked at.
    pub is_quiet: bool,
    /// Keeps `context` and `auxdata` alive.
    pub owner: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: the invariant of `Loop`: any thread may call it while `owner`, which is itself Send and Sync, lives.
unsafe impl Send for Loop {}
// SAFETY: as above; nothing in a `Loop` changes after it is made.
unsafe impl Sync for Loop {}

impl Loop {
    /// A function under a name, called without context and auxiliary data, of which nothing is known; what else is to be said of
    /// a loop replaces that.
    pub fn of(function: LoopFunction, name: impl Into<Arc<str>>) -> Loop {
        Loop {
            function,
            context: ptr::null(),
            auxdata: ptr::null_mut(),
            name: name.into(),
            is_quiet: false,
            owner: None,
        }
    }
}

impl PartialEq for Loop {
    /// Whether both do the same: `owner` says nothing of that.
    fn eq(&self, other: &Loop) -> bool {
        ptr::fn_addr_eq(self.function, other.function)
            && self.context == other.context
            && self.auxdata == other.auxdata
            && self.is_quiet == other.is_quiet
            && self.name == other.name
    }
}

/// Up to 32 bytes of one element, aligned for any numeric type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub struct Element(pub [u8; 32]);

/// Where an access lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// External memory, bound to a base address for each run.
    Buffer(usize),
    /// A temporary that lives for one chunk of rows: its rows are stored one after the other, chunk-relative.
    Slot(usize),
    /// A constant element (all strides are 0).
    Constant(usize),
}

/// An affine walk over memory: the address of (row, inner index) is
/// `base + offset + row * row_stride + sum(index * inner_strides)`, in bytes; for a slot `row` counts from the chunk's
/// first row, otherwise it is the group coordinate.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// What is walked.
    pub memory: Memory,
    /// Bytes from the base to row 0, inner index 0 (may be negative: row 0 need not belong to the pass).
    pub offset: isize,
    /// Bytes from one row to the next; 0 repeats.
    pub row_stride: isize,
    /// Bytes along each inner axis of the pass; 0 repeats.
    pub inner_strides: SmallVec<[isize; 4]>,
    /// Size of one element in bytes.
    pub item_bytes: usize,
    /// Whether every element's address is aligned for its type; otherwise the executor copies it to a register first.
    pub aligned: bool,
}

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// A block register (an index into [`Pass::registers`]), written by exactly one step before it is read, and
    /// after that by `Masked` steps only.
    Register(usize),
    /// Memory (an index into [`Pass::accesses`]).
    Access(usize),
}

/// How many of a value become one.
#[derive(Clone, PartialEq)]
pub enum Reducer {
    /// NumPy's pairwise sum (rule of NumPy >= 2.3): result = seed + pairwise(all).
    Pairwise(Float),
    /// A binary inner loop called in reduce form, in order within a tile; partials of tiles fold in order. (NumPy's own
    /// `add` loops for floats sum pairwise within each call: floating sums use [`Reducer::Pairwise`].)
    Fold(Loop),
    /// Index of the first smallest or largest element (NaN wins, as in NumPy); the result is an i64.
    ArgExtreme(Extreme, Number),
}

/// Which end [`Reducer::ArgExtreme`] looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// Smallest.
    Min,
    /// Largest.
    Max,
}

/// Floating-point types with a pairwise sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    /// IEEE half, accumulated in f32 as NumPy does.
    F16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Two f32.
    C64,
    /// Two f64.
    C128,
}

/// Numeric types that our own loops know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are NumPy's")]
pub enum Number {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    C64,
    C128,
}

/// What a reduction starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seed {
    /// This value.
    Value(Element),
    /// The first element (which is then not folded again).
    First,
}

/// One step of a pass, run over one block at a time.
#[derive(Clone, PartialEq)]
pub enum Step {
    /// Element by element: `outputs = kernel(inputs)`.
    Apply {
        /// The inner loop.
        kernel: Loop,
        /// Operands read.
        inputs: SmallVec<[Arg; 3]>,
        /// Operands written.
        outputs: SmallVec<[Arg; 2]>,
        /// Floating-point events are gathered in this entry of the flag table.
        flags: usize,
    },
    /// As `Apply`, for the elements whose byte of `mask` is not 0. Elsewhere an output keeps what it holds (a register that was
    /// not written before: anything), and the loop is not called, so that it raises no events.
    Masked {
        /// Operand of one byte an element.
        mask: Arg,
        /// The inner loop.
        kernel: Loop,
        /// Operands read.
        inputs: SmallVec<[Arg; 3]>,
        /// Operands written in part.
        outputs: SmallVec<[Arg; 2]>,
        /// Entry of the flag table.
        flags: usize,
    },
    /// `output = start + index * delta` where index counts the pass's elements (row-major over rows and inner axes, from its
    /// first row on), computed as NumPy's `arange` does: in the type itself, wrapping for integers. For F16
    /// `start` and `delta` are given, and the sum is computed, in f32.
    Index {
        /// Type of the output.
        number: Number,
        /// First value.
        start: Element,
        /// Step between values.
        delta: Element,
        /// Operand written.
        output: Arg,
    },
    /// Folds the trailing `axes` inner axes (all elements of them, in order) into one element of `output`.
    Reduce {
        /// What is done.
        reducer: Reducer,
        /// What it starts from.
        seed: Seed,
        /// Operand read.
        input: Arg,
        /// Access written: its strides along the folded axes are 0.
        output: usize,
        /// Number of trailing inner axes that are folded (at least 1).
        axes: usize,
        /// Entry of the flag table.
        flags: usize,
    },
    /// Folds everything the pass walks, over all rows of all tiles, into one value (an index into [`Program::totals`]).
    Total {
        /// What is done.
        reducer: Reducer,
        /// What it starts from.
        seed: Seed,
        /// Operand read.
        input: Arg,
        /// Which total.
        total: usize,
        /// Entry of the flag table.
        flags: usize,
    },
    /// `output[j] = kernel(output[j], input[i, j])` for every i in order, where the output's strides are 0 along the row
    /// axis or along inner axes that come before all axes with a stride. The first i of the tile seeds the output.
    Accumulate {
        /// The binary inner loop.
        kernel: Loop,
        /// What each output element starts from.
        seed: Seed,
        /// Operand read.
        input: Arg,
        /// Access read and written.
        output: usize,
        /// Entry of the flag table.
        flags: usize,
    },
}

/// Steps over one domain: `rows` (a part of the group's row axis) times the inner axes.
#[derive(Clone, Default, PartialEq)]
pub struct Pass {
    /// Rows of the group that this pass covers.
    pub rows: Range<usize>,
    /// Lengths of the inner axes, outermost first; empty for one element a row.
    pub inner: SmallVec<[usize; 4]>,
    /// Every walk over memory that the steps name. All have one stride per inner axis.
    pub accesses: Vec<Access>,
    /// Element sizes in bytes of the block registers.
    pub registers: Vec<usize>,
    /// What is done to each block, in order.
    pub steps: Vec<Step>,
}

/// How tiles may cut a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Tiles are ranges of rows.
    Rows,
    /// Tiles are ranges of this inner axis (the same length in every pass); all rows in order.
    Inner(usize),
    /// One tile only: the order is serial by nature.
    Whole,
}

/// A fused group, ready to be compiled and run.
#[derive(Clone, PartialEq)]
pub struct Program {
    /// Length of the row axis.
    pub rows: usize,
    /// Number of external buffers.
    pub buffers: usize,
    /// Those of them that another program reads at once, from the caches.
    pub read_soon: Vec<usize>,
    /// Bytes per row of each chunk-lived temporary.
    pub slots: Vec<usize>,
    /// Constant elements.
    pub constants: Vec<Element>,
    /// Size in bytes of each total.
    pub totals: Vec<usize>,
    /// Number of entries in the flag table.
    pub flags: usize,
    /// How it may be cut.
    pub split: Split,
    /// Run in order over each chunk of rows.
    pub passes: Vec<Pass>,
}

/// The part of a program that one point task runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows of the group coordinate.
    pub rows: Range<usize>,
    /// For [`Split::Inner`]: the range of that inner axis.
    pub inner: Option<Range<usize>>,
}
