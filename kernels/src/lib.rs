//! Block programs over NumPy's inner loops and our own: one tile at a time.
//!
//! No Python and no runtime here: the shim lowers a fused group to a [`program::Program`], and point tasks run it through
//! [`execute`].

pub mod bins;
pub mod execute;
pub mod gather;
pub mod loops;
mod machine;
mod pairwise;
pub mod product;
pub mod program;
pub mod random;
pub mod scatter;
pub mod sort;
