//! The command line of Slurm's srun, with the plugin for MPI that fits a family.
//!
//! Promises that ranks divide the CPUs of their node themselves, that the end of one rank ends the others, and that a step of it
//! starts inside another. Does not ask Slurm for nodes that the job has not got.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Job, Request};
use crate::family::Family;

/// What srun adds to the number of the signal that ended a rank, to make its own exit code.
const SIGNALS_FROM: i32 = 128;

/// The command for ranks of the first family that srun serves.
pub(super) fn job(request: &Request<'_>) -> Result<Job, String> {
    let shape = request.shape;
    let runner = request.runner("srun")?;
    let listed = answer(&runner, &["--mpi=list"]);
    let serves = |family: &&&Family| listed.split_whitespace().any(|word| word == family.srun);
    let found = request.families.iter().find(serves);
    // Only shown, and no srun here to ask: the one there has a plugin, it is hoped.
    let Some(family) = found.or_else(|| request.families.first().filter(|_| !runner.is_absolute())) else {
        let wanted: Vec<_> =
            request.families.iter().map(|family| format!("{} for {}", family.srun, family.name)).collect();
        return Err(format!("this srun has no plugin for MPI that fits: it needs {}", wanted.join(", or ")));
    };
    let mut words = vec![format!("--nodes={}", shape.nodes), format!("--ntasks={}", shape.ranks)];
    if shape.is_even() {
        words.push(format!("--ntasks-per-node={}", shape.per_node()));
    }
    words.push(format!("--mpi={}", family.srun));
    if binds(&runner) {
        words.push("--cpu-bind=none".to_owned());
    }
    if request.allocation.and_then(|allocation| allocation.cpus).is_some_and(|cpus| shape.per_node() > cpus) {
        words.push("--overcommit".to_owned());
    }
    words.extend(["--input=0", "--overlap", "--kill-on-bad-exit=0", "--wait=0", "--disable-status"].map(str::to_owned));
    let words = words.into_iter().map(Into::into).collect();
    let is_elsewhere = request.allocation.is_none_or(|allocation| allocation.is_elsewhere);
    Ok(Job {
        runner,
        words,
        variables: Vec::new(),
        without: Vec::new(),
        signals_from: SIGNALS_FROM,
        is_elsewhere,
        hands_on_interrupts: true,
    })
}

/// How lines begin and go on that say no more than the exit code does.
const REPEATS: &[(&str, &[&str])] = &[
    (
        "srun: ",
        &[
            "Exited with exit code",
            "sending Ctrl-C",
            "Job step aborted",
            "Terminat",
            "Killed",
            "got SIGCONT",
            "forcing job termination",
            "Timed out waiting for job step",
        ],
    ),
    ("slurmstepd", &["CANCELLED AT", "Error handler invoked"]),
];

/// Whether a line of srun's says no more than the exit code does.
pub(crate) fn only_repeats(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    REPEATS.iter().any(|(start, rest)| line.starts_with(start) && rest.iter().any(|text| line.contains(text)))
}

/// Whether this Slurm binds tasks to CPUs; one that doesn't complains when told not to.
fn binds(srun: &Path) -> bool {
    let config = answer(&srun.with_file_name("scontrol"), &["show", "config"]);
    config.lines().any(|line| line.starts_with("TaskPlugin ") && line.contains("affinity"))
}

/// All that a command of Slurm prints.
fn answer(command: &Path, words: &[&str]) -> String {
    let answer = Command::new(command).args(words).stdin(Stdio::null()).output();
    let printed = answer.map(|answer| [answer.stdout, answer.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&printed).into_owned()
}
