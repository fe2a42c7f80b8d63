//! From words to options and a program, the way Python reads its command line.
//!
//! Promises that options end at the program: whatever follows the script, `-m NAME`, `-c TEXT` or `-` is the
//! program's. Words with two dashes go through clap with the table of flags; words with one dash are Python's own,
//! possibly several letters in one. It does not check values.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::command;
use crate::flags::{Flag, LETTERS, Letter, PYTHON_LONG, find};
use crate::value::{Kind, Value};

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// A file, or a folder or archive with a `__main__.py`.
    Script(OsString),
    /// `-m NAME`.
    Module(OsString),
    /// `-c TEXT`.
    Command(OsString),
    /// `-`: the standard input.
    Dash,
}

/// A command line, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Flags with their values as written; a switch has none.
    pub(crate) flags: Vec<(&'static Flag, Option<OsString>)>,
    /// All that is Python's, word for word: its options, the program and the program's arguments.
    pub(crate) python: Vec<OsString>,
    /// Python's one-letter options among these.
    pub(crate) letters: Vec<char>,
    /// The program; none for the standard input or a prompt.
    pub(crate) program: Option<Program>,
}

impl Line {
    /// Whether the flag was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|(flag, _)| flag.name == name)
    }

    /// The value of the flag, as written.
    pub(crate) fn value(&self, name: &str) -> Option<&OsStr> {
        self.flags.iter().find(|(flag, _)| flag.name == name)?.1.as_deref()
    }

    /// The words of a line that says the same, but for these flags.
    pub(crate) fn words_without(&self, names: &[&str]) -> Vec<OsString> {
        let flags = self.flags.iter().filter(|(flag, _)| !names.contains(&flag.name));
        let flags = flags.map(|(flag, value)| {
            let mut word = OsString::from(format!("--{}", flag.name));
            if let Some(value) = value {
                word.push("=");
                word.push(value);
            }
            word
        });
        flags.chain(self.python.iter().cloned()).collect()
    }
}

/// Reads the words after the command's own name.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Line, String> {
    let mut words = words.into_iter();
    let mut line = Line::default();
    let mut long = Vec::new();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            let script = words.next();
            line.python.extend([Some(word), script.clone()].into_iter().flatten());
            line.program = script.map(script_or_dash);
        } else if bytes.starts_with(b"--") {
            take_long(word, &mut words, &mut line, &mut long)?;
        } else if bytes.starts_with(b"-") && bytes.len() > 1 {
            take_letters(word, &mut words, &mut line, &mut long)?;
        } else {
            line.python.push(word.clone());
            line.program = Some(script_or_dash(word));
        }
        if line.program.is_some() {
            break;
        }
    }
    line.python.extend(words);
    line.flags = command::flags_of(long)?;
    Ok(line)
}

fn script_or_dash(word: OsString) -> Program {
    if word == "-" { Program::Dash } else { Program::Script(word) }
}

