//! Where each rank of a node runs, in which memory, on which cards.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::part::Part;
use crate::value::Kind;

/// The group.
pub(super) const GROUP: Group = Group {
    title: "Binding to the hardware",
    flags: &[
        Flag {
            name: "cpu-bind",
            value_name: "CPUS/CPUS/...",
            kind: Kind::Binding(Part::Cpus),
            default: "the node's cores, divided among its ranks",
            help: "CPUs of each rank of a node, as in 0-3/4-7 for two ranks; as many parts as ranks on a node, \
                   or one for all",
            variable: Some("LEGATE_CPU_BIND"),
            to_python: false,
        },
        Flag {
            name: "mem-bind",
            value_name: "NODES/NODES/...",
            kind: Kind::Binding(Part::Nodes),
            default: "where the rank's CPUs are",
            help: "NUMA nodes that each rank of a node takes its memory from, as in 0/1",
            variable: Some("LEGATE_MEM_BIND"),
            to_python: false,
        },
        Flag {
            name: "gpu-bind",
            value_name: "GPUS/GPUS/...",
            kind: Kind::Binding(Part::Gpus),
            default: "",
            help: "GPUs of each rank of a node, as in 0,1/2,3; refused as --gpus is",
            variable: Some("LEGATE_GPU_BIND"),
            to_python: false,
        },
        Flag {
            name: "nic-bind",
            value_name: "CARDS/CARDS/...",
            kind: Kind::Binding(Part::Cards),
            default: "what the MPI chooses",
            help: "Network cards of each rank of a node, as in mlx5_0/mlx5_1 or eth0; told to UCX and to Open \
                   MPI's TCP",
            variable: Some("LEGATE_NIC_BIND"),
            to_python: false,
        },
    ],
};
