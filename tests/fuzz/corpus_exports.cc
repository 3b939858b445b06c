#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <map>

#include "base/bytes.h"
#include "base/clock.h"
#include "dump/activity_files.h"
#include "dump/session_dump.h"
#include "export/decoder.h"
#include "sim/framework/layouts.h"
#include "tests/fuzz/make_corpus.h"

namespace profd::fuzz {
namespace {

constexpr uint8_t kChip5 = 6;  // index in export_decoder_fuzz.cc
constexpr int64_t kRawNs = 5'000'000'000;

std::string Header(size_t decoder, uint8_t flags) {
  return Raw(static_cast<uint8_t>(decoder), kChip5, flags, int64_t{1'767'225'600'000'000} * 256,
             kRawNs * 256, uint64_t{0});
}

// Lines of files no driver channel has; by the decoder's base name.
std::string TextOf(std::string_view base) {
  const std::string head = "TimeStamp:5000000001\nIndex:0\nDataLen:";
  if (base.ends_with("-CpuUsage.data")) {
    return head + "96\n42 (train) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 5 0 0 0\nProcessName:train\n"
                  "cpu  1 2 3 4 5 6 7 8 9 10\n\n\n";
  }
  if (base.ends_with("-Memory.data")) return head + "40\n50 20 3 1 0 30 0\nProcessName:train\n\n\n";
  if (base.find("CpuUsage") != base.npos || base.find("sys_cpu") != base.npos) {
    return head + "62\ncpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n\n\n";
  }
  static const std::map<std::string_view, const char*> kTexts = {
      {"host_mem.data", "5000000001 10 20 3 4 0 6 0\n5020000001 10 22 3 4 0 6 0\n"},
      {"host_network.data",
       "time 5000000001\neth0: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n"
       "time 5020000001\neth0: 900 1 0 0 0 0 0 0 800 2 0 0 0 0 0 0\n"},
      {"host_cpu.data",
       "time 5000000001\n100.0 200.0\n"
       "42 (a) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0\n"},
      {"host_disk.data", "12:00:00 42 be/4 root 1.5 K/s 2.5 M/s 0.00 % 3.00 % train\nstart_time 5000000001\n"},
      {"netdev_stats.data",
       "5000000001 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n5100000001 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"},
      {"samples.tsv", "time_ns\tmetric\tdevice\tlabels\tvalue\n5000000001\tatlas_npu_power_watts\t0\ta=b\t70.5\n"},
      {"marks.tsv",
       "time_ns\tpid\trank\tthread\tkind\tname\tvalue\n5000000001\t42\t0\t42\tpush\tload\t0\n"
       "5000000500\t42\t0\t42\tpop\t\t0\n5000000900\t42\t0\t42\tstep_begin\t\t7\n"
       "5000001900\t42\t0\t42\tstep_end\t\t7\n"},
      {"stacks.tsv",
       "time_ns\tpid\trank\tthread\tkind\tframe\tcaller\tname\n5000000001\t42\t0\t42\tframe\t1\t0\ta.py:f:1\n"
       "5000000001\t42\t0\t42\tframe\t2\t1\ta.py:g:2\n5000000002\t42\t0\t42\tstack\t2\t0\t\n"
       "5000000500\t42\t0\t42\tstack\t1\t0\t\n"}};
  if (const auto found = kTexts.find(base); found != kTexts.end()) return found->second;
  if (base.find("em") != base.npos) {
    return head + "60\nMemTotal: 100 kB\nMemFree: 50 kB\nBuffers: 1 kB\nCached: 2 kB\nShmem: 3 kB\nHugePages_Total: 4\n\n\n";
  }
  return {};
}

void WriteDecoders(Corpus& corpus) {
  size_t index = 0;
  for (const exporting::DecoderSpec& spec : exporting::Decoders()) {
    std::string bytes = TextOf(spec.base);
    for (const abi::ChannelFormat& format : abi::kChannelFormats) {
      if (bytes.empty() && format.file == spec.base) bytes = Capture(format, "");
    }
    if (bytes.empty() && spec.record_size != 0) bytes.assign(spec.record_size * 3u, '\1');
    std::string name(spec.base);
    if (const size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, "pid");
    name += spec.kind == exporting::Place::Kind::kDevice ? "_device" : "_host";
    corpus.Write("export_decoder", name + "_" + std::to_string(index),
                 Header(index, 0) + InPieces(bytes));
    ++index;
  }
}

template <class Record>
std::string ActivitySeed(ActivityFileId file, std::initializer_list<Record> records) {
  std::string names(kActivityNamesHeading);
  for (uint32_t id = 1; id <= 3; ++id) AppendActivityName(id, id == 3 ? "\xFF\x01" : "MatMul", &names);
  std::string bytes;
  for (const Record& record : records) bytes += Raw(record);
  return WithLength(names) + Raw(static_cast<uint8_t>(file), kRawNs * 256) + InPieces(bytes);
}

void WriteActivity(Corpus& corpus) {
  using enum ActivityFileId;
  const StoredKernel kernel = {kRawNs, 250, 9, 5, 1, 2, 43, 77, 0, 0};
  StoredKernel other = kernel;
  other.start_ns += 100;
  other.process = 78;
  other.name = 99;
  corpus.Write("activity_dump", "kernel", ActivitySeed(kKernel, {kernel, other, kernel}));
  StoredKernel late = kernel;
  late.start_ns = INT64_MAX;
  corpus.Write("activity_dump", "kernel_late", ActivitySeed(kKernel, {late, kernel}));
  corpus.Write("activity_dump", "communication",
               ActivitySeed(kCommunication, {StoredCommunication{kRawNs, 8, 3, 1024, 4, 1, 2, 0, 77, 2.5F, 0, 0, 4, 0}}));
  corpus.Write("activity_dump", "api", ActivitySeed(kApi, {StoredApi{kRawNs, 90, 9, 43, 1, 77, 2, 0},
                                                           StoredApi{kRawNs + 10, 20, 9, 43, 2, 77, 3, 0}}));
  const StoredMarker begin = {kRawNs, 7, 1, 2, 43, 0, 77, 2, 0, 0xFFFF, 0xFFFF, 0};
  StoredMarker end = begin;
  end.time_ns += 60;
  end.name = end.domain = 0;
  end.flag = 4;
  StoredMarker device = begin;
  device.source = 1;
  device.device = 0;
  corpus.Write("activity_dump", "marker", ActivitySeed(kMarker, {begin, device, end}));
  corpus.Write("activity_dump", "memory",
               ActivitySeed(kMemory, {StoredMemory{kRawNs, 8, 3, 4096, 1, 4, 77, 4, 1, 2, 0, 0}}));
}

// A small dump, ended or not, as file_tree.h has it.
std::string Tree(bool ended) {
  std::string pattern = (std::filesystem::temp_directory_path() / "profd_seed_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  std::string text;
  {
    DumpRoot root = DumpRoot::Open(pattern + "/root").value();
    SessionDumpOptions options;
    options.owner = {::getuid(), ::getgid()};
    options.session.start_wall_ns = 1'767'225'600'000'000'000;
    options.session.start_raw_ns = kRawNs;
    options.session.devices = {0};
    options.host_clocks = {kRawNs, 1000, 0, 0, 0};
    SessionDumpOptions::Device device;
    device.facts.chip_id = 5;
    device.facts.counter_hz = 50e6;
    device.clocks = DumpClocks{kRawNs, 1000, 77'000'000'000, 0, 100};
    options.devices.push_back(device);
    auto dump = SessionDump::Create(root, std::move(options)).value();
    for (uint32_t id : {1u, 3u, 8u, 9u, 52u, 132u, 142u}) {
      const abi::ChannelFormat* format = abi::FindChannelFormat(id);
      std::string bytes = Capture(*format, "").substr(0, 960);
      if (format->framing == abi::Framing::kText) bytes.resize(bytes.rfind('\n') + 1);
      if (format->record_size != 0)
        bytes.resize(bytes.size() / format->record_size * format->record_size);
      dump->Append(dump->OpenChannel(0, id).value(), AsBytes(bytes), 1).Ignore();
    }
    dump->AppendHostFile("host_mem.data", TextOf("host_mem.data")).Ignore();
    dump->AppendOwn("samples.tsv", "5000000001\tatlas_npu_power_watts\t0\ta=b\t70.5\n").Ignore();
    dump->Flush().Ignore();
    EndFacts end;
    end.wall_ns = 1'767'225'602'000'000'000;
    end.raw_ns = kRawNs + 2 * kNsPerSecond;
    if (ended) dump->Finish(end).Ignore();
    const std::filesystem::path top = dump->path();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::string content(std::istreambuf_iterator<char>(in), {});
      text += "=== " + std::filesystem::relative(entry.path(), top).string() + "\n" + content;
      if (!content.ends_with('\n')) text += '\n';
    }
  }
  std::filesystem::remove_all(pattern);
  return text;
}

// Of each layout and damage, the files that are read; their order is that of framework_fuzz.cc.
void WriteFrameworks(Corpus& corpus) {
  constexpr std::string_view kFiles[] = {
      "torch.op_range",           "torch.op_mark",            "mindspore.op_range", "op_range_0",
      "torch.python_tracer_func", "torch.python_tracer_hash", "torch.memory_usage", "torch.gc_record"};
  constexpr std::string_view kLayouts[] = {"torch",        "torch-57",     "mindspore",
                                           "mindspore-57", "mindspore-73", "mindspore-74"};
  for (const std::string_view layout : kLayouts) {
    for (const std::string_view damage : {"none", "cut", "length", "names"}) {
      sim::framework::Spec spec;
      spec.operators = 4;
      if (!LayoutOf(layout, &spec.layout) || !DamageOf(damage, &spec.damage)) std::abort();
      const sim::framework::Directory made = Make(spec);
      std::string seed;
      for (uint8_t i = 0; i < std::size(kFiles); ++i) {
        const auto file = made.files.find("FRAMEWORK/" + std::string(kFiles[i]));
        if (file != made.files.end()) seed += Raw(i) + WithLength(file->second) + Raw(uint8_t{36});
      }
      corpus.Write("framework", std::string(layout) + "_" + std::string(damage), seed);
    }
  }
}

}  // namespace

void WriteExports(Corpus& corpus) {
  WriteDecoders(corpus);
  WriteActivity(corpus);
  WriteFrameworks(corpus);
  corpus.Write("dump_directory", "ended", Tree(true));
  corpus.Write("dump_directory", "running", Tree(false));
}

}  // namespace profd::fuzz
