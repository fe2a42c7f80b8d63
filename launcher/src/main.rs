//! The `legate` command: flags, the active environment's interpreter, and the start of Python.
//!
//! Promises that what `python` does with a program, `legate` does too: whatever is not a flag of ours is Python's.
//! Its own errors are one or two lines that begin with `legate:`, and its exit code for them is 2. It does not touch
//! arrays: `legate.start`, on the Python side, takes over before Python runs the program.

mod allocation;
mod binding;
mod children;
mod command;
mod completion;
mod cores;
mod desk;
mod elf;
mod family;
mod flags;
mod info;
mod interpreter;
mod job;
mod logging;
mod machine;
mod parse;
mod part;
mod porter;
mod rank;
mod reference;
mod requirements;
mod settings;
mod share;
mod shell;
mod signals;
mod size;
mod start;
mod supervise;
mod terminal;
mod value;
mod verdict;
mod wrap;

use std::convert::Infallible;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use allocation::Allocation;
use desk::JOB;
use interpreter::Interpreter;
use job::{Job, Launcher, Shape};
use logging::Levels;
use machine::Machine;
use parse::{Line, Program};
use porter::Duties;
use rank::{Output, Rank};
use settings::Settings;
use share::{Node, Place, Share};
use start::{Start, Variables};
use supervise::Shown;
use value::Written;
use wrap::Wrap;

/// Exit code for our own errors, as Python's for a bad command line.
const REFUSED: u8 = 2;

/// How a run ends that did not become the program.
enum End {
    /// The text that was asked for instead.
    Text(String),
    /// The exit code of the ranks that were started.
    Code(u8),
}

fn main() -> ExitCode {
    let rank = Rank::look(|name| env::var_os(name));
    // All ranks come to such an end alike.
    let is_heard = rank.as_ref().is_none_or(|rank| rank.number == 0);
    match run(rank.as_ref()) {
        Ok(End::Text(text)) => {
            if is_heard {
                // A reader that closed the pipe has seen enough.
                let _ = io::stdout().write_all(text.as_bytes());
            }
            ExitCode::SUCCESS
        }
        Ok(End::Code(code)) => ExitCode::from(code),
        Err(why) => {
            if is_heard {
                eprintln!("legate: {why}");
            }
            ExitCode::from(REFUSED)
        }
    }
}

