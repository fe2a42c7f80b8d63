//! What the value of a flag may be, and the plain form in which it is handed on.
//!
//! Promises that a value which passes is understood by the Python side without further checks, and that a refusal
//! names what was given and what would do. It does not know which flag a value belongs to.

use std::ffi::{OsStr, OsString};

use crate::logging;
use crate::machine::Machine;
use crate::parse::shell_words;
use crate::part::Part;
use crate::size::{MIB, bytes, show_bytes};

/// What kind of value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No value; what its variable then says, and what it says otherwise.
    Switch {
        /// The variable's value when the switch is given.
        on: &'static str,
        /// The other value that the variable may have.
        off: &'static str,
    },
    /// No value and no setting: something to do instead of running a program.
    Act,
    /// The program itself; ends the options.
    Program,
    /// A path.
    Path,
    /// A whole number of at least 1.
    Count,
    /// A whole number, or 0.
    Number,
    /// A number of CPUs that this process may use, or 0.
    Cpus,
    /// A number of GPUs, of which this build can use none.
    Gpus,
    /// An amount of memory that this machine has.
    Memory,
    /// An amount of memory somewhere else.
    Size,
    /// `user`, `all`, `none`, or module prefixes.
    Callers,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, and nothing but to answer it.
    Ask(&'static [&'static str]),
    /// `auto`, `always` or `never`; without a value: always.
    When,
    /// A command's first words, as for a shell; given again, they add up.
    Words,
    /// Levels of logging.
    Levels,
    /// What each rank of a node is given, with slashes between the ranks.
    Binding(Part),
}

/// Whether a flag takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// In the same word after `=`, or in the next word.
    Needed,
    /// After `=` only.
    After {
        /// What it is when not written.
        bare: &'static str,
    },
}

/// Where a value was written: a plain `sysmem` is MiB on a command line and bytes in the variable, which is also how
/// it is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// After its flag.
    AfterFlag,
    /// In its environment variable.
    InVariable,
}

/// Values of [`Kind::When`].
pub(crate) const WHENS: &[&str] = &["auto", "always", "never"];

impl Written {
    /// Bytes that a plain number counts in.
    fn plain_unit(self) -> f64 {
        match self {
            Written::AfterFlag => MIB,
            Written::InVariable => 1.0,
        }
    }
}

impl Kind {
    /// Whether flags of this kind take a value; none where they never do.
    pub(crate) fn value(self) -> Option<Value> {
        match self {
            Kind::Switch { .. } | Kind::Act => None,
            Kind::When => Some(Value::After { bare: "always" }),
            Kind::Program
            | Kind::Path
            | Kind::Count
            | Kind::Number
            | Kind::Cpus
            | Kind::Gpus
            | Kind::Memory
            | Kind::Size
            | Kind::Callers
            | Kind::Choice(_)
            | Kind::Ask(_)
            | Kind::Words
            | Kind::Levels
            | Kind::Binding(_) => Some(Value::Needed),
        }
    }

