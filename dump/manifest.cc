#include "dump/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace profd {
namespace {

using Json = nlohmann::ordered_json;

Json ClocksJson(const DumpClocks& clocks) {
  Json json;
  json["host_ns"] = clocks.host_ns;
  json["host_count"] = clocks.host_count;
  json["device_ns"] = clocks.device_ns;
  json["device_count"] = clocks.device_count;
  json["uncertainty_ns"] = clocks.uncertainty_ns;
  return json;
}

Json ChannelJson(const ManifestChannel& channel) {
  Json json;
  json["collector"] = channel.collector;
  json["device"] = channel.device;
  json["channel"] = channel.channel;
  json["file"] = channel.file;
  json["state"] = channel.state;
  json["detail"] = channel.detail;
  json["hz_asked"] = channel.hz_asked;
  json["hz_effective"] = channel.hz_effective;
  json["channel_hz"] = channel.channel_hz;
  json["records"] = channel.records;
  json["bytes"] = channel.bytes;
  const ManifestAged& aged = channel.aged;
  json["aged"] = {{"slices", aged.slices}, {"records", aged.records}, {"bytes", aged.bytes},
                  {"from_ns", aged.from_ns}, {"to_ns", aged.to_ns}};
  json["dropped"] = Json::array();
  for (const ManifestLoss& loss : channel.dropped) {
    json["dropped"].push_back({{"reason", ToString(loss.reason)},
                               {"records", loss.records},
                               {"bytes", loss.bytes},
                               {"from_ns", loss.from_ns},
                               {"to_ns", loss.to_ns}});
  }
  json["garbage_bytes"] = channel.garbage_bytes;
  json["thinned"] = channel.thinned;
  json["thinned_records"] = channel.thinned_records;
  json["readings"] = channel.readings;
  if (channel.past_until_ns != 0) {
    json["past_hz"] = channel.past_hz;
    json["past_until_ns"] = channel.past_until_ns;
  }
  json["rebased"] = channel.rebased;
  json["rebase_us"] = channel.rebase_us;
  json["gap_count"] = channel.gap_count;
  json["gaps"] = Json::array();
  for (const ManifestGap& gap : channel.gaps) {
    json["gaps"].push_back(
        {{"from_ns", gap.from_ns}, {"host_ns", gap.host_ns}, {"lost_records", gap.lost_records},
         {"reason", ToString(gap.reason)}});
  }
  return json;
}

Json SessionJson(const Manifest& manifest) {
  Json json;
  json["id"] = manifest.session_id;
  json["uid"] = manifest.uid;
  json["gid"] = manifest.gid;
  json["pid"] = manifest.pid;
  json["job_id"] = manifest.job_id;
  json["rank"] = manifest.rank ? Json(*manifest.rank) : Json(nullptr);
  json["label"] = manifest.label;
  json["requested"] = Json(manifest.requested);
  json["effective"] = Json(manifest.effective);
  json["options"] = Json::array();
  for (const ManifestOption& option : manifest.options) {
    json["options"].push_back({{"key", option.key},
                               {"value", option.value},
                               {"asked", option.asked},
                               {"note", option.note}});
  }
  json["metadata"] = Json(manifest.metadata);
  json["processes"] = Json::array();
  for (const ManifestProcess& process : manifest.processes) {
    json["processes"].push_back({{"pid", process.pid},
                                 {"rank", process.rank ? Json(*process.rank) : Json(nullptr)},
                                 {"attached", process.attached},
                                 {"devices", process.devices},
                                 {"command", process.command},
                                 {"cpus", process.cpus}});
    if (!process.launch_cpus.empty()) json["processes"].back()["launch_cpus"] = process.launch_cpus;
    if (process.provider.empty()) continue;
    json["processes"].back()["collector"] = {{"provider", process.provider},
                                             {"state", process.collector_state},
                                             {"detail", process.collector_detail},
                                             {"version", process.collector_version}};
    if (process.collector_cpu_ns > 0) json["processes"].back()["collector"]["cpu_ns"] = process.collector_cpu_ns;
  }
  json["start_step"] = manifest.start_step ? Json(*manifest.start_step) : Json(nullptr);
  json["steps"] = manifest.steps;
  json["steps_done"] = manifest.steps_done;
  json["marks"] = manifest.marks;
  json["dropped_marks"] = manifest.dropped_marks;
  json["start_wall_ns"] = manifest.start_wall_ns;
  json["start_raw_ns"] = manifest.start_raw_ns;
  json["end_wall_ns"] = manifest.end_wall_ns;
  json["end_raw_ns"] = manifest.end_raw_ns;
  json["stop_raw_ns"] = manifest.stop_raw_ns;
  return json;
}

Json NodeJson(const Manifest& manifest) {
  Json json;
  json["hostname"] = manifest.hostname;
  json["os"] = manifest.os;
  json["machine"] = manifest.machine;
  json["host_counter_hz"] = manifest.host_counter_hz;
  json["devices"] = Json::array();
  for (const ManifestDevice& device : manifest.devices) {
    Json one;
    one["id"] = device.id;
    one["physical_id"] = device.physical_id;
    one["chip"] = device.chip;
    one["chip_id"] = device.chip_id;
    one["uuid"] = device.uuid;
    one["counter_hz"] = device.counter_hz;
    one["aicore_mhz"] = device.aicore_mhz;
    one["local_cpus"] = device.local_cpus;
    if (device.joined_raw_ns != 0) one["joined_raw_ns"] = device.joined_raw_ns;
    json["devices"].push_back(std::move(one));
  }
  return json;
}

std::string Hex(uint32_t sum) { return fmt::format("{:08x}", sum); }

// Only what is known: there may be tens of thousands.
Json FileJson(const ManifestFile& file) {
  Json json;
  json["path"] = file.path;
  json["bytes"] = file.bytes;
  if (file.records) json["records"] = *file.records;
  if (file.crc32c) json["crc32c"] = Hex(*file.crc32c);
  if (!file.state.empty()) json["state"] = file.state;
  if (file.raw_bytes != 0) {
    json["raw_bytes"] = file.raw_bytes;
    json["raw_crc32c"] = Hex(file.raw_crc32c);
  }
  if (file.last_ns != 0) {
    json["first_ns"] = file.first_ns;
    json["last_ns"] = file.last_ns;
  }
  if (file.pid != 0) json["pid"] = file.pid;
  return json;
}

Json ProcessFilesJson(const ManifestProcessFiles& files) {
  Json json;
  json["pid"] = files.pid;
  json["rank"] = files.rank ? Json(*files.rank) : Json(nullptr);
  json["layout"] = files.layout;
  json["directory"] = files.directory;
  json["state"] = files.state;
  json["files"] = files.files;
  json["bytes"] = files.bytes;
  json["refused"] = files.refused;
  json["refused_bytes"] = files.refused_bytes;
  json["examples"] = Json::array();
  for (const ManifestProcessFiles::Example& one : files.examples) {
    json["examples"].push_back({{"path", one.path}, {"why", one.why}});
  }
  json["problem"] = files.problem;
  return json;
}

constexpr std::string_view kStateNames[] = {"running", "done", "failed", "interrupted"};

}  // namespace

