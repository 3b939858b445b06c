#include "client/selftest/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "client/commands/selftest.h"
#include "client/selftest/probe.h"
#include "client/test_support.h"

namespace profd::client::selftest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A node with two 910B, as it says itself.
Facts Node() {
  Facts facts;
  facts.node.set_hostname("node-of-alice");
  facts.node.mutable_driver()->set_hal_path("/usr/local/Ascend/driver/lib64/driver/libascend_hal.so");
  facts.node.mutable_driver()->set_hal_api_version(0x072419);
  for (uint32_t id : {0U, 1U}) {
    v1::Device& device = *facts.node.add_devices();
    device.set_id(id);
    device.set_physical_id(id);
    device.set_chip_id(5);
    device.set_chip("Ascend910B");
    for (uint32_t channel : {1U, 44U, 50U}) device.add_channels()->set_id(channel);
  }
  facts.probe = [](const std::vector<std::string>&) { return ProbeAnswer{PermissionDenied("as root nothing is loaded")}; };
  return facts;
}

Facts WithProbe(const std::string& text) {
  Facts facts = Node();
  facts.active = true;
  facts.probe = [text](const std::vector<std::string>&) { return ParseProbe(text); };
  return facts;
}

v1::Device* First(Facts* facts) { return facts->node.mutable_devices(0); }
v1::Channel* Hbm(Facts* facts) { return First(facts)->mutable_channels(0); }

TEST(SelftestQuestions, EachQuestionIsComplete) {
  std::set<std::string_view> ids;
  for (const Question& question : Questions()) {
    EXPECT_TRUE(ids.insert(question.id).second) << question.id;
    EXPECT_THAT(std::string(question.text), ::testing::EndsWith("?"));
    EXPECT_THAT(std::string(question.place), ::testing::AnyOf(HasSubstr("in-application"), HasSubstr("driver-abi")));
    EXPECT_NE(question.ask, nullptr) << question.id;
  }
}

// Section 10 of the specification of data from inside the application has twelve points.
TEST(SelftestQuestions, AllPointsThatOnlyHardwareCanTell) {
  for (int point = 1; point <= 12; ++point) {
    const std::string place = "10." + std::to_string(point);
    const bool asked = std::any_of(Questions().begin(), Questions().end(), [&place](const Question& question) {
      const std::string text = std::string(question.place) + ";";
      return text.find(place + ";") != std::string::npos || text.find(place + ",") != std::string::npos;
    });
    EXPECT_TRUE(asked) << place;
  }
}

TEST(SelftestQuestions, ReportsMissingPrerequisites) {
  Facts facts = Node();
  for (const Question& question : Questions()) {
    if (question.needs == Needs::kNothing) continue;
    const Answer answer = Ask(question, facts);
    EXPECT_EQ(answer.verdict, Verdict::kOpen) << question.id;
    EXPECT_THAT(answer.why, Not(IsEmpty())) << question.id;
    if (question.needs == Needs::kActive || question.needs == Needs::kJob) {
      EXPECT_THAT(answer.why, HasSubstr(question.needs == Needs::kJob ? "--active --job" : "--active")) << question.id;
    }
  }
  facts.remote = facts.active = true;
  for (const Question& question : Questions()) {
    if (question.needs == Needs::kLibrary || question.needs == Needs::kActive || question.id == "device_nodes") {
      EXPECT_THAT(Ask(question, facts).why, HasSubstr("run it on the node")) << question.id;
    }
  }
  facts.remote = facts.active = false;
  facts.reached = Unavailable("no daemon");
  facts.dev = "/none";
  for (const Question& question : Questions()) {
    if (question.needs == Needs::kNothing) {
      EXPECT_EQ(Ask(question, facts).verdict, Verdict::kOpen) << question.id;
    }
  }
}

