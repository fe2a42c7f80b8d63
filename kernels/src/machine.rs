//! Machine code made while the program runs: exact float operations with all their values in vector registers.
//!
//! The operations of a block program are known only at run time, and an interpreter must pass each value through memory. Here a
//! [`Tape`] of additions, multiplications, divisions and the like becomes one function, for processors with AVX-512 vectors. Promises
//! the bits and the floating-point events of the operations done one by one: each rounds by itself, and lanes without an element
//! compute nothing. Where code cannot be made (another processor, a system that forbids it, too many values) there is none, and
//! the caller does without. Which operations go on a tape is decided in `execute`.

#![expect(unsafe_code, reason = "calls code that was made at run time")]

mod emit;
mod encode;
mod lines;
mod pages;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use pages::Pages;

/// What an operation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// The result of this instruction.
    Result(usize),
    /// This operand of the tape.
    Memory(usize),
    /// The number with these bits (of a double, or of a single in the lower half).
    Constant(u64),
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Add,
    Subtract,
    Multiply,
    Divide,
    Sqrt,
    Negative,
    Absolute,
    Copy,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instruction {
    pub(crate) verb: Verb,
    /// First and last; verbs with one operand read the last.
    pub(crate) operands: [Value; 2],
    /// The operand where the result is stored.
    pub(crate) store: Option<usize>,
}

/// Operations on vectors of elements, in order.
///
/// Invariant: results are read after they are made, and nothing is both read from memory and stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Tape {
    /// 4 or 8.
    pub(crate) item_bytes: usize,
    /// For each operand in memory: whether it is one element for all. Others are contiguous.
    pub(crate) repeats: Vec<bool>,
    pub(crate) instructions: Vec<Instruction>,
}

/// A tape over many short lines at once, with the sums of each line.
///
/// Operand n of line (outer, middle) begins `outer * outer_strides[n] + middle * middle_strides[n]` bytes after its pointer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Lines {
    pub(crate) tape: Tape,
    /// Elements in a line.
    pub(crate) run: usize,
    pub(crate) middle: usize,
    pub(crate) middle_strides: Vec<isize>,
    pub(crate) outer_strides: Vec<isize>,
    pub(crate) sums: Vec<LineSum>,
}

/// The sum of each line in NumPy's order, added to a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineSum {
    pub(crate) input: Value,
    /// Bits of the seed.
    pub(crate) seed: u64,
    /// The operand that takes one element a line.
    pub(crate) output: usize,
}

/// Longest line: a leaf of NumPy's summation tree.
pub(crate) const LONGEST_LINE: usize = 128;

/// Code of a tape. Arguments: addresses of the operands, bytes in whole vectors, and a bit for each element that is left over.
type TapeFunction = unsafe extern "C" fn(*const *mut u8, usize, usize);

/// Code of lines. Arguments: addresses of the operands, and how many outer positions.
type LinesFunction = unsafe extern "C" fn(*const *mut u8, usize);

/// Code that has been made.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pages: Arc<Pages>,
    item_bytes: usize,
}

impl Code {
    /// Runs a tape over `count` elements.
    ///
    /// # Safety
    /// The code must be that of a tape. Each operand must hold `count` elements (one, if it repeats), and what is stored be apart
    /// from what is read.
    pub(crate) unsafe fn run(&self, operands: &[*mut u8], count: usize) {
        let lanes = emit::VECTOR_BYTES / self.item_bytes;
        let (whole, rest) = (count / lanes * emit::VECTOR_BYTES, count % lanes);
        // SAFETY: the caller's; the pages hold a function of this type.
        unsafe {
            let function: TapeFunction = std::mem::transmute(self.pages.start());
            function(operands.as_ptr(), whole, (1 << rest) - 1);
        }
    }

    /// Runs lines at `outer` outer positions.
    ///
    /// # Safety
    /// The code must be that of lines; otherwise as for [`Code::run`].
    pub(crate) unsafe fn run_lines(&self, operands: &[*mut u8], outer: usize) {
        // SAFETY: the caller's; the pages hold a function of this type.
        unsafe {
            let function: LinesFunction = std::mem::transmute(self.pages.start());
            function(operands.as_ptr(), outer);
        }
    }
}

/// Whether code can be made for this processor and is allowed to run.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| pages::has_vectors() && Pages::new(&encode::RETURN).is_some())
}

/// The code of a tape.
pub(crate) fn code_of_tape(tape: &Tape) -> Option<Code> {
    static KNOWN: Known<Tape> = Known::new();
    if !is_available() {
        return None;
    }
    KNOWN.get(tape, tape.item_bytes, emit::tape)
}

/// The code of lines.
pub(crate) fn code_of_lines(shape: &Lines) -> Option<Code> {
    static KNOWN: Known<Lines> = Known::new();
    if !is_available() {
        return None;
    }
    KNOWN.get(shape, shape.tape.item_bytes, lines::lines)
}

/// Most codes that are kept: past it all are forgotten (those in use live on).
const KEPT: usize = 512;

/// Codes by what they do; none where there can be none.
struct Known<K>(OnceLock<Mutex<HashMap<K, Option<Code>>>>);

impl<K: Clone + Eq + std::hash::Hash> Known<K> {
    const fn new() -> Known<K> {
        Known(OnceLock::new())
    }

    fn get(&self, key: &K, item_bytes: usize, make: impl Fn(&K) -> Option<Vec<u8>>) -> Option<Code> {
        let known = self.0.get_or_init(Mutex::default);
        let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(code) = known.get(key) {
            return code.clone();
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let pages = make(key).and_then(|bytes| Pages::new(&bytes));
        let code = pages.map(|pages| Code { pages: Arc::new(pages), item_bytes });
        known.insert(key.clone(), code.clone());
        code
    }
}
