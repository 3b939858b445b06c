#include "client/libprofd/profd_settings.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "base/utf8.h"
#include "client/environment_variable.h"

namespace profd::lib {
namespace {

// The part of a caller's struct that both sides know; the rest keeps the defaults of ours.
template <class Struct>
Status CopyKnown(const Struct& theirs, Struct* ours) {
  if (theirs.size < 2 * sizeof(size_t)) {
    return InvalidArgument("the struct's size is not set: use its _INIT");
  }
  const size_t size = std::min(theirs.size, sizeof(Struct));
  std::memcpy(static_cast<void*>(ours), &theirs, size);
  return Status::Ok();
}

Status CopyName(const char* what, const char* text_or_null, std::string* out) {
  if (text_or_null == nullptr) return Status::Ok();
  if (::strnlen(text_or_null, attach::kMaxAttachNameBytes + 1) > attach::kMaxAttachNameBytes) {
    return InvalidArgument(std::string(what) + " has more than " +
                           std::to_string(attach::kMaxAttachNameBytes) + " bytes");
  }
  *out = text_or_null;
  return Status::Ok();
}

// A struct full of zeros sets nothing: rank 0 is meant only where the world has a size.
std::optional<int> RankOf(int32_t rank, int32_t world_size) {
  if (rank < 0 || (rank == 0 && world_size == 0)) return std::nullopt;
  return rank;
}

Status ReadConfig(const profd_config& given, Settings* settings) {
  profd_config config = PROFD_CONFIG_INIT;
  RETURN_IF_ERROR(CopyKnown(given, &config));
  attach::Hello& hello = settings->hello;
  RETURN_IF_ERROR(CopyName("job_id", config.job_id, &hello.job_id));
  RETURN_IF_ERROR(CopyName("framework", config.framework, &hello.framework));
  if (config.world_size < 0 || config.rank < -1 || config.local_rank < -1) {
    return InvalidArgument("rank and local_rank are -1 or more, world_size is 0 or more");
  }
  if (config.world_size > 0) hello.world_size = config.world_size;
  hello.rank = RankOf(config.rank, config.world_size);
  hello.local_rank = RankOf(config.local_rank, config.world_size);
  if (config.device_count > attach::kMaxAttachDevices ||
      (config.device_count > 0 && config.devices == nullptr)) {
    return InvalidArgument("device_count is 0.." + std::to_string(attach::kMaxAttachDevices) +
                           ", with devices");
  }
  for (size_t i = 0; i < config.device_count; ++i) {
    if (config.devices[i] < 0) return InvalidArgument("devices are numbers from 0");
    hello.devices.push_back(config.devices[i]);
  }
  settings->ring_slots = config.ring_slots;
  return Status::Ok();
}

// "a=1, b" -> {"a=1", "b"}
Status SplitList(std::string_view text, std::vector<std::string>* out) {
  const bool open = text.ends_with(',');
  for (std::string_view part; NextPart(&text, ',', &part);) {
    const std::string_view item = Trim(part);
    if (item.empty() || (open && text.empty())) return InvalidArgument("collectors: an empty name in the list");
    if (out->size() >= attach::kMaxAttachCollectors || item.size() > attach::kMaxAttachNameBytes) {
      return InvalidArgument("collectors: too many of them, or too long a name");
    }
    out->emplace_back(item);
  }
  return Status::Ok();
}

}  // namespace

bool Settings::SaysTheSame(const Settings& other) const {
  const attach::Hello &a = hello, &b = other.hello;
  return a.job_id == b.job_id && a.rank == b.rank && a.local_rank == b.local_rank &&
         a.world_size == b.world_size && a.devices == b.devices && a.framework == b.framework &&
         ring_slots == other.ring_slots;
}

bool IsDisabledByEnvironment() {
  const std::string_view disabled = EnvironmentVariable("PROFD_DISABLE");
  return !disabled.empty() && disabled != "0";
}

Result<Settings> ReadSettings(const profd_config* config_or_null, bool forked) {
  Settings settings;
  if (config_or_null != nullptr) RETURN_IF_ERROR(ReadConfig(*config_or_null, &settings));
  settings.hello.made_by = std::string("libprofd ") + PROFD_VERSION;
  settings.socket = EnvironmentVariable("PROFD_ATTACH_SOCKET");
  if (settings.socket.empty()) settings.socket = attach::kDefaultAttachSocket;
  settings.log = EnvironmentVariable("PROFD_LOG") == "1";
  const std::string_view collect = Trim(EnvironmentVariable("PROFD_COLLECT"));
  if (!collect.empty()) settings.collect_mode = collect;
  const std::string_view mode = Trim(EnvironmentVariable("PROFILING_MODE"));
  if (!forked && mode != "false" && mode != "dynamic") {
    settings.hello.options_json = Trim(EnvironmentVariable("PROFILING_OPTIONS"));
  }
  return settings;
}

std::string WhyUnfit(std::string_view options_json, size_t packet_bytes) {
  if (options_json.size() > attach::kMaxOptionsBytes || packet_bytes > attach::kMaxPacket) return "it is too long";
  return IsUtf8(options_json) ? "" : "it is not UTF-8";
}

Result<attach::StartCall> ReadStartArgs(const profd_start_args& given) {
  profd_start_args args = PROFD_START_ARGS_INIT;
  RETURN_IF_ERROR(CopyKnown(given, &args));
  attach::StartCall call;
  if (args.options_json != nullptr) {
    const size_t length = ::strnlen(args.options_json, attach::kMaxOptionsBytes + 1);
    if (length > attach::kMaxOptionsBytes) {
      return InvalidArgument("options_json has more than " +
                             std::to_string(attach::kMaxOptionsBytes) + " bytes");
    }
    call.options_json = Trim({args.options_json, length});
    if (!IsUtf8(call.options_json)) return InvalidArgument("options_json is not UTF-8");
  }
  RETURN_IF_ERROR(CopyName("label", args.label, &call.label));
  if (args.start_step < -1) return InvalidArgument("start_step is -1 (now) or a step from 0");
  if (args.start_step >= 0) call.start_step = args.start_step;
  call.duration_ms = args.duration_ms;
  call.steps = args.steps;
  call.no_dump = args.no_dump != 0;
  call.best_effort = args.best_effort != 0;
  if (args.collectors != nullptr) RETURN_IF_ERROR(SplitList(args.collectors, &call.collectors));
  return call;
}

}  // namespace profd::lib
