// libdcmi.so: initialisation, enumeration, identity (dcmi-and-metrics 1.2).
#include <algorithm>
#include <cstring>
#include <string_view>

#include "sim/dcmi_library.h"

namespace profd::sim {

DcmiLibrary& Dcmi() {
  static DcmiLibrary* const library = new DcmiLibrary;
  return *library;
}

namespace {

// Read the scenario when the library is loaded, as the environment is then.
__attribute__((constructor)) void LoadNow() { Dcmi(); }

int PutText(std::string_view text, char* out, unsigned size) {
  if (out == nullptr || size <= text.size()) return abi::kDcmiInvalidParameter;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return abi::kDcmiOk;
}

}  // namespace
}  // namespace profd::sim

using profd::sim::Always;
using profd::sim::Ask;
using profd::sim::Dcmi;
using profd::sim::DcmiView;
namespace abi = profd::abi;

PROFD_SIM_EXPORT int dcmi_init() {
  if (!Dcmi().node()) return abi::kDcmiInternal;
  return Dcmi().IsV2Only() ? abi::kDcmiNotSupported : abi::kDcmiOk;
}

PROFD_SIM_EXPORT int dcmi_get_dcmi_version(char* out, unsigned size) {
  return profd::sim::PutText("25.2.0-sim", out, size);
}

PROFD_SIM_EXPORT int dcmi_get_driver_version(char* out, unsigned size) {
  return profd::sim::PutText("25.2.0-sim", out, size);
}

PROFD_SIM_EXPORT int dcmi_get_card_list(int* card_num, int* card_list, int list_len) {
  if (card_num == nullptr || card_list == nullptr || list_len <= 0) {
    return abi::kDcmiInvalidParameter;
  }
  if (!Dcmi().node()) return abi::kDcmiInternal;
  *card_num = std::min(Dcmi().Cards(), list_len);
  for (int card = 0; card < *card_num; ++card) card_list[card] = card;
  return abi::kDcmiOk;
}

PROFD_SIM_EXPORT int dcmi_get_device_num_in_card(int card_id, int* device_num) {
  if (device_num == nullptr) return abi::kDcmiInvalidParameter;
  if (!Dcmi().node()) return abi::kDcmiInternal;
  if (Dcmi().LogicId(card_id, 0) < 0) return abi::kDcmiInvalidDevice;
  Dcmi().AwaitCard(card_id);
  *device_num = Dcmi().PerCard();
  return abi::kDcmiOk;
}

PROFD_SIM_EXPORT int dcmi_get_device_type(int card_id, int device_id, int* device_type) {
  if (device_type == nullptr) return abi::kDcmiInvalidParameter;
  if (!Dcmi().node()) return abi::kDcmiInternal;
  const bool mcu = Dcmi().IsMcu(card_id, device_id);
  if (!mcu && Dcmi().LogicId(card_id, device_id) < 0) return abi::kDcmiInvalidDevice;
  *device_type = mcu ? abi::kUnitMcu : abi::kUnitNpu;
  return abi::kDcmiOk;
}

PROFD_SIM_EXPORT int dcmi_get_device_logic_id(int* logic_id, int card_id, int device_id) {
  if (logic_id == nullptr) return abi::kDcmiInvalidParameter;
  if (!Dcmi().node()) return abi::kDcmiInternal;
  const int id = Dcmi().LogicId(card_id, device_id);
  if (id < 0) return abi::kDcmiInvalidDevice;
  *logic_id = id;
  return abi::kDcmiOk;
}

// Logic and physical ids are the same here.
PROFD_SIM_EXPORT int dcmi_get_device_phyid_from_logicid(unsigned logic_id, unsigned* phy_id) {
  if (phy_id == nullptr) return abi::kDcmiInvalidParameter;
  if (!Dcmi().node()) return abi::kDcmiInternal;
  if (!Dcmi().node()->HasDevice(logic_id)) return abi::kDcmiInvalidDevice;
  *phy_id = logic_id;
  return abi::kDcmiOk;
}