/// One word with two dashes, and its value. Written as `--name=value` it reaches clap unmistakably, whatever the value.
fn take_long(
    word: OsString,
    words: &mut impl Iterator<Item = OsString>,
    line: &mut Line,
    long: &mut Vec<OsString>,
) -> Result<(), String> {
    let body = &word.as_bytes()[2..];
    let (name, value) = match body.iter().position(|&byte| byte == b'=') {
        Some(cut) => (&body[..cut], Some(OsString::from_vec(body[cut + 1..].to_vec()))),
        None => (body, None),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let mut value_of =
        |value: Option<OsString>| value.or_else(|| words.next()).ok_or_else(|| format!("--{name} needs a value"));
    if PYTHON_LONG.contains(&name.as_str()) {
        let value = value_of(value)?;
        line.python.extend([OsString::from(format!("--{name}")), value]);
        return Ok(());
    }
    match find(&name).map(|flag| flag.kind) {
        Some(Kind::Program) => {
            let module = value_of(value)?;
            line.python.extend(["-m".into(), module.clone()]);
            line.program = Some(Program::Module(module));
        }
        Some(kind) if kind.value() == Some(Value::Needed) => {
            let mut whole = OsString::from(format!("--{name}="));
            whole.push(value_of(value)?);
            long.push(whole);
        }
        Some(_) | None => long.push(word),
    }
    Ok(())
}

/// A word with one dash: letters, the last of which may take the rest of the word, or the next word, as its value.
fn take_letters(
    word: OsString,
    words: &mut impl Iterator<Item = OsString>,
    line: &mut Line,
    long: &mut Vec<OsString>,
) -> Result<(), String> {
    line.python.push(word.clone());
    let letters = &word.as_bytes()[1..];
    for (at, &byte) in letters.iter().enumerate() {
        let letter = char::from(byte);
        let Some(&(_, meaning)) = LETTERS.iter().find(|row| row.0 == letter) else {
            let asked = word.to_string_lossy();
            return Err(command::unknown(&asked, asked.trim_start_matches('-')));
        };
        line.letters.push(letter);
        match meaning {
            Letter::Switch => continue,
            Letter::Help => long.push("--help".into()),
            Letter::Version => long.push("--version".into()),
            Letter::Value | Letter::Command | Letter::Module => {
                let rest = &letters[at + 1..];
                let value = if rest.is_empty() {
                    let next = words.next().ok_or_else(|| format!("-{letter} needs a value"))?;
                    line.python.push(next.clone());
                    next
                } else {
                    OsString::from_vec(rest.to_vec())
                };
                line.program = match meaning {
                    Letter::Command => Some(Program::Command(value)),
                    Letter::Module => Some(Program::Module(value)),
                    Letter::Switch | Letter::Value | Letter::Help | Letter::Version => None,
                };
                break;
            }
        }
    }
    Ok(())
}

/// Splits the text of a variable into words as a shell does: blanks part words, quotes and backslashes join them.
pub(crate) fn shell_words(text: &str) -> Result<Vec<OsString>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if letter == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, _) if letter.is_whitespace() => words.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote is not closed in: {text}"));
    }
    words.extend(word.map(OsString::from));
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::{Line, parse, shell_words};
    use std::ffi::OsString;

    fn read(text: &str) -> Result<Line, String> {
        parse(shell_words(text).expect("words"))
    }

    /// Printed form of a line: flags, program, Python's words.
    fn show(text: &str) -> String {
        let line = read(text).expect("a line");
        let flags: Vec<_> = line.flags.iter().map(|(flag, value)| format!("{}={value:?} ", flag.name)).collect();
        let words = line.python.join(OsString::from(" ").as_os_str()).into_string().expect("text");
        format!("{}{:?}: {words}", flags.concat(), line.program)
    }

    #[test]
    fn options_end_at_the_program() {
        for (text, expected) in [
            ("app.py --cpus 2 -c x", r#"Some(Script("app.py")): app.py --cpus 2 -c x"#),
            ("-m app -m other", r#"Some(Module("app")): -m app -m other"#),
            ("-mapp x", r#"Some(Module("app")): -mapp x"#),
            ("--module app x", r#"Some(Module("app")): -m app x"#),
            ("--module=app x", r#"Some(Module("app")): -m app x"#),
            ("-uc 'print(1)' -- x", r#"Some(Command("print(1)")): -uc print(1) -- x"#),
            ("-OOWd -X dev - x", r#"Some(Dash): -OOWd -X dev - x"#),
            ("-W d --report -- --odd.py 1", r#"report=None Some(Script("--odd.py")): -W d -- --odd.py 1"#),
            ("--check-hash-based-pycs always a", r#"Some(Script("a")): --check-hash-based-pycs always a"#),
            ("-i", "None: -i"),
            ("", "None: "),
        ] {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn values_in_both_forms() {
        assert_eq!(show("--cpus=2 --report a"), r#"cpus=Some("2") report=None Some(Script("a")): a"#);
        assert_eq!(show("--cpus --report a"), r#"cpus=Some("--report") Some(Script("a")): a"#);
        assert_eq!(show("--cpus 1 --cpus 2 a"), r#"cpus=Some("2") Some(Script("a")): a"#);
    }

    #[test]
    fn refusals_name_what_would_do() {
        for (text, expected) in [
            ("--cpu 2 a", "no option --cpu; did you mean --cpus?"),
            ("--qqqq a", "no option --qqqq; legate --help lists them all"),
            ("--report=1 a", "--report takes no value"),
            ("-z a", "no option -z; legate --help lists them all"),
            ("-cpus 2", ""),
            ("-report a", "no option -report; did you mean --report?"),
            ("--cpus", "--cpus needs a value"),
            ("-m", "-m needs a value"),
        ] {
            if expected.is_empty() {
                assert!(read(text).is_ok(), "-c with the text 'pus', as in Python");
            } else {
                assert_eq!(read(text), Err(expected.to_owned()), "{text}");
            }
        }
    }

    #[test]
    fn words_as_in_a_shell() {
        let words = shell_words(r#" a 'b c'  "d \" e" f\ g '' "#).expect("words");
        assert_eq!(words, ["a", "b c", "d \" e", "f g", ""]);
        assert!(shell_words("'a").is_err());
    }
}
