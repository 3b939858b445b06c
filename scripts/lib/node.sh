# Sourced: a profd on a simulated node, for scripts/demo and scripts/test-aarch64. Set before use:
#   NODE_BIN       folder of profd and profctl
#   NODE_STATE     folder for the socket, the dumps and the logs
#   NODE_EMULATOR  (array) what runs the binaries, empty on their own machine
#   NODE_CONFINE   (array) what runs the daemon besides, empty for none
#   NODE_GROUP     group of the socket, empty for root only
# shellcheck shell=bash disable=SC2153

NODE_PID=
NODE_EMULATOR=()
NODE_CONFINE=()
NODE_SCENARIO=()
NODE_GROUP=

# node_ctl COMMAND ARGS...: profctl against this node. Nothing may take longer than a minute.
node_ctl() {
  local command=$1
  shift
  timeout 60 "${NODE_EMULATOR[@]}" "$NODE_BIN/profctl" "$command" --socket "$NODE_SOCKET" "$@"
}

node_ready() {
  process_gone "$NODE_PID" && return 0
  node_ctl status >/dev/null 2>&1
}

# node_start: starts the daemon and waits until it answers.
node_start() {
  mkdir -p "$NODE_STATE/dumps"
  NODE_SOCKET=$NODE_STATE/profd.sock
  # The kernel takes 107 characters for the path of a socket.
  if [ ${#NODE_SOCKET} -gt 100 ]; then
    NODE_SHORT=$(mktemp -d /tmp/profd.XXXXXX)
    NODE_SOCKET=$NODE_SHORT/profd.sock
  fi
  NODE_METRICS=127.0.0.1:$(python3 -c \
    'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  # Not the machine's own configuration: the groups need not exist here, and the simulator belongs to
  # which user built it.
  cat >"$NODE_STATE/profd.toml" <<CONFIG
[daemon]
socket_group = "$NODE_GROUP"
admin_group = ""
[driver]
require_safe_library = false
CONFIG
  # A session of its own: Ctrl-C ends the script, and the script ends the daemon.
  setsid "${NODE_CONFINE[@]}" "${NODE_EMULATOR[@]}" "$NODE_BIN/profd" --config "$NODE_STATE/profd.toml" \
    --socket "$NODE_SOCKET" --dump-root "$NODE_STATE/dumps" --metrics-listen "$NODE_METRICS" \
    --simulate "${NODE_SCENARIO[@]}" >"$NODE_STATE/profd.log" 2>&1 </dev/null &
  NODE_PID=$!
  echo "$NODE_PID" >"$NODE_STATE/profd.pid"
  if ! wait_until 60 node_ready || process_gone "$NODE_PID"; then
    tail -20 "$NODE_STATE/profd.log" >&2
    die "profd did not come up (above: the end of $NODE_STATE/profd.log)"
  fi
}

# node_stop: ends the daemon; fails if it did not end cleanly.
node_stop() {
  local code=0
  if [ -z "$NODE_PID" ]; then return 0; fi
  stop_process "$NODE_PID" 30 || code=$?
  NODE_PID=
  rm -f "$NODE_STATE/profd.pid"
  if [ -n "${NODE_SHORT:-}" ]; then rm -rf "$NODE_SHORT"; fi
  return "$code"
}
