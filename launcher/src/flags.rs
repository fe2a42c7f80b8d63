//! The table of flags: every option of `legate` is one row here, and `--help`, parsing, settings and tests read it.
//!
//! Promises that names and variables are unique, and that a row says all there is to know about its flag. It does not
//! parse (see `parse`), check values (see `value`) or decide which source wins (see `settings`). Options with one dash
//! belong to Python and have their own table at the end, since they are only handed on.

use crate::job::{LAUNCHERS, MPIS};
use crate::value::Kind;

/// One option of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// Long name, without the dashes.
    pub(crate) name: &'static str,
    /// What its value is called in `--help`; empty for a switch.
    pub(crate) value_name: &'static str,
    /// What a value must look like.
    pub(crate) kind: Kind,
    /// What holds when nobody says anything, in words; empty where there is nothing to say.
    pub(crate) default: &'static str,
    /// Heading in `--help`.
    pub(crate) group: &'static str,
    /// One sentence for `--help`.
    pub(crate) help: &'static str,
    /// Environment variable that says the same; settings are handed on to Python in it.
    pub(crate) variable: Option<&'static str>,
}

const PROGRAM: &str = "What to run";
const MACHINE: &str = "What to run it on";
const RANKS: &str = "Several processes";
const ARRAYS: &str = "How arrays are computed";
const TELL: &str = "What to tell";

/// All flags, in the order of `--help`.
pub(crate) const FLAGS: &[Flag] = &[
    Flag {
        name: "module",
        value_name: "NAME",
        kind: Kind::Program,
        default: "",
        group: PROGRAM,
        help: "Run a module as python -m does (also: -m NAME); ends the options",
        variable: None,
    },
    Flag {
        name: "python",
        value_name: "PATH",
        kind: Kind::Path,
        default: "the active environment's",
        group: PROGRAM,
        help: "Interpreter to run, or an environment's folder",
        variable: Some("LEGATE_PYTHON"),
    },
    Flag {
        name: "intercept",
        value_name: "WHO",
        kind: Kind::Callers,
        default: "user",
        group: PROGRAM,
        help: "Whose 'import numpy' gets legate's: user (the script and modules beside it), all, none, or \
               module prefixes with commas between them",
        variable: Some("LEGATE_INTERCEPT"),
    },
    Flag {
        name: "cpus",
        value_name: "N",
        kind: Kind::Cpus,
        default: "all that this process may use",
        group: MACHINE,
        help: "CPUs to compute on",
        variable: Some("LEGATE_CPUS"),
    },
    Flag {
        name: "sysmem",
        value_name: "SIZE",
        kind: Kind::Memory,
        default: "this machine's memory",
        group: MACHINE,
        help: "Memory for arrays: 512M, 1.5G, 8GiB, 4GB; a plain number is MiB (in the variable: bytes)",
        variable: Some("LEGATE_SYSMEM"),
    },
    Flag {
        name: "nodes",
        value_name: "N",
        kind: Kind::Count,
        default: "1",
        group: RANKS,
        help: "Nodes to run on",
        variable: Some("LEGATE_NODES"),
    },
    Flag {
        name: "ranks-per-node",
        value_name: "N",
        kind: Kind::Count,
        default: "1",
        group: RANKS,
        help: "Processes on each node; they divide its CPUs and memory, and every array",
        variable: Some("LEGATE_RANKS_PER_NODE"),
    },
    Flag {
        name: "launcher",
        value_name: "NAME",
        kind: Kind::Choice(LAUNCHERS),
        default: "auto",
        group: RANKS,
        help: "What starts the ranks: auto, none (they are started already), mpirun or srun",
        variable: Some("LEGATE_LAUNCHER"),
    },
    Flag {
        name: "mpi",
        value_name: "FAMILY",
        kind: Kind::Choice(MPIS),
        default: "auto",
        group: RANKS,
        help: "Whose mpirun: auto (the first found), openmpi or mpich",
        variable: Some("LEGATE_MPI"),
    },
    Flag {
        name: "rank-output",
        value_name: "FOLDER",
        kind: Kind::Path,
        default: "nowhere",
        group: RANKS,
        help: "Where what ranks other than 0 print goes, as rank-N.out and rank-N.err",
        variable: Some("LEGATE_RANK_OUTPUT"),
    },
    Flag {
        name: "patience",
        value_name: "SECONDS",
        kind: Kind::Count,
        default: "60",
        group: RANKS,
        help: "How long a process waits for others before it is told who waits for whom, and where",
        variable: Some("LEGATE_PATIENCE"),
    },
    Flag {
        name: "min-cpu-chunk",
        value_name: "N",
        kind: Kind::Count,
        default: "32768",
        group: ARRAYS,
        help: "Elements in the smallest tile; smaller arrays stay with NumPy",
        variable: Some("LEGATE_MIN_CPU_CHUNK"),
    },
    Flag {
        name: "window-size",
        value_name: "N",
        kind: Kind::Count,
        default: "128",
        group: ARRAYS,
        help: "Operations gathered before they are joined and run",
        variable: Some("LEGATE_WINDOW_SIZE"),
    },
    Flag {
        name: "no-fusion",
        value_name: "",
        kind: Kind::Switch { on: "0", off: "1" },
        default: "",
        group: ARRAYS,
        help: "Run every operation by itself",
        variable: Some("LEGATE_FUSION"),
    },
    Flag {
        name: "processors",
        value_name: "N",
        kind: Kind::Count,
        default: "one for each CPU",
        group: ARRAYS,
        help: "Processors to pretend to have when arrays are cut into tiles; for tests",
        variable: Some("LEGATE_PROCESSORS"),
    },
    Flag {
        name: "report",
        value_name: "",
        kind: Kind::Switch { on: "1", off: "0" },
        default: "",
        group: TELL,
        help: "At exit, tell for each line of the program what ran and how",
        variable: Some("LEGATE_REPORT"),
    },
    Flag {
        name: "show-plan",
        value_name: "",
        kind: Kind::Switch { on: "1", off: "0" },
        default: "",
        group: TELL,
        help: "Print the operations, the groups they were joined into, and why others were not",
        variable: Some("LEGATE_SHOW_PLAN"),
    },
    Flag {
        name: "verbose",
        value_name: "",
        kind: Kind::Switch { on: "1", off: "0" },
        default: "",
        group: TELL,
        help: "Tell how Python was found and started",
        variable: Some("LEGATE_VERBOSE"),
    },
    Flag {
        name: "info",
        value_name: "",
        kind: Kind::Act,
        default: "",
        group: TELL,
        help: "Print versions, this machine, and the settings in force with where each came from",
        variable: None,
    },
    Flag {
        name: "version",
        value_name: "",
        kind: Kind::Act,
        default: "",
        group: TELL,
        help: "Print the version (also: -V)",
        variable: None,
    },
    Flag {
        name: "help",
        value_name: "",
        kind: Kind::Act,
        default: "",
        group: TELL,
        help: "Print this text (also: -h)",
        variable: None,
    },
];

