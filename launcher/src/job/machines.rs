//! Job launchers that came with one line of machines: jsrun of IBM's, aprun of Cray's.
//!
//! Promises the form that these machines document: a resource set for each node, no binding of their own. Tested with stand-ins.

use super::{Job, Request};
use crate::family::Family;

/// What these launchers add to the number of the signal that ended a rank, to make their own exit code.
const SIGNALS_FROM: i32 = 128;

/// The family of that key, where it may serve the ranks.
fn of_family(request: &Request<'_>, runner: &str, key: &str) -> Result<&'static Family, String> {
    request.families.iter().find(|family| family.key == key).copied().ok_or_else(|| {
        let name = Family::find(key).map_or("", |family| family.name);
        format!("{runner} starts ranks of {name}, but there is no plugin for it: scripts/setup builds one where its mpicc is found")
    })
}

/// One resource set on each node, with all of its CPUs and GPUs.
pub(super) fn jsrun(request: &Request<'_>) -> Result<Job, String> {
    let shape = request.shape;
    let runner = request.runner("jsrun")?;
    let family = of_family(request, "jsrun", "openmpi")?;
    let (nodes, each) = (shape.nodes.to_string(), shape.per_node().to_string());
    let words = ["-n", &nodes, "-r", "1", "-a", &each, "-c", "ALL_CPUS", "-g", "ALL_GPUS", "-b", "none"];
    let variables = family.environment.iter().map(|&(name, value)| (name, value.into())).collect();
    Ok(Job {
        runner,
        words: words.map(Into::into).into(),
        variables,
        without: Vec::new(),
        signals_from: SIGNALS_FROM,
        is_elsewhere: true,
        hands_on_interrupts: false,
    })
}

/// Ranks on each node without binding; they learn their number from aprun, and how many there are from variables of ours.
pub(super) fn aprun(request: &Request<'_>) -> Result<Job, String> {
    let shape = request.shape;
    let runner = request.runner("aprun")?;
    of_family(request, "aprun", "mpich")?;
    let (ranks, each) = (shape.ranks.to_string(), shape.per_node().to_string());
    let words = ["-n", &ranks, "-N", &each, "-cc", "none"].map(Into::into).into();
    let variables = vec![("LEGATE_APRUN_RANKS", ranks.into()), ("LEGATE_APRUN_LOCAL", each.into())];
    Ok(Job {
        runner,
        words,
        variables,
        without: Vec::new(),
        signals_from: SIGNALS_FROM,
        is_elsewhere: true,
        hands_on_interrupts: false,
    })
}
