// The decoders of CPU, memory, disk and network usage, one maker per kind of file.
#pragma once

#include <memory>

#include "export/decoder.h"

namespace profd::exporting {

// Blocks of /proc texts, of the host or of a device's own system (dump-format 2.14).
std::unique_ptr<Decoder> MakeSysCpuDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeSysMemDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeProcCpuDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeProcMemDecoder(const DecodeContext& context);

// Usage of the host by the watched process (dump-format 2.15). All rows but the disk's have the
// timestamp of the sample before: they are about the time from there on.
std::unique_ptr<Decoder> MakeHostCpuDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeHostMemDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeHostDiskDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeHostNetworkDecoder(const DecodeContext& context);

}  // namespace profd::exporting
