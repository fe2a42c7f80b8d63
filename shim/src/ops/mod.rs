//! Operations with launches of their own, a room each.

pub(crate) mod create;
pub(crate) mod reduce;
