//! NumPy's pairwise summation (the rule of NumPy >= 2.3), evaluated on values that arrive in blocks and in tiles.
//!
//! Promises the bits of `np.add.reduce` over one run of `n` values, wherever blocks and tiles cut it. `tree` holds the
//! shape of the tree and its leaves, `stream` feeds blocks to it, `pieces` cuts and joins it across tiles. Which values
//! form one run is the caller's knowledge: see `facts/reductions.md`.

mod leaf;
mod pieces;
mod rows;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use pieces::{Collector, Piece, combine, merge, piece_limits};
pub(crate) use rows::sum_rows;
pub(crate) use stream::Stream;
pub(crate) use tree::{Half, Pair, Summand};
