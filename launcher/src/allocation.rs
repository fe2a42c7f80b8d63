//! What a batch system has given to this job: Slurm, PBS and LSF, as a table of how each one tells.
//!
//! Promises the number of nodes, their names where a runner must be told them, and how many ranks the user asked the system for. It
//! starts nothing, and takes the environment's word.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Reads a variable of the environment.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The nodes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// The batch system.
    pub(crate) system: System,
    /// Its number for the job.
    pub(crate) job: String,
    /// Number of nodes.
    pub(crate) nodes: usize,
    /// Whether the first of them has one place where all others have more, as the node of the script has where jsrun starts ranks.
    pub(crate) front: bool,
    /// Their names.
    pub(crate) hosts: Hosts,
    /// Number of ranks in all, where the user asked the system for that.
    pub(crate) ranks: Option<usize>,
    /// Whether the job's first node is another one than this, as on a login node.
    pub(crate) is_elsewhere: bool,
    /// The fewest CPUs that the job has on one of its nodes, where the system says.
    pub(crate) cpus: Option<usize>,
}

/// A batch system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Slurm.
    Slurm,
    /// PBS Pro, OpenPBS, Torque.
    Pbs,
    /// IBM's LSF.
    Lsf,
}

/// How a runner learns the names of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// It asks the batch system.
    Known,
    /// From the batch system's file, a name a line.
    File(PathBuf),
    /// From its command line.
    Names(Vec<String>),
}

/// How a batch system tells of its job.
struct Row {
    system: System,
    name: &'static str,
    /// The variable that is there in every job of it.
    mark: &'static str,
    /// The variable with the job's number.
    job: &'static str,
    read: fn(Lookup<'_>) -> Result<Nodes, String>,
}

/// What a batch system tells.
struct Nodes {
    nodes: usize,
    front: bool,
    hosts: Hosts,
    ranks: Option<usize>,
    is_elsewhere: bool,
    cpus: Option<usize>,
}

/// The batch systems, in the order in which they are looked for.
const SYSTEMS: &[Row] = &[
    Row { system: System::Slurm, name: "Slurm", mark: "SLURM_JOB_ID", job: "SLURM_JOB_ID", read: slurm },
    Row { system: System::Pbs, name: "PBS", mark: "PBS_NODEFILE", job: "PBS_JOBID", read: pbs },
    Row { system: System::Lsf, name: "LSF", mark: "LSB_JOBID", job: "LSB_JOBID", read: lsf },
];

impl fmt::Display for System {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = SYSTEMS.iter().find(|row| row.system == *self);
        out.write_str(row.map_or("", |row| row.name))
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} job", self.system)?;
        if self.job.is_empty() { Ok(()) } else { write!(out, " {}", self.job) }
    }
}

impl Allocation {
    /// The allocation that this process is in, if it is in one.
    pub(crate) fn look(variable: Lookup<'_>) -> Result<Option<Allocation>, String> {
        let Some(row) = SYSTEMS.iter().find(|row| variable(row.mark).is_some_and(|value| !value.is_empty())) else {
            return Ok(None);
        };
        let Nodes { nodes, front, hosts, ranks, is_elsewhere, cpus } = (row.read)(variable)?;
        let job = text(variable, row.job).unwrap_or_default();
        Ok(Some(Allocation { system: row.system, job, nodes, front, hosts, ranks, is_elsewhere, cpus }))
    }
}

fn text(variable: Lookup<'_>, name: &str) -> Option<String> {
    variable(name)?.into_string().ok().filter(|text| !text.is_empty())
}

fn number(variable: Lookup<'_>, name: &str) -> Option<usize> {
    text(variable, name)?.parse().ok().filter(|&number| number > 0)
}

