// Stand-in for the vendor's hccn_tool (dcmi-and-metrics 1.8): answers for the simulated NPUs in the
// vendor's words. Scenario time 0 is the start of the process that runs it, as for the libraries in
// it.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "base/text.h"
#include "sim/chip.h"
#include "sim/fault_table.h"
#include "sim/network_port.h"
#include "sim/node.h"
#include "sim/noise.h"
#include "sim/played_time.h"

namespace profd::sim {
namespace {

constexpr int kFailed = 1;

struct Question {
  int device = -1;
  std::string_view what;
  bool get = false;
};

Question ParseArguments(int argc, char** argv) {
  Question question;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-i" && i + 1 < argc) {
      if (!ParseNumber(std::string_view(argv[++i]), &question.device)) question.device = -1;
    } else if (word == "-g") {
      question.get = true;
    } else if (word.starts_with('-')) {
      question.what = word.substr(1);
    }
  }
  return question;
}

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

class Tool {
 public:
  Tool(const Scenario& scenario, const Question& question, int64_t epoch_raw_ns)
      : scenario_(scenario),
        faults_(scenario.faults),
        question_(question),
        port_(scenario, question.device),
        played_(epoch_raw_ns, scenario.time_scale) {}

  int Answer() {
    if (!question_.get || question_.device < 0 || question_.device >= scenario_.devices) {
      return Refuse("invalid parameter");
    }
    while (faults_.Drop(DropMode::kHang, Now(), question_.device) != nullptr) Wait();
    if (faults_.Drop(DropMode::kMissing, Now(), question_.device) != nullptr) {
      return Refuse(fmt::format("device {} does not exist", question_.device));
    }
    const Fault* fault = faults_.Find(FaultKind::kHccnTool, Now(), question_.device);
    if (fault != nullptr && fault->tool != ToolMode::kHang) return Misbehave(*fault);
    while (faults_.Find(FaultKind::kHccnTool, Now(), question_.device) != nullptr) Wait();
    if (question_.what == "link") return Link();
    if (question_.what == "speed") return Speed();
    if (question_.what == "link_stat") return LinkHistory();
    if (question_.what == "optical") return Optics();
    return Refuse(fmt::format("-{} is not simulated", question_.what));
  }

 private:
  int64_t Now() const {
    return played_.FromReal(clock_.MonotonicRawNs()) - played_.epoch_ns();
  }
  static void Wait() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
  static int Refuse(const std::string& why) {
    std::fprintf(stderr, "[ERROR] %s\n", why.c_str());
    return kFailed;
  }

  int Misbehave(const Fault& fault) const {
    if (fault.tool == ToolMode::kExit) {
      std::fprintf(stderr, "[ERROR] hccn_tool is busy, please try again\n");
      return fault.code;
    }
    constexpr size_t kFloodBytes = 100'000'000;
    const size_t bytes = fault.tool == ToolMode::kFlood ? kFloodBytes : 4096;
    std::string block(4096, '\0');
    for (size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<char>(Hash(scenario_.seed, kNoiseGarbage, i) & 0xFF);
    }
    for (size_t written = 0; written < bytes; written += block.size()) Print(block);
    return 0;
  }

  int Link() const {
    Print(port_.LinkUp(Now()) ? "link status: UP\n" : "link status: DOWN\n");
    return 0;
  }
  int Speed() const {
    Print(port_.LinkUp(Now())
              ? fmt::format("Speed: {} Mb/s\n", FindChip(scenario_.chip)->roce_mbit_per_s)
              : "Speed: Unknown!\n");
    return 0;
  }
  int LinkHistory() const {
    Print(fmt::format(
        "[device {0}]current time        : {1}\n[device {0}]link up count       : {2}\n",
        question_.device, clock_.WallNs() / kNsPerSecond, port_.LinkUps(Now())));
    return 0;
  }
  int Optics() const {
    const std::optional<OpticalValues> values = port_.Optics(Now());
    if (!values) {
      Print("optical info:\npresent              : not present\n");
      return 0;
    }
    std::string text = fmt::format(
        "optical info:\npresent              : present\ntemperature          : {:.0f} C\n"
        "Vcc                  : {:.2f} mV\n",
        values->celsius, values->millivolts);
    for (size_t lane = 0; lane < values->tx_milliwatts.size(); ++lane) {
      text += fmt::format("Tx Power{}            : {:.4f} mW\n", lane, values->tx_milliwatts[lane]);
    }
    for (size_t lane = 0; lane < values->rx_milliwatts.size(); ++lane) {
      text += fmt::format("Rx Power{}            : {:.4f} mW\n", lane, values->rx_milliwatts[lane]);
    }
    Print(text);
    return 0;
  }

  KernelClock clock_;
  const Scenario& scenario_;
  FaultTable faults_;
  Question question_;
  NetworkPort port_;
  PlayedTime played_;
};

int Run(int argc, char** argv) {
  const Result<Scenario> scenario = ScenarioFromEnvironment();
  const Result<int64_t> epoch = EpochFromEnvironment(ProcessStartRawNs(::getppid()));
  const Status problem = scenario.ok() ? epoch.status() : scenario.status();
  if (!problem.ok()) {
    std::fprintf(stderr, "hccn_tool (simulated): %s\n", problem.message().c_str());
    return kFailed;
  }
  return Tool(*scenario, ParseArguments(argc, argv), *epoch).Answer();
}

}  // namespace
}  // namespace profd::sim

int main(int argc, char** argv) { return profd::sim::Run(argc, argv); }
