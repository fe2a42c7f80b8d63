#![expect(unsafe_code, reason = "asks for CPU masks")]
//! What this process may use of the machine: CPUs and memory; and what the machine has: GPUs, NUMA nodes, network cards.
//!
//! Promises to respect the affinity mask, the control groups' limits and the batch system's allocation, since a batch job or
//! container owns no more, and to say which of them it was. It does not divide anything among workers (see `share`).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use crate::part::read_list;

/// What this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// CPUs: the affinity mask, cut by a control group's quota and a batch system's allocation.
    pub(crate) cpus: usize,
    /// What limits the CPUs, for people.
    pub(crate) cpus_why: String,
    /// The affinity mask.
    pub(crate) mask: Vec<usize>,
    /// Bytes of memory, cut by a control group's limit; none where it cannot be read.
    pub(crate) memory_bytes: Option<u64>,
    /// What limits the memory, for people.
    pub(crate) memory_why: &'static str,
    /// CPUs that run, whether or not this process may use them.
    pub(crate) online: Vec<usize>,
    /// NUMA nodes with memory.
    pub(crate) nodes: Vec<usize>,
    /// Number of GPUs.
    pub(crate) gpus: usize,
    /// Network cards: interfaces and InfiniBand devices.
    pub(crate) cards: Vec<String>,
}

/// Variables in which a batch system says how many CPUs of this node a job has, each beside one that is there in such a job.
const ALLOCATIONS: &[(&str, &str)] = &[("SLURM_JOB_ID", "SLURM_CPUS_ON_NODE"), ("PBS_JOBID", "NCPUS")];

impl Machine {
    /// Looks at this machine.
    pub(crate) fn look() -> Machine {
        let physical = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limit = files_above(&groups, "memory", "memory.max", "memory.limit_in_bytes")
            .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
            .min()
            .filter(|limit| physical.is_none_or(|physical| *limit < physical));
        let mask = mask_of(0).unwrap_or_else(|| vec![0]);
        let online = list_in("/sys/devices/system/cpu/online").unwrap_or_else(|| mask.clone());
        let mut machine = Machine {
            cpus: mask.len(),
            cpus_why: if mask.len() < online.len() { "the affinity mask" } else { "the machine" }.to_owned(),
            mask,
            memory_bytes: limit.or(physical),
            memory_why: if limit.is_some() { "a control group's limit" } else { "the machine" },
            online,
            nodes: list_in("/sys/devices/system/node/has_memory").unwrap_or_else(|| vec![0]),
            gpus: names_in("/proc/driver/nvidia/gpus").len(),
            cards: [names_in("/sys/class/net"), names_in("/sys/class/infiniband")].concat(),
        };
        for (cpus, why) in [quota(&groups), allocated(|name| env::var_os(name))].into_iter().flatten() {
            if cpus < machine.cpus {
                (machine.cpus, machine.cpus_why) = (cpus.max(1), why);
            }
        }
        machine
    }

    /// Whether a network card is an InfiniBand device; a port may follow its name.
    pub(crate) fn is_infiniband(&self, card: &str) -> bool {
        let name = card.split(':').next().unwrap_or_default();
        !name.is_empty() && Path::new("/sys/class/infiniband").join(name).exists()
    }

    /// A machine for tests.
    #[cfg(test)]
    pub(crate) fn of_test() -> Machine {
        Machine {
            cpus: 4,
            cpus_why: String::new(),
            mask: vec![0, 1, 2, 3],
            memory_bytes: Some(8 << 30),
            memory_why: "the machine",
            online: vec![0, 1, 2, 3],
            nodes: vec![0],
            gpus: 0,
            cards: vec!["eth0".to_owned()],
        }
    }
}

/// CPUs in a process's mask; 0 means this process.
pub(crate) fn mask_of(process: u32) -> Option<Vec<usize>> {
    let mut mask = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: a mask of the size given; it is read where the call has filled it in, at places that it has.
    unsafe {
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(process as libc::pid_t, size, mask.as_mut_ptr()) != 0 {
            return None;
        }
        let mask = mask.assume_init();
        Some((0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &mask)).collect())
    }
}

