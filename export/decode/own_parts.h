// The decoders of profd's own files, of the step trace and of the application's marks.
#pragma once

#include <cstddef>
#include <memory>

#include "export/decoder.h"

namespace profd::exporting {

std::unique_ptr<Decoder> MakeSamplesDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeMarksDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeStacksDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeTsTrackDecoder(const DecodeContext& context);

inline constexpr size_t kTxRecordBytes = 256;
std::unique_ptr<Decoder> MakeTxDecoder(const DecodeContext& context);

}  // namespace profd::exporting
