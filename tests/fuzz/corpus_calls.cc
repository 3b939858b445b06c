// Seeds of what comes over sockets: calls of profd.v1, answers of daemons, kubelets, runtimes and
// libdcmi, certificates.
#include <openssl/x509.h>

#include "cri/runtime/v1/runtime.pb.h"
#include "daemon/rpc/tls_test_support.h"
#include "kubelet/podresources/v1/podresources.pb.h"
#include "profd/v1/profd.pb.h"
#include "proto/attach/attach_protocol.h"
#include "tests/fuzz/make_corpus.h"
#include "tests/fuzz/rpc_calls.h"

namespace profd::fuzz {
namespace {

constexpr uint8_t kAttachCall = kOther + static_cast<uint8_t>(Other::kAttach);

uint8_t MethodNumber(const std::string& name) {
  for (size_t i = 0; i < Methods().size(); ++i) {
    if (Methods()[i]->name() == name) return static_cast<uint8_t>(i);
  }
  FUZZ_EXPECT(false);
  return 0;
}

std::string Call(const std::string& method, const std::string& request = "", uint8_t flags = 0) {
  const uint8_t number = MethodNumber(method);
  const auto message = NewMessage(*Methods()[number]->input_type());
  return Raw(number, flags) + WithLength(MessageBytes(request, *message));
}
std::string Packet(const attach::ToDaemon& packet, uint8_t flags = 0) {
  return Raw(kAttachCall, flags) + WithLength(attach::Encode(packet));
}

constexpr char kSession[] = "session_id: '@0'";
const std::string kPid = std::to_string(kOwnPid);
const std::string kHostMemory = "label: 'fuzz' collectors { name: 'host_mem' hz: 50 }";
const std::string kHostSpec = "target { all: true } " + kHostMemory;
const std::string kDeviceSpec =
    "target { devices: 0 job_id: 'j42' }"
    "options { sys_hardware_mem_freq: 50 sys_interconnection_freq: 50 host_sys_usage: 'cpu,mem' }"
    "lease { starter_pid: " + kPid + " lease_ms: 60000 }"
    "best_effort: true compress: true metadata { key: 'model' value: 'llama' }";

std::string Start(const std::string& spec, uint8_t flags = 0) { return Call("StartSession", "spec { " + spec + " }", flags); }

void WriteCalls(Corpus& corpus) {
  corpus.Write("rpc", "look",
               Call("GetNode") + Call("ListOptions") + Call("ListJobs", "", 1) + Call("ListDumps", "", 2) + Call("GetTime") +
                   Call("ListSessions"));
  corpus.Write("rpc", "channels",
               Call("ReleaseChannels", "devices: 0 channels: 1 duration_ms: 1000") + Call("AcquireChannels", "devices: 0"));
  corpus.Write("rpc", "host_session",
               Start(kHostSpec, 1) + Call("GetSession", kSession, 1) +
                   Call("WatchSession", "session_id: '@0' interval_ms: 100", 1 | kMore) + Call("StopSession", kSession, 1) +
                   Call("PinDump", kSession, 1) + Call("UnpinDump", kSession, 1) + Call("FetchDump", "dump: '#0'", 1 | kMore) +
                   Call("ListDumps", "", 1) + Call("DeleteDump", kSession, 1));
  corpus.Write("rpc", "archive",
               Start("target { all: true job_id: 'j42' } " + kHostMemory, 1) + Call("StopSession", kSession, 1) +
                   Call("ClaimArchiveUpload", "", 1) + Call("ClaimArchiveUpload") +
                   Call("ReportArchive", "dump: '#0' failed { reason: REASON_UNREACHABLE message: 'connection refused' }") +
                   Call("ReportArchive", "dump: '#0' loaded { rows: 7 }") + Call("ListDumps", "", 1) +
                   Call("ArchiveDumps", "job_id: 'j42' to: 'clickhouse://127.0.0.1:8123/fuzz' run: 'mine-{session}'", 1));
  corpus.Write("rpc", "device_session",
               Start(kDeviceSpec) + Call("StreamSamples", "collectors: 'hbm' interval_ms: 10", kMore) +
                   Call("RenewLease", kSession) + Call("StopSession", kSession, 2) + Call("StopSession", kSession, kBeside) +
                   Call("DeleteDump", kSession));
}

void WriteOtherCalls(Corpus& corpus) {
  corpus.Write("rpc", "later",
               Start(kHostSpec + "schedule { start_in_ms: 60000 }") + Start(kHostSpec + "schedule { start_step: 3 steps: 2 }") +
                   Call("DumpRecorder", "last_ms: 1000 reason: 'look'") + Call("StopSession", kSession) +
                   Call("ListSessions", "", 1));
  const std::string tuning = "devices: 0 mode: MODE_OPERATOR pid: " + kPid;
  corpus.Write("rpc", "tuning",
               Call("AcquireTuningLease", tuning) + Call("AcquireTuningLease", tuning, 1) + Call("ListTuningLeases", "", 2) +
                   Start(kDeviceSpec) + Call("ReleaseTuningLease", "lease_id: 't0123456789ab'"));
  const char* const check = R"(spec { options_json: '{"sys_io_sampling_freq":"50","dvpp_freq":"0","gpu":1}'
                                      acl_switches { key: 'ACL_PROF_L2CACHE' value: 'on' } })";
  corpus.Write("rpc", "wrong",
               Call("CheckOptions", check) + Raw(uint8_t{1}, uint8_t{0}) +
                   WithLength("\x0a\xff\x01") + Raw(uint8_t{kOther}, uint8_t{0}) + WithLength("") +
                   Raw(uint8_t{kOther + 1}, uint8_t{0}) + WithLength("Stop") +
                   Raw(uint8_t{kOther + 2}, uint8_t{0}) + WithLength("\x3a\x00") +
                   Call("GetSession", "session_id: '../x'") + Call("GetNode", "", kTwice) + Start(kHostSpec, kCancel));
  attach::Hello hello;
  hello.job_id = "job";
  hello.rank = 0;
  hello.world_size = 1;
  hello.devices = {0};
  attach::StartCall start;
  start.seq = 1;
  start.collectors = {"host_mem=50"};
  corpus.Write("rpc", "attached",
               Packet(hello) + Packet(start) + Packet(attach::StatusCall{2, ""}) +
                   Call("ListJobs") + Call("GetActivity") + Call("GetStacks") + Call("GetAdvice") +
                   Call("WatchAdvice", "", 1 | kMore) +
                   Packet(attach::MetadataCall{"a", "b"}) + Packet(attach::StopCall{3, ""}) +
                   Packet(attach::Bye()));
}

