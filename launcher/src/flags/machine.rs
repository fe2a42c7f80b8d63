//! What each rank takes of its node: CPUs, memory, GPUs.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::value::Kind;

/// The group.
pub(super) const GROUP: Group = Group {
    title: "What to run it on",
    flags: &[
        Flag {
            name: "cpus",
            value_name: "N",
            kind: Kind::Cpus,
            default: "all that this process may use, divided among its node's ranks",
            help: "CPUs of each rank to compute on",
            variable: Some("LEGATE_CPUS"),
            to_python: true,
        },
        Flag {
            name: "omps",
            value_name: "N",
            kind: Kind::Number,
            default: "0",
            help: "Groups of threads of each rank: instead of --cpus, it computes on N times --ompthreads CPUs \
                   (one pool of threads serves all groups)",
            variable: Some("LEGATE_OMPS"),
            to_python: false,
        },
        Flag {
            name: "ompthreads",
            value_name: "N",
            kind: Kind::Count,
            default: "the rank's CPUs, divided among its groups",
            help: "Threads in each group of --omps",
            variable: Some("LEGATE_OMPTHREADS"),
            to_python: false,
        },
        Flag {
            name: "utility",
            value_name: "N",
            kind: Kind::Number,
            default: "0",
            help: "Taken for old job scripts, without effect: no CPU is set aside for the runtime's own work",
            variable: Some("LEGATE_UTILITY"),
            to_python: false,
        },
        Flag {
            name: "gpus",
            value_name: "N",
            kind: Kind::Gpus,
            default: "0",
            help: "GPUs of each rank; this build computes on CPUs only, so that anything but 0 is refused",
            variable: Some("LEGATE_GPUS"),
            to_python: false,
        },
        Flag {
            name: "sysmem",
            value_name: "SIZE",
            kind: Kind::Memory,
            default: "this machine's memory, divided among its ranks",
            help: "Memory of each rank for arrays: 512M, 1.5G, 8GiB, 4GB; a plain number is MiB (in the \
                   variable: bytes)",
            variable: Some("LEGATE_SYSMEM"),
            to_python: true,
        },
        Flag {
            name: "numamem",
            value_name: "SIZE",
            kind: Kind::Memory,
            default: "0",
            help: "Memory of each rank for arrays in each NUMA node that its CPUs are in; comes on top of \
                   --sysmem where that is given",
            variable: Some("LEGATE_NUMAMEM"),
            to_python: false,
        },
        Flag {
            name: "fbmem",
            value_name: "SIZE",
            kind: Kind::Size,
            default: "0",
            help: "Memory of each GPU for arrays; without effect, as --gpus",
            variable: Some("LEGATE_FBMEM"),
            to_python: false,
        },
        Flag {
            name: "zcmem",
            value_name: "SIZE",
            kind: Kind::Size,
            default: "0",
            help: "Memory that CPUs and GPUs share; without effect, as --gpus",
            variable: Some("LEGATE_ZCMEM"),
            to_python: false,
        },
        Flag {
            name: "regmem",
            value_name: "SIZE",
            kind: Kind::Size,
            default: "0",
            help: "Memory registered for network cards; taken for old job scripts, without effect: MPI \
                   registers what it needs",
            variable: Some("LEGATE_REGMEM"),
            to_python: false,
        },
    ],
};
