#!/usr/bin/env bash
# The program once for each number, for Slurm: sbatch [--array=0-9] scripts/batch/array.sh app.py [arguments]
# Promises that each run gets its number as its last argument and writes an output of its own.
#SBATCH --job-name=legate
#SBATCH --array=0-3
#SBATCH --nodes=1
#SBATCH --output=%x-%A_%a.out
exec legate "$@" "$SLURM_ARRAY_TASK_ID"
