// The one way to libdcmi: knows the NPUs, calls the library, remembers which calls can never be
// answered, counts everything, and notices when a call does not come back.
//
// Threads. Start and the queries are called by one thread at a time: the DCMI thread. The driver
// throttles callers that come in parallel. When a call hangs, its owner gives the thread up and
// continues with a new one; from then on the old thread may come back at any time, which is safe: it
// gets kDcmiAbandoned and must return without another call. CheckStuck, StuckCalls, Statistics,
// VisitRefused, ProblemOf, SilenceOf, HangsSilently, IsAwaited and LastAnswerNs may be called from any thread at any time,
// also during a query. devices() may only grow, by CheckCards, which is one thread's. Cards are searched for NPUs, and
// the library is initialised, on threads of their own.
//
// Lifetime. A call that hangs shares its state and may outlive the service: it returns to that, not to this object.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration_counts.h"
#include "base/status.h"
#include "driver/abi/dcmi_table.h"
#include "driver/dcmi_errors.h"
#include "driver/dcmi_fault_counts.h"
#include "driver/dcmi_library.h"
#include "driver/staggered.h"

namespace profd {

// One NPU as found by Start. Strings are empty when the driver does not report them.
struct DcmiDevice {
  int index = 0;  // in DcmiService::devices()
  int card = 0;   // v1 address; with v2 the logical id and 0
  int chip = 0;
  int logical_id = 0;        // what the HAL takes
  int physical_id = 0;       // /dev/davinciN, label `npu`
  std::string uuid;          // VDIE (DDIE where there is none), "0A1B2C3D-...", five words
  std::string chip_type;     // "Ascend"
  std::string chip_name;     // "910B3"
  std::string chip_version;  // "V1"
  std::string npu_name;
  uint32_t aicore_count = 0;
  std::string pci_bus_id;  // as /sys writes it: "0000:c1:00.0"
  std::string board_id;    // "0x34"
  uint32_t mainboard_id = 0;  // 0: not reported
  std::string product;
  std::string model;
  std::string serial;
  std::string product_type;  // "Atlas 300I Pro"; 310P only

  bool Is310P() const { return chip_name.find("310P") != std::string::npos; }
};

// A value, or the return code that kept us from having one. Cheaper than Result: no text is made
// for failures that repeat every second.
template <class T>
struct DcmiAnswer {
  int code = 0;
  T value{};
  bool ok() const { return code == 0; }
};

// dcmi_ecc_info; older drivers do not fill the two counts of pages to be isolated at the next
// start.
struct DcmiEcc {
  abi::DcmiEccInfo info{};
  bool has_next_isolated = false;
};
struct DcmiErrorCodes {
  uint32_t count = 0;
  std::array<unsigned, abi::kDcmiMaxErrorCodes> codes{};
};
struct DcmiFault {
  uint32_t code = 0;
  uint8_t severity = 0;   // 0 warning, 1 minor, 2 major, 3 critical
  uint8_t assertion = 0;  // 0 recovered, 1 raised, 2 one-off
  // As the driver reports it, what cannot be printed replaced by '?'; ends with a NUL.
  std::array<char, 80> name{};
};
struct DcmiFaults {
  uint32_t count = 0;
  std::array<DcmiFault, 64> faults{};
};
struct DcmiProcesses {
  uint32_t count = 0;
  std::array<abi::DcmiProcMemInfo, abi::kDcmiMaxProcesses> processes{};
};
// Since the service started; the driver's own counters have 16 bits and wrap.
struct DcmiSioErrors {
  uint64_t tx = 0;
  uint64_t rx = 0;
};
// One byte per core, %, as many as the driver filled in.
struct DcmiCoreUtilization {
  uint32_t bytes = 0;
  std::array<uint8_t, abi::kTsVectorUtilBytes> percent{};
};

// Ids of the virtual NPUs an NPU is split into.
struct DcmiVdevs {
  uint32_t count = 0;
  std::array<uint32_t, abi::kVdevMax> ids{};
};
struct DcmiVdevActivity {
  uint32_t aicore_percent = 0;
  uint64_t memory_total_kb = 0;
  uint64_t memory_free_kb = 0;
};
struct DcmiUbPort {
  int udie = 0;
  int port = 0;
  bool uboe = false;
};
struct DcmiUbPorts {
  uint32_t count = 0;
  std::array<DcmiUbPort, abi::kUbMaxDies * abi::kUbMaxPorts> ports{};
};

struct DcmiCallStatistics {
  uint64_t calls = 0;
  DurationCounts durations;
  std::array<uint64_t, 32> errors{};  // by index in DcmiErrors()
};

struct DcmiStuckCall {
  int physical_id = -1;  // -1: the call was for the node
  DcmiCall call{};
  int64_t for_ns = 0;
  std::string text;  // "dcmi_get_device_health for NPU 3 has not returned for 5 s"
};

// A call that libdcmi does not permit (-8002), when it was refused for the first time.
struct DcmiDenial {
  DcmiCall call{};
  int physical_id = -1;  // -1: the call was for the node
};

class DcmiService {
 public:
  struct Options {
    StaggerPace start;                        // of the cards, at Start
    int64_t retry_ns = 30 * kNsPerSecond;     // of cards that have not answered
    // How long Start waits for the library, which may have to wake devices up, before it continues without it.
    std::chrono::milliseconds init_patience{5000};
    int64_t init_retry_ns = 10 * kNsPerSecond;  // of Start (dcmi-and-metrics 1.1)
  };
  // `clock` outlives the process's last DCMI thread.
  DcmiService(DcmiLibrary library, const Clock& clock, Options options);
  DcmiService(DcmiLibrary library, const Clock& clock)
      : DcmiService(std::move(library), clock, Options{}) {}
  ~DcmiService();
  DcmiService(const DcmiService&) = delete;
  DcmiService& operator=(const DcmiService&) = delete;

