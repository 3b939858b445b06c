#include <array>

#include "export/decode/decoder_groups.h"
#include "export/decode/host_parts.h"
#include "export/decode/text_parts.h"

namespace profd::exporting {
namespace {

using Kind = Place::Kind;

constexpr std::array kSysCpuTables = {TableId::kSysCpu};
constexpr std::array kSysMemTables = {TableId::kSysMem};
constexpr std::array kProcCpuTables = {TableId::kProcCpu};
constexpr std::array kProcMemTables = {TableId::kProcMem};
constexpr std::array kHostCpuTables = {TableId::kHostCpu};
constexpr std::array kHostMemTables = {TableId::kHostMem};
constexpr std::array kHostDiskTables = {TableId::kHostDisk};
constexpr std::array kHostNetworkTables = {TableId::kHostNetwork};

constexpr uint32_t kSysChips = Chips({0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16});
constexpr uint32_t kAnyChip = ~uint32_t{0};

constexpr DecoderSpec Of(std::string_view base, Kind kind, std::span<const TableId> tables,
                         std::unique_ptr<Decoder> (*make)(const DecodeContext&)) {
  return {base, kind, kind == Kind::kHost ? kAnyChip : kSysChips, 0, 0, tables, make};
}

constexpr std::array kSpecs = {
    Of("SystemCpuUsage.data", Kind::kDevice, kSysCpuTables, MakeSysCpuDecoder),
    Of("Memory.data", Kind::kDevice, kSysMemTables, MakeSysMemDecoder),
    Of("*-CpuUsage.data", Kind::kDevice, kProcCpuTables, MakeProcCpuDecoder),
    Of("*-Memory.data", Kind::kDevice, kProcMemTables, MakeProcMemDecoder),
    Of("host_sys_cpu.data", Kind::kHost, kSysCpuTables, MakeSysCpuDecoder),
    Of("host_sys_mem.data", Kind::kHost, kSysMemTables, MakeSysMemDecoder),
    Of("*-CpuUsage.data", Kind::kHost, kProcCpuTables, MakeProcCpuDecoder),
    Of("*-Memory.data", Kind::kHost, kProcMemTables, MakeProcMemDecoder),
    Of("host_cpu.data", Kind::kHost, kHostCpuTables, MakeHostCpuDecoder),
    Of("host_mem.data", Kind::kHost, kHostMemTables, MakeHostMemDecoder),
    Of("host_disk.data", Kind::kHost, kHostDiskTables, MakeHostDiskDecoder),
    Of("host_network.data", Kind::kHost, kHostNetworkTables, MakeHostNetworkDecoder),
};

}  // namespace

std::span<const DecoderSpec> HostDecoders() { return kSpecs; }

}  // namespace profd::exporting