/// Slurm tells the nodes as a number, and what `--ntasks` or `--ntasks-per-node` asked for.
fn slurm(variable: Lookup<'_>) -> Result<Nodes, String> {
    let nodes = number(variable, "SLURM_JOB_NUM_NODES").or_else(|| number(variable, "SLURM_NNODES")).unwrap_or(1);
    let each = number(variable, "SLURM_NTASKS_PER_NODE").map(|each| each.saturating_mul(nodes));
    let ranks = each.or_else(|| number(variable, "SLURM_NTASKS")).filter(|&ranks| ranks >= nodes);
    let cpus = text(variable, "SLURM_JOB_CPUS_PER_NODE").and_then(|list| fewest(&list));
    // Slurm's own name for this node is there where Slurm started the shell.
    let here = text(variable, "SLURMD_NODENAME").or_else(host);
    let first = text(variable, "SLURM_JOB_NODELIST").map(|list| first_of(&list));
    let is_elsewhere = first.is_some() && first != here;
    Ok(Nodes { nodes, front: false, hosts: Hosts::Known, ranks, is_elsewhere, cpus })
}

/// Whether a node is another machine than this, by its name without the domain.
fn is_another(node: &str) -> bool {
    node.split('.').next() != host().as_deref()
}

/// This machine's name, without its domain.
fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    name.trim().split('.').next().map(str::to_owned)
}

/// The first name in Slurm's `n[01-04,7],m2`.
fn first_of(list: &str) -> String {
    match list.split_once(['[', ',']) {
        Some((start, rest)) if list[start.len()..].starts_with('[') => {
            let number = rest.split(['-', ',', ']']).next().unwrap_or_default();
            let end = rest.split_once(']').map_or("", |split| split.1);
            format!("{start}{number}{}", end.split(',').next().unwrap_or_default())
        }
        Some((first, _)) => first.to_owned(),
        None => list.to_owned(),
    }
}

/// The smallest number in Slurm's `4(x2),3`.
fn fewest(list: &str) -> Option<usize> {
    list.split(',').filter_map(|part| part.split('(').next()?.trim().parse().ok()).min()
}

/// PBS names a file with a line for each place of a node.
fn pbs(variable: Lookup<'_>) -> Result<Nodes, String> {
    let file = text(variable, "PBS_NODEFILE").map(PathBuf::from).unwrap_or_default();
    let lines = fs::read_to_string(&file).map_err(|error| format!("PBS_NODEFILE names {}: {error}", file.display()))?;
    let nodes = places(lines.split_whitespace());
    if nodes.is_empty() {
        return Err(format!("PBS_NODEFILE names {}: it is empty", file.display()));
    }
    Ok(Nodes {
        nodes: nodes.len(),
        front: false,
        hosts: Hosts::File(file),
        ranks: None,
        is_elsewhere: false,
        cpus: None,
    })
}

/// LSF names a file with a line for each place, lists the places, or lists nodes with their numbers of places.
fn lsf(variable: Lookup<'_>) -> Result<Nodes, String> {
    let file = text(variable, "LSB_DJOB_HOSTFILE").map(PathBuf::from);
    let lines = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let from_file = places(lines.split_whitespace());
    let listed = text(variable, "LSB_HOSTS");
    let counted = text(variable, "LSB_MCPU_HOSTS");
    let (nodes, file) = match (&listed, &counted) {
        _ if !from_file.is_empty() => (from_file, file),
        (Some(listed), _) => (places(listed.split_whitespace()), None),
        (None, Some(counted)) => {
            let words: Vec<&str> = counted.split_whitespace().collect();
            let pairs = words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap_or(1)));
            (pairs.collect(), None)
        }
        (None, None) => return Err("LSB_JOBID is set, but neither LSB_HOSTS nor LSB_MCPU_HOSTS names nodes".to_owned()),
    };
    let front = nodes.len() > 1 && nodes[0].1 == 1 && nodes[1..].iter().all(|node| node.1 > 1);
    let names = || Hosts::Names(nodes.iter().map(|node| node.0.clone()).collect());
    let hosts = file.map_or_else(names, Hosts::File);
    let is_elsewhere = nodes.first().is_none_or(|node| is_another(&node.0));
    Ok(Nodes { nodes: nodes.len(), front, hosts, ranks: None, is_elsewhere, cpus: None })
}

