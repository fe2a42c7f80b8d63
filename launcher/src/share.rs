//! What a rank takes of its node: CPUs, memory, NUMA nodes, network cards; a decision that prints with its reasons.
//!
//! Promises that ranks which share a node are given CPUs of their own where there are enough, the same number each, and are not
//! bound where there are not; that nothing is taken beyond what the affinity mask, control groups, a batch system's allocation
//! and OMP_NUM_THREADS leave; and one line for a request that cannot be met. `binding` does what was decided.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::parent_id;

use crate::cores::{self, Core};
use crate::machine::{Machine, mask_of};
use crate::part::{Part, read_list, show_list};
use crate::settings::Settings;
use crate::size::show_bytes;

/// A rank's place on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its number among the node's ranks; none where whoever started them does not tell.
    pub(crate) number: Option<usize>,
    /// Number of ranks on the node.
    pub(crate) ranks: usize,
}

impl Place {
    /// The place of a process that is alone.
    pub(crate) const ALONE: Place = Place { number: Some(0), ranks: 1 };
}

/// What there is to divide.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    /// What this process may use.
    pub(crate) machine: &'a Machine,
    /// The cores in its affinity mask.
    pub(crate) cores: Vec<Core>,
    /// Number of CPUs in the mask of whoever started it: more than its own where it was bound already.
    pub(crate) starters_cpus: usize,
}

impl Node<'_> {
    /// Looks at this node.
    pub(crate) fn look(machine: &Machine) -> Node<'_> {
        let starters = mask_of(parent_id()).map_or(0, |mask| mask.len());
        Node { machine, cores: cores::of_machine(&machine.mask, &machine.nodes), starters_cpus: starters }
    }
}

/// Where memory comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Each page from where it is touched first.
    FirstTouch,
    /// From this NUMA node while it has some.
    Prefer(usize),
    /// From these NUMA nodes only.
    Only(Vec<usize>),
}

/// A rank's share of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Number of CPUs to compute on.
    pub(crate) cpus: usize,
    cpus_why: String,
    /// CPUs to bind to.
    pub(crate) bound: Option<Vec<usize>>,
    bound_why: String,
    /// Bytes of memory for arrays.
    pub(crate) memory_bytes: Option<u64>,
    memory_why: String,
    /// Where they come from.
    pub(crate) policy: Policy,
    policy_why: String,
    /// Network cards to use; empty where the MPI chooses.
    pub(crate) cards: Vec<String>,
}

/// A number, and why it is that.
struct Reasoned<T> {
    it: T,
    why: String,
}

impl<T> Reasoned<T> {
    fn new(it: T, why: impl Into<String>) -> Reasoned<T> {
        Reasoned { it, why: why.into() }
    }
}

