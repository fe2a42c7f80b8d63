//! The cores of this machine: which CPUs are threads of one core, and which NUMA node they belong to.
//!
//! Promises an order in which neighbours share as much as possible, so that cutting it into ranges makes good shares. Where the
//! kernel tells nothing, each CPU is a core of node 0. Divides nothing itself (see `share`).

use std::collections::BTreeMap;
use std::fs;

use crate::machine::list_in;

/// One core, as far as a process may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Core {
    /// Its NUMA node.
    pub(crate) node: usize,
    /// Its CPUs.
    pub(crate) cpus: Vec<usize>,
}

/// The cores that those CPUs make up, node by node.
pub(crate) fn of_machine(cpus: &[usize], nodes: &[usize]) -> Vec<Core> {
    let lists: Vec<(usize, Vec<usize>)> = nodes
        .iter()
        .filter_map(|&node| Some((node, list_in(&format!("/sys/devices/system/node/node{node}/cpulist"))?)))
        .collect();
    let number = |cpu: usize, name: &str| -> Option<usize> {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}")).ok()?.trim().parse().ok()
    };
    let mut cores: BTreeMap<(usize, usize, usize), Vec<usize>> = BTreeMap::new();
    for &cpu in cpus {
        let node = lists.iter().find(|(_, list)| list.contains(&cpu)).map_or(0, |(node, _)| *node);
        let package = number(cpu, "physical_package_id").unwrap_or(0);
        cores.entry((node, package, number(cpu, "core_id").unwrap_or(cpu))).or_default().push(cpu);
    }
    cores.into_iter().map(|((node, _, _), cpus)| Core { node, cpus }).collect()
}

#[cfg(test)]
mod tests {
    use super::of_machine;
    use crate::machine::mask_of;

    #[test]
    fn every_cpu_is_in_one_core() {
        let mask = mask_of(0).expect("a mask");
        let mut cpus: Vec<usize> = of_machine(&mask, &[0]).into_iter().flat_map(|core| core.cpus).collect();
        cpus.sort_unstable();
        assert_eq!(cpus, mask);
    }
}
