// Parts of training steps in the CSV that an export writes.
#include "export/step_parts_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "dump/test_support.h"
#include "export/export_run.h"
#include "export/formats.h"

namespace profd::exporting {
namespace {

using testing::HasSubstr;
using testing::Not;

// ns since the epoch: the device's counter of 1 GHz and its clock are 0 then.
constexpr int64_t kCounterBegin = 1767225600000000000;

// A row of a kernel, or of an operation: name, begin and end in us.
struct RunDecoder : Decoder {
  RunDecoder(const DecodeContext& context, TableId table, std::string name, int64_t begin, int64_t end) {
    const TableSpec& spec = TableOf(table);
    std::vector<uint64_t> cells(spec.columns.size());
    cells[0] = static_cast<uint64_t>(context.strings->Intern(name));
    cells[table == TableId::kKernel ? 2 : 3] = static_cast<uint64_t>((end - begin) * 1000);
    BatchBuilder builder(spec, 0, context.window, *context.rows);
    builder.AddCells(kCounterBegin + begin * 1000, cells);
    builder.Flush();
  }
  void Feed(std::span<const std::byte>, bool) override {}
  void Finish() override {}
};

const DecoderSpec* FindRan(std::string_view base, Place::Kind kind, int chip) {
  static constexpr TableId kKernels[] = {TableId::kKernel};
  static constexpr TableId kOperations[] = {TableId::kCommunication};
  static const DecoderSpec kKernel = {"activity_kernel.data", Place::Kind::kDevice, ~0u, 8, 0, kKernels,
                                      [](const DecodeContext& context) -> std::unique_ptr<Decoder> {
                                        return std::make_unique<RunDecoder>(context, TableId::kKernel, "conv", 1100,
                                                                            1300);
                                      }};
  static const DecoderSpec kOperation = {"activity_communication.data", Place::Kind::kDevice, ~0u, 8, 0, kOperations,
                                         [](const DecodeContext& context) -> std::unique_ptr<Decoder> {
                                           return std::make_unique<RunDecoder>(context, TableId::kCommunication,
                                                                               "hcom_allReduce_", 1400, 1500);
                                         }};
  if (base == kKernel.base) return &kKernel;
  return base == kOperation.base ? &kOperation : FindDecoder(base, kind, chip);
}

// dump-format 2.12: type, counter, index, model, stream, task, tag.
std::string StepRecord(uint64_t cycles, uint64_t index, uint16_t tag) {
  std::string bytes(40, '\0');
  const auto put = [&bytes](size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  put(1, uint8_t{10});
  put(8, cycles);
  put(16, index);
  put(24, uint64_t{4294967295});
  put(36, tag);
  return bytes;
}

// dump-format 4, operator-data e: such steps have zeros in the FP and BP columns, and no reduces.
TEST(StepPartsPass, TheVendorHasNoPartsOfTrainingSteps) {
  TempDir dir;
  const std::string root = dir / "PROF_000001_20260101000000000_AAAAAAAAAAAAAAAA";
  std::filesystem::create_directories(root + "/device_0/data");
  const auto put = [folder = root + "/device_0/"](const char* path, const std::string& text) {
    WriteText(folder + path, text);
  };
  put("info.json.0", R"({"platform_version":"5","CPU":[{"Frequency":""}],"DeviceInfo":[{"hwts_frequency":"1000"}]})");
  put("start_info.0", R"({"collectionTimeBegin":"1767225600000000","clockMonotonicRaw":"1"})");
  put("host_start.log.0", "clock_monotonic_raw: 1\ncntvct: 1\n");
  put("dev_start.log.0", "clock_monotonic_raw: 1\ncntvct: 0\n");
  put("data/ts_track.data.0.slice_0", StepRecord(1'000'000, 5, 60000) + StepRecord(2'000'000, 5, 60001));
  put("data/activity_kernel.data.0.slice_0", "12345678");
  put("data/activity_communication.data.0.slice_0", "12345678");
  for (bool compat : {false, true}) {
    ExportOptions options;
    options.dumps = {root};
    options.channels = {std::string(kEventsChannel)};
    options.out_dir = dir / (compat ? "theirs" : "ours");
    options.compat_msprof = compat;
    std::vector<std::unique_ptr<Format>> formats;
    formats.push_back(MakeCsvFormat());
    const Result<ExportReport> report = ExportRun(options, std::move(formats), FindRan, {}).Run();
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    std::string text;
    for (const OutputFile& file : report->outputs) {
      if (file.path.find("step_trace") != std::string::npos) text = ReadText(file.path);
    }
    if (compat) {
      EXPECT_THAT(text, HasSubstr("\n0,5,0.000\t,0.000\t,1767225600002000.000\t,1000.000,0.000,0.000,0.000,"
                                  "4294967295\n"));
      EXPECT_THAT(text, Not(HasSubstr("Reduce Start")));
    } else {
      EXPECT_THAT(text, HasSubstr("\n0,5,1767225600001100.000\t,1767225600001300.000\t,1767225600002000.000\t,1000.000,"
                                  "200.000,700.000,N/A,4294967295,1767225600001400.000\t,100.000\n"));
    }
  }
}

}  // namespace
}  // namespace profd::exporting