void WriteKube(Corpus& corpus) {
  const std::string pods = MessageBytes<::v1::ListPodResourcesResponse>(R"(
      pod_resources { name: 'trainer-0' namespace: 'ml' containers { name: 'main' devices {
          resource_name: 'huawei.com/Ascend910' device_ids: 'Ascend910-0' device_ids: '\x1b[2J' } } })");
  const std::string containers = MessageBytes<::runtime::v1::ListContainersResponse>(
      "containers { id: '" + std::string(64, 'a') + "' pod_sandbox_id: 's' metadata { name: 'main' } }");
  const std::string sandboxes = MessageBytes<::runtime::v1::ListPodSandboxResponse>(
      "items { id: 's' metadata { name: 'trainer-0' namespace: 'ml' } }");
  corpus.Write("kube_answers", "one_pod", WithLength(pods) + WithLength(containers) + sandboxes);
}

template <class Message>
std::string Answer(uint8_t which, const std::string& text) {
  return Raw(which) + WithLength(MessageBytes<Message>(text));
}

constexpr char kNode[] = R"(
    hostname: 'node17' version: '0.1.0' dump_root: '/var/lib/profd' driver { hal_path: '/usr/lib/libascend_hal.so' }
    devices { id: 0 physical_id: 0 chip: 'Ascend910B' channels { id: 1 name: 'hbm' state: STATE_RUNNING } }
    devices { id: 1 physical_id: 1 chip: 'Ascend910B' channels { id: 1 name: 'hbm' state: STATE_RUNNING } }
    collectors { name: 'hbm' source: SOURCE_DRIVER_CHANNEL } recorder { enabled: true channels { collector: 'hbm' } })";
constexpr char kDone[] = R"(
    session_id: '0123456789ab' spec { target { job_id: 'j42' } }
    status { state: STATE_DONE reason: 'stopped by uid 1000\x1b[2J' devices: 0 warnings: 'thinned'
             started_ns: 1767225600000000000 ended_ns: 1767225610000000000
             dump_path: '/var/lib/profd/PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP'
             outcomes { collector: 'hbm' result: RESULT_FINISHED } effective_options { key: 'l2' value: 'on' } })";
constexpr char kSamples[] = R"(
    series { id: 7 metric: 'atlas_npu_power_watts' device: 0 labels { key: 'npu' value: '0' } }
    samples { series: 7 time_ns: 1000000000 value: 310.5 })";