PROFD_SIM_ASK(dcmi_get_device_chip_info_v2, abi::DcmiChipInfoV2, &DcmiView::ChipInfo)

// The older struct ends before npu_name.
PROFD_SIM_EXPORT int dcmi_get_device_chip_info(int card, int device, void* out) {
  if (out == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device, [&](const DcmiView& view) {
    abi::DcmiChipInfoV2 info;
    const int code = view.ChipInfo(&info);
    std::memcpy(out, &info, abi::kDcmiChipInfoV1Bytes);
    return code;
  });
}

PROFD_SIM_EXPORT int dcmi_get_device_die_v2(int card, int device, int die_type,
                                            abi::DcmiDieId* out) {
  return Ask(card, device, out, &DcmiView::DieId, die_type);
}

PROFD_SIM_ASK(dcmi_get_device_pcie_info_v2, abi::DcmiPcieInfoAll, &DcmiView::PcieInfo)
PROFD_SIM_ASK(dcmi_get_device_board_info, abi::DcmiBoardInfo, &DcmiView::BoardInfo)
PROFD_SIM_ASK(dcmi_get_mainboard_id, unsigned, &DcmiView::MainboardId)

// Only the 310P answers.
PROFD_SIM_EXPORT int dcmi_get_product_type(int card, int device, char* out, int size) {
  if (out == nullptr || size <= 0) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device, [&](const DcmiView&) { return abi::kDcmiNotSupported; });
}

PROFD_SIM_EXPORT int dcmi_get_card_elabel_v2(int card, abi::DcmiElabelInfo* out) {
  return Ask(card, 0, out, &DcmiView::Elabel);
}

PROFD_SIM_ASK(dcmi_get_device_compatibility, int, Always(1))

PROFD_SIM_EXPORT int dcmi_get_device_boot_status(int card, int device, int* out) {
  constexpr int kStartFinished = 16;
  return Ask(card, device, out, Always(kStartFinished));
}

PROFD_SIM_EXPORT int dcmi_get_topo_info_by_device_id(int card1, int device1, int card2, int device2,
                                                     int* type) {
  if (type == nullptr) return abi::kDcmiInvalidParameter;
  constexpr int kSelf = 0, kHccs = 3, kSio = 6;
  return Dcmi().OnDevice(card1, device1, [&](const DcmiView& view) {
    if (view.Is910()) return abi::kDcmiNotSupported;
    if (Dcmi().LogicId(card2, device2) < 0) return abi::kDcmiInvalidDevice;
    const bool same_card = card1 == card2;
    *type = same_card && device1 == device2 ? kSelf : same_card ? kSio : kHccs;
    return abi::kDcmiOk;
  });
}

PROFD_SIM_EXPORT int dcmiv2_init() { return Dcmi().node() ? abi::kDcmiOk : abi::kDcmiInternal; }

PROFD_SIM_EXPORT int dcmiv2_get_dcmi_version(char* out, unsigned size) {
  return dcmi_get_dcmi_version(out, size);
}

PROFD_SIM_EXPORT int dcmiv2_get_driver_version(char* out, unsigned size) {
  return dcmi_get_driver_version(out, size);
}

PROFD_SIM_EXPORT int dcmiv2_get_device_list(int* list, int* count, int list_len) {
  if (list == nullptr || count == nullptr || list_len <= 0) return abi::kDcmiInvalidParameter;
  if (!Dcmi().node()) return abi::kDcmiInternal;
  *count = std::min(Dcmi().node()->devices(), list_len);
  for (int i = 0; i < *count; ++i) list[i] = i;
  return abi::kDcmiOk;
}

PROFD_SIM_EXPORT int dcmiv2_get_chip_phy_id_by_dev_id(unsigned device, unsigned* phy_id) {
  return dcmi_get_device_phyid_from_logicid(device, phy_id);
}

PROFD_SIM_ASK_V2(dcmiv2_get_device_elabel_info, abi::DcmiElabelInfo, &DcmiView::Elabel)
