// Commands about the node: what it has, what runs there and how it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

// `profctl status`: the node at a glance.
int RunStatus(const Context& context);

struct DevicesOptions {
  // One row per driver channel instead of one per device.
  bool channels = false;
};

int RunDevices(const Context& context, const DevicesOptions& options);

// `profctl collectors`: what can be collected here, and why the rest cannot.
int RunCollectors(const Context& context);

struct TopologyOptions {
  // Also a row for each link.
  bool links = false;
};

// `profctl topology`: how the devices are connected to each other and to the host.
int RunTopology(const Context& context, const TopologyOptions& options);

struct HealthOptions {
  std::optional<std::string> devices;
};

// `profctl health`: one verdict for each device and for the node; the exit code has it too.
int RunHealth(const Context& context, const HealthOptions& options);

// `profctl faults`: what the devices report now.
int RunFaults(const Context& context, const HealthOptions& options);

struct ChannelsOptions {
  std::string action;  // "release", "acquire"; empty: the table of all channels
  std::optional<std::string> devices;
  std::optional<std::string> length;  // of a release
  std::vector<std::string> channels;  // numbers or names; empty = all
};

// `profctl channels [release|acquire]`: driver channels for other tools, the vendor's profiler above all.
int RunChannels(const Context& context, const ChannelsOptions& options);

struct JobsOptions {
  std::string job;
  bool attached = false;
};

int RunJobs(const Context& context, const JobsOptions& options);

}  // namespace profd::client
