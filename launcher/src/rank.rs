#![expect(unsafe_code, reason = "points standard streams elsewhere")]
//! This process as one of the ranks of a job: who says so, its place on the node, its streams.
//!
//! Promises that ranks which were started without an MPI are refused instead of running as independent copies, and that only rank
//! 0 reads standard input and is seen. Does not talk to other ranks: `legate._core` does, through the plugin named here.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::Path;

use crate::desk::{self, HIGH};
use crate::family::Family;
use crate::machine::Machine;
use crate::share::Place;
use crate::start::Variables;

/// Who started ranks: the variables that tell, in the order in which they are looked at.
struct Starter {
    /// Number of ranks.
    size: &'static str,
    /// This rank's number.
    rank: &'static str,
    /// Number of ranks on this node: a number, or Slurm's list for all nodes.
    local: &'static [&'static str],
    /// This rank's number among those of its node.
    place: &'static [&'static str],
    /// A further variable that must be there.
    mark: Option<&'static str>,
    /// Key of the family that serves these ranks; none where nothing does.
    family: Option<&'static str>,
}

const STARTERS: &[Starter] = &[
    Starter {
        size: "OMPI_COMM_WORLD_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
        local: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        place: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        mark: None,
        family: Some("openmpi"),
    },
    Starter {
        size: "SLURM_STEP_NUM_TASKS",
        rank: "SLURM_PROCID",
        local: &["SLURM_STEP_TASKS_PER_NODE"],
        place: &["SLURM_LOCALID"],
        mark: Some("PMIX_RANK"),
        family: Some("openmpi"),
    },
    Starter {
        size: "PMI_SIZE",
        rank: "PMI_RANK",
        local: &["MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"],
        place: &["MPI_LOCALRANKID", "SLURM_LOCALID"],
        mark: None,
        family: Some("mpich"),
    },
    Starter {
        size: "JSM_NAMESPACE_SIZE",
        rank: "JSM_NAMESPACE_RANK",
        local: &["JSM_NAMESPACE_LOCAL_SIZE"],
        place: &["JSM_NAMESPACE_LOCAL_RANK"],
        mark: None,
        family: Some("openmpi"),
    },
    Starter {
        size: "LEGATE_APRUN_RANKS",
        rank: "ALPS_APP_PE",
        local: &["LEGATE_APRUN_LOCAL"],
        place: &[],
        mark: None,
        family: Some("mpich"),
    },
    Starter { size: "SLURM_STEP_NUM_TASKS", rank: "SLURM_PROCID", local: &[], place: &[], mark: None, family: None },
];

/// Where what ranks other than 0 print goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output<'a> {
    /// Nowhere.
    Nowhere,
    /// Into files in this folder.
    Files(&'a OsStr),
    /// Where rank 0's goes.
    Shown,
}

/// A rank's streams, settled.
#[derive(Debug)]
pub(crate) struct Streams {
    /// What Python's side must know of them.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// The user's standard error, also where the rank's own leads elsewhere.
    pub(crate) errors: File,
}

/// One of several ranks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Its number.
    pub(crate) number: usize,
    /// Number of ranks.
    pub(crate) ranks: usize,
    /// Where it is on its node.
    pub(crate) place: Place,
    /// The family that serves them; none where nothing does.
    family: Option<&'static Family>,
}

impl Rank {
    /// Whether this process is one of several ranks, by the environment.
    pub(crate) fn look(variable: impl Fn(&str) -> Option<OsString>) -> Option<Rank> {
        let number = |name: &str| variable(name)?.to_str()?.parse::<usize>().ok();
        let starter = STARTERS
            .iter()
            .find(|row| number(row.size).is_some() && row.mark.is_none_or(|mark| variable(mark).is_some()))?;
        let ranks = number(starter.size).filter(|&ranks| ranks > 1)?;
        let local = starter.local.iter().find_map(|name| most_per_node(variable(name)?.to_str()?));
        let place = Place { number: starter.place.iter().find_map(|name| number(name)), ranks: local.unwrap_or(ranks) };
        let family = starter.family.and_then(Family::find);
        Some(Rank { number: number(starter.rank)?, ranks, place, family })
    }