    /// The words that a value may be; empty where it is no choice.
    pub(crate) fn choices(self) -> &'static [&'static str] {
        if let Kind::Choice(words) | Kind::Ask(words) = self {
            words
        } else if self == Kind::When {
            WHENS
        } else if self == Kind::Levels {
            logging::LEVELS
        } else {
            &[]
        }
    }

    /// Whether flags of this kind are something to do instead of running a program.
    pub(crate) fn is_act(self) -> bool {
        matches!(self, Kind::Act | Kind::Ask(_))
    }

    /// The plain form of a value, or what is wrong with it.
    pub(crate) fn plain(self, text: &OsStr, written: Written, machine: &Machine) -> Result<OsString, String> {
        let shown = text.to_string_lossy();
        match self {
            Kind::Path | Kind::Program => Ok(text.to_owned()),
            Kind::Switch { on, off } if shown == on || shown == off => Ok(text.to_owned()),
            Kind::Switch { .. } | Kind::Act => Err(format!("'{shown}' is neither 0 nor 1")),
            Kind::Count => Ok(count(&shown)?.to_string().into()),
            Kind::Number => Ok(number(&shown)?.to_string().into()),
            Kind::Cpus => {
                let asked = number(&shown)?;
                if asked > machine.cpus as u64 {
                    let plural = if machine.cpus == 1 { "CPU" } else { "CPUs" };
                    return Err(format!("asked for {asked}, but this process may use {} {plural}", machine.cpus));
                }
                Ok(asked.to_string().into())
            }
            Kind::Gpus => match (number(&shown)?, machine.gpus) {
                (0, _) => Ok("0".into()),
                (asked, 0) => Err(format!("asked for {asked}, but this machine has no GPU")),
                (asked, has) if asked > has as u64 => Err(format!("asked for {asked}, but this machine has {has}")),
                (asked, has) => Err(format!(
                    "asked for {asked} of this machine's {has}, but this build computes on CPUs only: leave it out"
                )),
            },
            Kind::Size => match number(&shown) {
                Ok(0) => Ok("0".into()),
                _ => Ok(bytes(&shown, written.plain_unit())?.to_string().into()),
            },
            Kind::Memory => {
                let asked = match number(&shown) {
                    Ok(0) => 0,
                    _ => bytes(&shown, written.plain_unit())?,
                };
                if machine.memory_bytes.is_some_and(|most| asked > most) {
                    let most = show_bytes(machine.memory_bytes.unwrap_or_default());
                    return Err(format!("asked for {}, but this machine has {most}", show_bytes(asked)));
                }
                Ok(asked.to_string().into())
            }
            Kind::Choice(_) | Kind::Ask(_) | Kind::When => {
                let words = self.choices();
                if !words.contains(&&*shown) {
                    return Err(format!("'{shown}' is none of {}", words.join(", ")));
                }
                Ok(text.to_owned())
            }
            Kind::Words => match shell_words(&shown)?.is_empty() {
                true => Err("names no command".to_owned()),
                false => Ok(text.to_owned()),
            },
            Kind::Levels => logging::Levels::read(&shown).map(|_| text.to_owned()),
            Kind::Binding(part) => part.read_all(&shown, machine).map(|_| text.to_owned()),
            Kind::Callers => {
                let is_name = |name: &str| {
                    !name.is_empty()
                        && !name.starts_with(|c: char| c.is_ascii_digit())
                        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
                };
                if !shown.split(',').all(|prefix| prefix.split('.').all(is_name)) {
                    return Err(format!("'{shown}' is none of user, all, none or module prefixes like app,tools.fit"));
                }
                Ok(text.to_owned())
            }
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a whole number"))
}

fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is not a whole number of at least 1")),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Written};
    use crate::machine::Machine;
    use std::ffi::OsStr;

    fn plain(kind: Kind, text: &str) -> Result<String, String> {
        kind.plain(OsStr::new(text), Written::AfterFlag, &Machine::of_test())
            .map(|value| value.into_string().expect("text"))
    }

    #[test]
    fn what_the_machine_lacks_is_refused_with_what_it_has() {
        assert_eq!(plain(Kind::Cpus, "4"), Ok("4".into()));
        assert_eq!(plain(Kind::Cpus, "5"), Err("asked for 5, but this process may use 4 CPUs".into()));
        assert_eq!(plain(Kind::Memory, "9G"), Err("asked for 9 GiB, but this machine has 8 GiB".into()));
        assert_eq!(plain(Kind::Gpus, "0"), Ok("0".into()));
        assert_eq!(plain(Kind::Gpus, "2"), Err("asked for 2, but this machine has no GPU".into()));
        assert_eq!(plain(Kind::Memory, "1G"), Ok("1073741824".into()));
    }

    #[test]
    fn counts_and_callers() {
        for text in ["", "0", "-3", "2.5", "x"] {
            assert!(plain(Kind::Count, text).is_err(), "{text}");
        }
        for text in ["user", "all", "none", "app,tools.fit", "_x"] {
            assert!(plain(Kind::Callers, text).is_ok(), "{text}");
        }
        for text in ["", "a,", "a..b", "3d", "a b"] {
            assert!(plain(Kind::Callers, text).is_err(), "{text}");
        }
    }
}
