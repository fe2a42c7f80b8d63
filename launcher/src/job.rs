//! A job of several ranks: which command starts them, as a value that prints.
//!
//! Promises that what is decided here follows from the settings, the batch system's allocation and what is on PATH, and one line
//! for what is missing. The command of each job launcher is a file beside this one's name; `supervise` runs it.

mod machines;
mod mpirun;
mod shape;
pub(crate) mod srun;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use shape::{Shape, is_started_alone};

use crate::allocation::{Allocation, System};
use crate::family::{FAMILIES, Family, on_path};
use crate::parse::{Line, shell_words};
use crate::settings::Settings;
use crate::shell;
use crate::wrap;

/// Values of `--launcher`.
pub(crate) const LAUNCHERS: &[&str] = &["auto", "none", "mpirun", "srun", "jsrun", "aprun"];
/// Values of `--mpi`.
pub(crate) const MPIS: &[&str] = &["auto", "openmpi", "mpich"];

/// Options that concern the job alone: its ranks need not hear of them.
const OF_THE_JOB: &[&str] = &["nodes", "ranks-per-node", "launcher", "launcher-extra", "wrapper", "dry-run"];

/// How variables begin that tell a process which rank it is; those with `_MCA_` are settings of Open MPI's.
const OF_A_RANK: &[&str] = &["PMI_", "PMIX_", "OMPI_COMM_WORLD_", "JSM_NAMESPACE_"];

/// A command that starts all ranks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// The runner.
    pub(crate) runner: PathBuf,
    /// Its arguments, up to this program's own.
    pub(crate) words: Vec<OsString>,
    /// Variables to set.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Variables to take away: what whoever started this process alone says of it, and the ranks would take for their own.
    pub(crate) without: Vec<OsString>,
    /// What the runner adds to the number of the signal that ended a rank, to make its own exit code.
    pub(crate) signals_from: i32,
    /// Whether rank 0 runs on another machine than this, so that its streams are the runner's.
    pub(crate) is_elsewhere: bool,
    /// Whether the runner hands Ctrl-C on to the ranks.
    pub(crate) hands_on_interrupts: bool,
}

/// What a job launcher is asked for.
struct Request<'a> {
    shape: Shape,
    allocation: Option<&'a Allocation>,
    /// MPI families that may serve the ranks: those asked for that have a plugin.
    families: Vec<&'static Family>,
    /// Whether the command is only shown, perhaps for another machine that has what this one lacks.
    is_shown_only: bool,
}

impl Request<'_> {
    /// A job launcher on PATH, or one line that it is not there.
    fn runner(&self, name: &str) -> Result<PathBuf, String> {
        let ranks = self.shape.ranks;
        on_path(name).or_else(|| self.is_shown_only.then(|| name.into())).ok_or_else(|| {
            format!("needs {name} for {ranks} rank{}: it is not on PATH", if ranks == 1 { "" } else { "s" })
        })
    }
}

/// A job launcher of its own: not `auto`, not `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    Mpirun,
    Srun,
    Jsrun,
    Aprun,
}

impl Launcher {
    /// Whether somebody named one, which then starts even a single rank.
    pub(crate) fn is_named(settings: &Settings) -> bool {
        settings.given("launcher").is_some_and(|name| !["auto", "none"].iter().any(|word| name == *word))
    }

    /// The launcher that the settings name, or that fits the allocation; none for `none`.
    pub(crate) fn choose(settings: &Settings, allocation: Option<&Allocation>) -> Option<Launcher> {
        match settings.given("launcher").and_then(OsStr::to_str).unwrap_or("auto") {
            "none" => None,
            "mpirun" => Some(Launcher::Mpirun),
            "srun" => Some(Launcher::Srun),
            "jsrun" => Some(Launcher::Jsrun),
            "aprun" => Some(Launcher::Aprun),
            _ => Some(match allocation.map(|allocation| allocation.system) {
                Some(System::Slurm) if on_path("srun").is_some() => Launcher::Srun,
                Some(System::Lsf) if on_path("jsrun").is_some() => Launcher::Jsrun,
                Some(System::Pbs) if on_path("aprun").is_some() => Launcher::Aprun,
                Some(System::Slurm | System::Lsf | System::Pbs) | None => Launcher::Mpirun,
            }),
        }
    }
}

