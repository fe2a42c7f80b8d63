//! The table of flags: every option of `legate` is one row of a group here, and `--help`, the reference in the README, parsing,
//! shell completion, settings and tests read it.
//!
//! Promises that names and variables are unique, and that a row says all there is to know about its flag. It does not
//! parse (see `parse`), check values (see `value`) or decide which source wins (see `settings`). Options with one dash
//! belong to Python and have their own table at the end, since they are only handed on.

mod arrays;
mod binding;
mod debugging;
mod information;
mod machine;
mod outputs;
mod program;
mod ranks;

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
    /// One sentence for `--help`.
    pub(crate) help: &'static str,
    /// Environment variable that says the same.
    pub(crate) variable: Option<&'static str>,
    /// Whether the setting is handed on to Python, in that variable.
    pub(crate) to_python: bool,
}

/// Flags that belong together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Heading in `--help`.
    pub(crate) title: &'static str,
    /// Its rows.
    pub(crate) flags: &'static [Flag],
}

/// All groups, in the order of `--help`.
pub(crate) const GROUPS: &[Group] = &[
    program::GROUP,
    machine::GROUP,
    ranks::GROUP,
    binding::GROUP,
    arrays::GROUP,
    outputs::GROUP,
    debugging::GROUP,
    information::GROUP,
];

/// All flags, in the order of `--help`.
pub(crate) fn all() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|group| group.flags)
}

/// The flag of that name.
pub(crate) fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
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
    use super::{GROUPS, LETTERS, all};
    use std::collections::BTreeSet;

    #[test]
    fn names_variables_titles_and_letters_are_unique() {
        let unique = |names: Vec<&str>| assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        unique(all().map(|flag| flag.name).collect());
        unique(all().filter_map(|flag| flag.variable).collect());
        unique(GROUPS.iter().map(|group| group.title).collect());
        assert_eq!(LETTERS.iter().map(|row| row.0).collect::<BTreeSet<_>>().len(), LETTERS.len());
    }

    #[test]
    fn rows_are_complete() {
        for flag in all() {
            assert!(!flag.help.is_empty() && !flag.help.ends_with('.'), "{}: help is one phrase", flag.name);
            assert_eq!(flag.kind.value().is_some(), !flag.value_name.is_empty(), "{}: a value has a name", flag.name);
            assert!(flag.variable.is_some() || !flag.to_python, "{}: handed on in its variable", flag.name);
            if let Some(variable) = flag.variable {
                assert!(variable.starts_with("LEGATE_"), "{variable}");
            }
        }
    }
}
