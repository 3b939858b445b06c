#include "export/decode/decoder_groups.h"

namespace profd::exporting {

std::span<const DecoderSpec> OwnDecoders() { return {}; }

}  // namespace profd::exporting
