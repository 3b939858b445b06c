// `profctl completion`: what the shells are offered.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "client/test_support.h"

namespace profd::client {
namespace {

class CompletionTest : public ProfctlTest {};

TEST_F(CompletionTest, CompletionScriptsParseAndComplete) {
  TempDir dir;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(Run({"completion", shell}), 0);
    std::string file = dir / shell;
    std::ofstream(file) << out();
    if (std::system((std::string("command -v ") + shell + " >/dev/null").c_str()) != 0) continue;
    EXPECT_EQ(std::system((std::string(shell) + " -n " + file).c_str()), 0) << out();
  }
  // Asks bash itself what it would offer, with a stand-in for profctl.
  std::ofstream(dir / "try.sh") << R"(
profctl() {
  case "$*" in
  "--socket /x "*|"--socket=/y "*) printf '      "session_id": "s-there",\n' ;;
  "list --active "*) printf '      "session_id": "s-runs",\n' ;;
  "list "*) printf '{\n  "sessions": [\n    {\n      "session_id": "s-17",\n      "x": 1\n' ;;
  "jobs "*) printf '    {\n      "job_id": "j42",\n      "uid": 1,\n' ;;
  "devices "*) printf '      "id": 0,\n          "id": 8,\n      "id": 1,\n' ;;
  esac
}
. "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_profctl; echo ${COMPREPLY[*]}
)";
  auto complete = [&](const std::string& words) {
    std::string output = dir / "output";
    std::string command =
        "bash " + (dir / "try.sh") + " " + (dir / "bash") + " " + words + " >" + output + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return ReadFile(output);
  };
  EXPECT_EQ(complete("profctl sta"), "status start\n");
  EXPECT_EQ(complete("profctl start --sys-i"),
            "--sys-io-sampling-freq --sys-interconnection-freq\n");
  EXPECT_EQ(complete("profctl show s-"), "s-17\n");
  // Ids before flags, of the daemon the line names; sessions that have ended cannot be stopped.
  EXPECT_EQ(complete("profctl show ''"), "s-17\n");
  EXPECT_EQ(complete("profctl stop ''"), "s-runs\n");
  EXPECT_EQ(complete("profctl --socket /x fetch ''"), "s-there\n");
  EXPECT_EQ(complete("profctl rm --socket=/y ''"), "s-there\n");
  EXPECT_EQ(complete("profctl start --job ''"), "j42\n");
  EXPECT_EQ(complete("profctl start --devices ''"), "0 1\n");
  EXPECT_EQ(complete("profctl --socket /x stream --format ''"), "text json csv\n");
  EXPECT_EQ(complete("profctl export x --format ''"),
            "csv trace perfetto sqlite jsonl samples openmetrics\n");
  EXPECT_EQ(complete("profctl export --chann"), "--channels\n");
  EXPECT_EQ(complete("profctl export /et"), "/etc\n");
  EXPECT_EQ(complete("profctl stop --job j --all"), "--all-mine\n");
  EXPECT_EQ(complete("profctl start --task-time ''"), "on off l0 l1\n");
  EXPECT_EQ(complete("profctl start --aic-metrics MemoryL"), "MemoryL0\n");
  EXPECT_EQ(complete("profctl check --acl TORCH"), "TORCH_CALL_STACK=\n");
}

}  // namespace
}  // namespace profd::client
