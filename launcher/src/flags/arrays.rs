//! How large arrays are cut, gathered and joined.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::value::Kind;

/// The group.
pub(super) const GROUP: Group = Group {
    title: "How arrays are computed",
    flags: &[
        Flag {
            name: "min-cpu-chunk",
            value_name: "N",
            kind: Kind::Count,
            default: "32768",
            help: "Elements in the smallest tile; smaller arrays stay with NumPy",
            variable: Some("LEGATE_MIN_CPU_CHUNK"),
            to_python: true,
        },
        Flag {
            name: "min-gpu-chunk",
            value_name: "N",
            kind: Kind::Count,
            default: "1048576",
            help: "Elements in the smallest tile on a GPU; without effect, as --gpus",
            variable: Some("LEGATE_MIN_GPU_CHUNK"),
            to_python: false,
        },
        Flag {
            name: "window-size",
            value_name: "N",
            kind: Kind::Count,
            default: "128",
            help: "Operations gathered before they are joined and run",
            variable: Some("LEGATE_WINDOW_SIZE"),
            to_python: true,
        },
        Flag {
            name: "run-ahead",
            value_name: "N",
            kind: Kind::Number,
            default: "4",
            help: "Windows that may wait to be run while the program goes on; with 0 what is kept in memory never depends on timing",
            variable: Some("LEGATE_RUN_AHEAD"),
            to_python: true,
        },
        Flag {
            name: "no-fusion",
            value_name: "",
            kind: Kind::Switch { on: "0", off: "1" },
            default: "",
            help: "Run every operation by itself",
            variable: Some("LEGATE_FUSION"),
            to_python: true,
        },
        Flag {
            name: "blocks",
            value_name: "",
            kind: Kind::Switch { on: "1", off: "0" },
            default: "",
            help: "Cut arrays into blocks of two axes over several ranks, not into rows: stencils on very many ranks exchange less, \
                   sums and whatever else needs rows more",
            variable: Some("LEGATE_BLOCKS"),
            to_python: true,
        },
        Flag {
            name: "processors",
            value_name: "N",
            kind: Kind::Count,
            default: "one for each CPU",
            help: "Processors to pretend to have when arrays are cut into tiles; for tests",
            variable: Some("LEGATE_PROCESSORS"),
            to_python: true,
        },
    ],
};
