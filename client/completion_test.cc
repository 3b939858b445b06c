// `profctl completion` and `profctl __complete`: what the shells are offered.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "client/test_support.h"

namespace profd::client {
namespace {

class CompletionTest : public ProfctlTest {
 protected:
  // The words offered for the last of `words`, without their descriptions.
  std::string Offered(std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    EXPECT_EQ(Run(words), 0);
    EXPECT_EQ(err(), "");
    std::istringstream lines(out());
    std::string offered;
    for (std::string line; std::getline(lines, line);) {
      offered += (offered.empty() ? "" : " ") + line.substr(0, line.find('\t'));
    }
    return offered;
  }
};

TEST_F(CompletionTest, OffersCommandsFlagsAndTheirValues) {
  EXPECT_EQ(Offered({"sta"}), "status start stacks");
  EXPECT_EQ(Offered({"ma"}), "") << "hidden";
  EXPECT_EQ(Offered({"--vers"}), "--version");
  EXPECT_EQ(Offered({"start", "--vers"}), "");
  EXPECT_EQ(Offered({"start", "--sys-i"}), "--sys-io-sampling-freq --sys-interconnection-freq");
  EXPECT_EQ(Offered({"start", "--sock"}), "--socket");
  EXPECT_EQ(Offered({"--socket", "/x", "stream", "--format", ""}), "text json csv");
  EXPECT_EQ(Offered({"export", "x", "--format", ""}), "csv trace perfetto sqlite jsonl samples openmetrics folded");
  EXPECT_EQ(Offered({"export", "--chann"}), "--channels");
  EXPECT_EQ(Offered({"stop", "--job", "j", "--all"}), "--all-mine");
  EXPECT_EQ(Offered({"start", "--task-time", ""}), "on off l0 l1");
  EXPECT_EQ(Offered({"start", "--task-time="}), "--task-time=on --task-time=off --task-time=l0 --task-time=l1");
  EXPECT_EQ(Offered({"start", "--host-sys", ""}), "cpu mem cpu,mem");
  EXPECT_EQ(Offered({"start", "--aic-metrics", "MemoryL"}), "MemoryL0");
  EXPECT_EQ(Offered({"check", "--acl", "TORCH"}), "TORCH_CALL_STACK=");
  EXPECT_EQ(Offered({"check", "--chip", "Ascend310"}), "Ascend310 Ascend310P Ascend310B");
  EXPECT_EQ(Offered({"top", "--sort", "hb"}), "hbm hbm-temp");
  EXPECT_EQ(Offered({"completion", ""}).rfind("bash zsh fish", 0), 0u);
  EXPECT_EQ(Offered({"selftest", "--only", "mspti_n"}), "mspti_new");
  EXPECT_EQ(Offered({"selftest", "--act"}), "--active");
  EXPECT_EQ(Offered({"export", "--no-w"}), "--no-wait");
  EXPECT_EQ(Offered({"tls", "in"}), "init");
  EXPECT_EQ(Offered({"tls", "init", "./tls", "--h"}), "--help --hosts");
  EXPECT_EQ(Offered({"tls", "init", "--sock"}), "");
  EXPECT_EQ(Offered({"tune", "ver"}), "verify");
  EXPECT_EQ(Offered({"tune", "check", "--mode", "sub"}), "subgraph");
  EXPECT_EQ(Offered({"advise", "x", "--format", ""}), "text json sarif");
  EXPECT_EQ(Offered({"advise", "x", "--fail-on", "h"}), "high");
  EXPECT_EQ(Offered({"report", "x", "--language", ""}), "en zh");
  EXPECT_EQ(Offered({"start", "--provider", "a"}), "auto aclprof");
  EXPECT_EQ(Offered({"export", "x", "--clock", ""}), "all start");
  EXPECT_EQ(Offered({"export", "x", "--format", "csv,tr"}), "csv,trace");
  EXPECT_EQ(Offered({"export", "x", "--format=csv,tr"}), "--format=csv,trace");
  EXPECT_EQ(Offered({"export", "x", "--format", "=", "csv,tr"}), "csv,trace");
  EXPECT_EQ(Offered({"export", "x", "--format", "csv,sqlite,"}),
            "csv,sqlite,trace csv,sqlite,perfetto csv,sqlite,jsonl csv,sqlite,samples csv,sqlite,openmetrics csv,sqlite,folded")
      << "those that are typed are not offered again";
  EXPECT_EQ(Offered({"export", "x", "--format=csv,cs"}), "");
  EXPECT_EQ(Offered({"start", "--host-sys-usage", "cpu,"}), "cpu,mem");
  EXPECT_EQ(Offered({"tune", "release", "--model"}), "");
  EXPECT_EQ(Offered({"tune", "check", "--model"}), "--model-memory");
  EXPECT_EQ(Offered({}), "");
  EXPECT_EQ(Run({"__complete", "stat"}), 0);
  EXPECT_EQ(out(), "status\tShow daemon, driver, devices and limits of this node\n");
}

TEST_F(CompletionTest, OffersFilesWhereTheyBelong) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"export", "/et"}, {"verify", ""}, {"analyze", "/tm"}, {"advise", ""}, {"report", "run1", ""}, {"show", "./PROF"}, {"show", "PROF"}, {"--tls-dir", ""}, {"fetch", "--out", ""}, {"tls", "init", ""},
           {"check", "--options-json", ""}, {"start", "--output", ""}, {"run", "python", ""},
           {"run", "--job", "j", "--", ""}}) {
    EXPECT_EQ(Offered(words), "<files>") << words.front();
  }
}

