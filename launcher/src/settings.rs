//! The settings in force: for each flag with a variable, the value that wins and where it came from.
//!
//! Promises the order that `--help` states (command line, LEGATE_CONFIG, the flag's own variable, default), and that a
//! refusal says where the bad value was written. It does not act on settings.

use std::ffi::{OsStr, OsString};
use std::fmt;

use crate::flags::{self, Flag};
use crate::machine::Machine;
use crate::parse::{Line, parse, shell_words};
use crate::value::{Kind, Written};

/// The variable that holds options as on the command line.
const CONFIG: &str = "LEGATE_CONFIG";

/// Where a setting came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nobody said anything.
    Default,
    /// The flag's own variable.
    Variable(&'static str),
    /// LEGATE_CONFIG.
    Config,
    /// The command line.
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => out.write_str("default"),
            Source::Variable(name) => out.write_str(name),
            Source::Config => out.write_str(CONFIG),
            Source::CommandLine => out.write_str("command line"),
        }
    }
}

/// One flag's value in force.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its row.
    pub(crate) flag: &'static Flag,
    /// Its plain form; none where the default holds.
    pub(crate) value: Option<OsString>,
    /// Who said so.
    pub(crate) source: Source,
}

/// All settings, in the order of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings(pub(crate) Vec<Setting>);

impl Settings {
    /// Puts the sources together; `variable` reads the environment.
    pub(crate) fn gather(
        line: &Line,
        variable: impl Fn(&str) -> Option<OsString>,
        machine: &Machine,
    ) -> Result<Settings, String> {
        let config = match variable(CONFIG) {
            Some(text) => read_config(&text).map_err(|why| format!("{CONFIG}: {why}"))?,
            None => Line::default(),
        };
        let with_variable = flags::all().filter_map(|flag| Some((flag, flag.variable?)));
        let settings = with_variable.map(|(flag, own)| {
            let found = written(flag, line)
                .map(|text| (text, Source::CommandLine))
                .or_else(|| written(flag, &config).map(|text| (text, Source::Config)))
                .or_else(|| Some((variable(own).filter(|text| !text.is_empty())?, Source::Variable(own))));
            let Some((text, source)) = found else {
                return Ok(Setting { flag, value: None, source: Source::Default });
            };
            let way = if source == Source::Variable(own) { Written::InVariable } else { Written::AfterFlag };
            let value = flag.kind.plain(&text, way, machine).map_err(|why| match source {
                Source::Variable(name) => format!("{name}: {why}"),
                Source::Config => format!("{CONFIG}: --{}: {why}", flag.name),
                Source::CommandLine | Source::Default => format!("--{}: {why}", flag.name),
            })?;
            Ok(Setting { flag, value: Some(value), source })
        });
        settings.collect::<Result<_, String>>().map(Settings)
    }

    /// The value of a flag where somebody gave one.
    pub(crate) fn given(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|setting| setting.flag.name == name)?.value.as_deref()
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.0.iter().any(|setting| {
            let value = setting.value.as_deref();
            setting.flag.name == name
                && matches!(setting.flag.kind, Kind::Switch { on, .. } if value == Some(OsStr::new(on)))
        })
    }

    /// Variables for Python's side: what somebody gave of what it reads, in plain form.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        let handed_on = self.0.iter().filter(|setting| setting.flag.to_python);
        handed_on.filter_map(|setting| Some((setting.flag.variable?, setting.value.as_deref()?)))
    }
}

/// What a line says about a flag.
fn written(flag: &Flag, line: &Line) -> Option<OsString> {
    let (_, value) = line.flags.iter().find(|(given, _)| given.name == flag.name)?;
    match (flag.kind, value) {
        (Kind::Switch { on, .. }, _) => Some(on.into()),
        (_, value) => value.clone(),
    }
}

fn read_config(text: &OsStr) -> Result<Line, String> {
    let text = text.to_str().ok_or("is not UTF-8")?;
    let line = parse(shell_words(text)?)?;
    if line.program.is_some() || !line.python.is_empty() || line.flags.iter().any(|row| row.0.kind.is_act()) {
        return Err(format!("holds settings only, no program and none of Python's options: {text}"));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::{Settings, Source};
    use crate::machine::Machine;
    use crate::parse::{parse, shell_words};
    use std::ffi::{OsStr, OsString};

    fn gather(words: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let line = parse(shell_words(words)?)?;
        let lookup = |name: &str| variables.iter().find(|row| row.0 == name).map(|row| OsString::from(row.1));
        Settings::gather(&line, lookup, &Machine::of_test())
    }

    fn cpus(words: &str, variables: &[(&str, &str)]) -> (Option<String>, Source) {
        let settings = gather(words, variables).expect("settings");
        let setting = settings.0.iter().find(|setting| setting.flag.name == "cpus").expect("a row");
        (setting.value.clone().map(|value| value.into_string().expect("text")), setting.source)
    }

    #[test]
    fn the_nearest_source_wins() {
        let all = [("LEGATE_CONFIG", "--cpus 2"), ("LEGATE_CPUS", "3")];
        assert_eq!(cpus("--cpus 1 a", &all), (Some("1".into()), Source::CommandLine));
        assert_eq!(cpus("a", &all), (Some("2".into()), Source::Config));
        assert_eq!(cpus("a", &all[1..]), (Some("3".into()), Source::Variable("LEGATE_CPUS")));
        assert_eq!(cpus("a", &[("LEGATE_CPUS", "")]), (None, Source::Default));
    }

    #[test]
    fn handed_on_in_plain_form() {
        let settings = gather("--sysmem 1G --no-fusion a", &[("LEGATE_REPORT", "0")]).expect("settings");
        let variables: Vec<_> = settings.variables().map(|(name, value)| (name, value.to_owned())).collect();
        let expected = [("LEGATE_SYSMEM", "1073741824"), ("LEGATE_FUSION", "0"), ("LEGATE_REPORT", "0")];
        assert_eq!(variables, expected.map(|(name, value)| (name, OsString::from(value))));
        assert!(settings.is_on("no-fusion") && !settings.is_on("report"));
        assert_eq!(gather("a", &[("LEGATE_SYSMEM", "4096")]).expect("ok").given("sysmem"), Some(OsStr::new("4096")));
    }

    #[test]
    fn refusals_say_where() {
        for (words, variables, expected) in [
            ("--cpus x", [("LEGATE_A", "")], "--cpus: 'x' is not a whole number"),
            ("a", [("LEGATE_CPUS", "x")], "LEGATE_CPUS: 'x' is not a whole number"),
            ("a", [("LEGATE_CONFIG", "--cpus x")], "LEGATE_CONFIG: --cpus: 'x' is not a whole number"),
            ("a", [("LEGATE_CONFIG", "--cpu 1")], "LEGATE_CONFIG: no option --cpu; did you mean --cpus?"),
            (
                "a",
                [("LEGATE_CONFIG", "a.py")],
                "LEGATE_CONFIG: holds settings only, no program and none of Python's options: a.py",
            ),
            ("a", [("LEGATE_REPORT", "yes")], "LEGATE_REPORT: 'yes' is neither 0 nor 1"),
        ] {
            assert_eq!(gather(words, &variables), Err(expected.to_owned()), "{words}");
        }
    }
}
