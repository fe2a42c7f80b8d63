//! What a program needs before Python is started: the package that belongs to this binary, a Python and a NumPy that
//! are new enough.
//!
//! Promises two clear lines, what was found and a way out, where something is missing, and next to no cost where
//! nothing is: files are looked at, and Python is asked only where they tell nothing. It installs nothing.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::interpreter::{Interpreter, own_folder};

/// The oldest Python: the first whose stable ABI has what the extension module needs.
const OLDEST_PYTHON: Version = (3, 11);
/// The oldest NumPy: the order of its sums changed in it.
const OLDEST_NUMPY: Version = (2, 3);

/// Major and minor.
type Version = (u32, u32);

/// Prints Python's version, then NumPy's `version.py` if there is one.
const ASK: &str = "import importlib.util, os, sys
print('%d.%d' % sys.version_info[:2])
spec = importlib.util.find_spec('numpy')
print(os.path.join(os.path.dirname(spec.origin), 'version.py') if spec and spec.origin else '')";

/// Checks Python and NumPy.
pub(crate) fn check(python: &Interpreter) -> Result<(), String> {
    let path = python.path.display();
    let known = version_in_name(&python.path).zip(numpy_beside(&python.path));
    let (version, numpy) = match known {
        Some((version, numpy)) => (version, Some(numpy)),
        None => ask(python)?,
    };
    if version < OLDEST_PYTHON {
        return Err(format!(
            "needs Python {} or newer, but {path} is {}\nlegate: activate an environment with a newer one, or name \
             it with --python",
            show(OLDEST_PYTHON),
            show(version)
        ));
    }
    let install = format!("legate: install it with: {path} -m pip install 'numpy>={}'", show(OLDEST_NUMPY));
    let Some(numpy) = numpy else {
        return Err(format!("needs NumPy {} or newer, but {path} has none\n{install}", show(OLDEST_NUMPY)));
    };
    match fs::read_to_string(&numpy).ok().and_then(|text| numpy_version(&text)) {
        Some(found) if found < OLDEST_NUMPY => {
            Err(format!("needs NumPy {} or newer, but {path} has {}\n{install}", show(OLDEST_NUMPY), show(found)))
        }
        _ => Ok(()),
    }
}

/// The folder to put first on PYTHONPATH: the `boot` of the package that belongs to this binary.
pub(crate) fn boot_folder() -> Result<PathBuf, String> {
    let own = own_folder().ok_or("cannot tell where its own executable is")?;
    let package = companion(&own).ok_or_else(|| {
        format!("its Python package is not beside {}\nlegate: install both with: pip install legate", own.display())
    })?;
    fs::canonicalize(package.join("legate/boot")).map_err(|error| format!("{}: {error}", package.display()))
}

/// The folder that holds the package which belongs to this binary: beside an installation in `bin`, named by an
/// environment that was set up from the source tree, or in that tree itself, for a binary in its `target/release`.
fn companion(own: &Path) -> Option<PathBuf> {
    let holds = |folder: &PathBuf| folder.join("legate/boot/sitecustomize.py").is_file();
    let versions = fs::read_dir(own.join("../lib")).into_iter().flatten();
    let mut packages = versions
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("python3")))
        .flat_map(|version| ["site-packages", "dist-packages"].map(|name| version.join(name)))
        .flat_map(|folder| {
            let link = fs::read_to_string(folder.join("legate.pth")).ok();
            [Some(folder), link.map(|link| link.trim().into())].into_iter().flatten()
        });
    packages.find(holds).or_else(|| Some(own.join("../../site-packages")).filter(holds))
}

/// The version in the interpreter's real name, as in `python3.12`.
fn version_in_name(python: &Path) -> Option<Version> {
    let real = fs::canonicalize(python).ok()?;
    version(real.file_name()?.to_str()?.strip_prefix("python")?)
}

/// NumPy's `version.py` in the environment's own folder of packages.
fn numpy_beside(python: &Path) -> Option<PathBuf> {
    let (major, minor) = version_in_name(python)?;
    let folder = python.parent()?.parent()?.join(format!("lib/python{major}.{minor}/site-packages"));
    Some(folder.join("numpy/version.py")).filter(|file| file.is_file())
}

fn ask(python: &Interpreter) -> Result<(Version, Option<PathBuf>), String> {
    let path = python.path.display();
    let answer = Command::new(&python.path).args(["-c", ASK]).stdin(Stdio::null()).output();
    let answer = answer.map_err(|error| format!("cannot run {path}: {error}"))?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let mut lines = text.lines();
    let version = lines.next().and_then(version).ok_or_else(|| {
        let said = String::from_utf8_lossy(&answer.stderr).trim().lines().last().unwrap_or_default().to_owned();
        format!("{path} does not work as a Python: {said}\nlegate: name another one with --python")
    })?;
    Ok((version, lines.next().filter(|line| !line.is_empty()).map(PathBuf::from)))
}

/// Major and minor of `3.12` or `2.4.6`.
fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The version that NumPy's `version.py` states.
fn numpy_version(text: &str) -> Option<Version> {
    version(text.lines().find(|line| line.starts_with("version ="))?.split('"').nth(1)?)
}

fn show((major, minor): Version) -> String {
    format!("{major}.{minor}")
}

#[cfg(test)]
mod tests {
    use super::{companion, numpy_version, version};
    use std::path::Path;

    #[test]
    fn versions() {
        assert_eq!(version("3.12"), Some((3, 12)));
        assert_eq!(version("2.4.6"), Some((2, 4)));
        assert_eq!(version("3"), None);
        assert_eq!(version("3.x"), None);
        assert_eq!(numpy_version("\"\"\"\nv\n\"\"\"\nversion = \"2.3.5\"\n"), Some((2, 3)));
        assert_eq!(numpy_version("version = None\n"), None);
    }

    #[test]
    fn the_tree_is_its_own_companion() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(companion(&top.join("target/release")).is_some());
        assert!(companion(Path::new("/")).is_none());
    }
}
