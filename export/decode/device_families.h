// The parts of DeviceDecoders(), one per family of channels.
#pragma once

#include <memory>

#include "export/decoder.h"

namespace profd::exporting {

std::unique_ptr<Decoder> MakePcieDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeHbmDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeLlcDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeDdrDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeNpuMemDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeModuleMemDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeLpmFreqDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeLpmInfoDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeQosDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeSocProfileDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeAicoreDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeAivDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeFftsDecoder(const DecodeContext& context);
std::unique_ptr<Decoder> MakeUbDecoder(const DecodeContext& context);

}  // namespace profd::exporting