  // Initialises the library (v1, else v2) and finds the NPUs. A card that does not answer is not an error. After an
  // error that may pass, such as while the driver is being reset, CheckCards tries again; a call that hangs is
  // left to its thread, and CheckCards continues when it has returned.
  Status Start();
  // Start has failed, and is tried again, or its call has not returned.
  bool IsPending() const;

  // What was found by now, in an order and place that does not change.
  std::span<const DcmiDevice> devices() const {
    return {devices_.data(), device_count_.load(std::memory_order_acquire)};
  }
  // Starts again, or looks again for cards that did not answer, never waits, and gives what has been found since.
  // After Start; call it every now and then.
  std::vector<const DcmiDevice*> CheckCards(int64_t now_steady_ns) {
    return CheckCards(now_steady_ns, kNoWait);
  }
  // Why an NPU the HAL knows is not in devices(), if that is because its card, or the library, has never answered.
  std::string SilenceOf(int logical_id, int physical_id) const;
  // Such an NPU is silent because a call has not returned.
  bool HangsSilently(int logical_id) const;
  // It is not known yet whether such an NPU answers: the library does not, or has only just begun to.
  bool IsAwaited(int logical_id) const;
  bool HasSilentCards() const;  // or the library itself is silent: IsPending()
  const DcmiDevice* FindByLogicalId(int logical_id) const;
  DcmiApi api() const;
  std::string_view api_name() const;  // "v1", "v2", "" before Start
  // Empty before Start.
  std::string dcmi_version() const;
  std::string driver_version() const;

  // ---- questions; units as the driver gives them (dcmi-and-metrics 1.3) ----
  // `query` is a row of the table: dcmi::kTemperature. kPower adds to EnergyJoules.
  template <class T>
  DcmiAnswer<T> Ask(const DcmiDevice& d, const DcmiQuery<T>& query) {
    DcmiAnswer<T> answer;
    answer.code = Ask(d, query, &answer.value);
    return answer;
  }
  // The same without the type; `out` has space for query.size bytes and is written on success only.
  int Ask(const DcmiDevice& d, const DcmiQueryRow& query, void* out);

