//! The `legate` command: flags, the active environment's interpreter, and the start of Python.
//!
//! Promises that what `python` does with a program, `legate` does too: whatever is not a flag of ours is Python's.
//! Its own errors are one or two lines that begin with `legate:`, and its exit code for them is 2. It does not touch
//! arrays: `legate.start`, on the Python side, takes over before Python runs the program.

mod command;
mod elf;
mod flags;
mod info;
mod interpreter;
mod machine;
mod parse;
mod requirements;
mod settings;
mod start;
mod value;

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use interpreter::Interpreter;
use machine::Machine;
use parse::{Line, Program};
use settings::Settings;
use start::Start;

/// Exit code for our own errors, as Python's for a bad command line.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            // A reader that closed the pipe has seen enough.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("legate: {why}");
            ExitCode::from(REFUSED)
        }
    }
}

/// Starts the program and does not return, or gives the text that was asked for instead.
fn run() -> Result<String, String> {
    let line = parse::parse(env::args_os().skip(1))?;
    if line.has("help") {
        return Ok(command::help());
    }
    if line.has("version") {
        return Ok(format!("legate {}\n", env!("CARGO_PKG_VERSION")));
    }
    let machine = Machine::look();
    let settings = Settings::gather(&line, |name| env::var_os(name), &machine)?;
    let python = Interpreter::find(settings.given("python"))?;
    let way = python.way();
    if line.has("info") {
        return Ok(info::text(&python, &way, &machine, &settings));
    }
    let verbose = settings.is_on("verbose");
    let why_alone = why_python_alone(&line);
    let mut start = Start { words: line.python, variables: Vec::new() };
    if let Some(why) = why_alone {
        if verbose {
            eprintln!("legate: {} (found by {}), alone: {why}", python.path.display(), python.found);
        }
        let never: Infallible = start.go(&python, &way, verbose)?;
        match never {}
    }
    requirements::check(&python)?;
    if verbose {
        eprintln!("legate: {} (found by {}), {way}", python.path.display(), python.found);
    }
    start.variables.extend(settings.variables().map(|(name, value)| (name, value.to_owned())));
    start.variables.push(("PYTHONPATH", first_on_path(&requirements::boot_folder()?)));
    let never: Infallible = start.go(&python, &way, verbose)?;
    match never {}
}

/// Why Python should have the line without legate, if it should.
fn why_python_alone(line: &Line) -> Option<String> {
    if let Some(Program::Script(path)) = &line.program
        && let Err(error) = File::open(path)
    {
        return Some(format!("{}: {error}", path.display()));
    }
    let keeps_out = ['E', 'I', 'S'].into_iter().find(|letter| line.letters.contains(letter))?;
    Some(format!("-{keeps_out} keeps legate out"))
}

/// PYTHONPATH with the folder before what it holds already.
fn first_on_path(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(rest) = env::var_os("PYTHONPATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}
