#!/bin/sh
# Prolog of slurm.conf: starts one profiling session per node and job, in the name of the job's user.
#
#   Prolog=/etc/slurm/profd-prolog.sh
#   Epilog=/etc/slurm/profd-epilog.sh
#
# What is profiled stands in /etc/default/profd-slurm, as options of `profctl start`; nothing is started
# while the file or the variable is missing:
#
#   PROFD_SLURM_OPTIONS="--sys-interconnection-freq 10 --host-sys-usage cpu,mem --storage-limit 500MB"
#
# Runs as root before the job's first process, with hardly an environment. Slurm drains a node whose
# Prolog fails: this one never does, and never takes long. The job's processes do not exist yet, so the
# session takes the whole node (--all): right where nodes are not shared. --detach because no process
# that could keep a lease alive outlives this script; profd-epilog.sh ends the session.
PROFD_SLURM_DEFAULTS=${PROFD_SLURM_DEFAULTS:-/etc/default/profd-slurm}
PROFCTL=${PROFCTL:-/usr/bin/profctl}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

[ -r "$PROFD_SLURM_DEFAULTS" ] || exit 0
# shellcheck source=/dev/null  # the site's own
. "$PROFD_SLURM_DEFAULTS"
[ -n "$PROFD_SLURM_OPTIONS" ] && [ -n "$SLURM_JOB_ID" ] || exit 0

as_user() {
  if [ "${SLURM_JOB_UID:-0}" -eq 0 ]; then
    "$@"
  else
    setpriv --reuid "$SLURM_JOB_UID" --regid "$(id -g "$SLURM_JOB_UID")" --init-groups -- "$@"
  fi
}

# The options are words of ours, not of the user's.
# shellcheck disable=SC2086
if ! said=$(as_user timeout 30 "$PROFCTL" start --job "$SLURM_JOB_ID" --label slurm-prolog \
              --all --detach $PROFD_SLURM_OPTIONS 2>&1); then
  # Also a session that could not start everything: the log says what is missing.
  logger -t profd-prolog -- "job $SLURM_JOB_ID: $said" 2>/dev/null || :
fi
exit 0
