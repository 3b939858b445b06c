#include "client/commands/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

#include "client/health_view.h"
#include "client/render.h"

namespace profd::client {
namespace {

std::string Library(const std::string& path, const std::string& error, const std::string& version) {
  if (!error.empty()) return "unavailable: " + error;
  if (path.empty()) return "none";
  return version.empty() ? path : fmt::format("{} ({})", version, path);
}

std::string HalVersion(uint32_t version) {
  if (version == 0) return "";
  return fmt::format("API {:#08x}", version);
}

std::string Devices(const v1::Node& node) { return node.devices().empty() ? "none: host only" : ChipsText(node); }

std::string HealthText(const v1::Node& node) {
  int not_ok = 0;
  for (const v1::Device& device : node.devices()) {
    if (device.health().verdict() != v1::Health::VERDICT_OK) ++not_ok;
  }
  std::string word = VerdictWord(node.health().verdict());
  if (not_ok == 0) return word;
  return fmt::format("{}: {} of {} not ok (profctl health)", word, not_ok,
                     CountText(static_cast<uint64_t>(node.devices_size()), "device"));
}

std::string Collectors(const v1::Node& node) {
  int available = 0;
  for (const v1::CollectorInfo& collector : node.collectors()) {
    if (collector.available()) ++available;
  }
  return fmt::format("{} of {} can run here", available, node.collectors_size());
}

std::string YouText(const v1::Caller& caller) {
  std::string text = caller.viewer() ? "viewer" : fmt::format("uid {}", caller.uid());
  if (caller.admin()) text += ", administrator";
  if (!caller.certificate().empty()) text += fmt::format(", certificate {}", caller.certificate());
  return text;
}

std::string RecorderText(const v1::Recorder& recorder) {
  std::string text = fmt::format(
      "{:.0f} of {:.0f} s, {} of {}", static_cast<double>(recorder.held_ns()) / 1e9,
      static_cast<double>(recorder.limit_ms()) / 1e3,
      FormatBytes(recorder.held_bytes()), FormatBytes(recorder.limit_bytes()));
  int failing = 0;
  for (const v1::RecorderChannel& channel : recorder.channels()) {
    if (!channel.problem().empty()) ++failing;
    if (channel.collector() != "activity" || channel.bytes() == 0) continue;
    text += fmt::format("; activity {:.0f} s, {}", static_cast<double>(channel.held_ns()) / 1e9, FormatBytes(channel.bytes()));
  }
  if (failing > 0) text += fmt::format("; {} of {} do not deliver (--json)", failing, recorder.channels_size());
  uint64_t dumps = 0;
  for (const auto& [reason, count] : recorder.dumps()) dumps += count;
  if (dumps > 0) text += "; " + CountText(dumps, "dump");
  if (recorder.triggers_size() > 0) text += "; " + CountText(static_cast<uint64_t>(recorder.triggers_size()), "trigger");
  return text;
}

std::string OverheadText(const v1::Overhead& overhead) {
  std::string text = fmt::format("{:.1f} % of a core", 100 * overhead.cores());
  if (overhead.has_max_cores()) text += fmt::format(", {:.0f} % allowed", 100 * overhead.max_cores());
  if (overhead.pace() > 1) text += fmt::format("; over it: host and DCMI collectors are read at 1/{} of their rates", overhead.pace());
  return text;
}

std::string TuningText(const v1::TuningLease& lease) {
  std::string text = fmt::format("NPU {} kept, lease {}", fmt::join(lease.devices().begin(), lease.devices().end(), ","), lease.lease_id());
  if (lease.has_uid()) text += fmt::format(", uid {}, process {}", lease.uid(), lease.pid());
  if (!lease.job_id().empty()) text += ", job " + lease.job_id();
  return text;
}

std::string ArchiveText(const v1::ArchiveStatus& archive, int64_t now_ns) {
  std::string text = archive.waiting() == 0 ? "nothing waits" : fmt::format("{} wait, {}", archive.waiting(), FormatBytes(archive.waiting_bytes()));
  if (archive.has_oldest_ns()) text += fmt::format(", the oldest for {}", FormatSpan(now_ns - archive.oldest_ns()));
  uint64_t here = archive.loaded();
  std::string elsewhere;
  for (const auto& [to, count] : std::map<std::string, uint64_t>(archive.loaded_elsewhere().begin(), archive.loaded_elsewhere().end())) {
    here -= std::min(here, count);
    elsewhere += fmt::format("; {} loaded into {} before", count, to);
  }
  text += fmt::format("; {} loaded into {}", here, archive.to()) + elsewhere;
  if (archive.lost() > 0) text += fmt::format("; {} not archived", archive.lost());
  if (archive.has_failing_since_ns()) text += fmt::format("; failing for {}: {}", FormatSpan(now_ns - archive.failing_since_ns()), archive.problem());
  constexpr int64_t kLongNs = 300 * kNsPerSecond;
  if (!archive.has_asked_ns()) {
    text += "; profctl archive has not connected yet (profd-archive.service)";
  } else if (now_ns - archive.asked_ns() > kLongNs && !archive.has_failing_since_ns() && archive.waiting() > 0) {
    text += fmt::format("; profctl archive connected {} ago", FormatSpan(now_ns - archive.asked_ns()));
  }
  return text;
}

void Print(const Context& context, const v1::Node& node) {
  std::ostream& out = context.io.out;
  out << fmt::format("profd {} on {}, up {}\n", Printable(node.version()),
                     Printable(node.hostname()),
                     FormatSpan(static_cast<int64_t>(node.uptime_ns())));
  auto line = [&out](std::string_view name, const std::string& value) {
    out << fmt::format("  {:<11}{}\n", name, Printable(value));
  };
  if (node.simulated()) line("simulated", "yes: all values are synthetic");
  const v1::DriverInfo& driver = node.driver();
  line("driver", driver.driver_version().empty() ? "unknown" : driver.driver_version());
  line("HAL", Library(driver.hal_path(), driver.hal_error(), HalVersion(driver.hal_api_version())));
  line("DCMI", Library(driver.dcmi_path(), driver.dcmi_error(), driver.dcmi_version()));
  if (driver.missing_symbols_size() > 0) {
    line("missing",
         CountText(static_cast<uint64_t>(driver.missing_symbols_size()), "driver function") + " (--json lists them)");
  }
  line("devices", Devices(node));
  line("health", HealthText(node));
  line("collectors", Collectors(node));
  line("sessions", fmt::format("{} of at most {}", node.active_sessions(), node.max_sessions()));
  line("dumps", fmt::format("{}, {} free", node.dump_root(), FormatBytes(node.dump_free_bytes())));
  if (node.recorder().enabled()) line("recorder", RecorderText(node.recorder()));
  if (node.has_overhead()) line("overhead", OverheadText(node.overhead()));
  if (node.has_archive()) line("archive", ArchiveText(node.archive(), DaemonNowNs(context)));
  for (const v1::TuningLease& lease : node.tuning_leases()) line("tuning", TuningText(lease));
  line("metrics", node.metrics_address().empty()
                      ? "off"
                      : fmt::format("http{}://{}/metrics", node.metrics_tls() ? "s" : "",
                                    node.metrics_address()));
  if (!node.tls_address().empty()) line("TLS", node.tls_address());
  for (const std::string& right : node.missing_rights()) line("without", right);
  line("you", YouText(node.caller()));
  line("build", node.build());
}

}  // namespace

int RunStatus(const Context& context) {
  auto node = WithProgress(context, "asking profd", [&] { return context.api.GetNode(); });
  if (!node.ok()) return Fail(context, node.status());
  if (context.json) {
    Json json = {{context.endpoint.remote() ? "address" : "socket", context.endpoint.name()}};
    json.update(ToJson(*node));
    PrintJson(context, json);
  } else {
    Print(context, *node);
  }
  return kExitOk;
}

}  // namespace profd::client
