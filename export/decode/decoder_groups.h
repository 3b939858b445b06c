// The parts of THE list of decoders, one per file that implements them.
#pragma once

#include <span>

#include "export/decoder.h"

namespace profd::exporting {

std::span<const DecoderSpec> DeviceDecoders();  // binary channels of a device
std::span<const DecoderSpec> TextDecoders();    // text channels of a device
std::span<const DecoderSpec> HostDecoders();    // host/data and the CPU and memory files of devices
std::span<const DecoderSpec> OwnDecoders();     // host/profd/ and ts_track

}  // namespace profd::exporting
