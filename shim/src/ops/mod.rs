//! Operations with launches of their own, a room each.

pub(crate) mod assign;
pub(crate) mod batches;
pub(crate) mod bins;
pub(crate) mod choose;
pub(crate) mod create;
mod exchange;
pub(crate) mod extremes;
pub(crate) mod fourier;
mod indices;
pub(crate) mod join;
pub(crate) mod long_rows;
pub(crate) mod mask;
pub(crate) mod mean;
pub(crate) mod parts;
mod picks;
pub(crate) mod product;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod short_rows;
pub(crate) mod sort;
pub(crate) mod stacks;
pub(crate) mod strips;
pub(crate) mod vectors;
