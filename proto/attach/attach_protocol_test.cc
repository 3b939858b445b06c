#include "proto/attach/attach_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace profd::attach {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// What is read from `text` must say all of it again.
void ExpectSame(const std::string& encoded, const std::string& text) {
  EXPECT_EQ(json::parse(encoded), json::parse(text)) << encoded;
}

template <class Message>
void ExpectRoundTripToDaemon(const Message& message, const std::string& text) {
  ExpectSame(Encode(ToDaemon(message)), text);
  Result<ToDaemon> read = ParseToDaemon(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_TRUE(std::holds_alternative<Message>(*read));
  ExpectSame(Encode(*read), text);
}

template <class Message>
void ExpectRoundTripToProcess(const Message& message, const std::string& text) {
  ExpectSame(Encode(ToProcess(message)), text);
  Result<ToProcess> read = ParseToProcess(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_TRUE(std::holds_alternative<Message>(*read));
  ExpectSame(Encode(*read), text);
}

TEST(AttachProtocol, Hello) {
  Hello hello;
  hello.made_by = "libprofd 0.1.0";
  hello.job_id = "job-7";
  hello.rank = 0;
  hello.local_rank = 3;
  hello.world_size = 16;
  hello.devices = {4, 5};
  hello.framework = "mindspore";
  hello.options_json = R"({"aicpu":"on"})";
  hello.metadata = {{"model", "llama"}};
  hello.has_ring = true;
  ExpectRoundTripToDaemon(hello, R"({"type":"hello","version":1,"library":"libprofd 0.1.0",
      "job_id":"job-7","rank":0,"local_rank":3,"world_size":16,"devices":[4,5],
      "framework":"mindspore","options_json":"{\"aicpu\":\"on\"}","metadata":{"model":"llama"},
      "has_ring":true})");
}

TEST(AttachProtocol, HelloHasOnlyKnownValues) {
  ExpectRoundTripToDaemon(Hello{}, R"({"type":"hello","version":1,"has_ring":false})");
  const auto read = ParseToDaemon(R"({"type":"hello","version":1})");
  ASSERT_TRUE(read.ok());
  const auto& hello = std::get<Hello>(*read);
  EXPECT_EQ(hello.rank, std::nullopt);
  EXPECT_EQ(hello.world_size, std::nullopt);
  EXPECT_TRUE(hello.devices.empty());
  EXPECT_FALSE(hello.has_ring);
}

TEST(AttachProtocol, Stacks) {
  StacksCall call;
  call.seq = 7;
  ExpectRoundTripToProcess(call, R"({"type":"stacks","seq":7})");
  StacksReport report;
  report.seq = 7;
  report.has_python = true;
  report.left_out = true;
  report.threads = {{4711, "MainThread", true, {{"train.py", "main", 12}, {"run.py", "<module>", 0}}}, {0, "", false, {}}};
  ExpectRoundTripToDaemon(report, R"({"type":"stacks","seq":7,"has_python":true,"left_out":true,"threads":[
      {"thread":4711,"name":"MainThread","trains":true,"frames":[["train.py","main",12],["run.py","<module>",0]]},{"thread":0,"frames":[]}]})");
  Hello hello;
  hello.answers_stacks = true;
  ExpectRoundTripToDaemon(hello, R"({"type":"hello","version":1,"has_ring":false,"answers_stacks":true})");
}

TEST(AttachProtocol, StacksThatAreWrong) {
  for (const char* threads : {R"({})", R"([7])", R"([{"frames":[]}])", R"([{"thread":-1}])", R"([{"thread":1,"frames":[["f","g"]]}])",
                              R"([{"thread":1,"frames":[["f","g",-1]]}])", R"([{"thread":1,"frames":[["f",2,3]]}])", "", "[", "nonsense"}) {
    EXPECT_FALSE(ParseStackThreads(threads).ok()) << threads;
  }
  const json many_frames = json::array({{{"thread", 1}, {"frames", std::vector<json>(kMaxStackFrames + 1, json::array({"f", "g", 1}))}}});
  EXPECT_THAT(ParseStackThreads(many_frames.dump()).status().message(), HasSubstr("frames"));
  const json many = std::vector<json>(kMaxStackThreads + 1, {{"thread", 1}});
  EXPECT_THAT(ParseStackThreads(many.dump()).status().message(), HasSubstr("threads"));
  const json name = json::array({{{"thread", 1}, {"frames", json::array({json::array({std::string(kMaxStackNameBytes + 1, 'f'), "g", 1})})}}});
  EXPECT_FALSE(ParseStackThreads(name.dump()).ok());
  EXPECT_EQ(ParseStackThreads("[]")->size(), 0u);
}

