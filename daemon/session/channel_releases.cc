#include "daemon/session/channel_releases.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/duration_text.h"
#include "base/log.h"
#include "base/problem.h"
#include "daemon/session/session_plan.h"
#include "driver/abi/channels.h"

namespace profd {
namespace {

using google::protobuf::util::JsonParseOptions;
using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageToJsonString;

std::string ChannelName(uint32_t channel) {
  const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
  return format == nullptr ? std::to_string(channel) : fmt::format("{} ({})", channel, format->name);
}

Problem Invalid(std::string field, std::string value, std::string text) {
  return {.kind = Problem::Kind::kInvalid, .field = std::move(field), .value = std::move(value), .text = std::move(text)};
}

// `key`: device and channel.
Problem Denied(const std::pair<int, uint32_t>& key, std::string_view why) {
  return {.kind = Problem::Kind::kDenied, .field = "channels", .value = std::to_string(key.second),
          .text = fmt::format("of device {} {}", key.first, why)};
}

Problem NoSuchChannel(uint32_t channel, const DeviceInfo& device) {
  constexpr size_t kMaxListed = 32;
  const std::span<const uint32_t> all = device.channels;
  const std::span<const uint32_t> listed = all.first(std::min(all.size(), kMaxListed));
  std::string there = listed.empty() ? "none" : fmt::format("{}", fmt::join(listed, ", "));
  if (listed.size() < all.size()) there += fmt::format(" and {} more", all.size() - listed.size());
  return Invalid("channels", "",
                 fmt::format("no channel {} on device {} (there are {})", ChannelName(channel), device.id, there));
}

}  // namespace

const DeviceInfo* ChannelReleases::Find(uint32_t device) const {
  auto found = std::ranges::find_if(deps_.devices, [device](const DeviceInfo& info) { return static_cast<uint32_t>(info.id) == device; });
  return found == deps_.devices.end() ? nullptr : &*found;
}

template <class Request>
Result<std::vector<ChannelReleases::Key>> ChannelReleases::KeysOf(const Peer& peer, const Request& request) const {
  ProblemList problems;
  std::vector<Key> keys;
  if (request.devices().empty()) problems.Add(Invalid("devices", "", "is needed"));
  // Every device is looked at with every channel: short lists, and each id once.
  for (const auto& [field, size] : {std::pair("devices", request.devices_size()), std::pair("channels", request.channels_size())}) {
    if (size > kMostNamed) problems.Add(Invalid(field, "", fmt::format("at most {} ids, not {}", kMostNamed, size)));
  }
  if (!problems.empty()) return Status(StatusCode::kInvalidArgument, std::move(problems).Take());
  const std::set<uint32_t> named(request.channels().begin(), request.channels().end());
  for (uint32_t id : std::set<uint32_t>(request.devices().begin(), request.devices().end())) {
    const DeviceInfo* device = Find(id);
    if (device == nullptr) {
      problems.Add(NoSuchDevice(id, deps_.devices));
      continue;
    }
    RETURN_IF_ERROR(deps_.node_devices.MayUse(peer, *device));
    std::vector<uint32_t> wanted(named.begin(), named.end());
    if (wanted.empty()) {
      std::copy_if(device->channels.begin(), device->channels.end(), std::back_inserter(wanted),
                   [](uint32_t channel) { return abi::FindChannelFormat(channel) != nullptr; });
    }
    for (uint32_t channel : wanted) {
      const auto& all = device->channels;
      if (std::ranges::find(all, channel) == all.end()) {
        problems.Add(NoSuchChannel(channel, *device));
      } else {
        keys.emplace_back(device->id, channel);
      }
    }
  }
  if (!problems.empty()) return Status(StatusCode::kInvalidArgument, std::move(problems).Take());
  return keys;
}

Status ChannelReleases::MayRelease(const Peer& peer, const std::vector<Key>& keys) const {
  std::vector<Problem> problems;
  for (const Key& key : keys) {
    auto found = released_.find(key);
    if (found != released_.end() && !peer.Owns(found->second.uid)) {
      problems.push_back(Denied(key, "is " + WhyOf(found->second)));
    }
    for (const std::string& session : deps_.arbiter.SessionsOn(key.first, key.second)) {
      const std::optional<uint32_t> uid = deps_.uid_of_session(session);
      if (!uid || peer.Owns(*uid)) continue;
      problems.push_back(Denied(key, "is used by a session of another user; only an administrator can release it now"));
      break;  // of one channel that is one reason, however many sessions it has
    }
  }
  if (problems.empty()) return Status::Ok();
  return {StatusCode::kPermissionDenied, std::move(problems)};
}

std::string ChannelReleases::WhyOf(const Released& released) {
  return fmt::format("released to other tools by uid {} until {:%Y-%m-%d %H:%M:%S} UTC, or until it is acquired again",
                     released.uid, fmt::gmtime(static_cast<time_t>(released.until_ns / kNsPerSecond)));
}

void ChannelReleases::Add(const Key& key, const Released& released, v1::ChannelReleases* out) const {
  v1::ChannelRelease& one = *out->add_releases();
  one.set_device(static_cast<uint32_t>(key.first));
  one.set_channel(key.second);
  if (const abi::ChannelFormat* format = abi::FindChannelFormat(key.second); format != nullptr) {
    one.set_name(std::string(format->name));
  }
  one.set_uid(released.uid);
  one.set_until_ns(released.until_ns);
}

void ChannelReleases::Release(const Peer& peer, const v1::ReleaseChannelsRequest& request, v1::ChannelReleases* out,
                              const Finish& finish) {
  DCHECK_ON(deps_.control);
  Result<std::vector<Key>> keys = KeysOf(peer, request);
  const uint64_t most = peer.admin ? kMostAdminMs : kMostMs;
  const uint64_t length = request.has_duration_ms() ? request.duration_ms() : kDefaultMs;
  Status may = keys.status();
  if (may.ok() && (length < kLeastMs || length > most)) {
    may = Status(StatusCode::kInvalidArgument,
                 Invalid("duration_ms", std::to_string(length), fmt::format("must be {}..{}", ExactDuration(kLeastMs), ExactDuration(most))));
  }
  if (may.ok()) may = MayRelease(peer, *keys);
  if (!may.ok()) return finish(may);
  const Released released{peer.uid, deps_.clock.WallNs() + static_cast<int64_t>(length) * kNsPerMs};
  struct Pending {
    size_t left = 1;  // the last one is this call's own
    Finish finish;
    void Done() {
      if (--left == 0) finish(Status::Ok());
    }
  };
  auto pending = std::make_shared<Pending>();
  pending->finish = finish;
  for (const Key& key : *keys) {
    released_[key] = released;
    const int at = out->releases_size();
    Add(key, released, out);
    for (const std::string& session : deps_.arbiter.SessionsOn(key.first, key.second)) {
      out->mutable_releases(at)->add_sessions(session);
    }
    ++pending->left;
    deps_.arbiter.HandOver(key.first, key.second, WhyOf(released), [pending, out, at](const Status& stopped) {
      if (!stopped.ok()) out->mutable_releases(at)->set_problem(stopped.message());
      pending->Done();
    });
  }
  log::Info("channels released", {{"uid", peer.uid}, {"channels", keys->size()}, {"ms", length}});
  Save();
  pending->Done();
}

Status ChannelReleases::Acquire(const Peer& peer, const v1::AcquireChannelsRequest& request,
                                v1::ChannelReleases* out) {
  DCHECK_ON(deps_.control);
  Result<std::vector<Key>> keys = KeysOf(peer, request);
  if (!keys.ok()) return keys.status();
  const bool named = !request.channels().empty();
  std::vector<Problem> problems;
  for (const Key& key : *keys) {
    auto found = released_.find(key);
    if (found == released_.end() || peer.Owns(found->second.uid) || !named) continue;
    problems.push_back(Denied(key, fmt::format("was released by uid {}", found->second.uid)));
  }
  if (!problems.empty()) return {StatusCode::kPermissionDenied, std::move(problems)};
  for (const Key& key : *keys) {
    auto found = released_.find(key);
    if (found == released_.end() || !peer.Owns(found->second.uid)) continue;
    Add(key, found->second, out);
    released_.erase(found);
    deps_.arbiter.TakeBack(key.first, key.second);
  }
  if (!out->releases().empty()) Save();
  return Status::Ok();
}

void ChannelReleases::Restore(std::string_view text) {
  v1::ChannelReleases saved;
  JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  if (!JsonStringToMessage({text.data(), text.size()}, &saved, lenient).ok()) {
    log::Warning("released channels of an earlier run cannot be read", {});
    return;
  }
  for (const v1::ChannelRelease& one : saved.releases()) {
    const DeviceInfo* device = Find(one.device());
    if (device == nullptr || one.until_ns() <= deps_.clock.WallNs()) continue;
    const auto& all = device->channels;
    if (std::ranges::find(all, one.channel()) == all.end()) continue;
    const Released released{one.uid(), one.until_ns()};
    released_[{device->id, one.channel()}] = released;
    deps_.arbiter.HandOver(device->id, one.channel(), WhyOf(released), [](const Status&) {});
  }
}

void ChannelReleases::Tick() {
  DCHECK_ON(deps_.control);
  const int64_t now = deps_.clock.WallNs();
  std::vector<Key> over;
  for (const auto& [key, released] : released_) {
    if (released.until_ns <= now) over.push_back(key);
  }
  for (const Key& key : over) {
    released_.erase(key);
    deps_.arbiter.TakeBack(key.first, key.second);
    log::Info("channel taken back", {{"device", key.first}, {"channel", ChannelName(key.second)}});
  }
  if (!over.empty()) Save();
}

void ChannelReleases::Save() const {
  v1::ChannelReleases all;
  for (const auto& [key, released] : released_) Add(key, released, &all);
  std::string text;
  if (MessageToJsonString(all, &text).ok()) deps_.states.Save(kReleasesFile, std::move(text), nullptr);
}

}  // namespace profd