/// The numbers that a file of the kernel lists.
pub(crate) fn list_in(file: &str) -> Option<Vec<usize>> {
    read_list(&fs::read_to_string(file).ok()?)
}

/// Names in a folder, in order.
fn names_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// CPUs by a control group's quota of time, rounded down, and why.
fn quota(groups: &str) -> Option<(usize, String)> {
    let of_two = |text: &str| {
        let (quota, period) = text.trim().split_once(' ')?;
        Some((quota.parse().ok()?, period.parse().ok()?))
    };
    let of_one = |path: &str, text: &str| {
        let period = fs::read_to_string(path.replace("cfs_quota", "cfs_period")).ok()?;
        Some((text.trim().parse().ok().filter(|&quota: &f64| quota > 0.0)?, period.trim().parse().ok()?))
    };
    let least = files_above(groups, "cpu", "cpu.max", "cpu.cfs_quota_us")
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            let (quota, period): (f64, f64) = of_two(&text).or_else(|| of_one(&path, &text))?;
            Some(((quota / period) as usize).max(1))
        })
        .min()?;
    Some((least, "a control group's quota of CPU time".to_owned()))
}

/// CPUs by a batch system's allocation, and why.
fn allocated(variable: impl Fn(&str) -> Option<OsString>) -> Option<(usize, String)> {
    let number = |name: &str| variable(name)?.to_str()?.parse().ok().filter(|&number: &usize| number > 0);
    ALLOCATIONS
        .iter()
        .find_map(|&(mark, name)| variable(mark).and(Some((number(name)?, format!("the allocation's {name}")))))
}

/// `MemTotal` of /proc/meminfo in bytes.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Files of a controller that may hold a limit of this process: its group's and those of the groups above, in version 2 by the
/// name `two` and in version 1 by the name `one`.
fn files_above(groups: &str, controller: &str, two: &str, one: &str) -> impl Iterator<Item = String> + use<> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup".to_owned(), two),
            list if list.split(',').any(|name| name == controller) => (format!("/sys/fs/cgroup/{controller}"), one),
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            files.push(format!("{root}{path}/{file}"));
            match path.rfind('/') {
                Some(cut) => path = &path[..cut],
                None => break,
            }
        }
    }
    files.into_iter()
}

#[cfg(test)]
mod tests {
    use super::{allocated, files_above, mask_of, total_memory};
    use std::ffi::OsString;

    #[test]
    fn memory_total() {
        assert_eq!(total_memory("MemTotal:  1024 kB\nMemFree: 1 kB\n"), Some(1 << 20));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn every_group_above_is_asked() {
        let files = |groups| files_above(groups, "memory", "memory.max", "memory.limit_in_bytes").collect::<Vec<_>>();
        let two = files("0::/a/b\n");
        assert_eq!(two, ["/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"]);
        assert_eq!(files("3:cpu,cpuacct:/x\n9:memory:/\n"), ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]);
    }

    #[test]
    fn a_batch_job_has_the_cpus_of_its_allocation() {
        let of = |rows: &[(&str, &str)]| {
            allocated(|name| rows.iter().find(|row| row.0 == name).map(|row| OsString::from(row.1)))
                .map(|found| found.0)
        };
        assert_eq!(of(&[("SLURM_JOB_ID", "1"), ("SLURM_CPUS_ON_NODE", "2")]), Some(2));
        assert_eq!(of(&[("PBS_JOBID", "1.host"), ("NCPUS", "8")]), Some(8));
        assert_eq!(of(&[("NCPUS", "8")]), None);
        assert_eq!(of(&[("SLURM_JOB_ID", "1"), ("SLURM_CPUS_ON_NODE", "x")]), None);
    }

    #[test]
    fn this_process_runs_somewhere() {
        assert!(mask_of(0).is_some_and(|mask| !mask.is_empty()));
    }
}