TEST(AttachProtocol, Start) {
  StartCall start;
  start.seq = std::numeric_limits<uint64_t>::max();
  start.options_json = "{}";
  start.acl_switches = {{"ACL_PROF_AICPU", "on"}};
  start.label = "warm";
  start.duration_ms = 5000;
  start.start_step = 11;
  start.steps = 2;
  start.no_dump = true;
  start.best_effort = true;
  start.collectors = {"hccs=50", "host_cpu"};
  ExpectRoundTripToDaemon(start, R"({"type":"start","seq":18446744073709551615,"options_json":"{}",
      "acl_switches":{"ACL_PROF_AICPU":"on"},"label":"warm","duration_ms":5000,"start_step":11,
      "steps":2,"no_dump":true,"best_effort":true,"collectors":["hccs=50","host_cpu"]})");
  StartCall least;
  least.seq = 1;
  ExpectRoundTripToDaemon(least, R"({"type":"start","seq":1})");
}

TEST(AttachProtocol, StopStatusMetadataStepBye) {
  ExpectRoundTripToDaemon(StopCall{2, "s-1"}, R"({"type":"stop","seq":2,"session_id":"s-1"})");
  ExpectRoundTripToDaemon(StopCall{2, ""}, R"({"type":"stop","seq":2})");
  ExpectRoundTripToDaemon(StatusCall{3, "s-1"}, R"({"type":"status","seq":3,"session_id":"s-1"})");
  ExpectRoundTripToDaemon(MetadataCall{"model", ""},
                          R"({"type":"metadata","key":"model","value":""})");
  ExpectRoundTripToDaemon(StepReport{"s-1", -5, false},
                          R"({"type":"step","session_id":"s-1","step":-5,"begin":false})");
  ExpectRoundTripToDaemon(Bye{}, R"({"type":"bye"})");
}

TEST(AttachProtocol, WelcomeAndRefused) {
  Welcome welcome;
  welcome.daemon = "profd 0.1.0";
  welcome.attach_id = 9;
  welcome.job_id = "job-7";
  welcome.rank = 2;
  welcome.devices = {0, 1};
  ExpectRoundTripToProcess(welcome, R"({"type":"welcome","version":1,"daemon":"profd 0.1.0",
      "attach_id":9,"job_id":"job-7","rank":2,"devices":[0,1]})");
  ExpectRoundTripToProcess(Refused{7, "not you"},
                           R"({"type":"refused","code":7,"message":"not you"})");
}

