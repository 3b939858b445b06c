#include "export/decode/decoder_groups.h"

namespace profd::exporting {

std::span<const DecoderSpec> HostDecoders() { return {}; }

}  // namespace profd::exporting
