//! How many ranks there are, what starts them, how long they wait for each other.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::job::{LAUNCHERS, MPIS};
use crate::value::Kind;

/// The group.
pub(super) const GROUP: Group = Group {
    title: "Several processes",
    flags: &[
        Flag {
            name: "nodes",
            value_name: "N",
            kind: Kind::Count,
            default: "those of the batch job, or 1",
            help: "Nodes to run on",
            variable: Some("LEGATE_NODES"),
            to_python: false,
        },
        Flag {
            name: "ranks-per-node",
            value_name: "N",
            kind: Kind::Count,
            default: "those of the batch job, or 1",
            help: "Processes on each node; they divide its CPUs and memory, and every array",
            variable: Some("LEGATE_RANKS_PER_NODE"),
            to_python: false,
        },
        Flag {
            name: "launcher",
            value_name: "NAME",
            kind: Kind::Choice(LAUNCHERS),
            default: "auto",
            help: "What starts the ranks: auto (what fits the batch system), none (they are started already), mpirun, \
                   srun, jsrun or aprun",
            variable: Some("LEGATE_LAUNCHER"),
            to_python: false,
        },
        Flag {
            name: "launcher-extra",
            value_name: "OPTIONS",
            kind: Kind::Words,
            default: "",
            help: "Further options for the command that starts the ranks, as a shell reads them; given again, it adds up",
            variable: Some("LEGATE_LAUNCHER_EXTRA"),
            to_python: false,
        },
        Flag {
            name: "mpi",
            value_name: "FAMILY",
            kind: Kind::Choice(MPIS),
            default: "auto",
            help: "Whose mpirun: auto (the first found), openmpi or mpich",
            variable: Some("LEGATE_MPI"),
            to_python: false,
        },
        Flag {
            name: "wrapper",
            value_name: "COMMAND",
            kind: Kind::Words,
            default: "",
            help: "Command to put before all others in each rank, also before those of --gdb and its like; %%LEGATE_GLOBAL_RANK%% in \
                   it becomes the rank's number; given again, it adds up",
            variable: Some("LEGATE_WRAPPER"),
            to_python: false,
        },
        Flag {
            name: "wrapper-inner",
            value_name: "COMMAND",
            kind: Kind::Words,
            default: "",
            help: "Command to put before Python in each rank; %%LEGATE_GLOBAL_RANK%% in it becomes the rank's \
                   number; given again, it adds up",
            variable: Some("LEGATE_WRAPPER_INNER"),
            to_python: false,
        },
        Flag {
            name: "patience",
            value_name: "SECONDS",
            kind: Kind::Count,
            default: "60",
            help: "How long a process waits for others before it is told who waits for whom, and where",
            variable: Some("LEGATE_PATIENCE"),
            to_python: true,
        },
    ],
};
