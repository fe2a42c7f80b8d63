//! Finds the Python that the user means, and decides how to start it.
//!
//! Promises the order `--python`, VIRTUAL_ENV, the environment that `legate` itself is installed in, CONDA_PREFIX,
//! PATH; and a path that is good as `argv[0]`, so that Python finds its environment from it. Scripts that stand in for
//! an interpreter (pyenv's) are asked for the real one. It does not start anything else, and does not check versions
//! (see `requirements`).

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::elf::Dynamic;

/// A Python to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// Its executable; what `sys.executable` will be.
    pub(crate) path: PathBuf,
    /// Where it was found, for people.
    pub(crate) found: &'static str,
}

/// Names to look for in an environment's folder of executables: first what people type.
const IN_ENVIRONMENT: [&str; 2] = ["python", "python3"];
/// Names to look for on PATH, where `python` may be an old one.
const ON_PATH: [&str; 2] = ["python3", "python"];

impl Interpreter {
    /// Looks for the interpreter; `asked` is what `--python` said.
    pub(crate) fn find(asked: Option<&OsStr>) -> Result<Interpreter, String> {
        if let Some(asked) = asked {
            let path = named(asked).ok_or_else(|| {
                format!("--python: no interpreter at {} and no environment's folder there", asked.display())
            })?;
            return Ok(Interpreter { path, found: "--python" });
        }
        let environment = |variable| env::var_os(variable).map(|folder| Path::new(&folder).join("bin"));
        let own = own_folder().filter(|bin| bin.join("../pyvenv.cfg").exists());
        let places = [
            ("VIRTUAL_ENV", environment("VIRTUAL_ENV")),
            ("legate's own environment", own),
            ("CONDA_PREFIX", environment("CONDA_PREFIX")),
        ];
        for (found, bin) in places {
            if let Some(path) = bin.and_then(|bin| in_environment(&bin)) {
                return Ok(Interpreter { path, found });
            }
        }
        ON_PATH
            .iter()
            .find_map(|name| on_path(OsStr::new(name)))
            .map(|path| Interpreter { path, found: "PATH" })
            .ok_or_else(|| {
                "found no Python (looked at VIRTUAL_ENV, CONDA_PREFIX and PATH): \
                 activate an environment or name one with --python"
                    .to_owned()
            })
    }

    /// How to start it.
    pub(crate) fn way(&self) -> Way {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let dynamic = match Dynamic::read(&path) {
            Ok(dynamic) => dynamic,
            Err(why) => return Way::Execute { why: format!("{}: {why}", path.display()) },
        };
        let Some(library) = dynamic.needed.iter().find(|name| name.starts_with("libpython")) else {
            return Way::Execute { why: "it has Python built in, which runs faster than a libpython".to_owned() };
        };
        let variable = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = env::split_paths(&variable).chain(dynamic.folders);
        let found = folders.map(|folder| folder.join(library)).find(|file| file.exists());
        Way::Embed { library: found.unwrap_or_else(|| library.into()) }
    }
}

/// How to start an interpreter. Embedding is worth it only where the executable itself runs on the same library:
/// one with Python built in was measured 9 to 28 % faster on plain loops than its libpython.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In this process, with the library that the executable would load.
    Embed {
        /// Path, or plain name for the loader to search.
        library: PathBuf,
    },
    /// In place of this process.
    Execute {
        /// Why not embedded.
        why: String,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Embed { library } => write!(out, "embedded from {}", library.display()),
            Way::Execute { why } => write!(out, "executed ({why})"),
        }
    }
}

/// The folder of `legate` itself.
pub(crate) fn own_folder() -> Option<PathBuf> {
    env::current_exe().ok()?.parent().map(Path::to_owned)
}

/// The interpreter that `--python` names: a file, an environment's folder, or a name on PATH.
fn named(asked: &OsStr) -> Option<PathBuf> {
    let path = Path::new(asked);
    if path.is_dir() {
        return in_environment(&path.join("bin"));
    }
    if path.components().count() == 1 && !path.exists() { on_path(asked) } else { real(path) }
}

fn in_environment(bin: &Path) -> Option<PathBuf> {
    IN_ENVIRONMENT.iter().find_map(|name| real(&bin.join(name)))
}

fn on_path(name: &OsStr) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).find_map(|folder| real(&folder.join(name)))
}

/// The path made absolute if it is an executable file; where that is a script, what it says it runs.
fn real(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let status = fs::metadata(&path).ok()?;
    if !status.is_file() || status.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let mut start = [0; 2];
    File::open(&path).ok()?.read_exact(&mut start).ok()?;
    if &start != b"#!" {
        return Some(path);
    }
    let answer = Command::new(&path)
        .args(["-I", "-S", "-c", "import os, sys; sys.stdout.write(sys.executable)"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let path = PathBuf::from(OsString::from_vec(answer.stdout));
    (answer.status.success() && path.is_file()).then_some(path)
}