impl Share {
    /// Decides; `variable` reads the environment.
    pub(crate) fn decide(
        place: Place,
        node: &Node<'_>,
        settings: &Settings,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Share, String> {
        let machine = node.machine;
        let given = |flag: &str, part| own_part(settings, flag, part, place, machine);
        let asked = given("cpu-bind", Part::Cpus)?.map(|part| numbers(&part));
        let named = asked.is_some();
        let bound = match asked {
            Some(cpus) => Reasoned::new(Some(cpus), "--cpu-bind"),
            None => divide(place, node),
        };
        let has = match &bound.it {
            Some(cpus) if named => Reasoned::new(cpus.len(), "--cpu-bind"),
            Some(cpus) => Reasoned::new(smallest(place, node).min(cpus.len()), of_all(machine, place)),
            None => unbound(place, node),
        };
        let least = by_neighbours(has, place, &variable);
        let cpus = counted(settings, least, machine)?;
        let too_few = bound.it.as_ref().is_some_and(|own| own.len() < cpus.it);
        let bound = match bound {
            Reasoned { it: Some(own), .. } if too_few && named => {
                return Err(format!("--cpu-bind: names {} for {} to compute on", count(own.len()), count(cpus.it)));
            }
            Reasoned { it: Some(_), .. } if too_few => Reasoned::new(
                None,
                format!("{} ranks with {} each share {}", place.ranks, count(cpus.it), count(machine.mask.len())),
            ),
            bound => bound,
        };
        let own_nodes = nodes_of(node, bound.it.as_deref());
        let policy = match given("mem-bind", Part::Nodes)? {
            Some(part) => Reasoned::new(Policy::Only(numbers(&part)), "--mem-bind"),
            None => preferred(machine, &own_nodes, bound.it.is_some() || is_bound_already(node)),
        };
        let memory = memory(settings, own_nodes.len() as u64, place, machine)?;
        Ok(Share {
            cpus: cpus.it,
            cpus_why: cpus.why,
            bound: bound.it,
            bound_why: bound.why,
            memory_bytes: memory.it,
            memory_why: memory.why,
            policy: policy.it,
            policy_why: policy.why,
            cards: given("nic-bind", Part::Cards)?.unwrap_or_default(),
        })
    }

    /// What Python's side must know of it, where the settings do not say the same.
    pub(crate) fn variables(&self, settings: &Settings) -> Vec<(&'static str, OsString)> {
        let rows = [("cpus", "LEGATE_CPUS", Some(self.cpus as u64)), ("sysmem", "LEGATE_SYSMEM", self.memory_bytes)];
        let rows = rows.into_iter().filter_map(|(flag, variable, value)| {
            let value = OsString::from(value?.to_string());
            (settings.given(flag) != Some(&value)).then_some((variable, value))
        });
        rows.collect()
    }

    /// What was decided and why; `mask` has the CPUs that it may run on.
    pub(crate) fn rows(&self, mask: &[usize]) -> [(&'static str, String); 5] {
        let bound = match &self.bound {
            Some(_) => format!("to CPUs {}: {}", show_list(mask), self.bound_why),
            None => format!("no, may run on CPUs {}: {}", show_list(mask), self.bound_why),
        };
        let memory = self.memory_bytes.map_or_else(|| "not limited".to_owned(), show_bytes);
        let policy = match &self.policy {
            Policy::FirstTouch => "each page where it is first touched".to_owned(),
            Policy::Prefer(node) => format!("node {node} while it has memory"),
            Policy::Only(nodes) => format!("nodes {} only", show_list(nodes)),
        };
        let cards = if self.cards.is_empty() { "what the MPI chooses".to_owned() } else { self.cards.join(", ") };
        [
            ("cpus", format!("{}: {}", self.cpus, self.cpus_why)),
            ("bound", bound),
            ("memory", format!("{memory}: {}", self.memory_why)),
            ("numa", format!("{policy}: {}", self.policy_why)),
            ("cards", cards),
        ]
    }

    /// The rows as text, a line each.
    pub(crate) fn explain(&self, mask: &[usize]) -> String {
        self.rows(mask).iter().map(|(name, value)| format!("  {name:<7} {value}\n")).collect()
    }
}

/// A number of CPUs in words.
fn count(cpus: usize) -> String {
    format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" })
}

fn of_all(machine: &Machine, place: Place) -> String {
    match place.ranks {
        1 => format!("all of {}", machine.cpus_why),
        ranks => format!("{} of {}, divided among {ranks} ranks", count(machine.cpus), machine.cpus_why),
    }
}

/// The part of a flag that is for this rank.
fn own_part(
    settings: &Settings,
    flag: &str,
    part: Part,
    place: Place,
    machine: &Machine,
) -> Result<Option<Vec<String>>, String> {
    let Some(text) = settings.given(flag) else { return Ok(None) };
    let parts = part.read_all(&text.to_string_lossy(), machine).map_err(|why| format!("--{flag}: {why}"))?;
    check_parts(flag, parts.len(), place.ranks)?;
    let number = match (parts.len(), place.number) {
        (1, _) => 0,
        (_, Some(number)) => number,
        (_, None) => return Err(format!("--{flag}: who started the ranks does not tell which of its node this is")),
    };
    Ok(parts.into_iter().nth(number))
}

/// Refuses a number of parts that fits no number of ranks.
fn check_parts(flag: &str, parts: usize, ranks: usize) -> Result<(), String> {
    if parts == 1 || parts == ranks {
        return Ok(());
    }
    let plural = if ranks == 1 { "rank" } else { "ranks" };
    Err(format!("--{flag}: {parts} parts for {ranks} {plural} on a node: write one for each, or one for all"))
}

fn numbers(part: &[String]) -> Vec<usize> {
    read_list(&part.join(",")).unwrap_or_default()
}

fn is_bound_already(node: &Node<'_>) -> bool {
    node.machine.mask.len() < node.starters_cpus
}

/// The CPUs of a rank when nobody names them; none where it is not to be bound.
fn divide(place: Place, node: &Node<'_>) -> Reasoned<Option<Vec<usize>>> {
    let machine = node.machine;
    let (ranks, has) = (place.ranks, machine.mask.len());
    if is_bound_already(node) {
        return Reasoned::new(None, "who started it has bound it already");
    }
    if ranks == 1 {
        return Reasoned::new(None, "alone on its node");
    }
    let Some(number) = place.number else {
        return Reasoned::new(None, "who started the ranks does not tell which of its node this is");
    };
    if machine.cpus < has {
        return Reasoned::new(None, format!("{} does not name the CPUs", machine.cpus_why));
    }
    match cut(number, ranks, node) {
        Some(cpus) => Reasoned::new(Some(cpus), "its part of the node's cores"),
        None => Reasoned::new(None, format!("{ranks} ranks share {}", count(has))),
    }
}

/// The CPUs of the rank with that number: whole cores where there are enough; none where there are not enough CPUs.
fn cut(number: usize, ranks: usize, node: &Node<'_>) -> Option<Vec<usize>> {
    let range = |items: usize| number * items / ranks..(number + 1) * items / ranks;
    let mut cpus: Vec<usize> = if node.cores.len() >= ranks {
        node.cores[range(node.cores.len())].iter().flat_map(|core| core.cpus.clone()).collect()
    } else {
        let all: Vec<usize> = node.cores.iter().flat_map(|core| core.cpus.clone()).collect();
        all[range(all.len())].to_vec()
    };
    cpus.sort_unstable();
    Some(cpus).filter(|_| node.machine.mask.len() >= ranks)
}

/// The number of CPUs that each rank of the node can have: all compute on the same number.
fn smallest(place: Place, node: &Node<'_>) -> usize {
    (0..place.ranks).filter_map(|number| Some(cut(number, place.ranks, node)?.len())).min().unwrap_or(1)
}

/// The number of CPUs of a rank that is not bound by us.
fn unbound(place: Place, node: &Node<'_>) -> Reasoned<usize> {
    let machine = node.machine;
    let alone = machine.mask.len() * place.ranks <= node.starters_cpus;
    match is_bound_already(node) {
        true if alone || place.ranks == 1 => Reasoned::new(machine.cpus, "all that it was bound to"),
        true => Reasoned::new(
            (node.starters_cpus / place.ranks).clamp(1, machine.cpus),
            format!("{} are bound to {} in groups", place.ranks, count(node.starters_cpus)),
        ),
        false => Reasoned::new((machine.cpus / place.ranks).max(1), of_all(machine, place)),
    }
}

/// Less, where a batch system or OMP_NUM_THREADS says so.
fn by_neighbours(has: Reasoned<usize>, place: Place, variable: impl Fn(&str) -> Option<OsString>) -> Reasoned<usize> {
    let first = |name: &str| -> Option<usize> {
        variable(name)?.to_str()?.split(',').next()?.trim().parse().ok().filter(|&number| number > 0)
    };
    // Tasks of a step have that many CPUs each; a step's only task may still divide a whole node among ranks of its own.
    let per_task = if place.ranks > 1 { "SLURM_CPUS_PER_TASK" } else { "" };
    let limits = [per_task, "OMP_NUM_THREADS"].into_iter().filter_map(|name| Some((first(name)?, name)));
    limits.fold(has, |least, (limit, name)| if limit < least.it { Reasoned::new(limit, name) } else { least })
}

/// What the flags make of it.
fn counted(settings: &Settings, has: Reasoned<usize>, machine: &Machine) -> Result<Reasoned<usize>, String> {
    let number = |flag: &str| settings.given(flag).and_then(|text| text.to_str()?.parse::<usize>().ok());
    match (number("omps").filter(|&groups| groups > 0), number("cpus")) {
        (None, Some(0)) => Err("--cpus: 0 leaves nothing to compute on, as --omps and --gpus give nothing".to_owned()),
        (None, Some(cpus)) => Ok(Reasoned::new(cpus, "--cpus")),
        (None, None) => Ok(has),
        (Some(groups), _) => {
            let threads = number("ompthreads").unwrap_or((has.it / groups).max(1));
            let cpus = groups.saturating_mul(threads);
            if cpus > machine.cpus {
                let plural = if groups == 1 { "group" } else { "groups" };
                return Err(format!(
                    "--omps: asked for {groups} {plural} of {threads}, but this process may use {}",
                    count(machine.cpus)
                ));
            }
            Ok(Reasoned::new(cpus, format!("--omps {groups} of --ompthreads {threads}")))
        }
    }
}

/// NUMA nodes of the CPUs that a rank may run on.
fn nodes_of(node: &Node<'_>, bound: Option<&[usize]>) -> Vec<usize> {
    let runs_on = |core: &&Core| bound.is_none_or(|bound| core.cpus.iter().any(|cpu| bound.contains(cpu)));
    let mut nodes: Vec<usize> = node.cores.iter().filter(runs_on).map(|core| core.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.is_empty() { vec![0] } else { nodes }
}

fn preferred(machine: &Machine, own: &[usize], is_bound: bool) -> Reasoned<Policy> {
    match own {
        _ if machine.nodes.len() == 1 => Reasoned::new(Policy::FirstTouch, "the machine has one NUMA node"),
        &[node] if is_bound => Reasoned::new(Policy::Prefer(node), "its CPUs are there"),
        _ => Reasoned::new(Policy::FirstTouch, format!("its CPUs are in nodes {}", show_list(own))),
    }
}

fn memory(settings: &Settings, nodes: u64, place: Place, machine: &Machine) -> Result<Reasoned<Option<u64>>, String> {
    let size = |flag: &str| settings.given(flag).and_then(OsStr::to_str).and_then(|text| text.parse::<u64>().ok());
    let per_node = size("numamem").filter(|&size| size > 0);
    let of_nodes = |size: u64| format!("--numamem {} for each of {nodes} NUMA node{}", show_bytes(size), plural(nodes));
    match (size("sysmem"), per_node) {
        (Some(0), None) => Err("--sysmem: 0 leaves no memory for arrays".to_owned()),
        (Some(size), None) => Ok(Reasoned::new(Some(size), "--sysmem")),
        (None | Some(0), Some(per_node)) => Ok(Reasoned::new(Some(per_node * nodes), of_nodes(per_node))),
        (Some(size), Some(per_node)) => {
            let why = format!("--sysmem {} and {}", show_bytes(size), of_nodes(per_node));
            Ok(Reasoned::new(Some(size.saturating_add(per_node * nodes)), why))
        }
        (None, None) => {
            let why = match (machine.memory_bytes, place.ranks) {
                (None, _) => "the machine does not tell its size".to_owned(),
                (Some(_), 1) => format!("all of {}", machine.memory_why),
                (Some(all), ranks) => {
                    format!("{} of {}, divided among {ranks} ranks", show_bytes(all), machine.memory_why)
                }
            };
            Ok(Reasoned::new(machine.memory_bytes.map(|all| all / place.ranks as u64), why))
        }
    }
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::{Node, Place, Share};
    use crate::cores::Core;
    use crate::machine::Machine;
    use crate::parse::{parse, shell_words};
    use crate::settings::Settings;
    use std::ffi::OsString;

    /// Two NUMA nodes with two cores of two threads each: core k of node n has CPUs 2n + k and 2n + k + 4.
    fn node(machine: &Machine) -> Node<'_> {
        let cores = (0..4).map(|core| Core { node: core / 2, cpus: vec![core, core + 4] }).collect();
        Node { machine, cores, starters_cpus: 8 }
    }

    fn machine() -> Machine {
        let all: Vec<usize> = (0..8).collect();
        Machine {
            cpus: 8,
            cpus_why: "the machine".into(),
            mask: all.clone(),
            online: all,
            nodes: vec![0, 1],
            ..Machine::of_test()
        }
    }

    fn decide(
        place: (usize, usize),
        node: &Node<'_>,
        words: &str,
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let settings = Settings::gather(&parse(shell_words(words)?)?, |_| None, node.machine)?;
        let place = Place { number: Some(place.0), ranks: place.1 };
        let lookup = |name: &str| variables.iter().find(|row| row.0 == name).map(|row| OsString::from(row.1));
        let share = Share::decide(place, node, &settings, lookup)?;
        Ok(share.explain(share.bound.as_deref().unwrap_or(&node.machine.mask)))
    }

    #[test]
    fn whole_cores_for_each_rank_and_memory_beside_them() {
        let machine = machine();
        let found = decide((1, 2), &node(&machine), "a", &[]).expect("a share");
        assert_eq!(
            found,
            "  cpus    4: 8 CPUs of the machine, divided among 2 ranks\n  bound   to CPUs 2-3,6-7: its part of the node's cores\n  \
             memory  4 GiB: 8 GiB of the machine, divided among 2 ranks\n  numa    node 1 while it has memory: its CPUs are there\n  \
             cards   what the MPI chooses\n"
        );
        // Four cores for three ranks: all compute on as many CPUs as the smallest share has.
        let bound = |number| decide((number, 3), &node(&machine), "a", &[]).expect("a share");
        assert!(bound(0).contains("cpus    2:") && bound(0).contains("to CPUs 0,4"), "{}", bound(0));
        assert!(bound(2).contains("cpus    2:") && bound(2).contains("to CPUs 2-3,6-7"), "{}", bound(2));
        // More ranks than cores: threads of one core are divided too. More than CPUs: nobody is bound.
        assert!(decide((0, 8), &node(&machine), "a", &[]).expect("a share").contains("to CPUs 0:"));
        let crowd = decide((3, 9), &node(&machine), "a", &[]).expect("a share");
        assert!(
            crowd.contains("cpus    1:") && crowd.contains("no, may run on CPUs 0-7: 9 ranks share 8 CPUs"),
            "{crowd}"
        );
    }

    #[test]
    fn what_others_said_is_respected() {
        let machine = machine();
        for (place, words, variables, expected) in [
            ((0, 2), "a", [("OMP_NUM_THREADS", "3,1")], "cpus    3: OMP_NUM_THREADS"),
            ((0, 2), "a", [("SLURM_CPUS_PER_TASK", "2")], "cpus    2: SLURM_CPUS_PER_TASK"),
            ((0, 1), "a", [("SLURM_CPUS_PER_TASK", "2")], "cpus    8: all of the machine"),
            ((0, 2), "--cpus 4 a", [("OMP_NUM_THREADS", "1")], "cpus    4: --cpus"),
            ((0, 2), "--cpus 6 a", [("A", "")], "no, may run on CPUs 0-7: 2 ranks with 6 CPUs each share 8 CPUs"),
            ((0, 2), "--omps 2 a", [("A", "")], "cpus    4: --omps 2 of --ompthreads 2"),
            ((0, 2), "--cpus 0 --omps 1 --ompthreads 3 a", [("A", "")], "cpus    3: --omps 1 of --ompthreads 3"),
            ((0, 2), "--cpu-bind 0-3/4-7 a", [("A", "")], "bound   to CPUs 0-3: --cpu-bind"),
            ((0, 2), "--mem-bind 0-1 a", [("A", "")], "numa    nodes 0-1 only: --mem-bind"),
            ((0, 1), "--numamem 1G a", [("A", "")], "memory  2 GiB: --numamem 1 GiB for each of 2 NUMA nodes"),
            (
                (0, 2),
                "--sysmem 1G --numamem 1G a",
                [("A", "")],
                "memory  2 GiB: --sysmem 1 GiB and --numamem 1 GiB for each",
            ),
            ((0, 1), "--nic-bind eth0 a", [("A", "")], "cards   eth0"),
        ] {
            let found = decide(place, &node(&machine), words, &variables).expect("a share");
            assert!(found.contains(expected), "{words} {variables:?}:\n{found}");
        }
    }

    #[test]
    fn whoever_bound_a_rank_already_is_respected() {
        let own = Machine { cpus: 2, mask: vec![1, 5], ..machine() };
        let found = decide((1, 4), &node(&own), "a", &[]).expect("a share");
        assert!(found.contains("cpus    2: all that it was bound to") && found.contains("bound it already"), "{found}");
        // Bound to a socket together with others.
        let group = Machine { cpus: 4, mask: vec![0, 1, 4, 5], ..machine() };
        let found = decide((1, 4), &node(&group), "a", &[]).expect("a share");
        assert!(found.contains("cpus    2: 4 are bound to 8 CPUs in groups"), "{found}");
        // A quota says how many, not which.
        let cut = Machine { cpus: 4, cpus_why: "a quota".into(), ..machine() };
        let found = decide((1, 2), &node(&cut), "a", &[]).expect("a share");
        assert!(found.contains("cpus    2:") && found.contains("a quota does not name the CPUs"), "{found}");
    }

    #[test]
    fn refusals() {
        let machine = machine();
        for (ranks, words, expected) in [
            (3, "--cpu-bind 0/1 a", "--cpu-bind: 2 parts for 3 ranks on a node: write one for each, or one for all"),
            (1, "--mem-bind 0/1 a", "--mem-bind: 2 parts for 1 rank on a node: write one for each, or one for all"),
            (1, "--cpu-bind 0-1 --cpus 3 a", "--cpu-bind: names 2 CPUs for 3 CPUs to compute on"),
            (1, "--omps 3 --ompthreads 4 a", "--omps: asked for 3 groups of 4, but this process may use 8 CPUs"),
            (1, "--cpus 0 a", "--cpus: 0 leaves nothing to compute on, as --omps and --gpus give nothing"),
            (1, "--sysmem 0 a", "--sysmem: 0 leaves no memory for arrays"),
        ] {
            assert_eq!(decide((0, ranks), &node(&machine), words, &[]), Err(expected.to_owned()), "{words}");
        }
    }
}
