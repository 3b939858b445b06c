// The page: one application of static files (page/), and a run's data for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "analysis/checks/translated_text.h"
#include "analysis/views/views.h"
#include "base/status.h"

namespace profd::analysis {

inline constexpr size_t kReportSlices = 1'000'000;  // of a run; about 20 bytes each in the file

// The files of page/ and the chart library, by name, as they were built in.
std::map<std::string_view, std::string_view> EmbeddedFiles();

// What to do about a run that LacksOperators.
inline constexpr Text kLacksOperators(
    "no operators were recorded, which most analyses and checks need: record with --task-time l1 (with counters of the AI Core: --aic-metrics PipeUtilization)",
    "未采集算子，而多数分析和检查需要算子：请用 --task-time l1 采集（需要 AI Core 计数器时用 --aic-metrics PipeUtilization）");

// What the page shows of a run: all views, the timeline of each rank, `findings` (as Advise() returns them), and what
// differs from the baseline; results of tuning in its directories. `created_s`: when, since the epoch. `language`: that of the findings.
Json PageData(const Run& run, const Run* baseline_or_null, Json findings, size_t most_slices, int64_t created_s, Language language = Language::kEnglish);

// Compact JSON, gzip. What is not UTF-8 is replaced.
Result<std::string> PackedJson(const Json& json);

// The page with its styles and programs in it, and the packed data; without, it asks the server it comes from. It asks
// no other server: its policy forbids it.
std::string PageHtml(std::string_view packed);

}  // namespace profd::analysis
