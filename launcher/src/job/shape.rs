//! How many ranks a job has, and on how many nodes.
//!
//! Promises that with nothing said a job uses all nodes of its allocation, with one rank on each, or as many ranks as the batch
//! system was asked for; that what is asked for holds; and one line where the allocation has less. Knows no job launcher.

use std::ffi::OsString;

use crate::allocation::{Allocation, Lookup};
use crate::settings::Settings;

/// How many ranks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Number of nodes.
    pub(crate) nodes: usize,
    /// Number of ranks in all.
    pub(crate) ranks: usize,
}

/// Variables that a launcher of ranks sets to the number of ranks.
const SIZES: &[&str] = &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "JSM_NAMESPACE_SIZE"];

impl Shape {
    /// What the settings ask for, or else what the allocation gives, where it `gives`. Where the allocation `has_front`, its first
    /// node may be the script's alone.
    pub(crate) fn asked(
        settings: &Settings,
        allocation: Option<&Allocation>,
        gives: bool,
        has_front: bool,
    ) -> Result<Shape, String> {
        let count = |name| settings.given(name).and_then(|text| text.to_str()?.parse::<usize>().ok());
        let (asked, each) = (count("nodes"), count("ranks-per-node"));
        let Some(allocation) = allocation else { return Ok(Shape::of(asked.unwrap_or(1), each.unwrap_or(1))) };
        let there = allocation.nodes - usize::from(has_front && allocation.front);
        let nodes = asked.unwrap_or(if gives { there } else { 1 });
        if nodes > there {
            let plural = if there == 1 { "node" } else { "nodes" };
            return Err(format!("asked for {nodes} nodes, but {allocation} has {there} {plural}"));
        }
        Ok(match (each, allocation.ranks.filter(|_| gives)) {
            (Some(each), _) => Shape::of(nodes, each),
            (None, Some(ranks)) if nodes == there => Shape { nodes, ranks },
            (None, Some(ranks)) => Shape::of(nodes, ranks.div_ceil(there)),
            (None, None) => Shape::of(nodes, 1),
        })
    }

    /// As many ranks on each node.
    fn of(nodes: usize, each: usize) -> Shape {
        Shape { nodes, ranks: nodes.saturating_mul(each) }
    }

    /// One process.
    pub(crate) const ONE: Shape = Shape { nodes: 1, ranks: 1 };

    /// The most ranks on a node.
    pub(crate) fn per_node(self) -> usize {
        self.ranks.div_ceil(self.nodes)
    }

    /// Whether every node has as many ranks.
    pub(crate) fn is_even(self) -> bool {
        self.ranks.is_multiple_of(self.nodes)
    }
}

/// Whether a launcher of ranks has started this process alone: who did that wants one process.
pub(crate) fn is_started_alone(variable: Lookup<'_>) -> bool {
    SIZES.iter().any(|size| variable(size) == Some(OsString::from("1")))
}
