//! The clap command that the table of flags makes: parsing of long options, `--help`, nearest names.
//!
//! Promises that a refusal is one line. It does not know values or sources.

use std::ffi::{OsStr, OsString};

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use crate::flags::{Flag, GROUPS, all, find};
use crate::value::{Kind, Value};

const USAGE: &str = "legate [options] SCRIPT [arguments]
       legate [options] -m MODULE [arguments]
       legate [options] -c TEXT [arguments]
       legate [options] [- [arguments]]";

/// What holds for all options.
pub(crate) const AFTER: &str = "\
Python's own options (-b -B -d -E -i -I -O -OO -P -q -R -s -S -u -v -W ARG -X OPT) are handed on to it; -E, -I and -S \
keep legate out, so that the program runs in Python alone.

Options end at the program; what follows belongs to it. Without a program: the standard input, or a prompt.

An option on the command line wins over one in LEGATE_CONFIG, which holds options as on the command line and wins over \
the variable named in [brackets], which wins over the default.";

/// The command with all flags.
fn command() -> Command {
    let args = GROUPS.iter().flat_map(|group| group.flags.iter().map(|flag| arg(flag).help_heading(group.title)));
    Command::new("legate")
        .about("Runs a NumPy program, unchanged, on all of a machine.")
        .override_usage(USAGE)
        .after_help(AFTER)
        .max_term_width(110)
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args_override_self(true)
        .args(args)
}

fn arg(flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.name).long(flag.name).help(help_of(flag));
    let Some(value) = flag.kind.value() else { return arg.action(ArgAction::SetTrue) };
    let action = if flag.kind == Kind::Words { ArgAction::Append } else { ArgAction::Set };
    let arg = arg.value_name(flag.value_name).action(action).value_parser(ValueParser::os_string());
    match value {
        Value::Needed => arg,
        Value::After { bare } => arg.num_args(0..=1).require_equals(true).default_missing_value(bare),
    }
}

/// What `--help` and the reference say about a flag.
pub(crate) fn help_of(flag: &Flag) -> String {
    let mut text = flag.help.to_owned();
    if !flag.default.is_empty() {
        text += &format!("; default: {}", flag.default);
    }
    if let Some(variable) = flag.variable {
        text += &format!(" [{variable}]");
    }
    text
}

/// The text of `--help`.
pub(crate) fn help(coloured: bool) -> String {
    let help = command().render_help();
    if coloured { help.ansi().to_string() } else { help.to_string() }
}

/// Reads words with two dashes, each in the form `--name` or `--name=value`.
pub(crate) fn flags_of(words: Vec<OsString>) -> Result<Vec<(&'static Flag, Option<OsString>)>, String> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let mut matches = command().try_get_matches_from(words).map_err(|error| refusal(&error))?;
    Ok(all()
        .filter_map(|flag| match (flag.kind.value(), flag.kind) {
            (None, _) => matches.get_flag(flag.name).then_some((flag, None)),
            (Some(_), Kind::Words) => {
                let values: Vec<OsString> = matches.remove_many(flag.name)?.collect();
                Some((flag, Some(values.join(OsStr::new(" ")))))
            }
            (Some(_), _) => matches.remove_one::<OsString>(flag.name).map(|value| (flag, Some(value))),
        })
        .collect())
}

/// One line for what clap could not read.
fn refusal(error: &clap::Error) -> String {
    let text_of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let asked = text_of(ContextKind::InvalidArg).unwrap_or_default();
    let name = asked.split([' ', '=']).next().unwrap_or_default();
    if error.kind() == ErrorKind::UnknownArgument {
        match text_of(ContextKind::SuggestedArg) {
            Some(nearest) => format!("no option {name}; did you mean {nearest}?"),
            None => unknown(name, name.trim_start_matches('-')),
        }
    } else if error.kind() == ErrorKind::TooManyValues {
        format!("{name} takes no value")
    } else {
        error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    }
}

/// One line for an option that does not exist, with the flag of that name where only the dashes are wrong.
pub(crate) fn unknown(asked: &str, name: &str) -> String {
    let name = name.split('=').next().unwrap_or_default();
    match find(name) {
        Some(flag) => format!("no option {asked}; did you mean --{}?", flag.name),
        None => format!("no option {asked}; legate --help lists them all"),
    }
}

#[cfg(test)]
mod tests {
    use super::{command, help};
    use crate::flags::GROUPS;

    #[test]
    fn clap_accepts_the_table() {
        command().debug_assert();
    }

    #[test]
    fn help_shows_every_flag_variable_and_group() {
        let text = help(false);
        for group in GROUPS {
            assert!(text.contains(group.title), "{}", group.title);
            for flag in group.flags {
                assert!(text.contains(&format!("--{}", flag.name)), "{}", flag.name);
                assert!(flag.variable.is_none_or(|variable| text.contains(variable)), "{}", flag.name);
            }
        }
    }
}
