//! What this process may use of the machine: CPUs and memory.
//!
//! Promises to respect the affinity mask and the control groups' limits, since a batch job or container owns no more.
//! It does not divide anything among workers.

use std::fs;
use std::thread;

/// What this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// CPUs: the affinity mask, cut by a control group's CPU quota.
    pub(crate) cpus: usize,
    /// Bytes of memory, cut by a control group's limit; none where it cannot be read.
    pub(crate) memory_bytes: Option<u64>,
}

impl Machine {
    /// Looks at this machine.
    pub(crate) fn look() -> Machine {
        let physical = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let limit =
            limit_files(&groups).filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()).min();
        Machine {
            cpus: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: match (physical, limit) {
                (Some(physical), Some(limit)) => Some(physical.min(limit)),
                (physical, limit) => physical.or(limit),
            },
        }
    }
}

/// `MemTotal` of /proc/meminfo in bytes.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Files that may hold a memory limit of this process: its group and the groups above, versions 1 and 2.
fn limit_files(groups: &str) -> impl Iterator<Item = String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
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
    use super::{limit_files, total_memory};

    #[test]
    fn memory_total() {
        assert_eq!(total_memory("MemTotal:  1024 kB\nMemFree: 1 kB\n"), Some(1 << 20));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn every_group_above_is_asked() {
        let two: Vec<_> = limit_files("0::/a/b\n").collect();
        assert_eq!(two, ["/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"]);
        let one: Vec<_> = limit_files("3:cpu,cpuacct:/x\n9:memory:/\n").collect();
        assert_eq!(one, ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]);
    }
}