TEST_F(CompletionTest, OffersWhatTheDaemonOfTheLineHas) {
  daemon_.sessions["s-17"].set_session_id("s-17");
  daemon_.sessions["odd"].set_session_id("s-$(odd)");
  daemon_.jobs.add_jobs()->set_job_id("j42");
  daemon_.node.add_devices()->set_id(0);
  daemon_.node.add_devices()->set_id(1);
  daemon_.node.add_collectors()->set_name("hbm");
  EXPECT_EQ(Offered({"show", "s-"}), "s-17") << "nothing that a shell would expand";
  EXPECT_FALSE(daemon_.list_request.active_only());
  EXPECT_EQ(daemon_.timeout_ms, 1000);
  // Ids before flags; sessions that have ended cannot be stopped.
  EXPECT_EQ(Offered({"stop", ""}), "s-17");
  EXPECT_TRUE(daemon_.list_request.active_only());
  EXPECT_EQ(Offered({"--socket", "/x", "fetch", ""}), "s-17");
  EXPECT_EQ(daemon_.socket, "/x");
  EXPECT_EQ(Offered({"rm", "--socket=/y", ""}), "s-17");
  EXPECT_EQ(daemon_.socket, "/y");
  EXPECT_EQ(Offered({"--socket", "=", "/z", "pin", ""}), "s-17") << "as bash splits words";
  EXPECT_EQ(daemon_.socket, "/z");
  daemon_.dumps.add_dumps()->set_name("PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP");
  for (const char* command : {"rm", "pin", "fetch"}) {
    EXPECT_EQ(Offered({command, "PROF"}), "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP") << command;
  }
  EXPECT_EQ(Offered({"start", "--job", "="}), "j42") << "bash completes what follows the sign";
  EXPECT_EQ(Offered({"start", "--job", ""}), "j42");
  daemon_.jobs.add_jobs()->set_job_id("ns:train:7");
  EXPECT_EQ(Offered({"start", "--job", "ns", ":", "tr"}), "train:7");
  EXPECT_EQ(Offered({"start", "--job", "=", "ns", ":"}), "train:7");
  EXPECT_EQ(Offered({"start", "--job", "ns:tr"}), "ns:train:7") << "as the other shells give it";
  EXPECT_EQ(Offered({"--address", "n17", ":", "9465", "stop", ""}), "s-17");
  EXPECT_EQ(daemon_.endpoint.address, "n17:9465");
  EXPECT_EQ(Offered({"start", "--devices", ""}), "0 1");
  EXPECT_EQ(Offered({"stream", "--collectors", ""}), "hbm");
  daemon_.error = Status(StatusCode::kUnavailable, "no daemon");
  EXPECT_EQ(Offered({"show", ""}), "");
  EXPECT_EQ(Offered({"--address", "no port", "show", ""}), "");
}

// Each shell asks a stand-in for profctl, which answers with the words it was given.
TEST_F(CompletionTest, ScriptsAskProfctl) {
  TempDir dir;
  const std::string answer = R"(printf 'stage\tShow\nstart-'; printf '%s-' "$@"; printf '\n')";
  std::ofstream(dir / "profctl") << "#!/bin/sh\nshift\n[ \"$2\" != export ] || { echo '<files>'; exit; }\n"
                                 << answer << "\n";
  std::filesystem::permissions(dir / "profctl", std::filesystem::perms::owner_all);
  const std::map<std::string, std::string> tries = {
      {"bash", ". $F; COMP_WORDS=(profctl a st); COMP_CWORD=2; _profctl; printf '%s\\n' ${COMPREPLY[@]}"},
      {"zsh",
       "compdef() {}; compadd() { shift; print -l -- $@; }; . $F; words=(profctl a st); CURRENT=3; _profctl"},
      {"fish", "source $F; complete -C 'profctl a st' | string replace -r '\\t.*' ''"}};
  for (const auto& [shell, line] : tries) {
    ASSERT_EQ(Run({"completion", shell}), 0);
    std::ofstream(dir / shell) << out();
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) continue;
    const std::string command = "cd / && HOME=" + dir.path() + " F=" + (dir / shell) + " PATH=" + dir.path() +
                                ":$PATH " + shell + " -c \"$LINE\" >" + (dir / "output") + " 2>&1";
    setenv("LINE", line.c_str(), 1);
    EXPECT_EQ(std::system(command.c_str()), 0) << shell;
    EXPECT_EQ(ReadText(dir / "output"), "stage\nstart-a-st-\n") << shell;
  }
}

}  // namespace
}  // namespace profd::client
