//! Commands around Python in each rank: debuggers, checkers, profilers, and the user's own.
//!
//! A new tool is a row here and one in the table of flags. Promises one line for a tool that is not there, before anything starts.
//! Starts nothing.

use std::ffi::OsString;
use std::path::Path;

use crate::family::on_path;
use crate::parse::shell_words;
use crate::settings::Settings;

/// A tool that runs a program.
struct Tool {
    /// The flag that asks for it.
    flag: &'static str,
    /// Its command; FILE stands for a path in the folder of logs, with the rank's number.
    words: &'static [&'static str],
    /// Where to get it.
    from: &'static str,
    /// Whether it needs the terminal, so that only one rank can have it.
    is_for_one: bool,
    /// Variables that it needs Python to have.
    variables: &'static [(&'static str, &'static str)],
}

const TOOLS: &[Tool] = &[
    Tool {
        flag: "nsys",
        words: &["nsys", "profile", "--force-overwrite=true", "-o", "FILE"],
        from: "it comes with NVIDIA's CUDA toolkit",
        is_for_one: false,
        variables: &[],
    },
    Tool {
        flag: "gdb",
        words: &["gdb", "-q", "--args"],
        from: "install the package gdb",
        is_for_one: true,
        variables: &[],
    },
    Tool {
        flag: "cuda-gdb",
        words: &["cuda-gdb", "-q", "--args"],
        from: "it comes with NVIDIA's CUDA toolkit",
        is_for_one: true,
        variables: &[],
    },
    Tool {
        flag: "memcheck",
        words: &["compute-sanitizer", "--tool", "memcheck"],
        from: "it comes with NVIDIA's CUDA toolkit",
        is_for_one: false,
        variables: &[],
    },
    Tool {
        flag: "valgrind",
        words: &["valgrind"],
        from: "install the package valgrind",
        is_for_one: false,
        // Its own allocations are what valgrind knows.
        variables: &[("PYTHONMALLOC", "malloc")],
    },
];

/// What stands for a rank's number in `--wrapper-inner`.
const NUMBER: &str = "%%LEGATE_GLOBAL_RANK%%";

/// Commands around Python.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wrap {
    /// Words before Python's own.
    pub(crate) words: Vec<OsString>,
    /// Variables that they need Python to have.
    pub(crate) variables: Vec<(&'static str, OsString)>,
}

impl Wrap {
    /// What is asked for around Python in the rank with that number, of so many.
    pub(crate) fn asked(settings: &Settings, rank: usize, ranks: usize) -> Result<Wrap, String> {
        let mut wrap = Wrap { words: own_words(settings, "wrapper", rank)?, variables: Vec::new() };
        for tool in TOOLS.iter().filter(|tool| settings.is_on(tool.flag)) {
            if tool.is_for_one && ranks > 1 {
                return Err(format!(
                    "--{}: needs the terminal for one rank, and there are {ranks}: use --freeze-on-error, or --wrapper-inner \
                     with a terminal for each rank",
                    tool.flag
                ));
            }
            if on_path(tool.words[0]).is_none() {
                return Err(format!("--{}: {} is not on PATH: {}", tool.flag, tool.words[0], tool.from));
            }
            let file = log_file(settings, &format!("legate-{rank}"));
            wrap.words.extend(tool.words.iter().map(|&word| if word == "FILE" { file.clone() } else { word.into() }));
            wrap.variables.extend(tool.variables.iter().map(|&(name, value)| (name, value.into())));
        }
        wrap.words.extend(own_words(settings, "wrapper-inner", rank)?);
        Ok(wrap)
    }
}

/// A file in the folder of logs.
pub(crate) fn log_file(settings: &Settings, name: &str) -> OsString {
    Path::new(settings.given("logdir").unwrap_or(".".as_ref())).join(name).into()
}

/// The words of a flag, with the rank's number.
pub(crate) fn own_words(settings: &Settings, flag: &str, rank: usize) -> Result<Vec<OsString>, String> {
    let Some(text) = settings.given(flag) else { return Ok(Vec::new()) };
    let text = text.to_str().ok_or_else(|| format!("--{flag}: is not UTF-8"))?;
    let words = shell_words(&text.replace(NUMBER, &rank.to_string()))?;
    match words.first() {
        Some(first) if on_path(first).is_none() && !Path::new(first).is_file() => {
            Err(format!("--{flag}: there is no command {}", first.display()))
        }
        _ => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::{TOOLS, Wrap};
    use crate::flags;
    use crate::machine::Machine;
    use crate::parse::{parse, shell_words};
    use crate::settings::Settings;

    fn asked(words: &str, rank: usize, ranks: usize) -> Result<String, String> {
        let settings = Settings::gather(&parse(shell_words(words)?)?, |_| None, &Machine::of_test())?;
        Ok(Wrap::asked(&settings, rank, ranks)?.words.join(" ".as_ref()).into_string().expect("text"))
    }

    #[test]
    fn tools_have_flags() {
        for tool in TOOLS {
            assert!(flags::find(tool.flag).is_some(), "{}", tool.flag);
        }
    }

    #[test]
    fn words_around_a_rank() {
        let text = "--wrapper-inner 'env A=%%LEGATE_GLOBAL_RANK%%' --wrapper-inner 'nice -n 1' a";
        assert_eq!(asked(text, 3, 4), Ok("env A=3 nice -n 1".to_owned()));
        assert_eq!(asked("--wrapper 'env X=1' --wrapper-inner nice a", 0, 1), Ok("env X=1 nice".to_owned()));
        assert_eq!(asked("--wrapper nice a", 0, 2), Ok("nice".to_owned()));
        assert_eq!(
            asked("--wrapper no-such-command a", 0, 1),
            Err("--wrapper: there is no command no-such-command".to_owned())
        );
        assert!(asked("--gdb a", 0, 2).is_err_and(|why| why.contains("needs the terminal for one rank")));
    }
}
