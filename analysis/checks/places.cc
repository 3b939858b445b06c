#include "analysis/checks/places.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/text.h"

namespace profd::analysis {
namespace {

constexpr size_t kMostPlaces = 100;  // of a finding
constexpr size_t kMostFrames = 64;   // of a stack

std::optional<Frame> FrameOf(std::string_view text) {
  const size_t close = text.rfind("): ");
  const size_t end = close != std::string_view::npos ? close
                     : text.ends_with(')')           ? text.size() - 1
                                                     : std::string_view::npos;
  if (end == std::string_view::npos) return std::nullopt;
  const size_t open = text.rfind('(', end);
  Frame frame;
  if (open == std::string_view::npos || open == 0 ||
      !ParseNumber(text.substr(open + 1, end - open - 1), &frame.line) || frame.line < 0)
    return std::nullopt;
  frame.file = text.substr(0, open);
  if (close != std::string_view::npos) frame.function = text.substr(close + 3);
  return frame;
}

bool IsInstalled(std::string_view file) {
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python"}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return file.starts_with('<');
}

}  // namespace

std::vector<Frame> FramesOf(std::string_view stack) {
  std::vector<Frame> frames;
  for (std::string_view part; frames.size() < kMostFrames && NextPart(&stack, ';', &part);) {
    if (const auto frame = FrameOf(Trim(part))) frames.push_back(*frame);
  }
  return frames;
}

const Frame& OwnFrame(const std::vector<Frame>& frames) {
  const auto own =
      std::ranges::find_if(frames, [](const Frame& each) { return !IsInstalled(each.file); });
  return own == frames.end() ? frames.front() : *own;
}

std::string_view StackAt(const Rank& rank, int64_t t_ns) {
  const Slice* inner = nullptr;
  TextId found = kNoText;
  for (const auto& [number, stack] : rank.stacks) {
    const Slice& each = rank.slices[number];
    if (each.start_ns > t_ns || each.end_ns < t_ns ||
        (inner != nullptr && each.start_ns < inner->start_ns))
      continue;
    inner = &each;
    found = stack;
  }
  return rank.TextOf(found);
}

std::vector<std::string_view> StacksOfLaunches(const Rank& rank,
                                               const std::vector<uint32_t>& executions) {
  std::unordered_map<uint32_t, uint32_t> launches;  // slices by execution
  for (const Flow& flow : rank.flows) {
    // An operator of the framework is more useful than the call below it.
    const auto [it, is_new] = launches.try_emplace(flow.execution, flow.slice);
    if (!is_new && rank.stacks.contains(flow.slice)) it->second = flow.slice;
  }
  std::vector<std::string_view> stacks;
  for (const uint32_t execution : executions) {
    const auto launch = launches.find(execution);
    if (launch == launches.end()) {
      stacks.emplace_back();
      continue;
    }
    const auto own = rank.stacks.find(launch->second);
    stacks.push_back(own != rank.stacks.end()
                         ? rank.TextOf(own->second)
                         : StackAt(rank, rank.slices[launch->second].start_ns));
  }
  return stacks;
}

Json PlacesOf(const std::vector<std::string>& stacks) {
  Json places = Json::array();
  std::set<std::pair<std::string_view, int64_t>> known;
  for (const std::string& stack : stacks) {
    const std::vector<Frame> frames = FramesOf(stack);
    if (frames.empty()) continue;
    const Frame& own = OwnFrame(frames);
    if (places.size() >= kMostPlaces || !known.emplace(own.file, own.line).second) continue;
    Json place = {{"file", own.file},
                  {"line", own.line},
                  {"function", own.function},
                  {"stack", Json::array()}};
    for (const Frame& each : frames)
      place["stack"].push_back(
          {{"file", each.file}, {"line", each.line}, {"function", each.function}});
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace profd::analysis
