//! What the value of a flag may be, and the plain form in which it is handed on.
//!
//! Promises that a value which passes is understood by the Python side without further checks, and that a refusal
//! names what was given and what would do. It does not know which flag a value belongs to.

use std::ffi::{OsStr, OsString};

use crate::machine::Machine;

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
    /// A number of CPUs that this process may use.
    Cpus,
    /// An amount of memory that this machine has.
    Memory,
    /// `user`, `all`, `none`, or module prefixes.
    Callers,
    /// One of these words.
    Choice(&'static [&'static str]),
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

impl Kind {
    /// The plain form of a value, or what is wrong with it.
    pub(crate) fn plain(self, text: &OsStr, written: Written, machine: &Machine) -> Result<OsString, String> {
        let shown = text.to_string_lossy();
        match self {
            Kind::Path | Kind::Program => Ok(text.to_owned()),
            Kind::Switch { on, off } if shown == on || shown == off => Ok(text.to_owned()),
            Kind::Switch { .. } | Kind::Act => Err(format!("'{shown}' is neither 0 nor 1")),
            Kind::Count => Ok(count(&shown)?.to_string().into()),
            Kind::Cpus => {
                let asked = count(&shown)?;
                if asked > machine.cpus as u64 {
                    let plural = if machine.cpus == 1 { "CPU" } else { "CPUs" };
                    return Err(format!("asked for {asked}, but this process may use {} {plural}", machine.cpus));
                }
                Ok(asked.to_string().into())
            }
            Kind::Memory => {
                let plain_unit = match written {
                    Written::AfterFlag => MIB,
                    Written::InVariable => 1.0,
                };
                let asked = bytes(&shown, plain_unit)?;
                if machine.memory_bytes.is_some_and(|most| asked > most) {
                    let most = show_bytes(machine.memory_bytes.unwrap_or_default());
                    return Err(format!("asked for {}, but this machine has {most}", show_bytes(asked)));
                }
                Ok(asked.to_string().into())
            }
            Kind::Choice(words) if words.contains(&&*shown) => Ok(text.to_owned()),
            Kind::Choice(words) => Err(format!("'{shown}' is none of {}", words.join(", "))),
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

fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is not a whole number of at least 1")),
        Ok(number) => Ok(number),
    }
}

const MIB: f64 = 1024.0 * 1024.0;

/// Units by their letters in lower case: single letters and `..iB` count in 1024, `..B` in 1000.
const UNITS: &[(&str, f64)] = &[
    ("b", 1.0),
    ("k", 1024.0),
    ("ki", 1024.0),
    ("kib", 1024.0),
    ("kb", 1e3),
    ("m", MIB),
    ("mi", MIB),
    ("mib", MIB),
    ("mb", 1e6),
    ("g", 1024.0 * MIB),
    ("gi", 1024.0 * MIB),
    ("gib", 1024.0 * MIB),
    ("gb", 1e9),
    ("t", MIB * MIB),
    ("ti", MIB * MIB),
    ("tib", MIB * MIB),
    ("tb", 1e12),
];

/// An amount of memory; a number without a unit counts in `plain_unit` bytes.
fn bytes(text: &str, plain_unit: f64) -> Result<u64, String> {
    let refuse = || format!("'{text}' is not a size: write 512M, 1.5G, 8GiB, or a plain number");
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| refuse())?;
    let unit = unit.trim().to_ascii_lowercase();
    let scale = if unit.is_empty() {
        plain_unit
    } else {
        UNITS.iter().find(|row| row.0 == unit).map(|row| row.1).ok_or_else(refuse)?
    };
    let amount = (number * scale).floor();
    if amount < 1.0 || amount >= u64::MAX as f64 { Err(refuse()) } else { Ok(amount as u64) }
}

/// An amount of memory for people: `1.5 GiB`.
pub(crate) fn show_bytes(amount: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|unit| amount >> unit.1 > 0) {
        Some((unit, shift)) => {
            let text = format!("{:.1}", amount as f64 / (1_u64 << shift) as f64);
            format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
        }
        None => format!("{amount} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Written, bytes, show_bytes};
    use crate::machine::Machine;
    use std::ffi::OsStr;

    const MACHINE: Machine = Machine { cpus: 4, memory_bytes: Some(8 << 30) };

    fn plain(kind: Kind, text: &str) -> Result<String, String> {
        kind.plain(OsStr::new(text), Written::AfterFlag, &MACHINE).map(|value| value.into_string().expect("text"))
    }

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("1", 1 << 20),
            ("1b", 1),
            ("4k", 4096),
            ("4KB", 4000),
            ("1.5G", 3 << 29),
            ("2 GiB", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(bytes(text, 1024.0 * 1024.0), Ok(expected), "{text}");
        }
        assert_eq!(bytes("4096", 1.0), Ok(4096));
        for text in ["", "G", "-1", "1..5", "1q", "0", "1e9", "99999999999T"] {
            assert!(bytes(text, 1.0).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_for_people() {
        assert_eq!(show_bytes(5), "5 B");
        assert_eq!(show_bytes(3 << 29), "1.5 GiB");
        assert_eq!(show_bytes(8 << 30), "8 GiB");
    }

    #[test]
    fn what_the_machine_lacks_is_refused_with_what_it_has() {
        assert_eq!(plain(Kind::Cpus, "4"), Ok("4".into()));
        assert_eq!(plain(Kind::Cpus, "5"), Err("asked for 5, but this process may use 4 CPUs".into()));
        assert_eq!(plain(Kind::Memory, "9G"), Err("asked for 9 GiB, but this machine has 8 GiB".into()));
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
