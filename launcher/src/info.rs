//! The text of `--info`: versions, this machine, and the settings in force with where each came from.
//!
//! Promises to say something for each line even where Python or NumPy cannot be asked. It decides nothing.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::family::{FAMILIES, Family};
use crate::interpreter::{Interpreter, Way};
use crate::machine::Machine;
use crate::part::show_list;
use crate::settings::{Setting, Settings};
use crate::share::Share;
use crate::size::show_bytes;
use crate::value::Kind;

/// Prints the versions of Python and NumPy, one a line.
const ASK: &str = "import sys; print(*sys.version_info[:3], sep='.')
try:
    import numpy; print(numpy.__version__, 'in', numpy.__path__[0])
except ImportError as error:
    print('none:', error)";

/// What there is of an MPI family: the plugin, if one was built, and what starts its ranks.
fn mpi(family: &Family, package: Option<&Path>) -> String {
    let plugin = package.map(|package| family.plugin(package)).filter(|plugin| plugin.is_file());
    let plugin = plugin.map_or_else(|| "no plugin".to_owned(), |plugin| plugin.display().to_string());
    let runner = family.runner().map_or_else(|| "no runner on PATH".to_owned(), |runner| runner.display().to_string());
    format!("{}: {plugin}, {runner}", family.name)
}

/// What `--info` prints; `package` is the folder of legate's Python package, if it was found.
pub(crate) fn text(
    python: &Interpreter,
    way: &Way,
    package: Option<&Path>,
    machine: &Machine,
    shares: &[Share],
    settings: &Settings,
) -> String {
    let answer = Command::new(&python.path).args(["-c", ASK]).stdin(Stdio::null()).output();
    let answer = answer.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut answers = answer.lines();
    let memory = machine.memory_bytes.map_or_else(|| "unknown".to_owned(), show_bytes);
    let mut rows = vec![
        ("legate".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("python".to_owned(), format!("{} in {}", answers.next().unwrap_or("unknown"), python.path.display())),
        ("  found by".to_owned(), python.found.to_owned()),
        ("  started".to_owned(), way.to_string()),
        ("numpy".to_owned(), answers.next().unwrap_or("unknown").to_owned()),
        ("cpus".to_owned(), format!("{} that this process may use: {}", machine.cpus, machine.cpus_why)),
        ("memory".to_owned(), format!("{memory}: {}", machine.memory_why)),
        ("numa nodes".to_owned(), show_list(&machine.nodes)),
        ("gpus".to_owned(), machine.gpus.to_string()),
        ("cards".to_owned(), machine.cards.join(", ")),
    ];
    for (number, family) in FAMILIES.iter().enumerate() {
        rows.push((if number == 0 { "mpi".to_owned() } else { String::new() }, mpi(family, package)));
    }
    for (number, share) in shares.iter().enumerate() {
        rows.push((
            if shares.len() == 1 { "its share".to_owned() } else { format!("share of rank {number}") },
            String::new(),
        ));
        rows.extend(
            share.rows(share.bound.as_ref().unwrap_or(&machine.mask)).map(|(name, value)| (format!("  {name}"), value)),
        );
    }
    rows.push(("settings".to_owned(), String::new()));
    rows.extend(settings.0.iter().map(|setting| (format!("  --{}", setting.flag.name), shown(setting))));
    let widest = rows.iter().map(|row| row.0.len()).max().unwrap_or_default();
    rows.iter().map(|(name, value)| format!("{name:widest$}  {value}").trim_end().to_owned() + "\n").collect()
}

/// A setting for people: its value and who said so.
fn shown(setting: &Setting) -> String {
    let plain = setting.value.as_deref().map(|value| value.to_string_lossy().into_owned());
    let value = match (setting.flag.kind, plain) {
        (Kind::Switch { on, .. }, plain) => if plain.as_deref() == Some(on) { "yes" } else { "no" }.to_owned(),
        (_, None) if setting.flag.default.is_empty() => "none".to_owned(),
        (_, None) => setting.flag.default.to_owned(),
        (Kind::Memory | Kind::Size, Some(plain)) => plain.parse().map_or(plain, show_bytes),
        (_, Some(plain)) => plain,
    };
    format!("{value} ({})", setting.source)
}