constexpr char kJobs[] =
    "jobs { job_id: 'j42' processes { pid: 4711 rank: 0 devices: 0 command: 'python3' attached: true } }";

// The same answers for every command, so that each begins with something to show.
void WriteClient(Corpus& corpus) {
  const std::string node = Answer<v1::Node>(0, kNode), jobs = Answer<v1::ListJobsResponse>(1, kJobs);
  const std::string answers =
      node + jobs + Answer<v1::ListOptionsResponse>(2, "options { key: 'l2' } chips: 'Ascend910B'") +
      Answer<v1::CheckOptionsResponse>(3, "problems { text: 'l2: no' }") +
      Answer<v1::ListDumpsResponse>(4, "dumps { name: 'PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP' }") +
      Answer<v1::PinDumpResponse>(5, "dumps { pinned: true }") + Answer<v1::Session>(6, kDone) + Answer<v1::Session>(7, kDone) +
      Answer<v1::SampleChunk>(8, kSamples);
  for (uint8_t command = 0; command < 18; ++command) {
    corpus.Write("client_answers", "command_" + std::to_string(command),
                 Raw(command, static_cast<uint8_t>(command % 2)) + answers);
  }
  auto keys = [](std::string_view text) { return Raw(uint8_t{4}) + WithLength(text); };
  const std::string roll = Raw(uint8_t{6}, uint16_t{0});
  corpus.Write("client_top", "node",
               Raw(uint8_t{100}, uint8_t{40}) + node + jobs +
                   Answer<v1::ListSessionsResponse>(2, "sessions { " + std::string(kDone) + " }") +
                   Answer<v1::SampleChunk>(3, kSamples) + roll + keys("\x1b[B\x1b[Cps") + roll + keys("/py\xc3\xa9\r") +
                   keys("?") + roll);
}

// In the order in which a service asks for its first NPU (driver/dcmi_identity.cc).
void WriteDcmi(Corpus& corpus) {
  auto filled = [](std::string_view bytes) {
    return Raw(static_cast<uint8_t>(bytes.size()), uint8_t{0}).append(bytes);
  };
  const std::string one = filled(Raw(int32_t{1}));
  const std::string ok = Raw(uint8_t{0});
  const std::string zero = ok + filled("");
  const std::string version = filled("24.1.rc2") + ok;
  std::string rest;
  for (int i = 0; i < 400; ++i) rest += ok + filled(Raw(int32_t{i}));
  corpus.Write(
      "dcmi_answers", "v1",
      ok + one + filled("") + ok + ok + one + zero + zero + zero + version + version + rest);
  corpus.Write("dcmi_answers", "v2",
               Raw(uint8_t{1}) + one + filled(Raw(int32_t{3})) + ok + ok + filled(Raw(int32_t{3})) +
                   version + version + rest);
}

std::string Der(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

void WriteCertificates(Corpus& corpus) {
  CertificateSpec spec;
  spec.valid_s = 3'000'000'000;
  spec.authority = true;
  for (const char* role : {"profd-user", "profd-viewer", "profd-admin"}) {
    spec.subject = {{"CN", "alice"}, {"OU", role}};
    const TestPair pair = MakeTestPair(spec);
    corpus.Write("tls_identity", std::string("der_") + role,
                 Raw(uint8_t{1}) + Der(pair.certificate.get()));
    corpus.Write("tls_identity", std::string("pem_") + role,
                 Raw(uint8_t{0}) + CertificatePem(pair) + KeyPem(pair));
  }
  spec.subject = {
      {"CN", "a"}, {"CN", "b"}, {"OU", "profd-user"}, {"OU", "profd-admin"}, {"O", "x\xc3\xa9"}};
  corpus.Write("tls_identity", "der_several",
               Raw(uint8_t{1}) + Der(MakeTestPair(spec).certificate.get()));
}

}  // namespace

void WriteMessages(Corpus& corpus) {
  WriteCalls(corpus);
  WriteOtherCalls(corpus);
  WriteKube(corpus);
  WriteClient(corpus);
  WriteDcmi(corpus);
  WriteCertificates(corpus);
  // What a collector writes of two processes.
  corpus.Write("scrape", "labels",
               WithLength("uuid").substr(0, 1) + "uuid" + Raw(uint16_t{3}, uint8_t{0}, double{45}) +
                   Raw(uint16_t{200}, uint8_t{0}, uint8_t{3}) + "a\"b" + Raw(double{1}));
}

}  // namespace profd::fuzz
