// Input: what libdcmi answers, call after call: a code, then how many bytes of the input its result
// begins with and what fills the rest of it. A service is started on it and everything that polls
// libdcmi runs three times, so that lists, counts, counters and texts of a broken driver are met.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "collectors/collector.h"
#include "driver/dcmi_service.h"
#include "driver/rooted_fs.h"
#include "tests/fuzz/bounded_registry.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

// 64 NPUs with all their ports and lanes.
constexpr size_t kMaxSeries = 400'000;
constexpr std::array<int, 8> kCodes = {-8001, -8002, -8003, -8008, -8255, -8012, -99997, 1};

// C functions have no object.
fuzz::Input* source = nullptr;

int TakeCode() {
  const auto choice = source->Take<uint8_t>();
  return choice < 0xE0 ? 0 : kCodes[choice % kCodes.size()];
}

// `capacity` bytes that a library may write.
void Fill(void* out, size_t capacity) {
  const size_t given = std::min<size_t>(source->Take<uint8_t>(), capacity);
  std::memset(out, source->Take<uint8_t>(), capacity);
  const std::string_view bytes = source->TakePiece(given);
  bytes.copy(static_cast<char*>(out), bytes.size());
}

template <class T>
void FillIfOut(T argument) {
  if constexpr (std::is_pointer_v<T>) Fill(argument, sizeof *argument);
}

template <class Fn>
struct Answer;
template <class... Args>
struct Answer<int (*)(Args...)> {
  static int Call(Args... args) {
    const int code = TakeCode();
    // Also beside an error: a caller must not look.
    (FillIfOut(args), ...);
    return code;
  }
};

int Version(char* text, unsigned capacity) {
  Fill(text, capacity);
  return TakeCode();
}
int CardList(int* count, int* list, int length) {
  Fill(count, sizeof *count);
  Fill(list, sizeof *list * static_cast<size_t>(length));
  return TakeCode();
}
int DeviceListV2(int* list, int* count, int length) { return CardList(count, list, length); }
int ErrorCodes(int* count, unsigned* list, unsigned length) {
  Fill(count, sizeof *count);
  Fill(list, sizeof *list * length);
  return TakeCode();
}
int Faults(abi::DcmiEvent* list, int length, int* count) {
  Fill(count, sizeof *count);
  Fill(list, sizeof *list * static_cast<size_t>(length));
  return TakeCode();
}
int Processes(abi::DcmiProcMemInfo* list, int* count) {
  Fill(list, sizeof *list * abi::kDcmiMaxProcesses);
  Fill(count, sizeof *count);
  return TakeCode();
}
int DeviceInfo(void* out, unsigned* size) {
  Fill(out, *size);
  if (source->Take<uint8_t>() == 0) Fill(size, sizeof *size);
  return TakeCode();
}

DcmiLibrary Library(bool v2) {
  DcmiLibrary library;
  DcmiFunctions& f = library.functions;
  VisitDcmiSymbols(f, [](std::string_view, auto& slot, std::string_view) {
    using Fn = std::remove_reference_t<decltype(slot)>;
    if constexpr (!std::is_same_v<Fn, abi::DcmiGetDeviceInfoFn> &&
                  !std::is_same_v<Fn, decltype(DcmiFunctions::device_info.v2)>) {
      slot = &Answer<Fn>::Call;
    }
  });
  f.dcmi_version = f.v2_dcmi_version = f.driver_version = f.v2_driver_version = Version;
  f.card_list = CardList;
  f.v2_device_list = DeviceListV2;
  f.error_codes.v1 = [](int, int, int* n, unsigned* list, unsigned capacity) { return ErrorCodes(n, list, capacity); };
  f.error_codes.v2 = [](int, int* n, unsigned* list, unsigned capacity) { return ErrorCodes(n, list, capacity); };
  f.current_faults.v1 = [](int, int, abi::DcmiEvent* list, int capacity, int* n) { return Faults(list, capacity, n); };
  f.current_faults.v2 = [](int, abi::DcmiEvent* list, int capacity, int* n) { return Faults(list, capacity, n); };
  f.processes.v1 = [](int, int, abi::DcmiProcMemInfo* list, int* n) { return Processes(list, n); };
  f.processes.v2 = [](int, abi::DcmiProcMemInfo* list, int* n) { return Processes(list, n); };
  f.device_info.v1 = [](int, int, int, unsigned, void* out, unsigned* size) { return DeviceInfo(out, size); };
  f.device_info.v2 = [](int, int, unsigned, void* out, unsigned* size) { return DeviceInfo(out, size); };
  f.init = f.v2_init = [] { return 0; };
  if (v2) f.init = nullptr;
  return library;
}

void CheckText(std::string_view text) {
  for (char c : text) FUZZ_EXPECT(c >= 0x20 && c < 0x7F);
}

void CheckDevices(const DcmiService& service) {
  FUZZ_EXPECT(service.devices().size() <= 64);
  for (const DcmiDevice& device : service.devices()) {
    FUZZ_EXPECT(device.logical_id >= 0);
    FUZZ_EXPECT(&device == &service.devices()[static_cast<size_t>(device.index)]);
    for (const std::string* text :
         {&device.uuid, &device.chip_type, &device.chip_name, &device.chip_version,
          &device.npu_name, &device.pci_bus_id, &device.board_id, &device.product, &device.model,
          &device.serial}) {
      CheckText(*text);
    }
  }
  CheckText(service.dcmi_version());
  CheckText(service.driver_version());
}

class NoSink final : public RawSink {
  void WriteHostFile(std::string_view, std::string_view) override {}
};

void Poll(const Host& host, ManualClock* clock) {
  fuzz::BoundedRegistry registry(kMaxSeries);
  std::vector<std::unique_ptr<PolledCollector>> pollers;
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.spec->source != CollectorSource::kDcmi || entry.make_poller == nullptr) continue;
    if (!entry.probe_host(host).ok()) continue;
    auto poller = entry.make_poller(host, PollOptions(), registry);
    if (poller.ok()) pollers.push_back(std::move(poller).value());
  }
  SampleBatch batch;
  NoSink sink;
  PollOutput out{batch, sink};
  for (int round = 0; round < 3; ++round) {
    clock->Advance(70 * kNsPerSecond);
    const int64_t now_ns = clock->MonotonicRawNs();
    for (const auto& poller : pollers) {
      batch.Clear();
      poller->Poll({now_ns, now_ns, 0}, out).Ignore();
      registry.Check(batch);
    }
  }
}

}  // namespace

void fuzz::Run(Input input) {
  static const RootedFs nothing = RootedFs::OpenRoot("tests/fuzz").value();
  ManualClock clock;
  const bool v2 = (input.Take<uint8_t>() & 1) != 0;
  source = &input;
  DcmiService service(Library(v2), clock);
  if (!service.Start().ok()) return;
  CheckDevices(service);
  const CollectorSettings everything = {
      {"npu_extra", {"core_utilization", "serdes", "call_buckets", "pcie_bandwidth=1", "hccs_bandwidth=1",
                     "rdma_bandwidth=100"}}};
  const Host host{clock, nothing, nothing, &service, {}, 0, nullptr, everything};
  Poll(host, &clock);
  for (const DcmiDevice& device : service.devices()) {
    FUZZ_EXPECT(service.EnergyJoules(device) >= 0);
    service.FaultEvents(device);
  }
}

}  // namespace profd
