#include "base/crc32c.h"

#include <array>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace profd {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;

// Table k: what a byte does to the check sum k bytes further on.
constexpr std::array<std::array<uint32_t, 256>, 8> MakeTables() {
  std::array<std::array<uint32_t, 256>, 8> tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}

constexpr auto kTables = MakeTables();

// All of these work on the inverted check sum.
uint32_t TablesUpdate(uint32_t crc, std::span<const std::byte> bytes) {
  size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    uint64_t word = LoadUnchecked<uint64_t>(bytes, at) ^ crc;
    uint32_t next = 0;
    for (size_t k = 0; k < 8; ++k) next ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
    crc = next;
  }
  for (; at < bytes.size(); ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(bytes[at])) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t InstructionUpdate(uint32_t crc,
                                                             std::span<const std::byte> bytes) {
  uint64_t wide = crc;
  size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    wide = _mm_crc32_u64(wide, LoadUnchecked<uint64_t>(bytes, at));
  }
  auto narrow = static_cast<uint32_t>(wide);
  for (; at < bytes.size(); ++at) {
    narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(bytes[at]));
  }
  return narrow;
}

bool DetectInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }

#elif defined(__aarch64__)

#if defined(__clang__)
#define PROFD_CRC_TARGET __attribute__((target("crc")))
#define PROFD_CRC32C_WORD __builtin_arm_crc32cd
#define PROFD_CRC32C_BYTE __builtin_arm_crc32cb
#else
#define PROFD_CRC_TARGET __attribute__((target("+crc")))
#define PROFD_CRC32C_WORD __builtin_aarch64_crc32cx
#define PROFD_CRC32C_BYTE __builtin_aarch64_crc32cb
#endif

PROFD_CRC_TARGET uint32_t InstructionUpdate(uint32_t crc, std::span<const std::byte> bytes) {
  size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    crc = PROFD_CRC32C_WORD(crc, LoadUnchecked<uint64_t>(bytes, at));
  }
  for (; at < bytes.size(); ++at) {
    crc = PROFD_CRC32C_BYTE(crc, static_cast<unsigned char>(bytes[at]));
  }
  return crc;
}

bool DetectInstruction() {
  constexpr unsigned long kHwcapCrc32 = 1UL << 7;
  return (::getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
}

#else

uint32_t InstructionUpdate(uint32_t crc, std::span<const std::byte> bytes) {
  return TablesUpdate(crc, bytes);
}
bool DetectInstruction() { return false; }

#endif

}  // namespace

namespace internal {

uint32_t Crc32cTables(std::span<const std::byte> bytes, uint32_t before) {
  return ~TablesUpdate(~before, bytes);
}

bool HasCrc32cInstruction() {
  static const bool has = DetectInstruction();
  return has;
}

}  // namespace internal

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before) {
  if (internal::HasCrc32cInstruction()) return ~InstructionUpdate(~before, bytes);
  return internal::Crc32cTables(bytes, before);
}

}  // namespace profd