TEST(AttachProtocol, ReplyAndNotice) {
  Reply reply;
  reply.seq = 4;
  reply.code = 3;
  reply.message = "bad\nworse";
  SessionSummary& session = reply.session.emplace();
  session.session_id = "s-1";
  session.state = "done";
  session.reason = "stopped";
  session.dump_path = "/d";
  session.records = 1;
  session.dropped_records = 2;
  session.dump_bytes = 3;
  session.marks = 4;
  session.dropped_marks = 5;
  session.warnings = {"w"};
  session.effective_options = {{"aicpu", "off"}};
  session.outcomes = {{"hccs", "running", "thinned", 1, 12.5, 7},
                      {"host_cpu", "refused", "", -1, 0, 0}};
  ExpectRoundTripToProcess(reply, R"({"type":"reply","seq":4,"code":3,"message":"bad\nworse",
      "session":{"session_id":"s-1","state":"done","reason":"stopped","dump_path":"/d","records":1,
      "dropped_records":2,"dump_bytes":3,"marks":4,"dropped_marks":5,"warnings":["w"],
      "effective_options":{"aicpu":"off"},"outcomes":[{"collector":"hccs","result":"running",
      "detail":"thinned","device":1,"hz":12.5,"records":7},
      {"collector":"host_cpu","result":"refused"}]}})");
  ExpectRoundTripToProcess(Reply{}, R"({"type":"reply","seq":0,"code":0})");
  SessionNotice notice{"s-1", "armed", 11, 2, {{"msproftx", "on"}}};
  ExpectRoundTripToProcess(notice, R"({"type":"session","session_id":"s-1","state":"armed",
      "start_step":11,"steps":2,"options":{"msproftx":"on"}})");
  SessionNotice without_marks{"s-1", "running", {}, 0, {}};
  without_marks.marks = false;
  ExpectRoundTripToProcess(without_marks, R"({"type":"session","session_id":"s-1","state":"running","marks":false})");
}

TEST(AttachProtocol, Collecting) {
  SessionNotice notice{"s-1", "running", {}, 0, {}};
  CollectRequest& request = notice.collect.emplace();
  request.kinds = {CollectKind::kKernel, CollectKind::kAclApi};
  request.flush_ms = 200;
  request.ring_bytes = 1 << 20;
  request.provider = CollectProvider::kMspti;
  ExpectRoundTripToProcess(notice, R"({"type":"session","session_id":"s-1","state":"running",
      "collect":{"kinds":["kernel","acl_api"],"flush_ms":200,"ring_bytes":1048576,
      "provider":"mspti"}})");
  Welcome welcome;
  welcome.attach_id = 1;
  welcome.takes_collector = true;
  ExpectRoundTripToProcess(
      welcome, R"({"type":"welcome","version":1,"attach_id":1,"takes_collector":true})");
  CollectorReport report;
  report.session_id = "s-1";
  report.provider = CollectProvider::kMspti;
  report.state = CollectState::kPartial;
  report.code = 6;
  report.detail = "refused: memory";
  report.kinds = {CollectKind::kKernel};
  report.version = "before 2026-05";
  report.has_ring = true;
  ExpectRoundTripToDaemon(report, R"({"type":"collector","session_id":"s-1","provider":"mspti",
      "state":"partial","code":6,"detail":"refused: memory","kinds":["kernel"],
      "version":"before 2026-05","has_ring":true})");
}

// As what the loader reports of a library with a long path.
TEST(AttachProtocol, ALongDetailIsCut) {
  CollectorReport report;
  report.session_id = "s-1";
  report.state = CollectState::kUnsupported;
  report.detail = std::string(kMaxCollectorDetailBytes - 1, 'x') + "\xC3\xA4/libprofd_mspti.so";
  const auto parsed = ParseToDaemon(Encode(ToDaemon(report)));
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(std::get<CollectorReport>(*parsed).detail, std::string(kMaxCollectorDetailBytes - 1, 'x'));
}

TEST(AttachProtocol, CollectingFiles) {
  SessionNotice notice{"s-1", "running", {}, 0, {}};
  CollectRequest& request = notice.collect.emplace();
  request.kinds = {CollectKind::kKernel};
  request.provider = CollectProvider::kAclprof;
  request.aclprof = AclprofRequest{0x2802, 1, {{"storage_limit", "500MB"}}};
  ExpectRoundTripToProcess(notice, R"({"type":"session","session_id":"s-1","state":"running",
      "collect":{"kinds":["kernel"],"provider":"aclprof",
      "aclprof":{"bits":10242,"metrics":1,"config":{"storage_limit":"500MB"}}}})");
  CollectorReport report;
  report.session_id = "s-1";
  report.provider = CollectProvider::kAclprof;
  report.state = CollectState::kFiles;
  report.code = 500005;
  report.has_files = true;
  ExpectRoundTripToDaemon(report, R"({"type":"collector","session_id":"s-1","provider":"aclprof",
      "state":"files","code":500005,"has_files":true})");
  ExpectRoundTripToProcess(FilesTaken{"s-1", 8, "no space"},
                           R"({"type":"files_taken","session_id":"s-1","code":8,"message":"no space"})");
  ExpectRoundTripToProcess(FilesTaken{"s-1", 0, ""}, R"({"type":"files_taken","session_id":"s-1","code":0})");
}