impl Job {
    /// The command for that many ranks of this program, started with the options and the program of `line`.
    pub(crate) fn plan(
        shape: Shape,
        allocation: Option<&Allocation>,
        settings: &Settings,
        package: &Path,
        line: &Line,
    ) -> Result<Job, String> {
        let ranks = shape.ranks;
        let Some(launcher) = Launcher::choose(settings, allocation) else {
            return Err(format!(
                "asked for {ranks} ranks and no launcher, but is no rank: start it with mpirun -n {ranks} or srun -n {ranks}"
            ));
        };
        let is_named = Launcher::is_named(settings);
        let extra = settings.given("launcher-extra");
        if allocation.is_none() && shape.nodes > 1 && !is_named && extra.is_none() {
            return Err(format!(
                "asked for {} nodes, but this is no job of Slurm, PBS or LSF, so there is one: name more with --launcher-extra, \
                 as in '--hostfile FILE' for Open MPI or '-f FILE' for MPICH",
                shape.nodes
            ));
        }
        let families = families(settings, package, ranks)?;
        let request = Request { shape, allocation, families, is_shown_only: settings.is_on("dry-run") };
        let mut job = match launcher {
            Launcher::Srun => match srun::job(&request) {
                // Where srun has no plugin that fits, mpirun starts its own daemons on the nodes.
                Err(why) if !is_named => mpirun::job(&request).map_err(|_| why)?,
                planned => planned?,
            },
            Launcher::Mpirun => mpirun::job(&request)?,
            Launcher::Jsrun => machines::jsrun(&request)?,
            Launcher::Aprun => machines::aprun(&request)?,
        };
        if let Some(extra) = extra {
            let extra = extra.to_str().ok_or("--launcher-extra is not UTF-8")?;
            job.words.extend(shell_words(extra).map_err(|why| format!("--launcher-extra: {why}"))?);
        }
        if is_started_alone(&|name| env::var_os(name)) {
            let tells = |name: &str| OF_A_RANK.iter().any(|start| name.starts_with(start)) && !name.contains("_MCA_");
            job.without = env::vars_os().map(|row| row.0).filter(|name| name.to_str().is_some_and(tells)).collect();
        }
        job.without.sort();
        job.variables.retain(|(name, _)| env::var_os(name).is_none());
        let own = env::current_exe().map_err(|error| format!("cannot tell where its own executable is: {error}"))?;
        job.words.push(own.into());
        job.words.extend(line.words_without(OF_THE_JOB));
        let around = wrap::own_words(settings, "wrapper", 0)?;
        if let Some((first, rest)) = around.split_first() {
            let runner = std::mem::replace(&mut job.runner, first.into());
            job.words.splice(0..0, rest.iter().cloned().chain([runner.into()]));
        }
        Ok(job)
    }

    /// Has rank 0, which is on another machine and finds no terminal there, bring up a prompt all the same.
    pub(crate) fn prompt_from_afar(&mut self) {
        if self.runner.file_name().is_some_and(|name| name == "srun") {
            // Prompts are no whole lines.
            self.words.insert(0, "--unbuffered".into());
        }
        self.words.push("-i".into());
    }
}

/// The MPI families that may be used.
fn families(settings: &Settings, package: &Path, ranks: usize) -> Result<Vec<&'static Family>, String> {
    let wanted = settings.given("mpi").and_then(OsStr::to_str).unwrap_or("auto");
    let families: Vec<_> = FAMILIES
        .iter()
        .filter(|family| ["auto", family.key].contains(&wanted))
        // One rank alone needs no MPI.
        .filter(|family| ranks == 1 || family.plugin(package).is_file())
        .collect();
    if families.is_empty() {
        return Err(format!(
            "needs an MPI plugin for {ranks} ranks, but there is no _mpi_{}.so in {}: scripts/setup builds one where mpicc is found",
            if wanted == "auto" { "*" } else { wanted },
            package.display()
        ));
    }
    Ok(families)
}

impl fmt::Display for Job {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables = self.variables.iter().map(|(name, value)| (*name, value.as_os_str()));
        let words = [self.runner.as_os_str()].into_iter().chain(self.words.iter().map(OsString::as_os_str));
        let without: Vec<&OsStr> = self.without.iter().flat_map(|name| [OsStr::new("-u"), name]).collect();
        let env = if without.is_empty() { None } else { Some(OsStr::new("env")) };
        out.write_str(&shell::command(variables, env.into_iter().chain(without).chain(words)))
    }
}
