#include "sim/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "driver/abi/hal_abi.h"
#include "sim/scenario.h"

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
  const char* path = std::getenv("PROFD_SIM_LEDGER");
  if (path == nullptr || *path == '\0') return nullptr;
  const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (::ftruncate(fd, sizeof(LedgerFile)) == 0) {
    memory = ::mmap(nullptr, sizeof(LedgerFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  if (memory == MAP_FAILED) return nullptr;
  auto* file = static_cast<LedgerFile*>(memory);
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