/// Nodes in the order of their first place, with their numbers of places.
fn places<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, usize)> {
    let mut nodes: Vec<(String, usize)> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let node = *known.entry(name).or_insert_with(|| {
            nodes.push((name.to_owned(), 0));
            nodes.len() - 1
        });
        nodes[node].1 += 1;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::{Allocation, Hosts, System, first_of};
    use std::ffi::OsString;
    use std::path::PathBuf;

    fn look(variables: &[(&str, &str)]) -> Result<Option<Allocation>, String> {
        Allocation::look(&|name| variables.iter().find(|row| row.0 == name).map(|row| OsString::from(row.1)))
    }

    #[test]
    fn slurm_tells_what_was_asked_for() {
        let job = ("SLURM_JOB_ID", "7");
        let seen = |more: &[(&'static str, &'static str)]| {
            let found = look(&[&[job][..], more].concat()).expect("no refusal").expect("an allocation");
            (found.to_string(), found.nodes, found.ranks, found.cpus)
        };
        let name = "Slurm job 7".to_owned();
        assert_eq!(seen(&[]), (name.clone(), 1, None, None));
        assert_eq!(
            seen(&[("SLURM_JOB_NUM_NODES", "3"), ("SLURM_JOB_CPUS_PER_NODE", "4(x2),2")]),
            (name.clone(), 3, None, Some(2))
        );
        assert_eq!(seen(&[("SLURM_NNODES", "2"), ("SLURM_NTASKS", "5")]), (name.clone(), 2, Some(5), None));
        assert_eq!(
            seen(&[("SLURM_NNODES", "2"), ("SLURM_NTASKS", "8"), ("SLURM_NTASKS_PER_NODE", "4")]),
            (name, 2, Some(8), None)
        );
    }

    #[test]
    fn the_first_node_may_be_another() {
        for (list, first) in
            [("n1", "n1"), ("n1,n2", "n1"), ("n[01-04,7],m2", "n01"), ("a[3]b,c", "a3b"), ("a,n[1-2]", "a")]
        {
            assert_eq!(first_of(list), first, "{list}");
        }
        let job = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-2]")];
        for (here, is_elsewhere) in [("n1", false), ("n2", true)] {
            let found = look(&[&job[..], &[("SLURMD_NODENAME", here)]].concat());
            assert_eq!(found.expect("no refusal").expect("an allocation").is_elsewhere, is_elsewhere);
        }
    }

    #[test]
    fn lsf_lists_places_or_counts() {
        let names = |list: &[&str]| Hosts::Names(list.iter().map(|&name| name.to_owned()).collect());
        for (variable, list) in [("LSB_HOSTS", "b b a b"), ("LSB_MCPU_HOSTS", "b 2 a 40")] {
            let found = look(&[("LSB_JOBID", "9"), (variable, list)]).expect("no refusal").expect("an allocation");
            assert_eq!((found.system, found.nodes, found.hosts), (System::Lsf, 2, names(&["b", "a"])));
            assert!(!found.front);
        }
        let summit = look(&[("LSB_JOBID", "9"), ("LSB_MCPU_HOSTS", "batch2 1 h41 42 h42 42")]);
        assert!(summit.expect("no refusal").expect("an allocation").front);
        assert!(look(&[("LSB_JOBID", "9")]).is_err());
    }

    #[test]
    fn files_hold_a_line_for_each_place() {
        let file = std::env::temp_dir().join(format!("legate-places-{}", std::process::id()));
        std::fs::write(&file, "n1\nn1\nn2\nn2\n").expect("a file");
        let path = file.to_str().expect("text");
        let pbs = look(&[("PBS_NODEFILE", path), ("PBS_JOBID", "3.server")]).expect("no refusal").expect("one");
        assert_eq!((pbs.to_string(), pbs.nodes, pbs.hosts), ("PBS job 3.server".into(), 2, Hosts::File(file.clone())));
        let lsf = look(&[("LSB_JOBID", "3"), ("LSB_DJOB_HOSTFILE", path)]).expect("no refusal").expect("one");
        assert_eq!((lsf.to_string(), lsf.nodes, lsf.hosts), ("LSF job 3".into(), 2, Hosts::File(PathBuf::from(path))));
        std::fs::remove_file(&file).expect("a file");
        assert!(look(&[("PBS_NODEFILE", path)]).is_err());
    }

    #[test]
    fn no_batch_system_is_no_allocation() {
        assert_eq!(look(&[]), Ok(None));
        assert_eq!(look(&[("SLURM_JOB_ID", "")]), Ok(None));
    }
}