  DcmiAnswer<unsigned> DriverHealth();
  DcmiAnswer<int> Topology(const DcmiDevice& d, const DcmiDevice& peer);
  DcmiAnswer<unsigned> Health(const DcmiDevice& d);  // absent is kDcmiDeviceMissing
  DcmiAnswer<DcmiErrorCodes> ErrorCodes(const DcmiDevice& d);
  DcmiAnswer<DcmiFaults> CurrentFaults(const DcmiDevice& d);
  DcmiAnswer<DcmiEcc> Ecc(const DcmiDevice& d, DcmiCall call);  // kEccDdr, kEccHbm
  DcmiAnswer<DcmiSioErrors> SioErrors(const DcmiDevice& d);
  DcmiAnswer<DcmiCoreUtilization> CoreUtilization(const DcmiDevice& d, DcmiCall call);
  DcmiAnswer<DcmiProcesses> Processes(const DcmiDevice& d);
  // Block for `ms` (clamped to what the driver takes).
  DcmiAnswer<abi::DcmiPcieLinkBandwidthInfo> PcieBandwidth(const DcmiDevice& d, int ms);
  DcmiAnswer<abi::DcmiHccsBandwidthInfo> HccsBandwidth(const DcmiDevice& d, int ms);
  DcmiAnswer<abi::DcmiRdmaBandwidthInfo> RdmaBandwidth(const DcmiDevice& d, int ms);
  DcmiAnswer<abi::DcmiSerdesQuality> SerdesQuality(const DcmiDevice& d, unsigned macro);
  DcmiAnswer<DcmiVdevs> Vdevs(const DcmiDevice& d);
  DcmiAnswer<DcmiVdevActivity> VdevActivity(const DcmiDevice& d, uint32_t vdev);
  DcmiAnswer<DcmiUbPorts> UbPorts(const DcmiDevice& d);
  DcmiAnswer<abi::DcmiPortPktStats> UbPortStatistics(const DcmiDevice& d, int udie, int port);

  // Events found by the successful ErrorCodes and CurrentFaults, asked for in this order, of all users together.
  DcmiFaultEventCounts FaultEvents(const DcmiDevice& d) const;

  // Integral of the successful answers to dcmi::kPower of all users together, trapezoids; a gap of more than
  // kMaxEnergyGapNs between two samples adds nothing.
  double EnergyJoules(const DcmiDevice& d) const;
  static constexpr int64_t kMaxEnergyGapNs = 15 * kNsPerSecond;

  // ---- guard and statistics ----
  // Marks every call that has run for `limit_ns` or longer as stuck; true if one was marked just
  // now: the caller must give up the DCMI thread, whose call will return kDcmiAbandoned. Until then
  // all calls for the device answer kDcmiStuck at once. The mark goes when the hung call returns.
  bool CheckStuck(int64_t now_steady_ns, int64_t limit_ns);
  // All that are marked now.
  std::vector<DcmiStuckCall> StuckCalls(int64_t now_steady_ns) const;
  // A call or a search of cards is under way; tests wait for its end.
  bool HasCallInFlight() const;
  // Why the device cannot be asked, and what to do about it; empty if it answers, as far as is known.
  std::string ProblemOf(const DcmiDevice& d, int64_t now_steady_ns) const;
  // When the device last answered a question (CLOCK_MONOTONIC_RAW); 0 = never since Start.
  int64_t LastAnswerNs(const DcmiDevice& d) const;
  // By DcmiCall.
  std::vector<DcmiCallStatistics> Statistics() const;
  // (device, call) pairs that are not called any more, with the code that was the reason.
  void VisitRefused(const std::function<void(const DcmiDevice&, DcmiCall, int code)>& visit) const;
  // Since the last time, each call once: other NPUs that refuse it are no news. Any thread.
  std::vector<DcmiDenial> TakeDenials();

 private:
  struct State;
  using ErasedFn = int (*)(void* closure);

  static constexpr StaggerPace kNoWait{std::chrono::milliseconds(0), std::chrono::milliseconds(0),
                                       std::chrono::milliseconds(0)};

  // A question that is about no NPU.
  template <class Fn>
  int RunNode(DcmiCall call, Fn&& fn);
  template <class T, class Fn>
  DcmiAnswer<T> Query(const DcmiDevice& d, DcmiCall call, const T& initial, Fn&& fn);
  const DcmiFunctions& functions() const;

  std::vector<const DcmiDevice*> CheckCards(int64_t now_steady_ns, const StaggerPace& pace);
  void ListAgain(int64_t now_steady_ns);
  // Unless one is under way: no more than one thread hangs in it.
  void RunListing(std::chrono::milliseconds patience);
  std::vector<const DcmiDevice*> TakeFound();

  const Options options_;
  std::shared_ptr<State> state_;  // shared with calls in flight, which may outlive this object
  std::vector<DcmiDevice> devices_;  // never longer than what was reserved
  std::atomic<size_t> device_count_{0};
};

}  // namespace profd
