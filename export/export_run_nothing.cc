// Of an export that would write nothing: why, and what to choose instead.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "export/export_run.h"

namespace profd::exporting {
namespace {

// What of `tables` and events there is, as --channels names it.
std::vector<std::string_view> ChannelNames(uint64_t tables, bool events) {
  std::vector<std::string_view> names;
  for (const TableSpec& table : Tables()) {
    if ((tables & TableBit(table.id)) != 0) names.push_back(table.name);
  }
  if (events) names.push_back(kEventsChannel);
  return names;
}

// "use --format csv or trace".
template <class Shows>
std::string UseFormats(const Shows& shows) {
  std::vector<std::string_view> names;
  for (const std::string_view name : FormatNames()) {
    RunningFormat format(MakeFormat(name));
    if (shows(format)) names.push_back(name);
  }
  return fmt::format("use --format {}", fmt::join(names, " or "));
}

}  // namespace

Status NothingToExport(const ExportReport& report, std::string why) {
  constexpr size_t kEnough = 500;
  for (const DumpInfo::Problem& problem : report.problems) {
    if (why.size() < kEnough) why += fmt::format("; {}: {}", problem.file, problem.what);
  }
  return NotFound("nothing to export" + why);
}

bool ExportRun::HasWork() const {
  const bool events = std::ranges::any_of(formats_, [](const auto& format) { return format->events(); });
  const auto has_operators = [](const Place& place) {
    return std::ranges::any_of(place.files, [&place](const DataFile& file) { return operators::IsOperatorFile(place, file.base); });
  };
  const bool operators = operators_ && std::ranges::any_of(dumps_, [&](const Dump& dump) { return std::ranges::any_of(dump.info().places, has_operators); });
  return operators ||
         std::ranges::any_of(tasks_, [events](const Task& task) { return task.rows || (events && !task.losses.empty()); });
}

std::string ExportRun::WhyNothing() const {
  uint64_t tables = 0;  // of the dumps
  bool events = std::ranges::any_of(tasks_, [](const Task& task) { return !task.losses.empty(); });
  bool operators = false;
  for (size_t i = 0; i < dumps_.size(); ++i) {
    for (const Place& place : dumps_[i].info().places) {
      for (const DataFile& file : place.files) {
        const DecoderSpec* spec = find_(file.base, place.kind, place.chip);
        operators |= operators::IsOperatorFile(place, file.base);
        if (spec == nullptr || HasTaskCounters(*spec, place)) continue;
        const bool of_place = place.kind != Place::Kind::kOwn && !spec->rows_have_devices;
        if (of_place && !filters_[i].HasDevice(place.device)) continue;
        for (const TableId id : spec->tables) tables |= TableBit(id);
        events |= spec->tables.empty();
      }
    }
  }
  std::string why;
  const auto missing = options_.channels.empty() ? std::vector<std::string_view>()
                                                 : ChannelNames(filter_.tables & ~tables, filter_.events && !events);
  if (!missing.empty()) {
    const bool of_all = options_.devices.empty() && options_.ranks.empty();
    why += fmt::format("; {} no {}", of_all ? "the dumps have" : "what --devices and --rank choose has", fmt::join(missing, ", "));
    const auto present = ChannelNames(tables, events);
    if (!present.empty()) why += fmt::format(", --channels can be of {}", fmt::join(present, ", "));
  }
  tables &= filter_.tables;
  events &= filter_.events;
  const auto hidden = ChannelNames(tables, events);
  std::vector<std::string_view> chosen;
  for (const auto& format : formats_) chosen.push_back(format->format().name());
  if (!hidden.empty()) {
    why += fmt::format("; {} cannot show {}, {}", fmt::join(chosen, ", "), fmt::join(hidden, ", "),
                       UseFormats([&](RunningFormat& format) {
                         return (format.tables() & tables) != 0 || (format.events() && events);
                       }));
  }
  if (operators && !options_.channels.empty()) {
    why += "; records of the vendor's profiler are in no channel, export them without --channels";
  } else if (operators) {
    why += fmt::format("; {} cannot show records of the vendor's profiler, {}", fmt::join(chosen, ", "),
                       UseFormats([](RunningFormat& format) { return format.format().wants().operators; }));
  }
  return why;
}

}  // namespace profd::exporting
