# Sourced by the scripts beside it: progress lines, failure, deadlines. Needs bash only.
# shellcheck shell=bash

# shellcheck disable=SC2034  # for the scripts that source this
PROFD_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PROFD_STARTED=$SECONDS

# say TEXT...: a progress line with the time since the script began.
say() {
  printf '[%3d:%02d] %s\n' $(((SECONDS - PROFD_STARTED) / 60)) $(((SECONDS - PROFD_STARTED) % 60)) "$*"
}

# die TEXT...: reports what is wrong and ends the script.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# skip TEXT...: reports why this cannot be done here and ends the script.
skip() {
  echo "skipped: $*"
  exit 77
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

# The process group of what run_logged runs, for traps.
PROFD_CHILD=

# run_logged NAME LOG COMMAND...: runs COMMAND with its output in LOG and a group of its own, says
# every half minute how far it is. Returns its exit code; what it left running is ended.
run_logged() {
  local name=$1 log=$2 shown=$SECONDS code=0
  shift 2
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  PROFD_CHILD=$!
  set +m
  while kill -0 "$PROFD_CHILD" 2>/dev/null; do
    sleep 0.2
    if [ $((SECONDS - shown)) -ge 30 ]; then
      shown=$SECONDS
      say "$name: $(tail -c 400 "$log" | tail -1 | cut -c1-100)"
    fi
  done
  wait "$PROFD_CHILD" || code=$?
  end_logged
  return "$code"
}

end_logged() {
  if [ -n "$PROFD_CHILD" ]; then kill -TERM -- "-$PROFD_CHILD" 2>/dev/null || true; fi
  PROFD_CHILD=
}

# show_errors LOG: the end of a build's log without its progress lines.
show_errors() {
  grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Generating|Creating)' "$1" | tail -60
}

# json_field NAME: the field of the JSON object on stdin; empty if it has none.
json_field() {
  python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]) or "")' "$1"
}
