// Input: the files of a dump that its owner may have made up (file_tree.h). It is recovered,
// verified and exported in every format; whatever it holds, each ends, and recovery leaves a dump
// that a second recovery finds complete.
#include <filesystem>

#include "dump/recovery.h"
#include "dump/verify.h"
#include "export/engine.h"
#include "tests/fuzz/file_tree.h"

namespace profd {
namespace {

constexpr std::string_view kName = "PROF_000001_20260101000000000_ABCDEFGHIJKLMNOP";

void Export(const std::string& dump, const std::string& out) {
  exporting::ExportOptions options;
  options.dumps = {dump};
  for (std::string_view format : exporting::FormatNames()) options.formats.emplace_back(format);
  options.out_dir = out;
  options.threads = 1;
  std::error_code ignored;
  std::filesystem::create_directories(out, ignored);
  Result<exporting::ExportReport> report = exporting::RunExport(options, {});
  if (!report.ok()) return;
  for (const exporting::OutputFile& file : report->outputs) {
    FUZZ_EXPECT(std::filesystem::exists(file.path));
  }
}

}  // namespace

void fuzz::Run(Input input) {
  static fuzz::TreeDirectory tree;
  tree.Clear();
  const std::string base(kName);
  fuzz::ForEachFile(input.rest(), [&](std::string_view path, std::string_view content) {
    tree.Write("root/" + base + "/" + std::string(path), content);
  });
  const std::string root_path = tree.path() + "/root";
  const std::string dump_path = root_path + "/" + base;
  std::error_code ignored;
  std::filesystem::create_directories(dump_path, ignored);
  Result<DumpRoot> root = DumpRoot::Open(root_path);
  FUZZ_EXPECT(root.ok());
  RecoveryOptions options;
  options.now_wall_ns = 1'767'225'700'000'000'000;
  options.now_raw_ns = 900'000'000'000'000;
  options.session_id = "0123456789ab";
  Result<RecoveredDump> first = RecoverDump(*root, base, options);
  if (first.ok() && first->outcome == RecoveredDump::Outcome::kRecovered) {
    Result<RecoveredDump> second = RecoverDump(*root, base, options);
    FUZZ_EXPECT(second.ok() && second->outcome == RecoveredDump::Outcome::kWasComplete);
  }
  Result<DumpReader> reader = DumpReader::OpenPath(dump_path);
  FUZZ_EXPECT(reader.ok());
  Result<VerifyReport> report = VerifyDump(*reader, base);
  if (report.ok()) FUZZ_EXPECT(report->problems.size() <= VerifyReport::kMaxProblems);
  Export(dump_path, tree.path() + "/out");
}

}  // namespace profd
