#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/dcmi_state.h"
#include "sim/noise.h"

namespace profd::sim {
namespace {

template <size_t N, class Char>
void Put(Char (&field)[N], std::string_view text) {
  std::memcpy(field, text.data(), std::min(N - 1, text.size()));
}

}  // namespace

int DcmiView::ChipInfo(abi::DcmiChipInfoV2* out) const {
  *out = {};
  Put(out->chip_type, "Ascend");
  Put(out->chip_name, chip().chip_name);
  Put(out->chip_ver, "V1");
  Put(out->npu_name, chip().npu_name);
  out->aicore_cnt = chip().aic_cores;
  return abi::kDcmiOk;
}

int DcmiView::DieId(int die_type, abi::DcmiDieId* out) const {
  const bool ndie = die_type == abi::kDieNdie && Is910();  // dcmi-and-metrics 1.2
  if (die_type != (IsA5() ? abi::kDieDdie : abi::kDieVdie) && !ndie) {
    const bool known = die_type == abi::kDieNdie || die_type == abi::kDieVdie ||
                       die_type == abi::kDieDdie;
    return known ? abi::kDcmiNotSupported : abi::kDcmiInvalidParameter;
  }
  for (uint64_t word = 0; word < 5; ++word) {
    out->soc_die[word] = static_cast<uint32_t>(
        Hash(node.scenario().seed, kNoiseIdentity + static_cast<unsigned>(die_type), device, word));
  }
  return abi::kDcmiOk;
}

int DcmiView::PcieInfo(abi::DcmiPcieInfoAll* out) const {
  *out = {};
  out->venderid = 0x19e5;
  out->subvenderid = 0x19e5;
  out->deviceid = Is910() ? 0xd801 : IsA2() ? 0xd802 : 0xd803;
  out->subdeviceid = 0x4000;
  out->domain = 0;
  constexpr uint32_t kBuses[] = {0xc1, 0x01, 0xc2, 0x02, 0x81, 0x41, 0x82, 0x42,
                                 0xc3, 0x03, 0xc4, 0x04, 0x83, 0x43, 0x84, 0x44};
  out->bdf_busid = kBuses[device % std::size(kBuses)];
  return abi::kDcmiOk;
}

int DcmiView::BoardInfo(abi::DcmiBoardInfo* out) const {
  *out = {};
  out->board_id = chip().board_id;
  out->pcb_id = 1;
  out->bom_id = 1;
  out->slot_id = device / static_cast<unsigned>(chip().devices_per_card);
  return abi::kDcmiOk;
}

int DcmiView::MainboardId(unsigned* out) const {
  if (Is910()) return abi::kDcmiNotSupported;
  *out = IsA3() ? 0x14 : 0x01;
  return abi::kDcmiOk;
}

int DcmiView::Elabel(abi::DcmiElabelInfo* out) const {
  *out = {};
  const unsigned card = device / static_cast<unsigned>(chip().devices_per_card);
  Put(out->product_name, chip().product);
  Put(out->model, chip().npu_name);
  Put(out->manufacturer, "profd simulator");
  Put(out->manufacturer_date, "2026-01-01");
  Put(out->serial_number,
      fmt::format("SIM{:012X}",
                  Hash(node.scenario().seed, kNoiseIdentity + 0x10, card) & 0xFFFFFFFFFFFF));
  return abi::kDcmiOk;
}

}  // namespace profd::sim
