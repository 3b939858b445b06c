// Writes the seeds that are no text: bytes of the simulator's channels and messages of the
// contract, with the headers the fuzzers expect before them. Deterministic; run it after such a
// header or a record layout changes. usage: make_fuzz_corpus DIRECTORY (scripts/fuzz --unpack, --pack)
#include "tests/fuzz/make_corpus.h"

#include <cstdio>
#include <string>

#include "driver/abi/channels.h"
#include "driver/chips.h"
#include "dump/manifest.h"
#include "profd/v1/profd.pb.h"

namespace profd {

using fuzz::Capture;
using fuzz::Corpus;
using fuzz::InPieces;
using fuzz::MessageBytes;
using fuzz::Raw;
using fuzz::WithLength;

namespace {

uint8_t ChipIndex(uint32_t id) {
  for (size_t i = 0; i < kChips.size(); ++i) {
    if (kChips[i].id == id) return static_cast<uint8_t>(i);
  }
  return 0;
}

std::string FilterOptions(uint8_t channel, uint16_t channel_period, uint16_t session_period,
                          int32_t rebase_ms) {
  std::string options = Raw(channel, channel_period, session_period, rebase_ms, uint32_t{1000},
                            uint32_t{50'000'000}, uint32_t{100'000'000}, uint8_t{5});
  for (int type = 0; type < 6; ++type) options += Raw(channel_period, session_period, uint8_t{1});
  return options;
}

void WriteChannels(Corpus& corpus, const std::string& suffix, const char* scenario, uint32_t chip) {
  for (uint8_t index = 0; index < abi::kChannelFormats.size(); ++index) {
    const abi::ChannelFormat& format = abi::kChannelFormats[index];
    const std::string bytes = Capture(format, scenario);
    if (bytes.empty()) continue;
    const std::string name = std::string(format.name) + suffix;
    corpus.Write("framer", name, Raw(index) + InPieces(bytes));
    corpus.Write("channel_decoder", name,
                 Raw(index, ChipIndex(chip), uint8_t{0}) + WithLength(bytes));
    // Twenty milliseconds thinned to a hundred, begun two seconds after the channel.
    corpus.Write("stream_filter", name, FilterOptions(index, 200, 1000, -100) + WithLength(bytes));
  }
}

void WriteSessionSpecs(Corpus& corpus) {
  auto write = [&corpus](const char* name, const char* text) {
    corpus.Write("session_plan", name, MessageBytes<v1::SessionSpec>(text));
  };
  write("options", R"(
      target { job_id: 'job-4711' rank: 3 pids: 1 } schedule { duration_ms: 30000 }
      options { sys_hardware_mem_freq: 50 sys_io_sampling_freq: 100 sys_interconnection_freq: 50 dvpp_freq: 50
                llc_profiling: 'write' host_sys: 'cpu,mem' host_sys_usage: 'cpu' host_sys_usage_freq: 50
                storage_limit: '200MB' })");
  write("named", R"(
      label: 'one rank' target { devices: [0, 2] } require_all: true no_dump: true schedule { end_with_pid: 4 }
      collectors [{ name: 'hccs' hz: 10 }, { name: 'host_cpu' hz: 10 }, { name: 'npu_state' hz: 10 }])");
  write("wrong", R"(
      target { job_id: 'no spaces' devices: 9 } collectors { name: 'gpu' }
      options { sys_hardware_mem_freq: 1000 storage_limit: '10MB' })");
  write("forms", R"(
      options_json: '{"training_trace":"on","task_trace":"l0","sys_io_sampling_freq":"80",'
                    '"host_sys_usage":"cpu,mem","storage_limit":"500MB","l2":"on"}'
      acl_switches { key: 'ACL_PROF_AICPU' value: 'on' } acl_switches { key: 'aiCoreMetricsType' value: '2' }
      options { dvpp_freq: 7 } best_effort: true)");
  write("application", R"(options_json: '{"msproftx":"on","aic_metrics":"L2Cache"}' target { rank: 1 })");
}

// options_fuzz.cc says what the first byte means.
void WriteOptions(Corpus& corpus) {
  auto write = [&corpus](const char* name, char flags, const std::string& text) {
    corpus.Write("options", name, std::string(1, flags) + text);
  };
  write("vendor", 8,
        R"({"output":"/tmp/profiling","training_trace":"on","task_trace":"on","fp_point":"",)"
        R"("bp_point":"","aic_metrics":"PipeUtilization"})");
  write("all", 0x38,
        R"({"storage_limit":"500MB","task_time":"l0","hccl":"on","aicpu":"yes","l2":"on",)"
        R"("msproftx":"on","runtime_api":"on","sys_hardware_mem_freq":50,"llc_profiling":"write",)"
        R"("sys_io_sampling_freq":"100","sys_interconnection_freq":50,"dvpp_freq":1,)"
        R"("host_sys":"cpu,mem","host_sys_usage":"mem , cpu","host_sys_usage_freq":50,)"
        R"("aic_metrics":"Custom:0x49,8,0x15"})");
  write("instr", 0x38, R"({"instr_profiling_freq":300,"msproftx":"on"})");
  write("wrong", 10,
        R"({"l2":true,"l2":1.5,"gpu":[{}],"dvpp_freq":0,"aic_metrics":"L2Cache","task_trace":"on",)"
        R"("training_trace":"off","instr_profiling_freq":30001,"output":"a\n","host_sys":"cpu,"})");
  write("syntax", 0, "{\n \"l2\": \"on\",\n}");
  write("switches", 1,
        "{}\n---\nACL_PROF_TASK_TIME=on\nACL_PROF_AICORE_METRICS=off\naiCoreMetricsType=0xFF\n"
        "TORCH_CALL_STACK=True\nACL_PROF_ACL_API=off\n");
  write("fields", 12,
        "{\"l2\":\"on\"}\n---\nl2=on\nhost_sys=cpu\nstorage_limit=200\nfp_point= conv1 \n");
}

void WriteFetch(Corpus& corpus) {
  auto chunk = [](const std::string& text) { return WithLength(MessageBytes<v1::DumpChunk>(text)); };
  const std::string name = "dump_name: 'PROF_000001_20250101120000000_ABCDEFGHIJKLMNOP' ";
  corpus.Write("client_fetch", "two_files",
               chunk(name + "total_bytes: 9 path: 'device_0/data/hbm.data.0.slice_0' data: '12345'") +
                   chunk("data: '67' last: true") + chunk("path: 'host/info.json' data: '{}' last: true"));
  corpus.Write("client_fetch", "escape", chunk(name + "path: '../escape' data: '{}' last: true"));
}

void WriteManifests(Corpus& corpus) {
  Manifest manifest;
  manifest.profd_version = "0.1.0";
  manifest.state = DumpState::kDone;
  manifest.session_id = "s-1";
  manifest.rank = 3;
  manifest.requested["sys_hardware_mem_freq"] = "50";
  manifest.devices.push_back({0, 0, "Ascend910B", 5, "uuid", 50e6, 1800});
  ManifestChannel channel;
  channel.collector = "hbm";
  channel.device = 0;
  channel.channel = 1;
  channel.file = "hbm.data";
  channel.state = "finished";
  channel.AddGap({5, 6, LossReason::kQueueFull});
  channel.AddLoss(LossReason::kQueueFull, 6, 144);
  manifest.channels.push_back(channel);
  manifest.clocks.push_back({0, "start", {1, 2, 3, 4, 5}});
  manifest.warnings.push_back("thinned");
  manifest.files.push_back({"device_0/data/hbm.data.0.slice_0", 24});
  manifest.files.push_back({"../outside", 1});
  const std::string text = Serialize(manifest);
  corpus.Write("manifest", "full", text);
  corpus.Write("manifest", "empty", "{\"version\":1}");
  corpus.Write("dump_reader", "full",
               "=== profd_manifest.json\n" + text +
                   "=== device_0/data/hbm.data.0.slice_0\n0123456789abcdef01234567\n"
                   "=== device_0/link -> ../../outside\n=== host/info.json\n{}\n"
                   "=== device_1 -> device_0\n");
}

}  // namespace
}  // namespace profd

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  profd::Corpus corpus(argv[1]);
  profd::WriteChannels(corpus, "", "", profd::abi::kChip910B);
  profd::WriteChannels(corpus, "_910", "chip = \"910\"\n", profd::abi::kChip910);
  profd::WriteSessionSpecs(corpus);
  profd::WriteOptions(corpus);
  profd::WriteFetch(corpus);
  profd::WriteManifests(corpus);
  profd::fuzz::WriteExports(corpus);
  profd::fuzz::WriteMessages(corpus);
  return 0;
}
