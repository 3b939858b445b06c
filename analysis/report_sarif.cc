#include "analysis/report_sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text.h"

namespace profd::analysis {
namespace {

// A path as a URI; one that is not absolute is relative to the folder the editor has open.
std::string UriOf(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain = IsLetterOrDigit(c) || std::string_view("/-._~").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

std::string_view LevelOf(std::string_view priority) {
  if (priority == "high") return "error";
  if (priority == "medium") return "warning";
  return priority == "low" ? "note" : "none";
}

Json LocationOf(const Json& frame) {
  Json location = {{"physicalLocation",
                    {{"artifactLocation", {{"uri", UriOf(frame["file"].get<std::string>())}}}}}};
  const auto line = frame["line"].get<int64_t>();
  if (line > 0) location["physicalLocation"]["region"] = {{"startLine", line}};
  if (!frame["function"].get_ref<const std::string&>().empty())
    location["logicalLocations"] =
        Json::array({{{"fullyQualifiedName", frame["function"]}, {"kind", "function"}}});
  return location;
}

std::string MessageOf(const Json& finding, Language language) {
  std::string text = fmt::format("{}: {}", finding["title"].get<std::string>(),
                                 finding["evidence"].get<std::string>());
  if (!finding["cost_ms"].is_null())
    text += fmt::format(" ({:.3f} {})", finding["cost_ms"].get<double>(),
                        (finding["cost_of"] == "step" ? Text("ms per step", "毫秒/step")
                                                      : Text("ms in all", "毫秒（全程）"))
                            .In(language));
  for (const Json& advice : finding["advice"]) text += "\n- " + advice.get<std::string>();
  return text;
}

Json ResultOf(const Json& finding, size_t rule, Language language) {
  const std::string priority = finding["priority"].get<std::string>();
  Json result = {{"ruleId", finding["check"]},
                 {"ruleIndex", rule},
                 {"kind", priority == "info" ? "informational" : "fail"},
                 {"level", LevelOf(priority)},
                 {"message", {{"text", MessageOf(finding, language)}}}};
  for (const char* property : {"dimension", "priority", "rank", "step", "cost_ms", "cost_of", "at_ns"})
    result["properties"][property] = finding[property];
  return result;
}

void AddResults(const Json& finding, size_t rule, Language language, Json* results) {
  const Json result = ResultOf(finding, rule, language);
  if (finding["places"].empty()) results->push_back(result);
  for (const Json& place : finding["places"]) {
    Json here = result;
    here["locations"] = Json::array({LocationOf(place)});
    Json frames = Json::array();
    for (const Json& frame : place["stack"]) frames.push_back({{"location", LocationOf(frame)}});
    if (!frames.empty()) here["stacks"] = Json::array({{{"frames", std::move(frames)}}});
    results->push_back(std::move(here));
  }
}

}  // namespace

Json Sarif(const Json& findings, std::string_view version, Language language) {
  Json rules = Json::array();
  for (const Check& check : Checks()) {
    rules.push_back(
        {{"id", check.id},
         {"shortDescription", {{"text", check.what.In(language)}}},
         {"properties", {{"dimension", DimensionWord(check.dimension)}, {"needs", check.needs.In(language)}}}});
  }
  Json results = Json::array();
  for (const Json& finding : findings) {
    const auto rule = std::ranges::find(Checks(), finding["check"].get<std::string>(), &Check::id);
    AddResults(finding, static_cast<size_t>(rule - Checks().begin()), language, &results);
  }
  const Json driver = {
      {"name", "profctl advise"}, {"version", version}, {"rules", std::move(rules)}};
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", Json::array({{{"tool", {{"driver", driver}}},
                                 {"columnKind", "utf16CodeUnits"},
                                 {"results", std::move(results)}}})}};
}

}  // namespace profd::analysis
