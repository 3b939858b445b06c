// What the collector wrote beside its data (analysis 1.3): of a device PROF_*/device_<n>/info.json.<n>, of operators
// PROF_*/host/sqlite/ge_info.db.
#include <nlohmann/json.hpp>

#include "analysis/read/readers.h"
#include "analysis/read/sqlite_file.h"
#include "base/text.h"
#include "dump/json_depth.h"

namespace profd::analysis {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void TakeStates(const fs::path& file, const ReadContext& context, Rank* rank) {
  const Result<Database> database = Database::Open(file, context.progress);
  Status status = database.status();
  if (database.ok() && database->Has("TaskInfo")) {
    status = database->Each("SELECT DISTINCT op_state FROM TaskInfo", [rank](const Row& row) {
      if (row.Text(0) == "0") rank->op_states.emplace("static");
      if (row.Text(0) == "1") rank->op_states.emplace("dynamic");
    });
  }
  context.AddProblem(file, status);
}

}  // namespace

void ReadDeviceFacts(const fs::path& directory, const ReadContext& context, Rank* rank) {
  constexpr uint64_t kMostFacts = 1 << 20;
  std::error_code error;
  const int above = directory.filename().native().starts_with("PROF_") ? 0 : 1;  // folders above device_<n>
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool wanted = it.depth() < above ? name.starts_with("PROF_") : it.depth() == above && name.starts_with("device_");
    if (it->is_directory(error) && !wanted) it.disable_recursion_pending();
    if (it.depth() != above + 1 || !name.starts_with("info.json.")) continue;
    const Result<std::string> text = ReadWhole(it->path(), kMostFacts);
    const Json json = text.ok() && !NestsTooDeep(*text, kDeepestJson) ? Json::parse(*text, nullptr, false) : Json();
    if (!json.is_object() || !json.contains("DeviceInfo") || !json["DeviceInfo"].is_array() || json["DeviceInfo"].empty()) {
      context.AddProblem(it->path(), text.ok() ? "no JSON with DeviceInfo" : text.status().message());
      continue;
    }
    const Json& device = json["DeviceInfo"][0];
    if (!device.is_object()) continue;
    const auto number = [&device](const char* key) {
      const Json value = device.value(key, Json());
      double parsed = value.is_number() ? value.get<double>() : 0;
      if (value.is_string() && !ParseNumber(value.get<std::string>(), &parsed)) parsed = 0;
      return parsed > 0 && parsed < 1e6 ? parsed : 0;
    };
    rank->cube_cores = static_cast<int>(number("ai_core_num"));
    rank->vector_cores = static_cast<int>(number("aiv_num"));
    rank->core_mhz = number("aic_frequency");
    return;
  }
}

void ReadShapeStates(const fs::path& directory, const ReadContext& context, Rank* rank) {
  if (!rank->op_states.empty()) return;
  const fs::path inside = fs::path("host") / "sqlite" / "ge_info.db";
  std::error_code error;
  if (directory.filename().native().starts_with("PROF_")) {
    if (fs::is_regular_file(directory / inside, error)) TakeStates(directory / inside, context, rank);
    return;
  }
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool has = it->path().filename().native().starts_with("PROF_") && fs::is_regular_file(it->path() / inside, ignored);
    if (has) TakeStates(it->path() / inside, context, rank);
  }
}

}  // namespace profd::analysis
