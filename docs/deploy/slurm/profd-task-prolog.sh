#!/bin/sh
# TaskProlog of slurm.conf (or `srun --task-prolog`): profiles the jobs that ask for it, and only those.
#
#   sbatch --export=ALL,PROFD_SLURM='--sys-hardware-mem-freq 50 --duration 60s' train.sh
#
# Runs as the user, in the job's environment, before each task of each step; the first task of a node
# starts the node's session, unless that of an earlier step runs. What is printed here goes to Slurm
# ("print ..." reaches the job's output), so profctl must be silent. --all as the task itself does not
# exist yet; profd-epilog.sh ends the session.
PROFCTL=${PROFCTL:-/usr/bin/profctl}

[ -n "$PROFD_SLURM" ] && [ "${SLURM_LOCALID:-0}" -eq 0 ] || exit 0

# Every step has a first task, and so has the batch script: one session at a time.
if "$PROFCTL" list --active --job "$SLURM_JOB_ID" 2>/dev/null | grep -q ' slurm-task-prolog$'; then
  echo "export PROFD_JOB_ID=$SLURM_JOB_ID"
  exit 0
fi

# The options are the user's own words.
# shellcheck disable=SC2086
if said=$("$PROFCTL" start --job "$SLURM_JOB_ID" --label slurm-task-prolog --all --detach \
            $PROFD_SLURM 2>&1); then
  echo "export PROFD_JOB_ID=$SLURM_JOB_ID"
else
  echo "print profd: this job is not (wholly) profiled: $(printf '%s' "$said" | tr '\n' ' ')"
fi
exit 0