/// Starts the program and does not return, or starts the ranks that do, or gives the text that was asked for instead.
fn run(rank: Option<&Rank>) -> Result<End, String> {
    let line = parse::parse(env::args_os().skip(1))?;
    if line.has("help") {
        let when = line.value("color").map(OsStr::to_owned).or_else(|| env::var_os("LEGATE_COLOR"));
        return Ok(End::Text(command::help(is_coloured(when.as_deref()))));
    }
    if line.has("reference") {
        return Ok(End::Text(reference::text()));
    }
    if line.has("version") {
        return Ok(End::Text(format!("legate {}\n", env!("CARGO_PKG_VERSION"))));
    }
    let machine = Machine::look();
    if let Some(shell) = line.value("completion") {
        let asked = flags::find("completion")
            .map_or(Ok(shell.to_owned()), |flag| flag.kind.plain(shell, Written::AfterFlag, &machine));
        let shell = asked.map_err(|why| format!("--completion: {why}"))?;
        return Ok(End::Text(completion::script(&shell.to_string_lossy())));
    }
    // Other machines than this may have more: their ranks look for themselves.
    let anywhere = Machine { cpus: usize::MAX, memory_bytes: None, ..machine.clone() };
    let settings = Settings::gather(&line, |name| env::var_os(name), &anywhere)?;
    let levels = Levels::read(&settings.given("logging").unwrap_or_default().to_string_lossy())?;
    // Whoever started the job has said what is the same for all ranks.
    let is_first = env::var_os(JOB).is_none() && rank.is_none_or(|rank| rank.number == 0);
    if is_first {
        levels.greet_strangers();
    }
    let python = Interpreter::find(settings.given("python"))?;
    let way = python.way();
    if is_first {
        levels.log("launcher", "info", format_args!("{} (found by {}), {way}", python.path.display(), python.found));
        for setting in settings.0.iter().filter(|setting| setting.value.is_some()) {
            let value = setting.value.as_deref().unwrap_or_default().display();
            levels.log("launcher", "debug", format_args!("--{} is {value} ({})", setting.flag.name, setting.source));
        }
    }
    let place = rank.map_or(Place::ALONE, |rank| rank.place);
    let (allocation, shape) = allotted(rank, &settings)?;
    let stays_here = rank.is_some() || !is_for_others(allocation.as_ref(), shape, &settings);
    let settings = if stays_here { Settings::gather(&line, |name| env::var_os(name), &machine)? } else { settings };
    if line.has("info") {
        let shares = shares(if rank.is_some() { place.ranks } else { shape.per_node() }, &machine, &settings)?;
        let boot = requirements::boot_folder().ok();
        let package = boot.as_deref().and_then(Path::parent);
        return Ok(End::Text(info::text(&python, &way, package, &machine, &shares, &settings)));
    }
    let verbose = settings.is_on("verbose");
    let why_alone = why_python_alone(&line);
    let ranks = rank.map_or(shape.ranks, |rank| rank.ranks);
    let is_shown_only = settings.is_on("dry-run");
    let number = rank.map_or(0, |rank| rank.number);
    let is_alone = env::var_os(JOB).is_some() || job::is_started_alone(&|name| env::var_os(name));
    let is_to_start_ranks = rank.is_none() && (ranks > 1 || Launcher::is_named(&settings) && !is_alone);
    let wrap = Wrap::asked(&settings, number, ranks)?;
    let variables = Variables { open: wrap.variables, ..Variables::default() };
    let mut start = Start { words: line.python.clone(), around: wrap.words, variables };
    let mut errors: Box<dyn Write> = Box::new(io::stderr());
    if settings.is_on("ipython") {
        // IPython's own greeting takes the place of Python's, also where the input is no terminal.
        start.words.splice(0..0, ["-q".into(), "-i".into()]);
    }
    if let Some(rank) = rank {
        let output = match settings.given("rank-output") {
            _ if settings.is_on("all-output") => Output::Shown,
            Some(folder) => Output::Files(folder),
            None => Output::Nowhere,
        };
        let streams = rank.settle_streams(output)?;
        start.variables.open.extend(streams.variables);
        errors = Box::new(streams.errors);
    }
    if !is_to_start_ranks && !is_shown_only {
        let has_desk = start.variables.open.iter().any(|row| row.0 == "LEGATE_LINE");
        porter::stand(&duties(&settings, rank, has_desk))?;
    }
    if let Some(why) = why_alone {
        if let Alone::KeptOut(letter) = why
            && ranks > 1
            && (rank.is_some() || settings.given("nodes").is_some() || settings.given("ranks-per-node").is_some())
        {
            return Err(format!(
                "-{letter} keeps legate out, so that {ranks} ranks would be {ranks} copies of the program"
            ));
        }
        if verbose {
            eprintln!("legate: {} (found by {}), alone: {why}", python.path.display(), python.found);
        }
        if is_shown_only {
            return Ok(End::Text(start.show(&python)));
        }
        let never: Infallible = start.go(&python, &way, verbose)?;
        match never {}
    }
    requirements::check(&python)?;
    let boot = requirements::boot_folder()?;
    let package = boot.parent().unwrap_or(&boot);
    if is_to_start_ranks {
        if stays_here {
            shares(ranks, &machine, &settings)?;
        }
        let mut job = Job::plan(shape, allocation.as_ref(), &settings, package, &line)?;
        if job.is_elsewhere && line.program.is_none() && io::stdin().is_terminal() {
            job.prompt_from_afar();
        }
        if is_shown_only {
            return Ok(End::Text(format!("{job}\n")));
        }
        if verbose {
            eprintln!("legate: {job}");
        }
        levels.log("launcher", "info", &job);
        let shown = Shown {
            all: verbose || settings.is_on("all-output"),
            timing: settings.is_on("timing"),
            reads_input: !job.is_elsewhere && matches!(line.program, None | Some(Program::Dash)),
            frozen: settings.is_on("freeze-on-error"),
        };
        return supervise::run(&job, shown).map(End::Code);
    }
    if verbose {
        eprintln!("legate: {} (found by {}), {way}", python.path.display(), python.found);
    }
    let share = Share::decide(place, &Node::look(&machine), &settings, |name| env::var_os(name))?;
    let mask = binding::apply(&share)?;
    let detail = format!(
        "{} has of its node\n{}",
        rank.map_or_else(|| "this process".to_owned(), Rank::title),
        share.explain(&mask)
    );
    if settings.is_on("bind-detail") {
        // Whoever closed the stream does not want to know.
        let _ = errors.write_all(format!("legate: {detail}").as_bytes());
    }
    levels.log("binding", "info", detail.trim_end());
    start.variables.open.extend(settings.variables().map(|(name, value)| (name, value.to_owned())));
    if let Some(rank) = rank {
        start.variables.extend(rank.variables(package, &machine)?);
    }
    start.variables.hidden.extend(share.variables(&settings));
    start.variables.hidden.extend(binding::variables_of_cards(&share, &machine));
    start.variables.open.push(("PYTHONPATH", first_on_path(&boot)));
    if is_shown_only {
        return Ok(End::Text(start.show(&python)));
    }
    let never: Infallible = start.go(&python, &way, verbose)?;
    match never {}
}

