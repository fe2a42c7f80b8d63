//! Sorting on all threads: numbers become unsigned words of the same order, which are parted into buckets and sorted there.
//!
//! Promises the values that NumPy's sort gives, bit by bit, where [`Survey::is_plain`] says that no two different values are equal, and
//! the order of its stable sorts for places. How work is shared out is the caller's: [`Each`]. Sorts of several shards merge
//! (`merge`) instead.

mod buckets;
mod lines;
mod merge;
mod ranks;
mod survey;
mod words;

pub use buckets::{Room, sort_places, sort_values};
pub use lines::{Lines, place_lines, select_lines, sort_lines};
pub use merge::merge;
pub use ranks::select_values;
pub use survey::Survey;
pub use words::{Sortable, Time, Word};

/// Runs a number of parts of some work, each once, on whatever threads there are.
pub type Each<'a> = &'a dyn Fn(usize, &(dyn Fn(usize) + Sync));

#[cfg(test)]
mod tests;
