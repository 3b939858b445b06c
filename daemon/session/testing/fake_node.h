// For tests only: a node's processes, devices and saved state as the test makes them up.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "daemon/dumps/state_saver.h"
#include "daemon/node/node_access.h"
#include "daemon/session/profiling_gate.h"

namespace profd::testing {

class FakeProcesses final : public NodeProcesses {
 public:
  struct Process {
    uint32_t uid = 0;
    uint64_t start_ticks = 0;
  };

  Result<uint32_t> OwnerOf(pid_t pid) const override {
    if (pid == hidden) return PermissionDenied("hidden");
    const auto found = alive.find(pid);
    return found == alive.end() ? Result<uint32_t>(NotFound("gone")) : found->second.uid;
  }
  std::optional<uint64_t> StartTimeOf(pid_t pid) const override {
    const auto found = alive.find(pid);
    return found == alive.end() ? std::nullopt : std::optional(found->second.start_ticks);
  }

  std::map<pid_t, Process> alive;
  pid_t hidden = -1;  // is there, but its owner is not known
};

// Without threads that control devices, but for one that a test has.
class FakeDevices final : public NodeDevices {
 public:
  Status MayUse(const Peer&, const DeviceInfo& device) const override {
    return device.id == closed ? PermissionDenied("closed") : Status::Ok();
  }
  DeviceFacts FactsOf(int) const override { return {}; }
  DeviceControl* ControlOf(int) const override { return control; }

  int closed = -1;
  DeviceControl* control = nullptr;
};

class FakeStates final : public StateSaver {
 public:
  void SaveSession(const std::string& id, std::string text) override { sessions[id] = std::move(text); }
  void DropSession(const std::string& id) override { sessions.erase(id); }
  void Save(const StateFile& file, std::string text, std::function<void()> done) override {
    files[file.name] = std::move(text);
    if (done) done();
  }

  std::map<std::string, std::string> sessions;
  std::map<std::string, std::string> files;
};

class FakeGate final : public ProfilingGate {
 public:
  Status MayProfile(const Peer&, std::span<const int> devices) const override {
    return !device || std::ranges::find(devices, *device) != devices.end() ? answer : Status::Ok();
  }

  Status answer;
  std::optional<int> device;  // answers so of this one only
};

}  // namespace profd::testing