TEST(AttachProtocol, ARequestToCollectHasDefaults) {
  const auto read = ParseToProcess(
      R"({"type":"session","session_id":"s","state":"running","collect":{"kinds":[]}})");
  ASSERT_TRUE(read.ok());
  const auto& request = *std::get<SessionNotice>(*read).collect;
  EXPECT_EQ(request.provider, CollectProvider::kAuto);
  EXPECT_EQ(request.flush_ms, 0u);
  EXPECT_EQ(request.ring_bytes, 0u);
}

// A later version may know more kinds and providers; a state that is not known cannot be acted on.
TEST(AttachProtocol, WordsOfALaterVersion) {
  const auto read = ParseToProcess(R"({"type":"session","session_id":"s","state":"running",
      "collect":{"kinds":["kernel","network","memory"],"provider":"other"}})");
  ASSERT_TRUE(read.ok());
  const auto& request = *std::get<SessionNotice>(*read).collect;
  EXPECT_EQ(request.kinds, (CollectKinds{CollectKind::kKernel, CollectKind::kMemory}));
  EXPECT_EQ(request.provider, CollectProvider::kUnknown);
  const auto report = ParseToDaemon(R"({"type":"collector","session_id":"s","state":"asleep"})");
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("state"), std::string::npos) << report.status().message();
}

TEST(AttachProtocol, UnknownMembersAreIgnored) {
  EXPECT_TRUE(ParseToDaemon(R"({"type":"bye","later":[1,{"a":null}]})").ok());
  EXPECT_TRUE(ParseToProcess(R"({"type":"welcome","version":2,"attach_id":1,"x":{}})").ok());
}

struct Wrong {
  std::string packet;
  std::string reason;
};

TEST(AttachProtocol, RefusesInvalidPacketsWithTheReason) {
  const std::string hello = R"({"type":"hello","version":1,)";
  const Wrong kWrong[] = {
      {"", "one JSON object"},
      {"[]", "one JSON object"},
      {"{\"type\":\"bye\"", "one JSON object"},
      {"{\"type\":\"bye\"}{}", "one JSON object"},
      {"{\"type\":\"\xff\"}", "one JSON object"},
      {"{}", "type is missing"},
      {R"({"type":1})", "type must be a string"},
      {R"({"type":"welcome","version":1,"attach_id":1})", "unknown type \"welcome\""},
      {R"({"type":"hello"})", "hello: version is missing"},
      {R"({"type":"hello","version":0})", "version must be an integer"},
      {R"({"type":"hello","version":1.0})", "version must be an integer"},
      {R"({"type":"hello","version":"1"})", "version must be an integer"},
      {R"({"type":"hello","version":2147483648})", "version must be an integer"},
      {hello + R"("job_id":null})", "job_id must be a string"},
      {hello + R"("rank":-1})", "rank must be an integer in 0..2147483647"},
      {hello + R"("rank":99999999999999999999})", "rank must be an integer"},
      {hello + R"("world_size":0})", "world_size must be an integer in 1"},
      {hello + R"("devices":[0,-1]})", "devices must be a list of numbers"},
      {hello + R"("devices":{"0":1}})", "devices must be a list"},
      {hello + R"("metadata":["a"]})", "metadata must be an object"},
      {hello + R"("metadata":{"a":1}})", "metadata must have names"},
      {hello + R"("metadata":{"":"b"}})", "metadata must have names"},
      {hello + R"("has_ring":1})", "has_ring must be true or false"},
      {R"({"type":"start"})", "start: seq is missing"},
      {R"({"type":"start","seq":0})", "seq must be an integer in 1"},
      {R"({"type":"start","seq":-1})", "seq must be an integer in 1"},
      {R"({"type":"start","seq":1,"start_step":-1})", "start_step must be"},
      {R"({"type":"start","seq":1,"steps":4294967296})", "steps must be"},
      {R"({"type":"start","seq":1,"duration_ms":-1})", "duration_ms must be"},
      {R"({"type":"start","seq":1,"collectors":[1]})", "collectors must be a list of strings"},
      {R"({"type":"stop","seq":1,"session_id":7})", "session_id must be a string"},
      {R"({"type":"metadata","value":"v"})", "key is missing"},
      {R"({"type":"metadata","key":"","value":"v"})", "key is empty"},
      {R"({"type":"step","session_id":"s","begin":true})", "step is missing"},
      {R"({"type":"step","session_id":"s","step":1})", "begin is missing"},
      {R"({"type":"collector","session_id":"s","state":"on","has_files":true})", "goes with state"},
      {R"({"type":"collector","session_id":"s","state":"files","has_files":true,"has_ring":true})",
       "excludes has_ring"},
  };
  for (const Wrong& wrong : kWrong) {
    const auto read = ParseToDaemon(wrong.packet);
    ASSERT_FALSE(read.ok()) << wrong.packet;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(read.status().message(), HasSubstr(wrong.reason)) << wrong.packet;
  }
}

