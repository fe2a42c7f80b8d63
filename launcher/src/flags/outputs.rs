//! What is shown or written while the program runs: output of ranks, logs, profiles, times.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::value::Kind;

const ON: Kind = Kind::Switch { on: "1", off: "0" };

/// The group.
pub(super) const GROUP: Group = Group {
    title: "Output, logs and profiles",
    flags: &[
        Flag {
            name: "all-output",
            value_name: "",
            kind: ON,
            default: "",
            help: "Show what every rank prints, each line after its rank's number",
            variable: Some("LEGATE_ALL_OUTPUT"),
            to_python: false,
        },
        Flag {
            name: "rank-output",
            value_name: "FOLDER",
            kind: Kind::Path,
            default: "nowhere",
            help: "Where what ranks other than 0 print goes, as rank-N.out and rank-N.err",
            variable: Some("LEGATE_RANK_OUTPUT"),
            to_python: false,
        },
        Flag {
            name: "log-to-file",
            value_name: "",
            kind: ON,
            default: "",
            help: "Write what each rank prints, and its log, to rank-N.log in --logdir too",
            variable: Some("LEGATE_LOG_TO_FILE"),
            to_python: false,
        },
        Flag {
            name: "logdir",
            value_name: "FOLDER",
            kind: Kind::Path,
            default: "the current folder",
            help: "Where logs and profiles go",
            variable: Some("LEGATE_LOGDIR"),
            to_python: true,
        },
        Flag {
            name: "logging",
            value_name: "LEVELS",
            kind: Kind::Levels,
            default: "warning",
            help: "What to log: error, warning, info or debug, for everything or as area=level; areas: \
                   launcher, binding, runtime; with commas between them",
            variable: Some("LEGATE_LOGGING"),
            to_python: true,
        },
        Flag {
            name: "profile",
            value_name: "",
            kind: ON,
            default: "",
            help: "Write when each group of operations ran to profile-N.json in --logdir, for chrome://tracing \
                   or Perfetto",
            variable: Some("LEGATE_PROFILE"),
            to_python: true,
        },
        Flag {
            name: "cprofile",
            value_name: "",
            kind: ON,
            default: "",
            help: "Run the program under Python's cProfile, which writes legate-N.cprof in --logdir",
            variable: Some("LEGATE_CPROFILE"),
            to_python: true,
        },
        Flag {
            name: "nsys",
            value_name: "",
            kind: ON,
            default: "",
            help: "Run each rank under NVIDIA's nsys profile, which writes legate-N.nsys-rep in --logdir",
            variable: Some("LEGATE_NSYS"),
            to_python: false,
        },
        Flag {
            name: "timing",
            value_name: "",
            kind: ON,
            default: "",
            help: "Tell at the end how long it took, how many CPU seconds, and the most memory of a process",
            variable: Some("LEGATE_TIMING"),
            to_python: false,
        },
    ],
};
