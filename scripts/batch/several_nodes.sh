#!/usr/bin/env bash
# Several nodes with a rank on each, for Slurm: sbatch [--nodes=8] scripts/batch/several_nodes.sh app.py [arguments]
# Promises that legate uses what the job was given: more ranks on each node with sbatch --ntasks-per-node=2.
#SBATCH --job-name=legate
#SBATCH --nodes=2
#SBATCH --exclusive
#SBATCH --output=%x-%j.out
exec legate "$@"
