# Sourced by the scripts beside it: progress lines, failure, deadlines. Needs bash only.
# shellcheck shell=bash

# shellcheck disable=SC2034  # for the scripts that source this
PROFD_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PROFD_STARTED=$SECONDS

# say TEXT...: a progress line with the time since the script began.
say() {
  printf '[%3d:%02d] %s\n' $(((SECONDS - PROFD_STARTED) / 60)) $(((SECONDS - PROFD_STARTED) % 60)) "$*"
}

# die TEXT...: says what is wrong and ends the script.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# need_value OPTION COUNT: an option that takes a value must have one.
need_value() {
  [ "$2" -ge 2 ] || { printf '%s: %s needs a value; see --help\n' "$(basename "$0")" "$1" >&2; exit 2; }
}

# usage_from_header: prints the comment block at the top of the calling script.
usage_from_header() {
  sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"
}

# wait_until SECONDS COMMAND...: polls COMMAND until it succeeds; false once SECONDS have passed.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

# stop_process PID SECONDS: TERM, then KILL when the time is over; returns the exit code of a child.
stop_process() {
  local pid=$1 seconds=$2
  kill -TERM "$pid" 2>/dev/null || true
  wait_until "$seconds" process_gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null
}

# A zombie that waits for its parent counts as gone.
process_gone() {
  local state
  state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 0
  [ -z "$state" ] || [ "$state" = Z ]
}
