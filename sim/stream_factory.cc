#include "sim/stream_factory.h"

#include <algorithm>
#include <utility>

#include "sim/emitters.h"

namespace profd::sim {

std::unique_ptr<RecordStream> StreamStart::Empty(size_t record_size) const {
  return std::make_unique<RecordStream>(node, target.device, channel, record_size);
}

std::unique_ptr<RecordStream> StreamStart::Periodic(size_t record_size, uint32_t period_ms, Emitter emitter) const {
  std::unique_ptr<RecordStream> stream = Empty(record_size);
  stream->AddTicker(PeriodNs(period_ms), std::move(emitter));
  return stream;
}

std::unique_ptr<RecordStream> StreamStart::Text(std::string_view header, Emitter emitter) const {
  if (!TakesNothing()) return nullptr;
  std::unique_ptr<RecordStream> stream = Periodic(0, para.sample_period, std::move(emitter));
  stream->SetPrologue(std::string(header));
  return stream;
}

std::unique_ptr<RecordStream> MakeStream(const Node& node, unsigned device, unsigned channel,
                                         const abi::ProfStartPara& para) {
  const StreamStart start{node, Target{&node, device}, channel, para};
  for (std::span<const StreamSource> sources :
       {DvppStreams(), InstrStreams(), LinkStreams(), MemoryStreams(), SocStreams()}) {
    const auto found = std::ranges::find(sources, channel, &StreamSource::channel);
    if (found != sources.end()) return found->make(start);
  }
  return start.Empty(1);
}

}  // namespace profd::sim
