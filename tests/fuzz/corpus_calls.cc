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

std::string Call(const std::string& method, const google::protobuf::Message& request,
                 uint8_t flags = 0) {
  return Raw(MethodNumber(method), flags) + WithLength(request.SerializeAsString());
}
std::string Packet(const attach::ToDaemon& packet, uint8_t flags = 0) {
  return Raw(kAttachCall, flags) + WithLength(attach::Encode(packet));
}

template <class Request>
Request OfSession(const std::string& id = "@0") {
  Request request;
  request.set_session_id(id);
  return request;
}

v1::SessionSpec HostSpec() {
  v1::SessionSpec spec;
  spec.mutable_target()->set_all(true);
  spec.set_label("fuzz");
  v1::CollectorRequest* collector = spec.add_collectors();
  collector->set_name("host_mem");
  collector->set_hz(50);
  return spec;
}
v1::SessionSpec DeviceSpec() {
  v1::SessionSpec spec;
  spec.mutable_target()->add_devices(0);
  spec.mutable_target()->set_job_id("j42");
  spec.mutable_options()->set_sys_hardware_mem_freq(50);
  spec.mutable_options()->set_sys_interconnection_freq(50);
  spec.mutable_options()->set_host_sys_usage("cpu,mem");
  spec.mutable_lease()->set_starter_pid(kOwnPid);
  spec.mutable_lease()->set_lease_ms(60'000);
  spec.set_best_effort(true);
  spec.set_compress(true);
  (*spec.mutable_metadata())["model"] = "llama";
  return spec;
}

v1::StartSessionRequest StartOf(const v1::SessionSpec& spec) {
  v1::StartSessionRequest request;
  *request.mutable_spec() = spec;
  return request;
}

void WriteCalls(Corpus& corpus) {
  corpus.Write(
      "rpc", "look",
      Call("GetNode", v1::GetNodeRequest()) + Call("ListOptions", v1::ListOptionsRequest()) +
          Call("ListJobs", v1::ListJobsRequest(), 1) +
          Call("ListDumps", v1::ListDumpsRequest(), 2) + Call("GetTime", v1::GetTimeRequest()) +
          Call("ListSessions", v1::ListSessionsRequest()));
  v1::ReleaseChannelsRequest release;
  release.add_devices(0);
  release.add_channels(1);
  release.set_duration_ms(1000);
  v1::AcquireChannelsRequest acquire;
  acquire.add_devices(0);
  corpus.Write("rpc", "channels", Call("ReleaseChannels", release) + Call("AcquireChannels", acquire));
  v1::WatchSessionRequest watch = OfSession<v1::WatchSessionRequest>();
  watch.set_interval_ms(100);
  v1::FetchDumpRequest fetch;
  fetch.set_dump("#0");
  corpus.Write("rpc", "host_session",
               Call("StartSession", StartOf(HostSpec()), 1) +
                   Call("GetSession", OfSession<v1::GetSessionRequest>(), 1) +
                   Call("WatchSession", watch, 1 | kMore) +
                   Call("StopSession", OfSession<v1::StopSessionRequest>(), 1) +
                   Call("PinDump", OfSession<v1::PinDumpRequest>(), 1) +
                   Call("UnpinDump", OfSession<v1::UnpinDumpRequest>(), 1) +
                   Call("FetchDump", fetch, 1 | kMore) +
                   Call("ListDumps", v1::ListDumpsRequest(), 1) +
                   Call("DeleteDump", OfSession<v1::DeleteDumpRequest>(), 1));
  v1::ReportArchiveRequest failed;
  failed.set_dump("#0");
  failed.mutable_failed()->set_reason(v1::ArchiveFailed::REASON_UNREACHABLE);
  failed.mutable_failed()->set_message("connection refused");
  v1::ReportArchiveRequest loaded;
  loaded.set_dump("#0");
  loaded.mutable_loaded()->set_rows(7);
  v1::ArchiveDumpsRequest again;
  again.set_job_id("j42");
  again.set_to("clickhouse://127.0.0.1:8123/fuzz");
  again.set_run("mine-{session}");
  v1::SessionSpec of_job = HostSpec();
  of_job.mutable_target()->set_job_id("j42");
  corpus.Write("rpc", "archive",
               Call("StartSession", StartOf(of_job), 1) + Call("StopSession", OfSession<v1::StopSessionRequest>(), 1) +
                   Call("ClaimArchiveUpload", v1::ClaimArchiveUploadRequest(), 1) + Call("ClaimArchiveUpload", v1::ClaimArchiveUploadRequest()) +
                   Call("ReportArchive", failed) + Call("ReportArchive", loaded) + Call("ListDumps", v1::ListDumpsRequest(), 1) +
                   Call("ArchiveDumps", again, 1));
  v1::StreamSamplesRequest stream;
  stream.add_collectors("hbm");
  stream.set_interval_ms(10);
  corpus.Write("rpc", "device_session",
               Call("StartSession", StartOf(DeviceSpec())) + Call("StreamSamples", stream, kMore) +
                   Call("RenewLease", OfSession<v1::RenewLeaseRequest>()) +
                   Call("StopSession", OfSession<v1::StopSessionRequest>(), 2) +
                   Call("StopSession", OfSession<v1::StopSessionRequest>(), kBeside) +
                   Call("DeleteDump", OfSession<v1::DeleteDumpRequest>()));
}

void WriteOtherCalls(Corpus& corpus) {
  v1::SessionSpec later = HostSpec();
  later.mutable_schedule()->set_start_in_ms(60'000);
  v1::SessionSpec stepped = HostSpec();
  stepped.mutable_schedule()->set_start_step(3);
  stepped.mutable_schedule()->set_steps(2);
  v1::DumpRecorderRequest recorder;
  recorder.set_last_ms(1000);
  recorder.set_reason("look");
  corpus.Write("rpc", "later",
               Call("StartSession", StartOf(later)) + Call("StartSession", StartOf(stepped)) +
                   Call("DumpRecorder", recorder) +
                   Call("StopSession", OfSession<v1::StopSessionRequest>("@0")) +
                   Call("ListSessions", v1::ListSessionsRequest(), 1));
  v1::AcquireTuningLeaseRequest tuning;
  tuning.add_devices(0);
  tuning.set_pid(kOwnPid);
  tuning.set_mode(v1::TuningLease::MODE_OPERATOR);
  v1::ReleaseTuningLeaseRequest release;
  release.set_lease_id("t0123456789ab");
  corpus.Write("rpc", "tuning",
               Call("AcquireTuningLease", tuning) + Call("AcquireTuningLease", tuning, 1) +
                   Call("ListTuningLeases", v1::ListTuningLeasesRequest(), 2) +
                   Call("StartSession", StartOf(DeviceSpec())) + Call("ReleaseTuningLease", release));
  v1::CheckOptionsRequest check;
  check.mutable_spec()->set_options_json(R"({"sys_io_sampling_freq":"50","dvpp_freq":"0","gpu":1})");
  (*check.mutable_spec()->mutable_acl_switches())["ACL_PROF_L2CACHE"] = "on";
  corpus.Write("rpc", "wrong",
               Call("CheckOptions", check) + Raw(uint8_t{1}, uint8_t{0}) +
                   WithLength("\x0a\xff\x01") + Raw(uint8_t{kOther}, uint8_t{0}) + WithLength("") +
                   Raw(uint8_t{kOther + 1}, uint8_t{0}) + WithLength("Stop") +
                   Raw(uint8_t{kOther + 2}, uint8_t{0}) + WithLength("\x3a\x00") +
                   Call("GetSession", OfSession<v1::GetSessionRequest>("../x")) +
                   Call("GetNode", v1::GetNodeRequest(), kTwice) +
                   Call("StartSession", StartOf(HostSpec()), kCancel));
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
                   Call("ListJobs", v1::ListJobsRequest()) +
                   Call("GetActivity", v1::GetActivityRequest()) + Call("GetStacks", v1::GetStacksRequest()) +
                   Call("GetAdvice", v1::GetAdviceRequest()) + Call("WatchAdvice", v1::WatchAdviceRequest(), 1 | kMore) +
                   Packet(attach::MetadataCall{"a", "b"}) + Packet(attach::StopCall{3, ""}) +
                   Packet(attach::Bye()));
}

void WriteKube(Corpus& corpus) {
  ::v1::ListPodResourcesResponse pods;
  auto* pod = pods.add_pod_resources();
  pod->set_name("trainer-0");
  pod->set_namespace_("ml");
  auto* container = pod->add_containers();
  container->set_name("main");
  auto* devices = container->add_devices();
  devices->set_resource_name("huawei.com/Ascend910");
  devices->add_device_ids("Ascend910-0");
  devices->add_device_ids("\x1b[2J");
  ::runtime::v1::ListContainersResponse containers;
  auto* running = containers.add_containers();
  running->set_id(std::string(64, 'a'));
  running->set_pod_sandbox_id("s");
  running->mutable_metadata()->set_name("main");
  ::runtime::v1::ListPodSandboxResponse sandboxes;
  auto* sandbox = sandboxes.add_items();
  sandbox->set_id("s");
  sandbox->mutable_metadata()->set_name("trainer-0");
  sandbox->mutable_metadata()->set_namespace_("ml");
  corpus.Write("kube_answers", "one_pod",
               WithLength(pods.SerializeAsString()) + WithLength(containers.SerializeAsString()) +
                   sandboxes.SerializeAsString());
}

std::string Answer(uint8_t which, const google::protobuf::Message& message) {
  return Raw(which) + WithLength(message.SerializeAsString());
}

v1::Node SomeNode() {
  v1::Node node;
  node.set_hostname("node17");
  node.set_version("0.1.0");
  node.set_dump_root("/var/lib/profd");
  node.mutable_driver()->set_hal_path("/usr/lib/libascend_hal.so");
  for (uint32_t id = 0; id < 2; ++id) {
    v1::Device* device = node.add_devices();
    device->set_id(id);
    device->set_physical_id(id);
    device->set_chip("Ascend910B");
    v1::Channel* channel = device->add_channels();
    channel->set_id(1);
    channel->set_name("hbm");
    channel->set_state(v1::Channel::STATE_RUNNING);
  }
  v1::CollectorInfo* collector = node.add_collectors();
  collector->set_name("hbm");
  collector->set_source(v1::CollectorInfo::SOURCE_DRIVER_CHANNEL);
  node.mutable_recorder()->set_enabled(true);
  node.mutable_recorder()->add_channels()->set_collector("hbm");
  return node;
}
v1::Session SomeSession() {
  v1::Session session;
  session.set_session_id("0123456789ab");
  session.mutable_status()->set_state(v1::Session::STATE_DONE);
  session.mutable_status()->set_reason("stopped by uid 1000\x1b[2J");
  session.mutable_spec()->mutable_target()->set_job_id("j42");
  session.mutable_status()->add_devices(0);
  session.mutable_status()->set_started_ns(1'767'225'600'000'000'000);
  session.mutable_status()->set_ended_ns(1'767'225'610'000'000'000);
  session.mutable_status()->set_dump_path("/var/lib/profd/PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP");
  session.mutable_status()->add_warnings("thinned");
  v1::Outcome* outcome = session.mutable_status()->add_outcomes();
  outcome->set_collector("hbm");
  outcome->set_result(v1::Outcome::RESULT_FINISHED);
  v1::EffectiveOption* option = session.mutable_status()->add_effective_options();
  option->set_key("l2");
  option->set_value("on");
  return session;
}
v1::SampleChunk SomeSamples() {
  v1::SampleChunk chunk;
  v1::SeriesInfo* series = chunk.add_series();
  series->set_id(7);
  series->set_metric("atlas_npu_power_watts");
  series->set_device(0);
  (*series->mutable_labels())["npu"] = "0";
  v1::SampleValue* value = chunk.add_samples();
  value->set_series(7);
  value->set_time_ns(1'000'000'000);
  value->set_value(310.5);
  return chunk;
}
v1::ListJobsResponse SomeJobs() {
  v1::ListJobsResponse jobs;
  v1::Job* job = jobs.add_jobs();
  job->set_job_id("j42");
  v1::JobProcess* process = job->add_processes();
  process->set_pid(4711);
  process->set_rank(0);
  process->add_devices(0);
  process->set_command("python3");
  process->set_attached(true);
  return jobs;
}

// The same answers for every command, so that each begins with something to show.
void WriteClient(Corpus& corpus) {
  v1::ListOptionsResponse options;
  options.add_options()->set_key("l2");
  options.add_chips("Ascend910B");
  v1::CheckOptionsResponse checked;
  checked.add_problems()->set_text("l2: no");
  v1::ListDumpsResponse dumps;
  dumps.add_dumps()->set_name("PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP");
  v1::PinDumpResponse pinned;
  pinned.add_dumps()->set_pinned(true);
  const std::string answers = Answer(0, SomeNode()) + Answer(1, SomeJobs()) + Answer(2, options) +
                              Answer(3, checked) + Answer(4, dumps) + Answer(5, pinned) +
                              Answer(6, SomeSession()) + Answer(7, SomeSession()) +
                              Answer(8, SomeSamples());
  for (uint8_t command = 0; command < 18; ++command) {
    corpus.Write("client_answers", "command_" + std::to_string(command),
                 Raw(command, static_cast<uint8_t>(command % 2)) + answers);
  }
  v1::ListSessionsResponse sessions;
  *sessions.add_sessions() = SomeSession();
  auto keys = [](std::string_view text) { return Raw(uint8_t{4}) + WithLength(text); };
  const std::string roll = Raw(uint8_t{6}, uint16_t{0});
  corpus.Write("client_top", "node",
               Raw(uint8_t{100}, uint8_t{40}) + Answer(0, SomeNode()) + Answer(1, SomeJobs()) +
                   Answer(2, sessions) + Answer(3, SomeSamples()) + roll + keys("\x1b[B\x1b[Cps") +
                   roll + keys("/py\xc3\xa9\r") + keys("?") + roll);
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