    /// Its name for people.
    pub(crate) fn title(&self) -> String {
        format!("rank {} of {}", self.number, self.ranks)
    }

    /// What Python's side must know, as variables; the reason when these ranks cannot work together.
    pub(crate) fn variables(&self, package: &Path, machine: &Machine) -> Result<Variables, String> {
        let ranks = self.ranks;
        let Some(family) = self.family else {
            return Err(format!(
                "srun started {ranks} ranks without an MPI, so they cannot see each other: use srun --mpi=pmix or --mpi=pmi2"
            ));
        };
        let plugin = family.plugin(package);
        if !plugin.is_file() {
            return Err(format!(
                "{} started {ranks} ranks, but {} is not there: scripts/setup builds it where its mpicc is found",
                family.name,
                plugin.display()
            ));
        }
        let variables = vec![
            ("LEGATE_SHARD", self.number.to_string().into()),
            ("LEGATE_SHARDS", ranks.to_string().into()),
            ("LEGATE_PLUGIN", plugin.into()),
        ];
        let mut hidden = Vec::new();
        let mut give = |name: &'static str, value: String| hidden.push((name, value.into()));
        let crowded = if self.place.ranks > machine.cpus { family.crowded } else { &[] };
        for &(name, value) in family.quiet.iter().chain(crowded) {
            if env::var_os(name).is_none() {
                give(name, value.to_owned());
            }
        }
        // One seed for all: sets and dictionaries keyed by texts have one order on every rank.
        if env::var_os("PYTHONHASHSEED").is_none_or(|seed| seed.is_empty() || seed == "random") {
            give("PYTHONHASHSEED", "1".to_owned());
        }
        Ok(Variables { open: variables, hidden })
    }