TEST(SelftestNode, Hal) {
  Facts facts = Node();
  EXPECT_EQ(AskHalIsReal(facts).verdict, Verdict::kYes);
  EXPECT_EQ(AskHalComplete(facts).verdict, Verdict::kYes);
  EXPECT_EQ(AskHalGates(facts).verdict, Verdict::kYes);
  facts.node.mutable_driver()->add_missing_symbols("halProfDataFlush");
  EXPECT_EQ(AskHalComplete(facts).verdict, Verdict::kNo);
  EXPECT_EQ(AskHalComplete(facts).evidence["missing"][0], "halProfDataFlush");
  facts.node.mutable_driver()->set_hal_api_version(0x071904);
  EXPECT_EQ(AskHalGates(facts).verdict, Verdict::kNo) << "gates in driver-abi 1.5";
  facts.node.mutable_driver()->set_hal_api_version(0x071905);
  EXPECT_EQ(AskHalGates(facts).verdict, Verdict::kYes);
  facts.node.mutable_driver()->clear_hal_api_version();
  EXPECT_EQ(AskHalGates(facts).verdict, Verdict::kOpen);
  // Stubs of the toolkit load: no devices is the real test (driver-abi 1.1).
  facts.node.clear_devices();
  EXPECT_EQ(AskHalIsReal(facts).verdict, Verdict::kNo);
  facts.node.mutable_driver()->clear_hal_path();
  EXPECT_EQ(AskHalIsReal(facts).verdict, Verdict::kOpen);
  facts.node.set_simulated(true);
  EXPECT_EQ(AskHalIsReal(facts).verdict, Verdict::kNo);
}

TEST(SelftestNode, Chips) {
  Facts facts = Node();
  EXPECT_EQ(AskChipsKnown(facts).verdict, Verdict::kYes);
  EXPECT_EQ(AskLogicalIds(facts).verdict, Verdict::kYes);
  EXPECT_EQ(AskTaskChannels(facts).verdict, Verdict::kYes);
  First(&facts)->set_chip("chip 77");
  First(&facts)->set_physical_id(6);
  First(&facts)->mutable_channels(2)->set_id(51);
  EXPECT_EQ(AskChipsKnown(facts).verdict, Verdict::kNo);
  EXPECT_EQ(AskLogicalIds(facts).verdict, Verdict::kNo);
  EXPECT_EQ(AskTaskChannels(facts).verdict, Verdict::kNo);
  EXPECT_EQ(AskTaskChannels(facts).evidence["devices"][0]["channels"], Json({1, 44, 51}));
}

