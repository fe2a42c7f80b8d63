#!/usr/bin/env bash
# A program that may be stopped before its time is over, for Slurm: sbatch [--time=60] scripts/batch/time_limit.sh app.py [arguments]
# Promises that the program gets SIGTERM two minutes before the limit: its own handler can save what it has; without one it ends.
#SBATCH --job-name=legate
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --time=00:30:00
#SBATCH --signal=B:TERM@120
#SBATCH --output=%x-%j.out
stop() {
    echo "job $SLURM_JOB_ID: its time is nearly over, stopping the program" >&2
    kill -TERM "$program"
}
trap stop TERM
legate "$@" &
program=$!
wait "$program"
code=$?
# A wait that a signal ended tells nothing about the program.
while kill -0 "$program" 2>/dev/null; do
    wait "$program"
    code=$?
done
exit "$code"
