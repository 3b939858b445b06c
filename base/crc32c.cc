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

// An instruction takes three cycles, and one that does not need its result can begin in the next: three lanes of a
// block are summed side by side, and joined by what their distance does to a sum.
constexpr size_t kLaneBytes = 1024;

// Table k: what kLaneBytes zeros do to a check sum of which only byte k is not 0.
constexpr std::array<std::array<uint32_t, 256>, 4> MakeLaneTables() {
  std::array<std::array<uint32_t, 256>, 4> tables = {};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < kLaneBytes; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if ((byte >> (bit % 8) & 1) != 0) tables[bit / 8][byte] ^= crc;
    }
  }
  return tables;
}

constexpr auto kLaneTables = MakeLaneTables();

[[maybe_unused]] uint32_t SkipLane(uint64_t crc) {
  uint32_t next = 0;
  for (size_t k = 0; k < 4; ++k) next ^= kLaneTables[k][(crc >> (8 * k)) & 0xFF];
  return next;
}

#if defined(__x86_64__)

#define PROFD_CRC_TARGET __attribute__((target("sse4.2")))
#define PROFD_CRC32C_WORD(crc, word) _mm_crc32_u64(crc, word)
#define PROFD_CRC32C_BYTE(crc, byte) _mm_crc32_u8(static_cast<uint32_t>(crc), byte)

bool DetectInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }

#elif defined(__aarch64__)

#if defined(__clang__)
#define PROFD_CRC_TARGET __attribute__((target("crc")))
#define PROFD_CRC32C_WORD(crc, word) __builtin_arm_crc32cd(static_cast<uint32_t>(crc), word)
#define PROFD_CRC32C_BYTE(crc, byte) __builtin_arm_crc32cb(static_cast<uint32_t>(crc), byte)
#else
#define PROFD_CRC_TARGET __attribute__((target("+crc")))
#define PROFD_CRC32C_WORD(crc, word) __builtin_aarch64_crc32cx(static_cast<uint32_t>(crc), word)
#define PROFD_CRC32C_BYTE(crc, byte) __builtin_aarch64_crc32cb(static_cast<uint32_t>(crc), byte)
#endif

bool DetectInstruction() {
  constexpr unsigned long kHwcapCrc32 = 1UL << 7;
  return (::getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
}

#endif

#ifdef PROFD_CRC_TARGET

PROFD_CRC_TARGET uint32_t InstructionUpdate(uint32_t before, std::span<const std::byte> bytes) {
  uint64_t crc = before;
  for (; bytes.size() >= 3 * kLaneBytes; bytes = bytes.subspan(3 * kLaneBytes)) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t at = 0; at < kLaneBytes; at += 8) {
      crc = PROFD_CRC32C_WORD(crc, LoadUnchecked<uint64_t>(bytes, at));
      second = PROFD_CRC32C_WORD(second, LoadUnchecked<uint64_t>(bytes, kLaneBytes + at));
      third = PROFD_CRC32C_WORD(third, LoadUnchecked<uint64_t>(bytes, 2 * kLaneBytes + at));
    }
    crc = SkipLane(SkipLane(crc) ^ second) ^ third;
  }
  size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) crc = PROFD_CRC32C_WORD(crc, LoadUnchecked<uint64_t>(bytes, at));
  for (; at < bytes.size(); ++at) crc = PROFD_CRC32C_BYTE(crc, static_cast<unsigned char>(bytes[at]));
  return static_cast<uint32_t>(crc);
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
