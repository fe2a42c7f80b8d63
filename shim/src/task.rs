//! What a launch computes, as the shim hands it through the runtime to the kernels.
//!
//! A task names the launch's operands by position. It holds inner loops and constants, never Python objects that need
//! the GIL; lowering a group of tasks to a block program is `lower`'s.

use std::sync::Arc;

use legate_kernels::product::Item;
use legate_kernels::program::{Element, Loop, Number, Reducer, Seed};
use legate_runtime::transport::TransportError;
use legate_runtime::{Effort, Exchange, Parallel};
use smallvec::SmallVec;

/// Where an input value comes from.
#[derive(Clone)]
pub(crate) enum Origin {
    /// An operand of the launch.
    Operand(usize),
    /// The same element everywhere.
    Constant(Element),
}

/// A conversion to another type.
pub(crate) struct Cast {
    /// The converting loop.
    pub(crate) kernel: Loop,
    /// Element size after it (inputs) or before it (outputs), in bytes.
    pub(crate) item_bytes: usize,
}

/// An input value and the conversion it goes through first.
#[derive(Clone)]
pub(crate) struct Source {
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// Element size as stored, in bytes.
    pub(crate) item_bytes: usize,
    /// Conversion before use.
    pub(crate) cast: Option<Arc<Cast>>,
}

/// An operand that is written, and the conversion before it is.
#[derive(Clone)]
pub(crate) struct Sink {
    /// The operand.
    pub(crate) operand: usize,
    /// Conversion from the loop's type.
    pub(crate) cast: Option<Arc<Cast>>,
}

/// A task of a [`legate_runtime::Work::Whole`] launch: gets the address of each operand's field.
pub(crate) type WholeTask = Arc<dyn Fn(&[usize], &dyn Parallel) + Send + Sync>;

/// A task of a [`legate_runtime::Work::Exchange`] launch: gets the address of each operand's field, and what is to be known of
/// the shards.
pub(crate) type ExchangeTask = Arc<dyn Fn(&[usize], &Exchange<'_>) -> Result<(), TransportError> + Send + Sync>;

/// A matrix product, by NumPy's own loop: rows of the domain are rows of the left matrix, or (where the output has row stride 0)
/// the summed index.
#[derive(Clone)]
pub(crate) struct Product {
    /// NumPy's `matmul`.
    pub(crate) kernel: Loop,
    /// NumPy's `add`, for parts of sums.
    pub(crate) adder: Loop,
    /// Rows of the left matrix, summed index, columns of the right one.
    pub(crate) lengths: [usize; 3],
    /// Byte strides: left along rows and sum, right along sum and columns, output along rows and columns.
    pub(crate) strides: [isize; 6],
    /// Where rows of the domain are matrices of a stack: bytes from one to the next, of the left ones, the right ones and the outputs.
    pub(crate) stack: Option<[isize; 3]>,
    /// Size of an element in bytes.
    pub(crate) item_bytes: usize,
    /// The type of elements whose sums of products of short rows we make ourselves, in the place of NumPy's loop.
    pub(crate) narrow: Option<Item>,
    /// The type of elements of long rows whose products with a vector we make ourselves.
    pub(crate) long: Option<Item>,
}

/// Running totals along one axis; operands are the output and the input, of the same dtype.
#[derive(Clone)]
pub(crate) struct Scan {
    /// NumPy's binary loop.
    pub(crate) kernel: Loop,
    /// Which axis of the domain.
    pub(crate) axis: usize,
    /// Size of an element in bytes.
    pub(crate) item_bytes: usize,
    /// Whether the loop gives the same bits however it is called.
    pub(crate) any_form: bool,
    /// Whether totals of parts may be joined.
    pub(crate) joins: bool,
}

/// What is computed.
#[derive(Clone)]
pub(crate) enum Task {
    /// `outputs = kernel(inputs)`; where the mask (a source of booleans) is false, outputs keep what they hold.
    Map {
        /// The inner loop.
        kernel: Loop,
        /// Values read.
        inputs: SmallVec<[Source; 3]>,
        /// Operands written.
        outputs: SmallVec<[Sink; 1]>,
        /// Where to write.
        mask: Option<Source>,
    },
    /// `start + i * delta`.
    Index {
        /// Type of the values.
        number: Number,
        /// First value.
        start: Element,
        /// Step.
        delta: Element,
        /// Operand written.
        output: usize,
    },
    /// Trailing axes, or everything, to one element.
    Reduce {
        /// How.
        reducer: Reducer,
        /// From what.
        seed: Seed,
        /// Values read.
        input: Source,
        /// Operand written.
        output: usize,
        /// Size of a result element in bytes.
        result_bytes: usize,
    },
    /// Leading axes, in order, element by element.
    Accumulate {
        /// The binary loop.
        kernel: Loop,
        /// From what.
        seed: Seed,
        /// Values read.
        input: Source,
        /// Operand written.
        output: usize,
    },
    /// A matrix product; operands are the output, the left and the right matrix.
    Product(Product),
    /// Wherever elements live.
    Exchange(ExchangeTask),
    /// Running totals.
    Scan(Scan),
    /// In its own way.
    Whole(WholeTask),
}

/// Loops that take no longer than reading their operands from memory.
const AS_READING: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "negative",
    "positive",
    "absolute",
    "square",
    "conjugate",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "copy",
    "cast",
];

/// Loops that take about as long as storing their result in fresh memory, which the system must clear first.
const AS_STORING: &[&str] = &["divide", "sqrt", "reciprocal", "exp", "exp2", "log", "log2"];

impl Task {
    /// What making its result again costs.
    pub(crate) fn effort(&self) -> Effort {
        match self {
            // Loops of ours have their types behind their name.
            Task::Map { kernel, .. } => match kernel.name.split(' ').next() {
                Some(name) if AS_READING.contains(&name) => Effort::Reading,
                Some(name) if AS_STORING.contains(&name) => Effort::Storing,
                Some(_) | None => Effort::More,
            },
            Task::Index { .. } => Effort::Reading,
            Task::Reduce { .. }
            | Task::Accumulate { .. }
            | Task::Product(_)
            | Task::Whole(_)
            | Task::Exchange(_)
            | Task::Scan(_) => Effort::More,
        }
    }
}
