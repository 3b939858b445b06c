#include "export/decode/decoder_groups.h"

namespace profd::exporting {

std::span<const DecoderSpec> TextDecoders() { return {}; }

}  // namespace profd::exporting
