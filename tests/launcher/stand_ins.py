"""Stand-ins for commands that start ranks, as texts of shell scripts: for machines that a test cannot have.

Promises: each takes the options that its original documents, and starts real ranks with an mpirun where the test wants them started.
"""

from tests.hosts import UNSHARE

# What every srun and mpirun says of itself.
SRUN = """#!/bin/sh
case "$*" in *--mpi=list*) echo "MPI plugin types are..."; printf '\\t%s\\n' PLUGINS;; *) exit 9;; esac
"""
SCONTROL = """#!/bin/sh
echo "TaskPlugin              = task/affinity,task/cgroup"
"""
OPENMPI = '#!/bin/sh\necho "mpirun (Open MPI) 4.1.4"\n'
MPICH = '#!/bin/sh\necho "HYDRA build details:"\n'
NOTHING = "#!/bin/sh\nexit 9\n"
# A resource set for each node: as many ranks as sets times ranks in a set.
JSRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    case $1 in -n) sets=$2;; -a) each=$2;; esac
    shift 2
done
exec mpirun.openmpi --oversubscribe --allow-run-as-root -q --bind-to none -n $((sets * each)) "$@"
"""
APRUN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    case $1 in -n) ranks=$2;; esac
    shift 2
done
exec env -u PBS_NODEFILE mpirun.mpich -bind-to none -n "$ranks" "$@"
"""
# Another host: another name, no variables, another folder. FOLDER is the test's own, UNSHARE makes a place for the name.
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=$1; shift
mkdir -p "FOLDER/tmp.$host"; cd /
echo "$host" >>"FOLDER/reached"
exec env -i PATH=/usr/bin:/bin HOME="$HOME" TMPDIR="FOLDER/tmp.$host" UNSHARE bash -c "hostname $host; $*"
"""


def place(folder, **texts):
    """Puts executables into a folder; `_` in a name stands for a dot."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        path = folder / name.replace("_", ".")
        path.write_text(text.replace("FOLDER", str(folder.parent)).replace("UNSHARE", " ".join(UNSHARE)))
        path.chmod(0o755)
    return folder
