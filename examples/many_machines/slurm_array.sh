#!/bin/bash
# A plan as an array of SLURM jobs, each a shard of its runs, over a folder that all nodes see:
#
#     sbatch slurm_array.sh PLAN DIR [OPTIONS OF langgraft run]
#
# What died or ran out of time goes on when the same is sent again, also of single shards
# (sbatch --array=2 …). Once all are done: langgraft report DIR
#
#SBATCH --job-name=langgraft
#SBATCH --array=0-3
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

shards=4 # of --array above

# In the place of the shell, which is told two minutes before the time is up: it ends in order.
exec langgraft run "${1:?a plan}" --out "${2:?a run directory that all nodes see}" \
  --shard "${SLURM_ARRAY_TASK_ID:?to be sent with sbatch}/$shards" "${@:3}"