    /// Gives rank 0 the streams of the job's desk, where there is one, and closes the others off: their input is empty, their
    /// output goes where `output` says. What they must still say (a traceback that no other rank has) goes to the
    /// stream whose number is among the variables.
    pub(crate) fn settle_streams(&self, output: Output<'_>) -> Result<Streams, String> {
        let refused = |error: io::Error| format!("rank {}: its streams: {error}", self.number);
        let seat = desk::report(self.number);
        let mut variables: Vec<(&'static str, OsString)> = Vec::new();
        if let Some(seat) = &seat {
            variables.push(("LEGATE_LINE", seat.line.to_string().into()));
        }
        if self.number == 0 {
            for (own, given) in seat.into_iter().flat_map(|seat| seat.streams).enumerate() {
                point(own as RawFd, given).map_err(refused)?;
                close(given);
            }
            // SAFETY: a copy of an open stream, which nothing else owns.
            let errors = unsafe { File::from_raw_fd(libc::fcntl(2, libc::F_DUPFD_CLOEXEC, HIGH)) };
            return Ok(Streams { variables, errors });
        }
        let errors = seat.as_ref().map_or(2, |seat| seat.streams[2]);
        // SAFETY: a copy of an open stream; it stays open until the process ends.
        let kept = unsafe { libc::fcntl(errors, libc::F_DUPFD, HIGH) };
        variables.push(("LEGATE_STDERR", kept.to_string().into()));
        let given = seat.map(|seat| seat.streams);
        point(0, File::open("/dev/null").map_err(refused)?.as_raw_fd()).map_err(refused)?;
        for (stream, ending) in [(1, "out"), (2, "err")] {
            let file = match output {
                Output::Shown => {
                    if let Some(given) = given {
                        point(stream, given[stream as usize]).map_err(refused)?;
                    }
                    continue;
                }
                Output::Files(folder) => {
                    fs::create_dir_all(folder).map_err(refused)?;
                    File::create(Path::new(folder).join(format!("rank-{}.{ending}", self.number)))
                }
                Output::Nowhere => OpenOptions::new().write(true).open("/dev/null"),
            };
            point(stream, file.map_err(refused)?.as_raw_fd()).map_err(refused)?;
        }
        given.into_iter().flatten().for_each(close);
        // SAFETY: a copy of an open stream, which nothing else owns.
        let errors = unsafe { File::from_raw_fd(libc::fcntl(kept, libc::F_DUPFD_CLOEXEC, HIGH)) };
        Ok(Streams { variables, errors })
    }
}

/// Makes a standard stream lead where another stream does.
fn point(stream: RawFd, other: RawFd) -> io::Result<()> {
    // SAFETY: both are streams of this process.
    if unsafe { libc::dup2(other, stream) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn close(stream: RawFd) {
    // SAFETY: an open stream that nothing else knows of.
    unsafe { libc::close(stream) };
}

/// The largest number in `4`, or in Slurm's `4(x2),3`.
fn most_per_node(text: &str) -> Option<usize> {
    text.split(',').filter_map(|part| part.split('(').next()?.trim().parse().ok()).max().filter(|&most| most > 0)
}

#[cfg(test)]
mod tests {
    use super::{Rank, most_per_node};
    use std::ffi::OsString;

    fn look(variables: &[(&str, &str)]) -> Option<(usize, usize, usize, Option<&'static str>)> {
        let rank = Rank::look(|name| variables.iter().find(|row| row.0 == name).map(|row| OsString::from(row.1)))?;
        Some((rank.number, rank.ranks, rank.place.ranks, rank.family.map(|family| family.key)))
    }

    #[test]
    fn ranks_are_recognised_by_who_started_them() {
        let slurm = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "3"), ("SLURM_STEP_TASKS_PER_NODE", "2(x2)")];
        let with = |more: &[(&'static str, &'static str)]| look(&[&slurm[..], more].concat());
        assert_eq!(
            look(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")]),
            Some((2, 4, 2, Some("openmpi")))
        );
        assert_eq!(
            look(&[("PMI_SIZE", "3"), ("PMI_RANK", "0"), ("MPI_LOCALNRANKS", "3")]),
            Some((0, 3, 3, Some("mpich")))
        );
        assert_eq!(with(&[("PMIX_RANK", "3")]), Some((3, 4, 2, Some("openmpi"))));
        assert_eq!(with(&[("PMI_SIZE", "4"), ("PMI_RANK", "3")]), Some((3, 4, 2, Some("mpich"))));
        assert_eq!(
            look(&[("JSM_NAMESPACE_SIZE", "4"), ("JSM_NAMESPACE_RANK", "1"), ("JSM_NAMESPACE_LOCAL_SIZE", "2")]),
            Some((1, 4, 2, Some("openmpi")))
        );
        let cray = [("LEGATE_APRUN_RANKS", "8"), ("LEGATE_APRUN_LOCAL", "4"), ("ALPS_APP_PE", "5")];
        assert_eq!(look(&cray), Some((5, 8, 4, Some("mpich"))));
        assert_eq!(look(&cray[..2]), None);
        assert_eq!(with(&[]), Some((3, 4, 4, None)));
        assert_eq!(with(&[("PMIX_RANK", "3"), ("SLURM_LOCALID", "1")]), Some((3, 4, 2, Some("openmpi"))));
        assert_eq!(look(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(look(&[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")]), None);
        assert_eq!(look(&[]), None);
    }

    #[test]
    fn ranks_of_a_node() {
        for (text, expected) in [("4", Some(4)), ("2(x2)", Some(2)), ("2(x2),3", Some(3)), ("", None), ("0", None)] {
            assert_eq!(most_per_node(text), expected, "{text}");
        }
    }
}
