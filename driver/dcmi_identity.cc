// Start-up of DcmiService: which NPUs there are and who they are (dcmi-and-metrics 1.2).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <climits>

#include "base/text.h"
#include "driver/dcmi_service_impl.h"

namespace profd {
namespace {

// Text the driver put into a fixed field; it need not be terminated, and serial numbers come
// padded.
template <class Char, size_t N>
std::string Text(const Char (&field)[N]) {
  static_assert(sizeof(Char) == 1);
  const char* begin = reinterpret_cast<const char*>(field);
  std::string text(Trim(
      std::string_view(begin, static_cast<size_t>(std::find(begin, begin + N, '\0') - begin))));
  for (char& c : text) {
    if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
  }
  return text;
}

std::string UuidText(const abi::DcmiDieId& die) {
  const auto& w = die.soc_die;
  if (std::all_of(std::begin(w), std::end(w), [](uint32_t word) { return word == 0; })) return {};
  return fmt::format("{:08X}-{:08X}-{:08X}-{:08X}-{:08X}", w[0], w[1], w[2], w[3], w[4]);
}

bool IsAbandoned(int code) { return code == kDcmiAbandoned; }

// An answer that is no number of a device counts as none.
int PhysicalId(int code, unsigned answer, int logical_id) {
  return code == abi::kDcmiOk && answer <= INT_MAX ? static_cast<int>(answer) : logical_id;
}

}  // namespace

Status DcmiService::Start() {
  if (int code = Initialise(); code != abi::kDcmiOk) return DcmiStatus(code, "dcmi_init");
  std::vector<DcmiDevice> devices;
  if (int code = FindDevices(&devices); code != abi::kDcmiOk) {
    return DcmiStatus(code, "enumerating NPUs");
  }
  std::string dcmi_version, driver_version;
  if (IsAbandoned(ReadVersions(&dcmi_version, &driver_version))) {
    return DcmiStatus(kDcmiAbandoned, "reading versions");
  }
  {
    std::lock_guard lock(state_->mutex);
    for (const DcmiDevice& device : devices) {
      state_->slots[static_cast<size_t>(device.index + 1)].physical_id = device.physical_id;
    }
  }
  for (DcmiDevice& device : devices) {
    if (!ReadIdentity(&device)) return DcmiStatus(kDcmiAbandoned, "reading identities");
  }
  devices_ = std::move(devices);
  dcmi_version_ = std::move(dcmi_version);
  driver_version_ = std::move(driver_version);
  return Status::Ok();
}

int DcmiService::Initialise() {
  const DcmiFunctions& f = functions();
  const std::shared_ptr<State> state = state_;
  // The generation whose init worked; chips of the newest one answer v2 only.
  DcmiApi worked = DcmiApi::kNone;
  auto ask = [&] {
    int code = f.init != nullptr ? f.init() : kDcmiSymbolMissing;
    if (code == abi::kDcmiOk) {
      worked = DcmiApi::kV1;
      return code;
    }
    if (f.v2_init == nullptr) return code;
    const int v2_code = f.v2_init();
    if (v2_code == abi::kDcmiOk) worked = DcmiApi::kV2;
    return v2_code;
  };
  const int code = Run(-1, DcmiCall::kInit, ask);
  if (code == abi::kDcmiOk) state->api = worked;
  return code;
}

int DcmiService::FindDevices(std::vector<DcmiDevice>* devices) {
  const int code = api() == DcmiApi::kV2 ? FindDevicesV2(devices) : FindDevicesV1(devices);
  if (code != abi::kDcmiOk) return code;
  std::sort(devices->begin(), devices->end(),
            [](const DcmiDevice& a, const DcmiDevice& b) { return a.logical_id < b.logical_id; });
  // One that is listed twice would be counted twice.
  devices->erase(std::unique(devices->begin(), devices->end(),
                             [](const DcmiDevice& a, const DcmiDevice& b) {
                               return a.logical_id == b.logical_id;
                             }),
                 devices->end());
  if (devices->size() > kMaxDcmiDevices) devices->resize(kMaxDcmiDevices);
  for (size_t i = 0; i < devices->size(); ++i) (*devices)[i].index = static_cast<int>(i);
  return code;
}

int DcmiService::FindDevicesV1(std::vector<DcmiDevice>* devices) {
  const DcmiFunctions& f = functions();
  std::array<int, 2 * abi::kDcmiMaxCards> cards{};
  int count = 0;
  int code = Run(-1, DcmiCall::kCardList, [&] {
    return f.card_list != nullptr ? f.card_list(&count, cards.data(), abi::kDcmiMaxCards)
                                  : kDcmiSymbolMissing;
  });
  if (code != abi::kDcmiOk) return code;
  count = std::clamp(count, 0, abi::kDcmiMaxCards);
  for (int i = 0; i < count; ++i) {
    code = FindDevicesOfCard(cards[static_cast<size_t>(i)], devices);
    if (IsAbandoned(code)) return code;
  }
  return abi::kDcmiOk;
}

int DcmiService::FindDevicesOfCard(int card, std::vector<DcmiDevice>* devices) {
  const DcmiFunctions& f = functions();
  int count = 0;
  int code = Run(-1, DcmiCall::kDeviceNumInCard, [&] {
    return f.device_num_in_card != nullptr ? f.device_num_in_card(card, &count)
                                           : kDcmiSymbolMissing;
  });
  if (IsAbandoned(code)) return code;
  // A card whose chips cannot be counted has at least its first one tried.
  count = code == abi::kDcmiOk ? std::clamp(count, 0, abi::kDcmiMaxDevicesInCard) : 1;
  for (int chip = 0; chip < count; ++chip) {
    int type = abi::kUnitNpu;
    code = Run(-1, DcmiCall::kDeviceType, [&] {
      return f.device_type.v1 != nullptr ? f.device_type.v1(card, chip, &type) : kDcmiSymbolMissing;
    });
    if (IsAbandoned(code)) return code;
    if (code == abi::kDcmiOk && type != abi::kUnitNpu) continue;  // the card's MCU or CPU
    int logical_id = -1;
    code = Run(-1, DcmiCall::kLogicId, [&] {
      return f.device_logic_id != nullptr ? f.device_logic_id(&logical_id, card, chip)
                                          : kDcmiSymbolMissing;
    });
    if (IsAbandoned(code)) return code;
    if (code != abi::kDcmiOk || logical_id < 0) continue;
    auto physical_id = static_cast<unsigned>(logical_id);
    code = Run(-1, DcmiCall::kPhysicalId, [&] {
      return f.phyid_from_logicid != nullptr
                 ? f.phyid_from_logicid(static_cast<unsigned>(logical_id), &physical_id)
                 : kDcmiSymbolMissing;
    });
    if (IsAbandoned(code)) return code;
    DcmiDevice& device = devices->emplace_back();
    device.card = card;
    device.chip = chip;
    device.logical_id = logical_id;
    device.physical_id = PhysicalId(code, physical_id, logical_id);
  }
  return abi::kDcmiOk;
}

int DcmiService::FindDevicesV2(std::vector<DcmiDevice>* devices) {
  const DcmiFunctions& f = functions();
  std::array<int, 2 * abi::kDcmiMaxCards> ids{};
  int count = 0;
  int code = Run(-1, DcmiCall::kDeviceList, [&] {
    return f.v2_device_list != nullptr ? f.v2_device_list(ids.data(), &count, abi::kDcmiMaxCards)
                                       : kDcmiSymbolMissing;
  });
  if (code != abi::kDcmiOk) return code;
  count = std::clamp(count, 0, abi::kDcmiMaxCards);
  for (int i = 0; i < count; ++i) {
    const int id = ids[static_cast<size_t>(i)];
    if (id < 0) continue;
    auto physical_id = static_cast<unsigned>(id);
    code = Run(-1, DcmiCall::kPhysicalId, [&] {
      return f.v2_chip_phy_id != nullptr ? f.v2_chip_phy_id(static_cast<unsigned>(id), &physical_id)
                                         : kDcmiSymbolMissing;
    });
    if (IsAbandoned(code)) return code;
    DcmiDevice& device = devices->emplace_back();
    device.card = id;
    device.logical_id = id;
    device.physical_id = PhysicalId(code, physical_id, id);
  }
  return abi::kDcmiOk;
}

int DcmiService::ReadVersions(std::string* dcmi, std::string* driver) {
  const DcmiFunctions& f = functions();
  const bool v2 = api() == DcmiApi::kV2;
  auto read = [&](DcmiCall call, abi::DcmiGetVersionFn fn, std::string* out) {
    char text[512] = {};
    const int code = Run(
        -1, call, [&] { return fn != nullptr ? fn(text, sizeof text / 2) : kDcmiSymbolMissing; });
    if (code == abi::kDcmiOk) *out = Text(text);
    return code;
  };
  const int code = read(DcmiCall::kDcmiVersion, v2 ? f.v2_dcmi_version : f.dcmi_version, dcmi);
  if (IsAbandoned(code)) return code;
  return read(DcmiCall::kDriverVersion, v2 ? f.v2_driver_version : f.driver_version, driver);
}

bool DcmiService::ReadIdentity(DcmiDevice* device) {
  const DcmiFunctions& f = functions();
  auto chip = Query<abi::DcmiChipInfoV2>(*device, DcmiCall::kChipInfo, {}, [&](auto& at, auto* o) {
    return at.Invoke(f.chip_info, o);
  });
  if (IsAbandoned(chip.code)) return false;
  if (chip.ok()) {
    device->chip_type = Text(chip.value.chip_type);
    device->chip_name = Text(chip.value.chip_name);
    device->chip_version = Text(chip.value.chip_ver);
    device->npu_name = Text(chip.value.npu_name);
    device->aicore_count = chip.value.aicore_cnt;
  }
  for (DcmiCall call : {DcmiCall::kVdie, DcmiCall::kDdie}) {
    if (!device->uuid.empty()) break;
    const int type = call == DcmiCall::kVdie ? abi::kDieVdie : abi::kDieDdie;
    auto die = Query<abi::DcmiDieId>(*device, call, {},
                                     [&](auto& at, auto* o) { return at.Invoke(f.die, type, o); });
    if (IsAbandoned(die.code)) return false;
    if (die.ok()) device->uuid = UuidText(die.value);
  }
  return ReadLabels(device);
}

bool DcmiService::ReadLabels(DcmiDevice* device) {
  const DcmiFunctions& f = functions();
  auto pcie = Query<abi::DcmiPcieInfoAll>(*device, DcmiCall::kPcieInfo, {}, [&](auto& at, auto* o) {
    return at.Invoke(f.pcie_info, o);
  });
  if (IsAbandoned(pcie.code)) return false;
  if (pcie.ok()) {
    device->pci_bus_id =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pcie.value.domain & 0xFFFFFFF,
                    pcie.value.bdf_busid, pcie.value.bdf_deviceid, pcie.value.bdf_funcid);
  }
  auto board = Query<abi::DcmiBoardInfo>(*device, DcmiCall::kBoardInfo, {}, [&](auto& at, auto* o) {
    if (at.api == DcmiApi::kV1) return at.InvokeV1(f.board_info, o);
    return f.v2_board_id != nullptr ? f.v2_board_id(at.logical_id, &o->board_id)
                                    : kDcmiSymbolMissing;
  });
  if (IsAbandoned(board.code)) return false;
  if (board.ok()) {
    // The training series of before 910B keeps a revision in the low four bits.
    const bool first_training_series = device->chip_name.starts_with("910") &&
                                       !device->chip_name.starts_with("910B") &&
                                       !device->chip_name.starts_with("910_93");
    device->board_id =
        fmt::format("0x{:x}", board.value.board_id >> (first_training_series ? 4 : 0));
  }
  auto label = Query<abi::DcmiElabelInfo>(*device, DcmiCall::kElabel, {}, [&](auto& at, auto* o) {
    const bool v2 = at.api == DcmiApi::kV2;
    const abi::DcmiGetElabelFn fn = v2 ? f.v2_elabel : f.elabel;
    return fn != nullptr ? fn(v2 ? at.logical_id : at.card, o) : kDcmiSymbolMissing;
  });
  if (IsAbandoned(label.code)) return false;
  if (label.ok()) {
    device->product = Text(label.value.product_name);
    device->model = Text(label.value.model);
    device->serial = Text(label.value.serial_number);
  }
  return true;
}

}  // namespace profd
