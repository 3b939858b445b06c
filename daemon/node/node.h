// The node as the daemon found it at start-up: libraries, devices, channels, clocks; and the threads
// that talk to the driver. Composition only: who owns what in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collectors/collector.h"
#include "daemon/config/daemon_config.h"
#include "daemon/data/channel_router.h"
#include "daemon/node/node_access.h"
#include "daemon/session/channel_arbiter.h"
#include "daemon/session/peer.h"
#include "driver/block.h"
#include "driver/channel_pump.h"
#include "driver/dcmi_service.h"
#include "driver/device_control.h"
#include "driver/hal_library.h"
#include "driver/hccn_reader.h"
#include "driver/inventory.h"
#include "driver/rooted_fs.h"
#include "dump/control_files.h"
#include "profd/v1/profd.pb.h"

namespace profd {

// driver.relaxed_poll_interval_ms, as far as what else is configured permits it.
int64_t RelaxedPollIntervalNs(const DaemonConfig& config);

class Node final : public NodeProcesses, public NodeDevices {
 public:
  // Loads the libraries and queries the driver for devices. A driver that is missing or does not
  // answer leaves a node without devices, which still serves host collectors and reports the reason.
  static Result<std::unique_ptr<Node>> Discover(const DaemonConfig& config, const Clock& clock);
  ~Node() override;

  // Starts the pump and the devices' control threads. Once.
  void StartChannels(ChannelRouter& router, const DaemonConfig& config);
  // After a reload, once they are started.
  void Configure(const DaemonConfig& config);
  // Ends them; nothing reaches the router afterwards. A thread that hangs in the driver stays behind.
  void StopChannels();

  // Names of processes for Host's readers.
  ProcessNames& process_names() { return process_names_; }
  const Host& host() const { return *host_; }
  // What was loaded, or why not.
  const v1::DriverInfo& report() const { return report_; }
  const NodeFacts& facts() const { return facts_; }
  // Of the machine's present run; empty if it is not known.
  std::string BootId() const;
  DeviceFacts FactsOf(int device) const override;
  DcmiService* dcmi_or_null() const { return dcmi_.get(); }
  BlockPool& pool() { return *pool_; }
  ChannelPump* pump_or_null() const { return pump_.get(); }
  DeviceControl* ControlOf(int device) const override;
  std::vector<ChannelArbiter::Device> ArbiterDevices() const;

  Status MayUse(const Peer& peer, const DeviceInfo& device) const override;
  Result<uint32_t> OwnerOf(pid_t pid) const override;
  std::optional<uint64_t> StartTimeOf(pid_t pid) const override;

  // Empty where DCMI does not report it, or not yet.
  std::string UuidOf(const DeviceInfo& device) const;
  // Why DCMI cannot be asked about the device, and what to do about it; empty if it can.
  std::string DcmiProblemOf(const DeviceInfo& device) const;

  void CheckDeadlines(int64_t now_steady_ns);
  // NPUs that DCMI did not know when the node was discovered and does now.
  std::vector<const DcmiDevice*> LateDcmiDevices(int64_t now_steady_ns);
  // Those that the HAL does not list.
  std::vector<const DcmiDevice*> DcmiOnlyDevices() const;
  // True if a driver thread has been given up: a clean exit would wait for it.
  bool HasAbandonedThreads() const;

 private:
  Node(const Clock& clock, RootedFs proc, RootedFs sys);
  void LoadHal(const DaemonConfig& config);
  void LoadDcmi(const DaemonConfig& config);
  void ReportDcmi();
  void Describe(const DaemonConfig& config);
  void MakeHccnReader(const DaemonConfig& config);

  const Clock& clock_;
  RootedFs proc_;
  RootedFs sys_;
  v1::DriverInfo report_;
  NodeFacts facts_;
  std::shared_ptr<HalLibrary> hal_;
  HalInventory inventory_;
  std::unique_ptr<DcmiService> dcmi_;
  std::vector<DeviceInfo> devices_;
  std::unique_ptr<HccnReader> hccn_;
  ProcessNames process_names_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<ChannelPump> pump_;
  std::vector<std::unique_ptr<DeviceControl>> controls_;
  bool start_hung_ = false;
};

}  // namespace profd
