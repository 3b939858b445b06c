# Sourced: apt on a state of its own, for packages of another architecture or release. The machine's own packages
# and architectures stay as they are, and no root is needed.
# shellcheck shell=bash

# mirror_lines [SUITE]: apt's own sources of Debian as lines of a sources.list, or those of another suite.
mirror_lines() {
  # shellcheck disable=SC2016  # apt's own placeholders
  apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
    awk -v suite="${1:-}" '$1 == "Debian" && $2 == "main" && (suite == "" || $4 !~ /-/) {
      print "deb " $3 " " (suite == "" ? $4 : suite) " main" }' | sort -u
}

# private_apt STATE ARCHITECTURE ARGUMENTS...: apt-get. STATE/sources.list, if there is one, replaces the machine's.
private_apt() {
  local state=$1 architecture=$2 sources=()
  shift 2
  if [ -f "$state/sources.list" ]; then
    sources=(-o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null)
  fi
  apt-get -q -y -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" \
    -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status" \
    -o Dir::State::extended_states="$state/extended_states" \
    -o Dir::Cache="$state" -o Dir::Cache::archives="$state/archives" "${sources[@]}" \
    -o Debug::NoLocking=1 -o APT::Update::Post-Invoke::= -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Retries=3 "$@" </dev/null
}

# private_download STATE ARCHITECTURE PACKAGE...: these and all they depend on, into STATE/archives.
private_download() {
  local state=$1 architecture=$2 log try tries=5
  shift 2
  mkdir -p "$state"/{lists/partial,archives/partial}
  : >"$state/status"
  log=$state/log
  for ((try = 1; ; ++try)); do
    if private_apt "$state" "$architecture" update >"$log" 2>&1; then break; fi
    if [ "$try" -eq "$tries" ]; then
      tail -20 "$log" >&2
      die "apt-get update for $architecture failed $tries times; is the network up?"
    fi
    sleep $((try * 5))
  done
  private_apt "$state" "$architecture" install --download-only --no-install-recommends "$@" >"$log" 2>&1 || {
    tail -30 "$log" >&2
    die "cannot download the packages for $architecture"
  }
}

# make_root SUITE FOLDER PACKAGES [LINES]: a Debian system with these packages (a,b,c), unpacked; from the machine's
# own mirror or that of LINES. A partial one is never taken for complete. With lib/common.sh.
make_root() {
  local suite=$1 folder=$2 packages=$3 half=$2.half lines
  lines=${4:-$(mirror_lines "")}
  [ -n "$lines" ] || skip "apt knows no mirror of Debian here (is this Debian? has apt-get update run?)"
  rm -rf "$half"
  say "$suite: fetching a base system (once; $(tr , ' ' <<<"$packages" | wc -w) packages and what they need)"
  # shellcheck disable=SC2086  # each line is one argument
  if ! (IFS=$'\n'; exec mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" \
    "$suite" "$half" $lines) >"$folder.log" 2>&1; then
    tail -5 "$folder.log" >&2
    rm -rf "$half"
    skip "mmdebstrap could not make $suite (above: its last words)"
  fi
  rm -rf "$folder"
  mv "$half" "$folder"
}
