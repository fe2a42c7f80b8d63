//! Launches: an operation over a domain, with the views it reads and writes.
//!
//! A launch is a value: it can be kept, compared and printed. What is computed is the task, which the runtime hands to
//! the [`Backend`] without looking inside.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::field::{Field, Sequence};
use crate::group::Group;
use crate::shards::Exchange;
use crate::transport::TransportError;
use crate::view::{Axes, View};

/// What a launch does to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Reads it.
    Read,
    /// Writes every element of the view, without looking at the old ones.
    Write,
    /// Reads and writes it.
    ReadWrite,
}

impl Privilege {
    /// Whether values change.
    pub fn writes(self) -> bool {
        matches!(self, Privilege::Write | Privilege::ReadWrite)
    }
}

/// A view of a field, and what the launch does to it.
#[derive(Clone)]
pub struct Operand {
    /// The storage.
    pub field: Arc<Field>,
    /// The walk over it, one stride for each axis of the launch's domain.
    pub view: View,
    /// Read or written.
    pub privilege: Privilege,
}

/// What it costs to do something again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// No more than reading from memory what it makes.
    Reading,
    /// About what storing that in fresh memory costs.
    Storing,
    /// More.
    More,
}

/// How a launch walks its domain; decides what it may be joined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Element by element.
    Map,
    /// The trailing axes are folded, each row of them in order, into one element.
    Fold {
        /// Number of trailing axes folded.
        axes: usize,
    },
    /// Everything is folded, in order, into one element.
    Total,
    /// Folded along leading axes, one outer index after the other: the output has stride 0 there.
    Accumulate,
    /// Any range of rows at once, in the task's own way. Where the output has row stride 0, what the ranges make of it is added
    /// up in the order of the shards.
    Rows,
    /// Each shard has its rows of the first operands, and any element of the others may belong to any row: the task brings together
    /// what lies apart ([`Exchange`]).
    Exchange {
        /// Number of operands that are walked by rows.
        along: usize,
        /// Bytes of an element of the other one that is written, which shards do not share.
        unit: usize,
    },
    /// Running totals: each element is made of its input and the element before it along one axis.
    Scan {
        /// Whether that is the row axis; else rows have nothing to do with each other.
        along_rows: bool,
    },
    /// Not divisible here: the task runs on whole operands, in its own way.
    Whole,
}

impl Work {
    /// Whether launches of this kind are joined with no others.
    pub fn is_alone(self) -> bool {
        matches!(self, Work::Rows | Work::Scan { .. } | Work::Exchange { .. } | Work::Whole)
    }
}

/// One operation over a domain.
///
/// Promises of whoever issues: a written view does not overlap itself (except along folded axes), and overlaps a read
/// view of the same launch only when both are the same walk. Axis 0 of the domain is the row axis; a written view has
/// no negative strides.
pub struct Launch<T> {
    /// Number in program order; 0 for one that is repeated.
    pub sequence: Sequence,
    /// Launches of its recipe from this one on, for one that is repeated (see `owed`); else 0.
    pub to_come: usize,
    /// Name for plans, as `add`.
    pub name: Arc<str>,
    /// How the domain is walked.
    pub work: Work,
    /// Lengths of the domain's axes.
    pub domain: Axes<usize>,
    /// Views read and written.
    pub operands: SmallVec<[Operand; 4]>,
    /// What is computed.
    pub task: T,
}

impl<T> Launch<T> {
    /// Length of the row axis (1 for a domain without axes).
    pub fn rows(&self) -> usize {
        self.domain.first().copied().unwrap_or(1)
    }

    /// Number of operands that are walked by rows; the others are behind them.
    pub(crate) fn along(&self) -> usize {
        match self.work {
            Work::Exchange { along, .. } => along,
            Work::Map
            | Work::Fold { .. }
            | Work::Total
            | Work::Accumulate
            | Work::Rows
            | Work::Scan { .. }
            | Work::Whole => self.operands.len(),
        }
    }

    /// Whether all rows are folded into one, in order.
    pub fn folds_rows(&self) -> bool {
        matches!(self.work, Work::Accumulate | Work::Rows)
            && self.operands.iter().any(|o| o.privilege.writes() && o.view.row_stride() == 0)
    }
}

impl<T> fmt::Display for Launch<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {:?}", self.name, self.domain.as_slice())?;
        for operand in &self.operands {
            let sign = match operand.privilege {
                Privilege::Read => "<-",
                Privilege::Write => "->",
                Privilege::ReadWrite => "<>",
            };
            write!(out, " {sign}f{}", operand.field.number())?;
            if operand.view.offset != 0 {
                write!(out, "+{}", operand.view.offset)?;
            }
            if !operand.view.is_dense(&self.domain) {
                write!(out, "{:?}", operand.view.strides.as_slice())?;
            }
        }
        Ok(())
    }
}

