//! The MPI families, as a table: how their `mpirun` is found and called, what its ranks find in their environment, which plugin
//! belongs to them.
//!
//! A new family is a row here and one in `scripts/setup`. Starts nothing.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One MPI family.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// Its name in `--mpi`, and in the plugin's file name.
    pub(crate) key: &'static str,
    /// Its name for people.
    pub(crate) name: &'static str,
    /// Names of its runner; the first that is on PATH and says the right thing is taken.
    runners: &'static [&'static str],
    /// What its runner says when asked for its version.
    says: &'static str,
    /// Arguments before the number of ranks: no banners, no binding (ranks divide the CPUs of their node themselves).
    pub(crate) arguments: &'static [&'static str],
    /// Flag and form of the number of ranks on each of several nodes; `N` stands for the number.
    pub(crate) per_node: (&'static str, &'static str),
    /// Flag for a file with the names of nodes.
    pub(crate) host_file: &'static str,
    /// Flag for a list of nodes, with commas between them.
    pub(crate) host_list: &'static str,
    /// A node in that list; `NAME` stands for its name, `N` for the number of ranks on it.
    pub(crate) place: &'static str,
    /// Flag that has ranks on other nodes get a variable, where they don't get all.
    pub(crate) pass_on: Option<&'static str>,
    /// Variables for the runner: more ranks than cores, and being root, are the user's decision.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// Variables for ranks: no pages of text about signals, which Python handles.
    pub(crate) quiet: &'static [(&'static str, &'static str)],
    /// Variables for ranks that share cores.
    pub(crate) crowded: &'static [(&'static str, &'static str)],
    /// Name of the plugin of Slurm's srun that serves it.
    pub(crate) srun: &'static str,
    /// What its runner adds to the number of the signal that ended a rank, to make its own exit code.
    pub(crate) signals_from: i32,
}

/// All families.
pub(crate) const FAMILIES: &[Family] = &[
    Family {
        key: "openmpi",
        name: "Open MPI",
        runners: &["mpirun.openmpi", "mpirun"],
        says: "Open",
        arguments: &["-q", "--bind-to", "none"],
        per_node: ("--map-by", "ppr:N:node"),
        host_file: "--hostfile",
        host_list: "--host",
        place: "NAME:N",
        pass_on: Some("-x"),
        environment: &[
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
            ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
        ],
        quiet: &[
            ("OMPI_MCA_opal_signal", ""),
            ("OMPI_MCA_btl_base_warn_peer_error", "0"),
            ("UCX_HANDLE_ERRORS", "none"),
        ],
        crowded: &[("OMPI_MCA_mpi_yield_when_idle", "1")],
        srun: "pmix",
        signals_from: 128,
    },
    Family {
        key: "mpich",
        name: "MPICH",
        runners: &["mpirun.mpich", "mpiexec.hydra", "mpirun"],
        says: "HYDRA",
        arguments: &["-bind-to", "none"],
        per_node: ("-ppn", "N"),
        host_file: "-f",
        host_list: "-hosts",
        place: "NAME",
        pass_on: None,
        environment: &[],
        quiet: &[("UCX_HANDLE_ERRORS", "none")],
        crowded: &[],
        srun: "pmi2",
        signals_from: 0,
    },
];

impl Family {
    /// The family of that key.
    pub(crate) fn find(key: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.key == key)
    }

    /// Its plugin in the package's folder, whether or not it is there.
    pub(crate) fn plugin(&self, package: &Path) -> PathBuf {
        package.join(format!("_mpi_{}.so", self.key))
    }

    /// Its runner on PATH.
    pub(crate) fn runner(&self) -> Option<PathBuf> {
        self.runners.iter().filter_map(on_path).find(|runner| {
            let answer = Command::new(runner).arg("--version").stdin(Stdio::null()).output();
            answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).contains(self.says))
        })
    }
}

/// A command on PATH.
pub(crate) fn on_path(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(name.as_ref()))
        .find(|path| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0))
}

#[cfg(test)]
mod tests {
    use super::{FAMILIES, Family};
    use std::path::Path;

    #[test]
    fn rows_are_found_by_their_keys() {
        for family in FAMILIES {
            assert_eq!(Family::find(family.key), Some(family));
            assert!(family.plugin(Path::new("p")).ends_with(format!("_mpi_{}.so", family.key)));
            assert!(family.per_node.1.contains('N'), "{}", family.name);
        }
    }
}
