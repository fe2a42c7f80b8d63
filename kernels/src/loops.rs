//! Our own inner loops, in the form of NumPy's: what NumPy does not lend (copies, casts, selection, byte order) and what
//! gives the same bits faster.
//!
//! Promises NumPy's bits and floating-point events for every loop it hands out. Which loop an operation uses is the
//! caller's decision; blocks, registers and threads are `execute`'s.

mod arithmetic;
mod byte_order;
mod cast;
pub(crate) mod chain;
mod copy;
pub mod half;
pub(crate) mod lanes;
pub(crate) mod magnitude;
mod places;
pub(crate) mod rows;
mod select;
#[cfg(test)]
mod tests;

use std::ptr;

pub(crate) use copy::copy_run;
pub use copy::copy_strided;
use lanes::Width;
pub(crate) use places::{count_set, places_of};

use crate::program::{Loop, LoopFunction, Number};

/// Ufuncs whose loops for whole numbers only add, multiply, compare and move bits. Division reports a zero, and so does what
/// has no result for the smallest number.
const QUIET: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "maximum",
    "minimum",
];

impl Number {
    /// Whether it is a truth value or an integer.
    pub const fn is_whole(self) -> bool {
        match self {
            Number::Bool
            | Number::I8
            | Number::U8
            | Number::I16
            | Number::U16
            | Number::I32
            | Number::U32
            | Number::I64
            | Number::U64 => true,
            Number::F16 | Number::F32 | Number::F64 | Number::C64 | Number::C128 => false,
        }
    }

    /// Size of one element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Number::Bool | Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 | Number::F16 => 2,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::I64 | Number::U64 | Number::F64 | Number::C64 => 8,
            Number::C128 => 16,
        }
    }

    /// NumPy's one-letter code (of the type with this width on 64-bit Linux).
    pub const fn code(self) -> char {
        match self {
            Number::Bool => '?',
            Number::I8 => 'b',
            Number::U8 => 'B',
            Number::I16 => 'h',
            Number::U16 => 'H',
            Number::I32 => 'i',
            Number::U32 => 'I',
            Number::I64 => 'l',
            Number::U64 => 'L',
            Number::F16 => 'e',
            Number::F32 => 'f',
            Number::F64 => 'd',
            Number::C64 => 'F',
            Number::C128 => 'D',
        }
    }
}

/// `output = input`, elements of `bytes` bytes.
pub fn copy(bytes: usize) -> Loop {
    own(copy::function(bytes), format!("copy {bytes}"), bytes, true)
}

/// `output = input` with the bytes of each element reversed (for complex numbers: cast as two elements of half the size).
pub fn byteswap(bytes: usize) -> Loop {
    own(byte_order::function(bytes), format!("byteswap {bytes}"), bytes, true)
}

/// `output = input` converted as NumPy's `astype` does.
pub fn cast(from: Number, to: Number) -> Option<Loop> {
    Some(own(cast::function(from, to), format!("cast {}->{}", from.code(), to.code()), from.bytes(), false))
}

/// `output = condition ? a : b`; the condition is one byte, the others are elements of `bytes` bytes.
pub fn select(bytes: usize) -> Loop {
    own(select::function(bytes), format!("select {bytes}"), bytes, true)
}

/// Our loop for a ufunc with these input and then output types, where it is the better one.
pub fn lookup(ufunc: &str, types: &[Number]) -> Option<Loop> {
    let (inputs, output) = types.split_at(types.len().saturating_sub(1));
    let codes = |types: &[Number]| types.iter().map(|number| number.code()).collect::<String>();
    arithmetic::function(Width::best(), ufunc, types).map(|function| {
        own(function, format!("{ufunc} {}->{}", codes(inputs), codes(output)), 0, is_quiet(ufunc, types))
    })
}

/// The name that a loop of NumPy's is to have, where `execute` knows more of it than the ufunc's.
pub fn borrowed_name(ufunc: &str, types: &[Number]) -> Option<String> {
    magnitude::name(ufunc, types)
}

/// Whether a ufunc's loop for these types, ours or NumPy's, works on whole numbers and raises no floating-point event for them.
pub fn is_quiet(ufunc: &str, types: &[Number]) -> bool {
    QUIET.contains(&ufunc) && types.iter().all(|number| number.is_whole())
}

/// A loop of ours; those of any element size find the size in place of the auxiliary data.
fn own(function: LoopFunction, name: String, bytes: usize, is_quiet: bool) -> Loop {
    Loop { auxdata: ptr::without_provenance_mut(bytes), is_quiet, ..Loop::of(function, name) }
}