std::string Aclprof(const std::string& request) {
  return R"({"type":"session","session_id":"s","state":"running","collect":{"kinds":[],"aclprof":)" + request + "}}";
}

TEST(AttachProtocol, RefusesInvalidPacketsOfTheDaemonToo) {
  const Wrong kWrong[] = {
      {R"({"type":"hello","version":1})", "unknown type"},
      {R"({"type":"welcome","version":1})", "attach_id is missing"},
      {R"({"type":"welcome","version":1,"attach_id":0})", "attach_id must be"},
      {R"({"type":"refused","message":"m"})", "code is missing"},
      {R"({"type":"refused","code":0})", "code must be"},
      {R"({"type":"reply","seq":1})", "code is missing"},
      {R"({"type":"reply","seq":1,"code":256})", "code must be"},
      {R"({"type":"reply","seq":1,"code":0,"session":[]})", "session must be an object"},
      {R"({"type":"reply","seq":1,"code":0,"session":{"records":-1}})", "records must be"},
      {R"({"type":"reply","seq":1,"code":0,"session":{"outcomes":[1]}})", "list of objects"},
      {R"({"type":"reply","seq":1,"code":0,"session":{"outcomes":[{"hz":"1"}]}})", "hz must be"},
      {R"({"type":"reply","seq":1,"code":0,"session":{"outcomes":[{"device":-2}]}})",
       "device must"},
      {R"({"type":"session","state":"armed"})", "session_id is missing"},
      {R"({"type":"session","session_id":"","state":"armed"})", "session_id is empty"},
      {R"({"type":"session","session_id":"s"})", "state is missing"},
      {R"({"type":"session","session_id":"s","state":"running","collect":[]})",
       "collect must be an object"},
      {R"({"type":"session","session_id":"s","state":"running","collect":{}})",
       "kinds is missing"},
      {R"({"type":"session","session_id":"s","state":"running","collect":{"kinds":[1]}})",
       "kinds must be"},
      {Aclprof("[]"), "aclprof must be an object"},
      {Aclprof("{}"), "bits is missing"},
      {Aclprof(R"({"bits":0})"), "bits must be"},
      {Aclprof(R"({"bits":-1})"), "bits must be"},
      {Aclprof(R"({"bits":1,"metrics":256})"), "metrics must be"},
      {Aclprof(R"({"bits":1,"config":{"optype":1}})"), "config must have"},
      {Aclprof(R"({"bits":1,"config":{"optype":")" + std::string(257, 'x') + R"("}})"), "config must have"},
      {R"({"type":"files_taken","code":0})", "session_id is missing"},
      {R"({"type":"files_taken","session_id":"s","code":256})", "code must be"},
  };
  for (const Wrong& wrong : kWrong) {
    const auto read = ParseToProcess(wrong.packet);
    ASSERT_FALSE(read.ok()) << wrong.packet;
    EXPECT_THAT(read.status().message(), HasSubstr(wrong.reason)) << wrong.packet;
  }
}

