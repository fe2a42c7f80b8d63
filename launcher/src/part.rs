//! What each rank of a node is given: `0-3/4-7` are CPUs 0 to 3 for the first rank and 4 to 7 for the second.
//!
//! Promises that a part which passes is on this machine. Which part is a rank's own, and what is done with it, is `binding`'s.

use crate::machine::Machine;

/// What the parts are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Numbers of CPUs.
    Cpus,
    /// Numbers of NUMA nodes.
    Nodes,
    /// Numbers of GPUs.
    Gpus,
    /// Names of network cards.
    Cards,
}

impl Part {
    /// All parts, each one's items as texts.
    pub(crate) fn read_all(self, text: &str, machine: &Machine) -> Result<Vec<Vec<String>>, String> {
        text.split('/').map(|part| self.read(part, machine)).collect()
    }

    fn read(self, part: &str, machine: &Machine) -> Result<Vec<String>, String> {
        let (what, has) = match self {
            Part::Gpus if machine.gpus == 0 => return Err("this machine has no GPU".to_owned()),
            Part::Gpus => {
                return Err(format!(
                    "this machine has {}, but this build computes on CPUs only: leave it out",
                    machine.gpus
                ));
            }
            Part::Cards => return read_cards(part, machine),
            Part::Cpus => ("CPU", &machine.online),
            Part::Nodes => ("NUMA node", &machine.nodes),
        };
        let numbers = read_list(part).ok_or_else(|| {
            format!("'{part}' is no list of {what}s: write numbers and ranges as in 0-3,8, and / between ranks")
        })?;
        match numbers.iter().find(|number| !has.contains(number)) {
            Some(missing) => Err(format!("there is no {what} {missing}; this machine has {}", show_list(has))),
            None => Ok(numbers.iter().map(usize::to_string).collect()),
        }
    }
}

fn read_cards(part: &str, machine: &Machine) -> Result<Vec<String>, String> {
    let names: Vec<String> = part.split(',').map(str::to_owned).collect();
    // A port may follow an InfiniBand card's name.
    let is_there = |name: &&String| machine.cards.iter().any(|card| Some(card.as_str()) == name.split(':').next());
    match names.iter().find(|name| !is_there(name)) {
        Some(missing) => {
            Err(format!("there is no network card '{missing}'; this machine has {}", machine.cards.join(", ")))
        }
        None => Ok(names),
    }
}

/// The numbers of `0-3,8`, as the kernel writes lists of CPUs.
pub(crate) fn read_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for item in text.trim().split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > 1 << 20 {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Numbers in order, as `0-3,8`.
pub(crate) fn show_list(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let show =
        |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{Part, read_list, show_list};
    use crate::machine::Machine;

    #[test]
    fn lists() {
        assert_eq!(read_list("0-3,8,2"), Some(vec![0, 1, 2, 3, 8]));
        for text in ["", "3-1", "a", "1-", "0-9999999"] {
            assert_eq!(read_list(text), None, "{text}");
        }
        assert_eq!(show_list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(show_list(&[]), "");
    }

    #[test]
    fn parts_are_on_the_machine() {
        let machine = Machine::of_test();
        assert_eq!(Part::Cpus.read_all("0-1/3", &machine), Ok(vec![vec!["0".into(), "1".into()], vec!["3".into()]]));
        assert_eq!(Part::Cpus.read_all("4", &machine), Err("there is no CPU 4; this machine has 0-3".into()));
        assert_eq!(Part::Nodes.read_all("1", &machine), Err("there is no NUMA node 1; this machine has 0".into()));
        assert!(Part::Cpus.read_all("0//1", &machine).is_err());
        assert!(Part::Cards.read_all("mlx5_0", &machine).is_err());
        assert_eq!(Part::Gpus.read_all("0", &machine), Err("this machine has no GPU".into()));
    }
}
