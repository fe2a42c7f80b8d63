//! Shim.
