//! Layouts: what every shard knows about where a field's newest values are.
//!
//! Symbolic, and the same on every shard: a home (of rows or in blocks), the bytes that are up to date everywhere, and the walks whose
//! parts each shard has fetched since they last changed. Bytes that are nowhere up to date but at home make up the rest. A layout
//! changes only in program order, by the executor.

use std::ops::Range;

use super::blocks::{BlockCut, Blocks};
use super::home::{Home, Margin, RowCut};
use super::runs::{insert, without};
use crate::view::{Axes, View, ranges_overlap};

/// Most fetched walks that are remembered; the oldest is forgotten first (and fetched again when read).
const FETCHED_LIMIT: usize = 24;

/// A walk that every shard has fetched its rows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) cut: RowCut,
    pub(crate) margin: Margin,
    pub(crate) shift: isize,
    pub(crate) view: View,
    pub(crate) domain: Axes<usize>,
}

/// As [`Fetched`], of a group that is run in blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchedInBlocks {
    pub(crate) cut: BlockCut,
    pub(crate) view: View,
    pub(crate) domain: Axes<usize>,
}

/// Most ranges that are known to be up to date everywhere; forgetting some only costs messages.
const RANGES_LIMIT: usize = 64;

/// Where a field's values are.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Length of the field in bytes.
    bytes: usize,
    /// None as long as all bytes are up to date everywhere, or where it lives in blocks.
    home: Option<Home>,
    /// Where it lives instead of at a home of rows.
    blocks: Option<Blocks>,
    /// Bytes that are up to date everywhere, in order.
    everywhere: Vec<Range<usize>>,
    fetched: Vec<Fetched>,
    fetched_in_blocks: Vec<FetchedInBlocks>,
}

impl Layout {
    /// The layout of a field that every shard has all of (or that nobody has written yet).
    pub(crate) fn everywhere(bytes: usize) -> Layout {
        Layout {
            bytes,
            home: None,
            blocks: None,
            everywhere: std::iter::once(0..bytes).collect(),
            fetched: Vec::new(),
            fetched_in_blocks: Vec::new(),
        }
    }

    /// The home of rows. What lives in blocks has none: whoever is not made for blocks has it moved first (`rectangles`).
    pub(crate) fn home(&self) -> Option<Home> {
        self.home
    }

    pub(crate) fn blocks(&self) -> Option<Blocks> {
        self.blocks
    }

    /// The ranges that are up to date everywhere.
    pub(crate) fn shared(&self) -> &[Range<usize>] {
        &self.everywhere
    }

    /// Whether all bytes of a range are up to date everywhere.
    pub(crate) fn is_everywhere(&self, range: &Range<usize>) -> bool {
        range.is_empty() || self.everywhere.iter().any(|known| known.start <= range.start && range.end <= known.end)
    }

    /// The covering range of the bytes of `range` that are not up to date everywhere.
    pub(crate) fn missing(&self, range: &Range<usize>) -> Range<usize> {
        let holes = without(std::slice::from_ref(range), &self.everywhere);
        match (holes.first(), holes.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => range.start..range.start,
        }
    }

    pub(crate) fn is_fetched(&self, walk: &Fetched) -> bool {
        self.fetched.contains(walk)
    }

    /// Notes that every shard has its rows of a walk.
    pub(crate) fn fetch(&mut self, walk: Fetched) {
        if self.fetched.len() >= FETCHED_LIMIT {
            self.fetched.remove(0);
        }
        self.fetched.push(walk);
    }

    /// Notes that every shard has all bytes of a range.
    pub(crate) fn gather(&mut self, range: Range<usize>) {
        let start = range.start;
        insert(&mut self.everywhere, range);
        if self.everywhere.len() > RANGES_LIMIT {
            self.everywhere.retain(|range| range.contains(&start));
        }
        if self.is_everywhere(&(0..self.bytes)) {
            self.home = None;
            self.forget_fetched();
        }
    }

    fn forget_fetched(&mut self) {
        self.fetched.clear();
        self.fetched_in_blocks.clear();
    }

    pub(crate) fn is_fetched_in_blocks(&self, walk: &FetchedInBlocks) -> bool {
        self.fetched_in_blocks.contains(walk)
    }

    /// Notes that every shard has its part of a walk.
    pub(crate) fn fetch_in_blocks(&mut self, walk: FetchedInBlocks) {
        if self.fetched_in_blocks.len() >= FETCHED_LIMIT {
            self.fetched_in_blocks.remove(0);
        }
        self.fetched_in_blocks.push(walk);
    }

    /// Notes that the newest values have been moved from a home of rows to blocks.
    pub(crate) fn move_to_blocks(&mut self, blocks: Blocks) {
        (self.home, self.blocks) = (None, Some(blocks));
        self.forget_fetched();
    }

    /// Notes that the newest values have been moved from blocks to a home of rows.
    pub(crate) fn move_to_rows(&mut self, home: Home) {
        (self.home, self.blocks) = (Some(home), None);
        self.forget_fetched();
    }

    /// Notes that each shard has written its part of a walk that touches bytes of `extent`, in blocks: they are up to date there alone.
    /// A `renewed` field has a new instance, of which each shard has what lives there.
    pub(crate) fn write_in_blocks(&mut self, blocks: Blocks, extent: &Range<isize>, renewed: bool) {
        (self.home, self.blocks) = (None, Some(blocks));
        let written = extent.start.max(0) as usize..extent.end.max(0) as usize;
        self.everywhere = if renewed { Vec::new() } else { without(&self.everywhere, &[written]) };
        self.forget_fetched();
    }

    /// Notes that each shard has written its rows of a walk that touches bytes of `extent`: they are up to date at `home` alone.
    pub(crate) fn write(&mut self, home: Home, extent: &Range<isize>) {
        (self.home, self.blocks) = (Some(home), None);
        let written = extent.start.max(0) as usize..extent.end.max(0) as usize;
        self.everywhere = without(&self.everywhere, &[written]);
        self.fetched.retain(|walk| !ranges_overlap(&walk.view.extent(&walk.domain), extent));
    }

    /// Notes that the field has a new instance, of which each shard has what lives there.
    pub(crate) fn renew(&mut self, home: Home) {
        (self.home, self.blocks) = (Some(home), None);
        self.everywhere.clear();
        self.forget_fetched();
    }
}
