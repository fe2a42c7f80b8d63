//! A job of several ranks: which command starts them, as a value that prints.
//!
//! Promises one line for what is missing. `supervise` runs the command.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::family::{FAMILIES, Family, on_path};
use crate::settings::Settings;

/// Values of `--launcher`.
pub(crate) const LAUNCHERS: &[&str] = &["auto", "none", "mpirun", "srun"];
/// Values of `--mpi`.
pub(crate) const MPIS: &[&str] = &["auto", "openmpi", "mpich"];

/// What srun adds to the number of the signal that ended a rank, to make its own exit code.
const SRUN_SIGNALS_FROM: i32 = 128;

/// A command that starts all ranks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// The runner.
    pub(crate) runner: PathBuf,
    /// Its arguments, up to this program's own.
    pub(crate) words: Vec<OsString>,
    /// Variables to set, where they are not set already.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// What the runner adds to the number of the signal that ended a rank, to make its own exit code.
    pub(crate) signals_from: i32,
}

/// How many ranks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Number of nodes.
    pub(crate) nodes: usize,
    /// Ranks on each.
    pub(crate) per_node: usize,
}

impl Shape {
    /// What the settings ask for.
    pub(crate) fn asked(settings: &Settings) -> Shape {
        let count = |name| settings.given(name).and_then(|text| text.to_str()?.parse().ok()).unwrap_or(1);
        Shape { nodes: count("nodes"), per_node: count("ranks-per-node") }
    }

    /// Number of ranks.
    pub(crate) fn ranks(self) -> usize {
        self.nodes.saturating_mul(self.per_node)
    }
}

impl Job {
    /// The command for that many ranks of this program, started with `arguments`.
    pub(crate) fn plan(
        shape: Shape,
        settings: &Settings,
        package: &Path,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Job, String> {
        let given = |name| settings.given(name).and_then(OsStr::to_str).unwrap_or("auto");
        let families: Vec<&Family> = FAMILIES
            .iter()
            .filter(|family| ["auto", family.key].contains(&given("mpi")) && family.plugin(package).is_file())
            .collect();
        let ranks = shape.ranks();
        if families.is_empty() {
            let wanted = if given("mpi") == "auto" { "" } else { given("mpi") };
            return Err(format!(
                "needs an MPI plugin for {ranks} ranks, but there is no _mpi_{}.so in {}: scripts/setup builds one where mpicc \
                 is found",
                if wanted.is_empty() { "*" } else { wanted },
                package.display()
            ));
        }
        let mut job = match given("launcher") {
            "none" => {
                return Err(format!(
                    "asked for {ranks} ranks and no launcher, but is no rank: start it with mpirun -n {ranks} or srun -n {ranks}"
                ));
            }
            "srun" => Job::srun(shape, &families)?,
            "auto" if shape.nodes > 1 && env::var_os("SLURM_JOB_ID").is_some() => Job::srun(shape, &families)?,
            _ => Job::mpirun(shape, &families)?,
        };
        let own = env::current_exe().map_err(|error| format!("cannot tell where its own executable is: {error}"))?;
        job.words.push(own.into());
        job.words.extend(arguments);
        Ok(job)
    }

    fn mpirun(shape: Shape, families: &[&Family]) -> Result<Job, String> {
        let found = families.iter().find_map(|family| Some((family, family.runner()?)));
        let Some((family, runner)) = found else {
            let names: Vec<_> = families.iter().map(|family| family.name).collect();
            return Err(format!(
                "needs mpirun of {} for {} ranks: it is not on PATH",
                names.join(" or "),
                shape.ranks()
            ));
        };
        let mut words: Vec<OsString> = family.arguments.iter().map(OsString::from).collect();
        words.extend(["-n".into(), shape.ranks().to_string().into()]);
        if shape.nodes > 1 {
            let (flag, form) = family.per_node;
            words.extend([flag.into(), form.replace('N', &shape.per_node.to_string()).into()]);
        }
        let variables = family.environment.iter().map(|&(name, value)| (name, value.into())).collect();
        Ok(Job { runner, words, variables, signals_from: family.signals_from })
    }

    fn srun(shape: Shape, families: &[&Family]) -> Result<Job, String> {
        let runner =
            on_path("srun").ok_or_else(|| format!("needs srun for {} ranks: it is not on PATH", shape.ranks()))?;
        let answer = Command::new(&runner).arg("--mpi=list").stdin(Stdio::null()).output();
        let listed = answer.map(|answer| [answer.stdout, answer.stderr].concat()).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let serves = |family: &&&Family| listed.split_whitespace().any(|word| word == family.srun);
        let Some(family) = families.iter().find(serves) else {
            let wanted: Vec<_> = families.iter().map(|family| format!("{} for {}", family.srun, family.name)).collect();
            return Err(format!("this srun has no plugin for MPI that fits: it needs {}", wanted.join(", or ")));
        };
        let words = [
            format!("--nodes={}", shape.nodes),
            format!("--ntasks={}", shape.ranks()),
            format!("--ntasks-per-node={}", shape.per_node),
            format!("--mpi={}", family.srun),
        ];
        let rows = family.environment.iter().map(|&(name, value)| (name, value.into()));
        let words = words.map(OsString::from).into();
        Ok(Job { runner, words, variables: rows.collect(), signals_from: SRUN_SIGNALS_FROM })
    }
}

impl fmt::Display for Job {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(out, "{name}={} ", value.to_string_lossy())?;
        }
        write!(out, "{}", self.runner.display())?;
        self.words.iter().try_for_each(|word| write!(out, " {}", word.to_string_lossy()))
    }
}
