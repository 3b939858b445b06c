#include "analysis/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "analysis/cluster/cluster_view.h"
#include "analysis/tuning/tuning_view.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

void Replace(std::string* text, std::string_view mark, std::string_view with) {
  const size_t at = text->find(mark);
  if (at != std::string::npos) text->replace(at, mark.size(), with);
}

// A script ends at the first "</script", wherever it stands.
std::string Script(std::string_view program) {
  std::string text(program);
  for (size_t at = text.find("</script"); at != std::string::npos; at = text.find("</script", at)) text.insert(at + 1, "\\");
  return "<script>\n" + text + "\n</script>\n";
}

// Of more ranks the page shows in full only those that checks looked at.
constexpr size_t kMostPageRanks = 64;

Json PageRank(const Rank& rank, bool full) {
  if (full) return RankJson(rank, {});
  const ViewNames brief = {"overall", "steps", "step_average"};
  Json json = RankJson(rank, brief);
  json["brief"] = true;
  for (const View& view : Views()) {
    if (!brief.contains(view.name)) json[std::string(view.name)] = nullptr;
  }
  return json;
}

// "rank 7" in a text, not "rank 70".
bool Names(std::string_view text, const std::string& rank) {
  for (size_t at = text.find(rank); at != std::string_view::npos; at = text.find(rank, at + 1)) {
    const size_t end = at + rank.size();
    if (end == text.size() || !IsDigit(text[end])) return true;
  }
  return false;
}

// As the rank that a finding is of, or by the text of one about all ranks.
bool IsNamed(const Json& findings, const Rank& rank) {
  if (!rank.rank) return false;
  const std::string name = fmt::format("rank {}", *rank.rank);
  return std::ranges::any_of(findings, [&rank, &name](const Json& each) {
    return each["rank"] == *rank.rank || Names(each["evidence"].get_ref<const std::string&>(), name);
  });
}

}  // namespace

Json PageData(const Run& run, const Run* baseline_or_null, Json findings, size_t most_slices, int64_t created_s, Language language) {
  Json data = {{"run", {{"name", run.name}, {"inputs", run.inputs}}}, {"ranks", Json::array()}};
  constexpr size_t kFields = 10;
  ReserveFields(kFields, &data);
  for (size_t i = 0; i < run.ranks.size(); ++i) data["ranks"].push_back(PageRank(*run.ranks[i], i < kMostPageRanks || IsNamed(findings, *run.ranks[i])));
  data["problems"] = ProblemsJson(run, baseline_or_null);
  data["cluster"] = ClusterView(Cluster(run));
  data["run"]["created"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(created_s)));
  const size_t each = std::max<size_t>(most_slices / std::max<size_t>(run.ranks.size(), 1), 1);
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    Json& rank = data["ranks"][i];
    if (!rank["timeline"].is_null()) rank["timeline_data"] = TimelineData(*run.ranks[i], each);
  }
  data["hints"] = Hints(run, data);
  data["language"] = LanguageWord(language);
  data["findings"] = std::move(findings);
  const std::vector<std::string> tuned = TuningResultsIn(run.inputs);
  data["tuning"] = tuned.empty() ? Json() : TuningView(ReadTuningResults(tuned));
  data["compare"] = baseline_or_null == nullptr ? Json() : CompareView(run, *baseline_or_null);
  return data;
}

Result<std::string> PackedJson(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, Z_BEST_SPEED + 3, Z_DEFLATED, kGzip, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Status(StatusCode::kResourceExhausted, "no memory to pack the report");
  }
  std::string packed;
  std::array<char, 1 << 16> buffer;
  const char* from = text.data();
  size_t left = text.size();
  int code = Z_OK;
  while (code == Z_OK) {
    // zlib counts in 32 bits.
    const size_t piece = std::min<size_t>(left, 1 << 30);
    if (stream.avail_in == 0) {
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from));
      stream.avail_in = static_cast<uInt>(piece);
      from += piece;
      left -= piece;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    packed.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  if (code != Z_STREAM_END) return Internal("zlib does not pack the report");
  return packed;
}

std::string PageHtml(std::string_view packed) {
  const auto files = EmbeddedFiles();
  std::string page(files.at("page.html"));
  std::string scripts = Script(files.at("chart.js"));
  for (const auto& [name, text] : files) {
    if (name.ends_with(".js") && name != "chart.js") scripts += Script(text);
  }
  Replace(&page, "<!--profd:style-->", "<style>\n" + std::string(files.at("style.css")) + "\n</style>");
  Replace(&page, "<!--profd:data-->",
          packed.empty() ? std::string()
                         : "<script id=\"profd-data\" type=\"application/gzip;base64\">" + Base64(packed) + "</script>");
  Replace(&page, "<!--profd:scripts-->", scripts);
  return page;
}

}  // namespace profd::analysis
