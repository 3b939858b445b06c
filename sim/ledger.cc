#include "sim/ledger.h"

#include <cstdlib>

#include "driver/abi/hal_abi.h"
#include "sim/scenario.h"
#include "sim/shared_file.h"

namespace profd::sim {
namespace {

struct LedgerFile {
  uint32_t magic;
  uint32_t devices;
  uint32_t channels;
  uint32_t reserved;
  LedgerRow rows[kMaxSimDevices][abi::kMaxChannels];
};

LedgerFile* Map() {
  auto* file = static_cast<LedgerFile*>(MapShared(std::getenv("PROFD_SIM_LEDGER"), sizeof(LedgerFile), 0644));
  if (file == nullptr) return nullptr;
  file->devices = kMaxSimDevices;
  file->channels = abi::kMaxChannels;
  file->magic = kLedgerMagic;
  return file;
}

}  // namespace

LedgerRow* LedgerRowOf(unsigned device, unsigned channel) {
  static LedgerFile* const file = Map();
  if (file == nullptr || device >= kMaxSimDevices || channel >= abi::kMaxChannels) return nullptr;
  return &file->rows[device][channel];
}

}  // namespace profd::sim