/// Part of a group that one point task runs: a range of its rows, or of its first inner axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// These rows of the group.
    Rows(Range<usize>),
    /// These rows, and this range of the first inner axis.
    Inner(Range<usize>, Range<usize>),
}

/// What rows of a [`Work::Scan`] launch along the rows go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Nothing: the first row is a beginning.
    Nothing,
    /// The row of the output before the first one, which goes on with the inputs.
    RowBefore,
    /// The row of the output before the first one, to which the rows, running totals of their own already, are added.
    Added,
}

/// Runs `part(0), ..., part(parts - 1)`, on all worker threads, in any order, and returns when all are done.
pub trait Parallel: Sync {
    /// Runs the parts.
    fn each(&self, parts: usize, part: &(dyn Fn(usize) + Sync));
    /// Number of threads that share the work.
    fn threads(&self) -> usize;
}

/// The tasks, as a function table: what groups are compiled to and how their parts run. No method may panic.
pub trait Backend: Send + Sync + 'static {
    /// What a launch computes.
    type Task: Clone + Send + Sync + 'static;
    /// A group made ready to run.
    type Compiled: Send + Sync;
    /// What a tile leaves to be combined with the other tiles' parts.
    type Partial: Send;

    /// What it costs to do a task of a map again.
    fn effort(&self, task: &Self::Task) -> Effort;
    /// Makes a group ready. Pure arithmetic on the plan: called without the GIL, on any thread.
    fn lower(&self, group: &Group<Self::Task>) -> Self::Compiled;
    /// Runs one tile. `addresses` has one entry for each of the group's buffers.
    fn run(&self, compiled: &Self::Compiled, addresses: &[usize], cut: &Cut) -> Self::Partial;
    /// Combines the tiles' parts, in tile order, and stores totals.
    fn finish(&self, compiled: &Self::Compiled, addresses: &[usize], partials: Vec<Self::Partial>);
    /// Longest that [`Backend::pack`] makes a group's parts of totals; 0 without totals.
    fn part_bytes(&self, compiled: &Self::Compiled) -> usize;
    /// The parts of this shard's tiles, which hold the group's rows `rows`, in tile order, as bytes for the other shards.
    fn pack(&self, compiled: &Self::Compiled, partials: Vec<Self::Partial>, rows: &Range<usize>) -> Vec<u8>;
    /// What another shard packed; bytes behind it are ignored.
    fn unpack(&self, compiled: &Self::Compiled, bytes: &[u8]) -> Self::Partial;
    /// With several shards: moves the events of this shard's launches `first..` into `bits`, one entry for each launch.
    fn take_events(&self, first: Sequence, bits: &mut [u8]);
    /// With several shards: hands over the events of launches `first..` on all shards.
    fn give_events(&self, first: Sequence, bits: &[u8]);
    /// Runs rows of a [`Work::Rows`] launch; `addresses` has one entry (start of the field) for each operand.
    fn rows(&self, launch: &Launch<Self::Task>, addresses: &[usize], rows: &Range<usize>, workers: &dyn Parallel);
    /// Runs part of a [`Work::Scan`] launch; `addresses` as for [`Backend::rows`]. Launches along inner axes are cut by rows.
    fn scan(&self, launch: &Launch<Self::Task>, addresses: &[usize], cut: &Cut, from: From);
    /// Whether running totals of a [`Work::Scan`] launch may be put together from those of parts, to the same bits.
    fn joins_parts(&self, launch: &Launch<Self::Task>) -> bool;
    /// Adds up parts of the output of a [`Work::Rows`] launch, or totals of one of [`Work::Scan`], of `bytes` bytes each, and
    /// stores the sum at an address.
    fn add_parts(&self, launch: &Launch<Self::Task>, parts: &[u8], bytes: usize, address: usize);
    /// Runs a [`Work::Exchange`] launch; `addresses` has one entry (start of the field) for each operand.
    fn exchange(
        &self,
        launch: &Launch<Self::Task>,
        addresses: &[usize],
        exchange: &Exchange<'_>,
    ) -> Result<(), TransportError>;
    /// Runs a [`Work::Whole`] launch; `addresses` has one entry (start of the field) for each operand.
    fn whole(&self, launch: &Launch<Self::Task>, addresses: &[usize], workers: &dyn Parallel);
}