/// The flag of that name.
pub(crate) fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// What a one-letter option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    /// Handed on to Python as it is.
    Switch,
    /// Handed on to Python with its value.
    Value,
    /// `-c TEXT`: the program itself.
    Command,
    /// `-m NAME`: the program itself.
    Module,
    /// `-h`.
    Help,
    /// `-V`.
    Version,
}

/// Python's one-letter options, which `legate` takes too, since scripts and `multiprocessing` pass them.
pub(crate) const LETTERS: &[(char, Letter)] = &[
    ('b', Letter::Switch),
    ('B', Letter::Switch),
    ('c', Letter::Command),
    ('d', Letter::Switch),
    ('E', Letter::Switch),
    ('h', Letter::Help),
    ('?', Letter::Help),
    ('i', Letter::Switch),
    ('I', Letter::Switch),
    ('m', Letter::Module),
    ('O', Letter::Switch),
    ('P', Letter::Switch),
    ('q', Letter::Switch),
    ('R', Letter::Switch),
    ('s', Letter::Switch),
    ('S', Letter::Switch),
    ('u', Letter::Switch),
    ('v', Letter::Switch),
    ('V', Letter::Version),
    ('W', Letter::Value),
    ('x', Letter::Switch),
    ('X', Letter::Value),
];

/// Python's long options: handed on with their value.
pub(crate) const PYTHON_LONG: &[&str] = &["check-hash-based-pycs"];

#[cfg(test)]
mod tests {
    use super::{FLAGS, LETTERS};
    use crate::value::Kind;
    use std::collections::BTreeSet;

    #[test]
    fn names_variables_and_letters_are_unique() {
        let names: BTreeSet<_> = FLAGS.iter().map(|flag| flag.name).collect();
        assert_eq!(names.len(), FLAGS.len());
        let variables: Vec<_> = FLAGS.iter().filter_map(|flag| flag.variable).collect();
        assert_eq!(variables.iter().collect::<BTreeSet<_>>().len(), variables.len());
        assert_eq!(LETTERS.iter().map(|row| row.0).collect::<BTreeSet<_>>().len(), LETTERS.len());
    }

    #[test]
    fn rows_are_complete() {
        for flag in FLAGS {
            assert!(!flag.help.is_empty() && !flag.help.ends_with('.'), "{}: help is one phrase", flag.name);
            let takes_value = !matches!(flag.kind, Kind::Switch { .. } | Kind::Act);
            assert_eq!(takes_value, !flag.value_name.is_empty(), "{}: a value has a name", flag.name);
            if let Some(variable) = flag.variable {
                assert!(variable.starts_with("LEGATE_"), "{variable}");
            }
        }
    }
}
