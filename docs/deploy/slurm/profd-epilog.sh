#!/bin/sh
# Epilog of slurm.conf: ends every session of the job on this node, of any user: those of
# profd-prolog.sh, and what the user's script has left running. The dumps stay, and stay the user's:
# `profctl fetch` brings them.
#
# Runs as root after the job's last process, and never fails: Slurm would drain the node.
PROFCTL=${PROFCTL:-/usr/bin/profctl}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

[ -n "$SLURM_JOB_ID" ] || exit 0

# The first line is the table's head, or says that there are no sessions.
timeout 30 "$PROFCTL" list --active --job "$SLURM_JOB_ID" 2>/dev/null |
  awk 'NR > 1 { print $1 }' |
  while read -r session; do
    if ! said=$(timeout 60 "$PROFCTL" stop "$session" 2>&1); then
      logger -t profd-epilog -- "job $SLURM_JOB_ID: $said" 2>/dev/null || :
    fi
  done
exit 0
