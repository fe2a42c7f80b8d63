//! What to run: the program, the interpreter, whose NumPy is replaced.
//!
//! Rows of the table of flags; what they do is elsewhere.

use super::{Flag, Group};
use crate::value::Kind;

/// The group.
pub(super) const GROUP: Group = Group {
    title: "What to run",
    flags: &[
        Flag {
            name: "module",
            value_name: "NAME",
            kind: Kind::Program,
            default: "",
            help: "Run a module as python -m does (also: -m NAME); ends the options",
            variable: None,
            to_python: false,
        },
        Flag {
            name: "python",
            value_name: "PATH",
            kind: Kind::Path,
            default: "the active environment's",
            help: "Interpreter to run, or an environment's folder",
            variable: Some("LEGATE_PYTHON"),
            to_python: true,
        },
        Flag {
            name: "intercept",
            value_name: "WHO",
            kind: Kind::Callers,
            default: "user",
            help: "Whose 'import numpy' gets legate's: user (the script and modules beside it), all, none, or \
                   module prefixes with commas between them",
            variable: Some("LEGATE_INTERCEPT"),
            to_python: true,
        },
        Flag {
            name: "ipython",
            value_name: "",
            kind: Kind::Switch { on: "1", off: "0" },
            default: "",
            help: "IPython as the prompt: without a program, or after one",
            variable: Some("LEGATE_IPYTHON"),
            to_python: true,
        },
    ],
};