std::string_view ToString(DumpState state) { return kStateNames[static_cast<size_t>(state)]; }

void ManifestChannel::AddGap(ManifestGap gap) {
  ++gap_count;
  if (gaps.size() < kMaxManifestGaps) gaps.push_back(gap);
}

void ManifestChannel::AddLoss(LossReason reason, uint64_t lost_records, uint64_t lost_bytes,
                              int64_t host_ns) {
  auto loss = std::find_if(dropped.begin(), dropped.end(),
                           [&](const ManifestLoss& one) { return one.reason == reason; });
  if (loss == dropped.end()) {
    loss = dropped.insert(dropped.end(), {reason, 0, 0, host_ns, host_ns});
  }
  loss->records += lost_records;
  loss->bytes += lost_bytes;
  if (host_ns == 0) return;
  if (loss->from_ns == 0 || host_ns < loss->from_ns) loss->from_ns = host_ns;
  loss->to_ns = std::max(loss->to_ns, host_ns);
}

void ManifestChannel::AddAged(uint64_t aged_records, uint64_t aged_bytes, int64_t from_ns,
                              int64_t to_ns) {
  ++aged.slices;
  aged.records += aged_records;
  aged.bytes += aged_bytes;
  if (from_ns != 0 && (aged.from_ns == 0 || from_ns < aged.from_ns)) aged.from_ns = from_ns;
  aged.to_ns = std::max(aged.to_ns, to_ns);
  AddLoss(LossReason::kAged, aged_records, aged_bytes, from_ns);
  AddLoss(LossReason::kAged, 0, 0, to_ns);
  // The oldest goes first, so what is gone is one piece.
  auto gap = std::find_if(gaps.begin(), gaps.end(),
                          [](const ManifestGap& one) { return one.reason == LossReason::kAged; });
  if (gap == gaps.end()) {
    ++gap_count;
    if (gaps.size() >= kMaxManifestGaps) gaps.pop_back();
    gap = gaps.insert(gaps.begin(), {0, 0, LossReason::kAged, 0});
  }
  gap->lost_records = aged.records;
  gap->from_ns = aged.from_ns;
  gap->host_ns = aged.to_ns;
}

std::string Serialize(const Manifest& manifest) {
  Json json;
  json["profd_manifest"] = manifest.version;
  json["state"] = ToString(manifest.state);
  json["reason"] = manifest.reason;
  json["segment"] = manifest.segment;
  json["continues"] = manifest.continues;
  json["limit_bytes"] = manifest.limit_bytes;
  json["limit_action"] = manifest.limit_action;
  json["versions"] = {{"profd", manifest.profd_version},
                      {"build", manifest.build},
                      {"hal_api", manifest.hal_api_version},
                      {"driver", manifest.driver_version},
                      {"dcmi", manifest.dcmi_version}};
  json["session"] = SessionJson(manifest);
  json["node"] = NodeJson(manifest);
  json["channels"] = Json::array();
  for (const ManifestChannel& channel : manifest.channels) {
    json["channels"].push_back(ChannelJson(channel));
  }
  json["clocks"] = Json::array();
  for (const ManifestClock& clock : manifest.clocks) {
    Json one;
    one["device"] = clock.device;
    one["when"] = clock.when;
    one.update(ClocksJson(clock.clocks));
    json["clocks"].push_back(std::move(one));
  }
  json["warnings"] = manifest.warnings;
  for (const ManifestProcessFiles& files : manifest.process_files) {
    json["process_files"].push_back(ProcessFilesJson(files));
  }
  json["data_bytes"] = manifest.data_bytes;
  json["files"] = Json::array();
  for (const ManifestFile& file : manifest.files) {
    json["files"].push_back(FileJson(file));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace profd
