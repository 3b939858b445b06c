// The decoders of profd's own files and of the step trace.
#pragma once

#include <memory>

#include "export/decoder.h"

namespace profd::exporting {

std::unique_ptr<Decoder> MakeSamplesDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeMarksDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeStacksDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeTsTrackDecoder(const DecodeContext& context);

}  // namespace profd::exporting
