// CRC-32C (Castagnoli, reflected 0x82F63B78) as iSCSI, ext4 and most storage formats use it: the
// check sum of dump slices. With the CPU's instruction where there is one, else from tables. Of Debian 12's
// libraries only ISA-L has it, as a shared library: builds for other distributions could not take it in. zlib's
// CRC-32 is another polynomial, which dumps of today do not have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace profd {

// Of `bytes`, or of everything before (whose check sum is `before`) followed by `bytes`.
// Crc32c("123456789") == 0xe3069283.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

namespace internal {
// What Crc32c does without the instruction; for tests.
uint32_t Crc32cTables(std::span<const std::byte> bytes, uint32_t before = 0);
// Whether Crc32c uses the instruction here.
bool HasCrc32cInstruction();
}  // namespace internal

}  // namespace profd
