#include "export/decode/decoder_groups.h"

namespace profd::exporting {

std::span<const DecoderSpec> DeviceDecoders() { return {}; }

}  // namespace profd::exporting