TEST(SelftestNode, ChannelsAndClocks) {
  Facts facts = Node();
  EXPECT_EQ(AskRecordLayouts(facts).verdict, Verdict::kOpen);
  EXPECT_EQ(AskChannelsFree(facts).verdict, Verdict::kOpen);
  EXPECT_EQ(AskClockPairs(facts).verdict, Verdict::kOpen);
  Hbm(&facts)->set_state(v1::Channel::STATE_RUNNING);
  Hbm(&facts)->set_bytes(2400);
  First(&facts)->mutable_clock()->set_host_ns(7);
  First(&facts)->mutable_clock()->set_uncertainty_ns(900'000);
  EXPECT_EQ(AskRecordLayouts(facts).verdict, Verdict::kYes);
  EXPECT_EQ(AskChannelsFree(facts).verdict, Verdict::kYes);
  EXPECT_EQ(AskClockPairs(facts).verdict, Verdict::kYes);
  Hbm(&facts)->set_garbage_bytes(7);
  Hbm(&facts)->set_state(v1::Channel::STATE_BUSY);
  First(&facts)->mutable_clock()->set_uncertainty_ns(1'100'000);
  EXPECT_EQ(AskRecordLayouts(facts).verdict, Verdict::kNo);
  EXPECT_EQ(AskChannelsFree(facts).verdict, Verdict::kNo);
  EXPECT_EQ(AskClockPairs(facts).verdict, Verdict::kNo);
  // While the session of --active ran counts more than what is now.
  Facts active = Node();
  active.channels = Recorded{Status::Ok()};
  active.channels->node = facts.node;
  EXPECT_EQ(AskRecordLayouts(active).verdict, Verdict::kNo);
}

TEST(SelftestNode, CallsAndDeviceNodes) {
  Facts facts = Node();
  EXPECT_EQ(AskCallsReturn(facts).verdict, Verdict::kYes);
  First(&facts)->mutable_health()->add_flags(v1::Health::FLAG_STUCK);
  EXPECT_EQ(AskCallsReturn(facts).verdict, Verdict::kNo);
  TempDir dev;
  facts.dev = dev.path();
  EXPECT_EQ(AskDeviceNodes(facts).verdict, Verdict::kOpen);
  std::ofstream(dev / "davinci0") << "";
  EXPECT_EQ(AskDeviceNodes(facts).verdict, Verdict::kYes);
  EXPECT_EQ(AskDeviceNodes(facts).evidence["nodes"][0]["node"], "davinci0");
}

TEST(SelftestLibrary, Symbols) {
  const Facts old = WithProbe("path /opt/lib64/libmspti.so\nhas msptiSubscribe\nlacks msptiActivityIsEnabled\n");
  EXPECT_EQ(AskMsptiNew(old).verdict, Verdict::kNo) << "since 2026-05";
  EXPECT_THAT(AskMsptiNew(old).why, HasSubstr("msptiActivityIsEnabled"));
  const Facts there = WithProbe("path /opt/lib64/libmspti.so\nhas msptiSubscribe\n");
  EXPECT_EQ(AskMsptiThere(there).verdict, Verdict::kYes);
  EXPECT_EQ(AskObserver(there).verdict, Verdict::kYes);
  EXPECT_EQ(AskAclprofThere(WithProbe("error libmsprofiler.so: no such file\n")).verdict, Verdict::kNo);
  EXPECT_EQ(AskMsptiThere(Node()).verdict, Verdict::kOpen) << "as root";
}

// docs/install.md: what could not be found out is open. Whether a library is there was found out.
TEST(SelftestLibrary, NothingIsKnownOfALibraryThatDoesNotOpen) {
  const Facts facts = WithProbe("error no such file\n");
  for (auto ask : {AskWholeChips, AskMsptiNew, AskObserver, AskObserverTaken, AskOutsideStart, AskOutsideStartSet}) {
    const Answer answer = ask(facts);
    EXPECT_EQ(answer.verdict, Verdict::kOpen) << answer.why;
    EXPECT_THAT(answer.why, HasSubstr("does not open here: run it as the user who trains"));
    EXPECT_EQ(answer.evidence["error"], "no such file");
  }
  for (auto ask : {AskHalForUsers, AskMsptiThere, AskAclprofThere}) EXPECT_EQ(ask(facts).verdict, Verdict::kNo);
}

TEST(SelftestLibrary, DevicesOfAUsersProcess) {
  const std::string two = "path /x\napi 0x072419\ndevices 2\ndevice 0 version=0x500 code=0 physical=0 physical_code=0 split=0\n"
                          "device 1 version=0x500 code=0 physical=1 physical_code=0 split=0\n";
  EXPECT_EQ(AskHalForUsers(WithProbe(two)).verdict, Verdict::kYes);
  EXPECT_EQ(AskHalForUsers(WithProbe(two)).evidence["devices"][1]["chip_id"], 5);
  EXPECT_EQ(AskWholeChips(WithProbe(two)).verdict, Verdict::kYes);
  const std::string one = "path /x\ndevices 1\ndevice 0 version=0x500 code=0 physical=3 physical_code=0 split=1\n";
  EXPECT_EQ(AskHalForUsers(WithProbe(one)).verdict, Verdict::kNo);
  EXPECT_EQ(AskWholeChips(WithProbe(one)).verdict, Verdict::kNo);
}

TEST(SelftestLibrary, StartsFromOutside) {
  // 115: the TS is not bound to the process (driver-abi 1.4).
  const Answer refused = AskOutsideStart(WithProbe("code 115\ntext 115\n"));
  EXPECT_EQ(refused.verdict, Verdict::kNo);
  EXPECT_EQ(refused.evidence["starts"].size(), 2U) << "45 is not listed";
  // The channel is another's; a virtual function has none (driver-abi 1.4).
  EXPECT_EQ(AskOutsideStart(WithProbe("code -10\ntext -10\n")).verdict, Verdict::kOpen);
  EXPECT_EQ(AskOutsideStart(WithProbe("code -11\ntext -11\n")).verdict, Verdict::kOpen);
  Facts mixed = Node();
  mixed.probe = [](const std::vector<std::string>& arguments) {
    return ParseProbe(arguments[2] == "44" ? "code -10\ntext busy\n" : "code 115\ntext 115\n");
  };
  EXPECT_EQ(AskOutsideStart(mixed).verdict, Verdict::kNo);
  EXPECT_EQ(AskOutsideStartSet(WithProbe("aclInit 0\naclrtSetDevice 0\ncode 0\ntext PROF_OK (0)\nstop 0\n")).verdict, Verdict::kYes);
  EXPECT_EQ(AskObserverTaken(WithProbe("path /x\ncode 0\n")).verdict, Verdict::kYes);
  EXPECT_EQ(AskObserverTaken(WithProbe("path /x\ncode -1\n")).verdict, Verdict::kNo);
  EXPECT_EQ(AskObserverTaken(WithProbe("path /x\nlacks MsprofRegisterCallback\n")).verdict, Verdict::kNo);
}

// A job of two processes on one device, each with kernels.
Facts Job() {
  Facts facts = Node();
  facts.active = true;
  facts.job = "j42";
  Recorded recorded;
  v1::Job& job = facts.jobs.emplace_back();
  for (int pid : {100, 101}) {
    v1::JobProcess& process = *job.add_processes();
    process.set_pid(pid);
    process.set_attached(true);
    process.add_devices(0);
    v1::SessionProcess& in_session = *recorded.running.mutable_status()->add_processes();
    in_session.set_pid(pid);
    in_session.mutable_collector()->set_provider(v1::SessionSpec::PROVIDER_MSPTI);
    in_session.mutable_collector()->set_state(v1::ProcessCollector::STATE_ON);
    v1::ProcessActivity& activity = *recorded.activity.add_processes();
    activity.set_pid(pid);
    v1::ActivitySpan& span = *activity.add_spans();
    span.set_begin_ns(1);
    span.set_end_ns(1 + 2'000'000'000);
    span.set_kernels(1000);
    v1::HotKernel& kernel = *activity.add_kernels();
    kernel.set_name("MatMulV2");
    kernel.set_count(500);
  }
  recorded.node = facts.node;
  recorded.node.mutable_devices(0)->mutable_channels(0)->set_state(v1::Channel::STATE_RUNNING);
  recorded.ended = recorded.running;
  facts.mspti = facts.aclprof = recorded;
  return facts;
}

TEST(SelftestJob, AllIsWell) {
  const Facts facts = Job();
  for (auto ask : {AskMsptiLate, AskMsptiTwo, AskMsptiKeepsUp, AskMsptiRecords, AskMsptiBeside, AskAclprofThread}) {
    EXPECT_EQ(ask(facts).verdict, Verdict::kYes) << ask(facts).why;
  }
  EXPECT_EQ(AskMsptiLate(facts).evidence["kernels_per_s"], 1000.0);
  EXPECT_EQ(AskClockSteps(facts).verdict, Verdict::kOpen);
  EXPECT_THAT(AskClockSteps(facts).why, HasSubstr("profctl export DUMP --format sqlite")) << "samples hold no kernels";
  EXPECT_EQ(AskGraphMode(facts).verdict, Verdict::kOpen);
}

TEST(SelftestJob, WhatIsNot) {
  Facts facts = Job();
  auto& activity = facts.mspti->activity;
  activity.mutable_processes(1)->mutable_spans(0)->set_kernels(0);
  EXPECT_EQ(AskMsptiTwo(facts).verdict, Verdict::kNo) << "the second has none";
  activity.mutable_processes(0)->set_lost_records(3);
  activity.mutable_processes(0)->set_lost_bytes(64);
  EXPECT_EQ(AskMsptiKeepsUp(facts).verdict, Verdict::kNo);
  EXPECT_EQ(AskMsptiRecords(facts).verdict, Verdict::kYes) << "they found no buffer";
  activity.mutable_processes(0)->set_lost_records(0);
  EXPECT_EQ(AskMsptiKeepsUp(facts).verdict, Verdict::kNo) << "the same bytes";
  activity.mutable_processes(0)->set_unreadable_bytes(64);
  EXPECT_EQ(AskMsptiKeepsUp(facts).verdict, Verdict::kYes) << "they had a buffer";
  EXPECT_EQ(AskMsptiRecords(facts).verdict, Verdict::kNo);
  for (auto& process : *activity.mutable_processes()) process.mutable_kernels(0)->clear_name();
  EXPECT_THAT(AskMsptiLate(facts).why, HasSubstr("without names"));
  facts.mspti->node.mutable_devices(0)->mutable_channels(0)->set_state(v1::Channel::STATE_BUSY);
  EXPECT_EQ(AskMsptiBeside(facts).verdict, Verdict::kOpen) << "none ran";
  facts.mspti->node.mutable_devices(1)->mutable_channels(0)->set_state(v1::Channel::STATE_RUNNING);
  EXPECT_EQ(AskMsptiBeside(facts).verdict, Verdict::kNo);
  activity.clear_processes();
  facts.mspti->running.mutable_status()->mutable_processes(0)->mutable_collector()->set_state(v1::ProcessCollector::STATE_UNSUPPORTED);
  EXPECT_EQ(AskMsptiLate(facts).verdict, Verdict::kNo);
  EXPECT_THAT(AskMsptiLate(facts).why, HasSubstr("unsupported"));
  EXPECT_EQ(AskMsptiKeepsUp(facts).verdict, Verdict::kOpen);
  auto& processes = *facts.aclprof->ended.mutable_status()->mutable_processes();
  processes[0].mutable_collector()->set_state(v1::ProcessCollector::STATE_OFF);
  EXPECT_EQ(AskAclprofThread(facts).verdict, Verdict::kYes);
  EXPECT_THAT(AskAclprofThread(facts).why, HasSubstr("in 1 process;"));
  processes[1].mutable_collector()->set_state(v1::ProcessCollector::STATE_OFF);
  EXPECT_EQ(AskAclprofThread(facts).verdict, Verdict::kOpen) << "they refuse";
  processes[0].mutable_collector()->set_state(v1::ProcessCollector::STATE_FAILED);
  EXPECT_EQ(AskAclprofThread(facts).verdict, Verdict::kNo);
  facts.mspti->status = FailedPrecondition("no job j42");
  EXPECT_THAT(AskMsptiLate(facts).why, HasSubstr("no job j42"));
  facts.jobs.clear();
  facts = Job();
  facts.jobs.clear();
  EXPECT_EQ(AskMsptiTwo(facts).verdict, Verdict::kOpen) << "no two on one device";
}

TEST(SelftestReport, HasNoNames) {
  EXPECT_EQ(Redacted("/home/" "alice/Ascend/lib64/libmspti.so of node-of-alice, j42", "node-of-alice", "j42"), "/home/.../Ascend/lib64/libmspti.so of HOST, JOB");
  EXPECT_EQ(Redacted("in /home/" "bob: no", "", "n"), "in /home/...: no");
  Facts facts = Job();
  facts.node.mutable_driver()->set_hal_path("/home/" "alice/libascend_hal.so");
  std::vector<AnsweredQuestion> asked;
  for (const Question& question : Questions()) asked.push_back({&question, Ask(question, facts)});
  const std::string text = JsonText(ReportJson(facts, asked), true);
  for (const char* name : {"alice", "j42", "node-of"}) EXPECT_THAT(text, Not(HasSubstr(name)));
  EXPECT_THAT(text, HasSubstr("/home/.../libascend_hal.so"));
}

TEST(SelftestProbe, OutputIsBounded) {
  EXPECT_THAT(ParseProbe("a b c\nx\n").lines, ElementsAre(std::pair("a", "b c"), std::pair("x", "")));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "k v\n";
  EXPECT_EQ(ParseProbe(many).lines.size(), 1000U);
  EXPECT_THAT(RunProbe("", {"hal"}).status.message(), HasSubstr("not installed"));
}

// A library that crashes or hangs takes its own process along only.
TEST(SelftestProbe, ItsProcessMayCrashAndHang) {
  TempDir folder;
  const auto script = [&folder](const std::string& text) {
    const std::string path = folder / "probe";
    std::ofstream(path, std::ios::trunc) << "#!/bin/sh\n" << text;
    chmod(path.c_str(), 0700);
    return path;
  };
  EXPECT_EQ(RunProbe(script("echo path \"$1\"\n"), {"hal"}).First("path"), "hal");
  EXPECT_EQ(RunProbe(script("kill -SEGV $$\n"), {"hal"}).status.code(), StatusCode::kUnavailable);
  const ProbeAnswer late = RunProbe(script("exec sleep 100\n"), {"hal"}, 100);
  EXPECT_EQ(late.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.status.message(), HasSubstr("its process was ended"));
}

class SelftestCommandTest : public ProfctlTest {
 protected:
  void SetUp() override { daemon_.node = Node().node; }
};

TEST_F(SelftestCommandTest, PrintsAnswersAndWritesAReport) {
  TempDir folder;
  EXPECT_EQ(Run({"selftest", "-o", folder / "report.json"}), kExitOk) << err();
  EXPECT_THAT(out(), HasSubstr("chips_known"));
  EXPECT_THAT(out(), HasSubstr("yes"));
  EXPECT_THAT(err(), IsEmpty()) << "it starts nothing";
  const Json report = Json::parse(ReadText(folder / "report.json"));
  EXPECT_EQ(report["answers"].size(), Questions().size());
  EXPECT_EQ(Run({"selftest", "-o", folder / "report.json"}), kExitUsage) << "nothing is replaced";
  // Before a question is asked, and by its name.
  EXPECT_EQ(Run({"selftest", "-o", folder / "none/report.json"}), kExitNotFound);
  EXPECT_EQ(err(), "profctl: not found: " + (folder / "none/report.json") + ": No such file or directory\n");
  EXPECT_THAT(out(), IsEmpty());
  EXPECT_EQ(Run({"selftest", "--only", "chips_known,hal_gates", "--json"}), kExitOk);
  EXPECT_EQ(Json::parse(out())["answers"].size(), 2U);
}

TEST_F(SelftestCommandTest, StartsOnlyWhatTheQuestionsNeed) {
  int starts = 0;
  daemon_.on_start = [&starts](const v1::SessionSpec&) -> Result<v1::Session> {
    ++starts;
    return FailedPrecondition("not here");
  };
  EXPECT_EQ(Run({"selftest", "--active", "--only", "outside_start"}), kExitOk);
  EXPECT_EQ(starts, 0);
  EXPECT_EQ(err().find("channels 44, 45 and 50") == std::string::npos, ::geteuid() == 0) << "not as root: " << err();
  daemon_.jobs.add_jobs()->set_job_id("j42");
  EXPECT_EQ(Run({"selftest", "--active", "--job", "j42", "--only", "clock_pairs"}), kExitOk);
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(Run({"selftest", "--active", "--job", "j42", "--only", "mspti_late", "--json"}), kExitOk);
  EXPECT_EQ(starts, 3) << "by MSPTI and by aclprof";
  EXPECT_THAT(out(), HasSubstr("the session did not run: not here"));
}

TEST_F(SelftestCommandTest, AJobThatIsNotThereIsNotFound) {
  daemon_.jobs.add_jobs()->set_job_id("j42");
  daemon_.on_start = [](const v1::SessionSpec&) -> Result<v1::Session> {
    ADD_FAILURE() << "nothing starts";
    return FailedPrecondition("not here");
  };
  EXPECT_EQ(Run({"selftest", "--active", "--job", "j43"}), kExitNotFound);
  EXPECT_EQ(err(), "profctl: not found: job j43: no process of it runs on this node; see `profctl jobs`\n");
  EXPECT_THAT(out(), IsEmpty());
}

TEST_F(SelftestCommandTest, ItsArguments) {
  EXPECT_EQ(Run({"selftest", "--list"}), kExitOk);
  EXPECT_EQ(OutLines(), static_cast<int64_t>(Questions().size()) + 1);
  EXPECT_EQ(Run({"selftest", "--only", "chip_known"}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("chips_known"));
  EXPECT_EQ(Run({"selftest", "--job", "j42"}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("--active"));
  daemon_.error = Unavailable("no daemon");
  EXPECT_EQ(Run({"selftest"}), kExitUnreachable);
  EXPECT_THAT(out(), HasSubstr("profd does not answer"));
}

}  // namespace
}  // namespace profd::client::selftest