/// Whether to print in colours, by what `--color` says; by itself on a terminal, unless NO_COLOR is set.
fn is_coloured(when: Option<&OsStr>) -> bool {
    match when.and_then(OsStr::to_str) {
        Some("always") => true,
        Some("never") => false,
        _ => io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// What stands between a rank, or the only process, and its streams.
fn duties(settings: &Settings, rank: Option<&Rank>, has_desk: bool) -> Duties {
    let number = rank.map_or(0, |rank| rank.number);
    let whose = rank.map_or_else(|| "the program".to_owned(), Rank::title);
    let name = format!("rank-{number}.log");
    // The terminal of a rank whose starter is not ours is one that its runner made.
    let is_runners = rank.is_some() && !has_desk && settings.given("color").is_none_or(|when| when == "auto");
    let when = if is_runners { Some(OsStr::new("never")) } else { settings.given("color") };
    Duties {
        prefix: settings.is_on("all-output").then(|| match is_coloured(when) {
            // A colour for each of six ranks, then again from the first.
            true => format!("\x1b[3{}m[{number}]\x1b[0m ", 1 + number % 6),
            false => format!("[{number}] "),
        }),
        log: settings.is_on("log-to-file").then(|| wrap::log_file(settings, &name).into()),
        // The one who started a job tells for all.
        timing: (settings.is_on("timing") && number == 0 && !has_desk).then_some(whose),
    }
}

/// The shares of that many ranks on this machine.
fn shares(ranks: usize, machine: &Machine, settings: &Settings) -> Result<Vec<Share>, String> {
    // This process starts the ranks, and they inherit its mask.
    let node = Node { starters_cpus: machine.mask.len(), ..Node::look(machine) };
    let place = |number| Place { number: Some(number), ranks };
    (0..ranks).map(|number| Share::decide(place(number), &node, settings, |name| env::var_os(name))).collect()
}

/// The nodes that a batch system gave to this process, and how many ranks to start on them: one process where it is a rank itself,
/// or was started alone, and nothing else is asked for.
fn allotted(rank: Option<&Rank>, settings: &Settings) -> Result<(Option<Allocation>, Shape), String> {
    if rank.is_some() {
        return Ok((None, Shape::ONE));
    }
    let variable = |name: &str| env::var_os(name);
    let allocation = Allocation::look(&variable)?;
    let launcher = Launcher::choose(settings, allocation.as_ref());
    let gives = allocation.as_ref().filter(|_| launcher.is_some() && !job::is_started_alone(&variable));
    let shape = Shape::asked(settings, allocation.as_ref(), gives.is_some(), launcher == Some(Launcher::Jsrun))?;
    Ok((allocation, shape))
}

/// Why Python has the line without legate.
enum Alone {
    /// It will say what is wrong with the script.
    Unreadable(String),
    /// One of its options keeps legate out.
    KeptOut(char),
}

impl fmt::Display for Alone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alone::Unreadable(why) => out.write_str(why),
            Alone::KeptOut(letter) => write!(out, "-{letter} keeps legate out"),
        }
    }
}

/// Whether ranks may run on other machines than this: on several nodes, on those of an allocation, or where the words for the job
/// launcher send them.
fn is_for_others(allocation: Option<&Allocation>, shape: Shape, settings: &Settings) -> bool {
    shape.nodes > 1
        || settings.given("launcher-extra").is_some()
        || (shape.ranks > 1 && allocation.is_some_and(|allocation| allocation.is_elsewhere))
}

/// Why Python should have the line without legate, if it should.
fn why_python_alone(line: &Line) -> Option<Alone> {
    if let Some(Program::Script(path)) = &line.program
        && let Err(error) = File::open(path)
    {
        return Some(Alone::Unreadable(format!("{}: {error}", path.display())));
    }
    ['E', 'I', 'S'].into_iter().find(|letter| line.letters.contains(letter)).map(Alone::KeptOut)
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