std::string HelloWith(const std::string& key, const json& value) {
  return json{{"type", "hello"}, {"version", 1}, {key, value}}.dump();
}

TEST(AttachProtocol, SizesAreBounded) {
  const std::string longest(kMaxAttachNameBytes, 'x');
  EXPECT_TRUE(ParseToDaemon(HelloWith("job_id", longest)).ok());
  EXPECT_FALSE(ParseToDaemon(HelloWith("job_id", longest + "x")).ok());
  const std::string options(kMaxOptionsBytes, ' ');
  EXPECT_TRUE(ParseToDaemon(HelloWith("options_json", options)).ok());
  EXPECT_FALSE(ParseToDaemon(HelloWith("options_json", options + " ")).ok());
  std::vector<int> devices(kMaxAttachDevices, 1);
  EXPECT_TRUE(ParseToDaemon(HelloWith("devices", devices)).ok());
  devices.push_back(1);
  EXPECT_FALSE(ParseToDaemon(HelloWith("devices", devices)).ok());
  std::map<std::string, std::string> metadata;
  for (size_t i = 0; i < kMaxMetadataKeys; ++i) metadata[std::to_string(i)] = "v";
  EXPECT_TRUE(ParseToDaemon(HelloWith("metadata", metadata)).ok());
  metadata["more"] = "";
  EXPECT_FALSE(ParseToDaemon(HelloWith("metadata", metadata)).ok());
  std::string packet = R"({"type":"bye"})";
  packet.append(kMaxPacket - packet.size(), ' ');
  EXPECT_TRUE(ParseToDaemon(packet).ok());
  EXPECT_FALSE(ParseToDaemon(packet + ' ').ok());
}

TEST(AttachProtocol, DeepNestingIsRefused) {
  std::string deep(kMaxPacket, '[');
  EXPECT_FALSE(ParseToDaemon(deep).ok());
  const std::string closed = std::string(60'000, '[') + std::string(60'000, ']');
  EXPECT_TRUE(ParseToDaemon(R"({"type":"bye","x":)" + closed + "}").ok());
}

TEST(AttachProtocol, InvalidUtf8IsReplacedAndDoesNotThrow) {
  StopCall stop{1, "s\xff"};
  const auto read = ParseToDaemon(Encode(ToDaemon(stop)));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<StopCall>(*read).session_id, "s\xEF\xBF\xBD");
}

TEST(AttachProtocol, ALargeReplyIsCutToAPacket) {
  Reply reply;
  reply.seq = 1;
  reply.message.assign(kMaxPacket, '\x01');  // six bytes each
  SessionSummary& session = reply.session.emplace();
  session.session_id = "s-1";
  session.state = "running";
  session.reason.assign(kMaxPacket, '\x01');
  session.dump_path.assign(kMaxPacket, '\x01');
  session.warnings.assign(400, std::string(1000, 'w'));
  session.outcomes.assign(4000, {"collector", "running", std::string(100, 'd'), 1, 1.0, 1});
  for (int i = 0; i < 100; ++i) session.effective_options[std::to_string(i)].assign(2000, 'o');
  const std::string packet = Encode(ToProcess(reply));
  EXPECT_LE(packet.size(), kMaxPacket);
  const auto read = ParseToProcess(packet);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto& got = std::get<Reply>(*read);
  EXPECT_EQ(got.seq, 1U);
  ASSERT_TRUE(got.session.has_value());
  EXPECT_EQ(got.session->session_id, "s-1");
  EXPECT_THAT(got.session->warnings.back(), HasSubstr("was shortened"));

  const auto refused = ParseToProcess(Encode(ToProcess(Refused{3, std::string(kMaxPacket, 'm')})));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(std::get<Refused>(*refused).code, 3);
}

}  // namespace
}  // namespace profd::attach
