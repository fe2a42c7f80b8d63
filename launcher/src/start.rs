#![expect(unsafe_code, reason = "calls Python's main function from its library, and sets this process's environment")]
//! Starts Python, in this process or in its place.
//!
//! Promises that Python gets its own command line (`python [options] program arguments`), so that whatever it makes of
//! one - `sys.argv`, `__main__`, exit codes, signals - is its own doing. What makes it a legate one is in the
//! environment: settings, and a folder put first on PYTHONPATH whose `sitecustomize` begins legate and then hides the
//! detour. It does not return unless something went wrong.

use std::convert::Infallible;
use std::env;
use std::ffi::{CString, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};

use crate::interpreter::{Interpreter, Way};
use crate::shell;

/// `int Py_BytesMain(int argc, char **argv)`, in the stable ABI since Python 3.8.
type BytesMain = unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int;

/// Variables to set for Python.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// What the program may see, or what is known by its name.
    pub(crate) open: Vec<(&'static str, OsString)>,
    /// What is taken back before the program looks.
    pub(crate) hidden: Vec<(&'static str, OsString)>,
}

impl Variables {
    /// Adds others.
    pub(crate) fn extend(&mut self, others: Variables) {
        self.open.extend(others.open);
        self.hidden.extend(others.hidden);
    }

    /// All variables, and one that tells which to take back.
    fn all(&self) -> Vec<(&'static str, OsString)> {
        let names: Vec<&str> = self.hidden.iter().map(|row| row.0).collect();
        let hide = if names.is_empty() { None } else { Some(("LEGATE_HIDE", names.join(" ").into())) };
        self.open.iter().chain(&self.hidden).cloned().chain(hide).collect()
    }
}

/// What Python is started with.
#[derive(Debug)]
pub(crate) struct Start {
    /// Python's options, the program, and its arguments.
    pub(crate) words: Vec<OsString>,
    /// Words before Python's own: commands that run it.
    pub(crate) around: Vec<OsString>,
    /// Variables to set.
    pub(crate) variables: Variables,
}

/// What parts the words of a command line in a variable.
const BETWEEN_WORDS: &str = "\x1f";

impl Start {
    /// The command that does the same.
    pub(crate) fn show(&self, python: &Interpreter) -> String {
        let variables = self.variables.all();
        let variables = variables.iter().map(|(name, value)| (*name, value.as_os_str()));
        let around = self.around.iter().map(OsString::as_os_str);
        let words = around.chain([python.path.as_os_str()]).chain(self.words.iter().map(OsString::as_os_str));
        shell::command(variables, words) + "\n"
    }

    /// Starts Python; comes back only with the reason why it could not.
    pub(crate) fn go(self, python: &Interpreter, way: &Way, verbose: bool) -> Result<Infallible, String> {
        default_signals();
        if let Some((first, rest)) = self.around.split_first() {
            // What runs Python may be a Python program itself, and it gets the same variables.
            let words = ("LEGATE_WORDS", self.words.join(BETWEEN_WORDS.as_ref()));
            let mut command = Command::new(first);
            command.args(rest).arg(&python.path).args(&self.words).envs(self.variables.all()).env(words.0, words.1);
            return Err(format!("cannot run {}: {}", first.display(), command.exec()));
        }
        if let Way::Embed { library } = way
            && let Err(why) = self.embed(python, library)
            && verbose
        {
            eprintln!("legate: {why}; running the interpreter instead");
        }
        let error = Command::new(&python.path).args(&self.words).envs(self.variables.all()).exec();
        Err(format!("cannot run {}: {error}", python.path.display()))
    }

    /// Runs Python's main function here and exits with its code.
    fn embed(&self, python: &Interpreter, library: &Path) -> Result<Infallible, String> {
        // SAFETY: a libpython's initialisers have no preconditions; it is the library that the interpreter itself
        // would load. RTLD_GLOBAL, because extension modules take Python's functions from the process.
        let library = unsafe { Library::open(Some(library), RTLD_NOW | RTLD_GLOBAL) }.map_err(|why| why.to_string())?;
        // SAFETY: `BytesMain` is the function's type in the stable ABI.
        let main: Symbol<BytesMain> = unsafe { library.get(b"Py_BytesMain\0") }.map_err(|why| why.to_string())?;
        let words = [python.path.as_os_str()].into_iter().chain(self.words.iter().map(OsString::as_os_str));
        let words = words
            .map(|word| CString::new(word.as_bytes()).map_err(|_| "an argument holds a zero byte".to_owned()))
            .collect::<Result<Vec<_>, String>>()?;
        let mut pointers: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        let count = pointers.len() as c_int;
        pointers.push(std::ptr::null_mut());
        for (name, value) in self.variables.all() {
            // SAFETY: this process has one thread still.
            unsafe { env::set_var(name, value) };
        }
        // SAFETY: `count` strings and a null pointer, all alive until the process exits below.
        let code = unsafe { main(count, pointers.as_mut_ptr()) };
        std::process::exit(code)
    }
}

/// Gives back the signals that Rust's start-up took, so that Python finds them as it would without us.
fn default_signals() {
    for signal in [libc::SIGPIPE, libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: setting a default disposition runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
