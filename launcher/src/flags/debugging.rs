//! Debuggers and checkers around each rank.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::value::Kind;

const ON: Kind = Kind::Switch { on: "1", off: "0" };

/// The group.
pub(super) const GROUP: Group = Group {
    title: "Debugging",
    flags: &[
        Flag {
            name: "gdb",
            value_name: "",
            kind: ON,
            default: "",
            help: "Run the program in gdb; one rank only",
            variable: Some("LEGATE_GDB"),
            to_python: false,
        },
        Flag {
            name: "cuda-gdb",
            value_name: "",
            kind: ON,
            default: "",
            help: "Run the program in cuda-gdb; one rank only",
            variable: Some("LEGATE_CUDA_GDB"),
            to_python: false,
        },
        Flag {
            name: "memcheck",
            value_name: "",
            kind: ON,
            default: "",
            help: "Run each rank under NVIDIA's compute-sanitizer",
            variable: Some("LEGATE_MEMCHECK"),
            to_python: false,
        },
        Flag {
            name: "valgrind",
            value_name: "",
            kind: ON,
            default: "",
            help: "Run each rank under valgrind",
            variable: Some("LEGATE_VALGRIND"),
            to_python: false,
        },
        Flag {
            name: "freeze-on-error",
            value_name: "",
            kind: ON,
            default: "",
            help: "Stop at the first error that nobody catches, and tell how to attach a debugger and how to go \
                   on",
            variable: Some("LEGATE_FREEZE_ON_ERROR"),
            to_python: true,
        },
    ],
};
