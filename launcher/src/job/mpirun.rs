//! The command line of mpirun, in Open MPI's and in MPICH's spelling: hosts, ranks on each, folder, variables.
//!
//! Promises that what belongs to one node only is left out for one node. Whether nodes can be reached is the runner's business.

use std::env;
use std::ffi::OsString;

use super::{Job, Request};
use crate::allocation::Hosts;
use crate::desk::JOB;

/// What variables that ranks need begin with: those of Python and its environments, libraries, threads, and ours.
const PASSED_ON: &[&str] = &[
    "CONDA_",
    "CUDA_",
    "LD_LIBRARY_PATH",
    "LEGATE_",
    "MKL_",
    "NCCL_",
    "NUMEXPR_",
    "NUMPY_",
    "OMP_",
    "OPENBLAS_",
    "PATH",
    "PYTHON",
    "UCX_",
    "VIRTUAL_ENV",
];

/// The command for ranks of the first family whose runner is on PATH.
pub(super) fn job(request: &Request<'_>) -> Result<Job, String> {
    let shape = request.shape;
    let found = request.families.iter().find_map(|family| Some((family, family.runner()?)));
    let Some((family, runner)) = found else {
        let names: Vec<_> = request.families.iter().map(|family| family.name).collect();
        return Err(format!("needs mpirun of {} for {} ranks: it is not on PATH", names.join(" or "), shape.ranks));
    };
    let mut words: Vec<OsString> = family.arguments.iter().map(OsString::from).collect();
    words.extend(["-n".into(), shape.ranks.to_string().into()]);
    let is_elsewhere = request.allocation.is_some_and(|allocation| allocation.is_elsewhere);
    let there = request.allocation.map_or(1, |allocation| allocation.nodes);
    if shape.nodes > 1 || there > 1 {
        let each = shape.per_node().to_string();
        let (flag, form) = family.per_node;
        words.extend([flag.into(), form.replace('N', &each).into()]);
        match request.allocation.map(|allocation| &allocation.hosts) {
            Some(Hosts::File(file)) => words.extend([family.host_file.into(), file.into()]),
            Some(Hosts::Names(names)) => {
                let places =
                    names.iter().take(shape.nodes).map(|name| family.place.replace("NAME", name).replace('N', &each));
                words.extend([family.host_list.into(), places.collect::<Vec<_>>().join(",").into()]);
            }
            Some(Hosts::Known) | None => {}
        }
    }
    if shape.nodes > 1 {
        if let Ok(folder) = env::current_dir() {
            words.extend(["-wdir".into(), folder.into()]);
        }
        if let Some(flag) = family.pass_on {
            words.extend(passed_on().flat_map(|name| [flag.into(), name]));
        }
    }
    let variables = family.environment.iter().map(|&(name, value)| (name, value.into())).collect();
    Ok(Job {
        runner,
        words,
        variables,
        without: Vec::new(),
        signals_from: family.signals_from,
        is_elsewhere,
        hands_on_interrupts: false,
    })
}

/// Names of the variables that ranks on other nodes need.
fn passed_on() -> impl Iterator<Item = OsString> {
    // Rank 0 inherits its desk's name where it can reach it; others have no use for it.
    let is_needed = |name: &str| name != JOB && PASSED_ON.iter().any(|start| name.starts_with(start));
    let mut names: Vec<_> =
        env::vars_os().map(|row| row.0).filter(|name| name.to_str().is_some_and(is_needed)).collect();
    names.sort();
    names.into_iter()
}
