//! What legate tells about the program, the machine and itself.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::completion::SHELLS;
use crate::value::Kind;

const ON: Kind = Kind::Switch { on: "1", off: "0" };

/// The group.
pub(super) const GROUP: Group = Group {
    title: "What to tell",
    flags: &[
        Flag {
            name: "report",
            value_name: "",
            kind: ON,
            default: "",
            help: "At exit, tell for each line of the program what ran and how",
            variable: Some("LEGATE_REPORT"),
            to_python: true,
        },
        Flag {
            name: "show-plan",
            value_name: "",
            kind: ON,
            default: "",
            help: "Print the operations, the groups they were joined into, and why others were not",
            variable: Some("LEGATE_SHOW_PLAN"),
            to_python: true,
        },
        Flag {
            name: "dry-run",
            value_name: "",
            kind: ON,
            default: "",
            help: "Print the command that would start the program or its ranks, and start nothing",
            variable: Some("LEGATE_DRY_RUN"),
            to_python: false,
        },
        Flag {
            name: "verbose",
            value_name: "",
            kind: ON,
            default: "",
            help: "Tell how Python was found and started, and print the command that starts ranks",
            variable: Some("LEGATE_VERBOSE"),
            to_python: true,
        },
        Flag {
            name: "bind-detail",
            value_name: "",
            kind: ON,
            default: "",
            help: "Tell what each rank was given of its node, and why",
            variable: Some("LEGATE_BIND_DETAIL"),
            to_python: false,
        },
        Flag {
            name: "color",
            value_name: "WHEN",
            kind: Kind::When,
            default: "auto",
            help: "Colours in --help and in the numbers that --all-output puts before lines: auto (on a terminal), always \
                   (also: --color alone) or never",
            variable: Some("LEGATE_COLOR"),
            to_python: false,
        },
        Flag {
            name: "info",
            value_name: "",
            kind: Kind::Act,
            default: "",
            help: "Print versions, this machine, and the settings in force with where each came from",
            variable: None,
            to_python: false,
        },
        Flag {
            name: "completion",
            value_name: "SHELL",
            kind: Kind::Ask(SHELLS),
            default: "",
            help: "Print what makes a shell complete these options: bash, zsh or fish; for bash: eval \"$(legate \
                   --completion bash)\"",
            variable: None,
            to_python: false,
        },
        Flag {
            name: "reference",
            value_name: "",
            kind: Kind::Act,
            default: "",
            help: "Print all options as the README has them",
            variable: None,
            to_python: false,
        },
        Flag {
            name: "version",
            value_name: "",
            kind: Kind::Act,
            default: "",
            help: "Print the version (also: -V)",
            variable: None,
            to_python: false,
        },
        Flag {
            name: "help",
            value_name: "",
            kind: Kind::Act,
            default: "",
            help: "Print this text (also: -h)",
            variable: None,
            to_python: false,
        },
    ],
};
