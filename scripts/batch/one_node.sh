#!/usr/bin/env bash
# One node with all of its cores, for Slurm: sbatch scripts/batch/one_node.sh app.py [arguments]
# Promises that the job's end is the program's: its output in legate-JOB.out, its exit code. `legate` must be on PATH.
#SBATCH --job-name=legate
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --output=%x-%j.out
exec legate "$@"
