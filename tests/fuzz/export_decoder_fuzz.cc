// Input: which decoder, for which chip, what the control files say; then pieces with their length,
// as they come from slices. The decoder gets whole records or lines, as the engine hands them on.
// Rows are numbers that mean something, and there are not more of them than the bytes can hold.
#include <array>
#include <cmath>

#include "base/bytes.h"
#include "export/decoder.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::exporting {
namespace {

constexpr std::array<int, 13> kChips = {-1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16};

class CheckingSink final : public BatchSink {
 public:
  void Take(const Batch& batch) override {
    rows_ += batch.rows();
    FUZZ_EXPECT(batch.rows() > 0 && batch.rows() <= BatchBuilder::kRows);
    for (size_t column = 0; column < batch.table->columns.size(); ++column) {
      if (!IsReal(batch.table->columns[column].type)) continue;
      for (double value : batch.Reals(column)) FUZZ_EXPECT(std::isfinite(value));
    }
  }
  uint64_t rows() const { return rows_; }

 private:
  uint64_t rows_ = 0;
};

Place MakePlace(fuzz::Input& input, const DecoderSpec& spec) {
  Place place;
  place.kind = spec.kind;
  place.device = spec.kind == Place::Kind::kDevice ? 3 : -1;
  place.chip = kChips[input.TakeIndex(kChips.size())];
  const auto flags = input.Take<uint8_t>();
  place.llc_mode = flags & 2 ? "write" : "read";
  place.record_version = flags & 4 ? "2.0" : "1.0";
  place.aicore_mode = flags & 8 ? "task-based" : "sample-based";
  place.clock.device_hz = flags & 16 ? 0 : 50e6;
  place.clock.host_hz = flags & 32 ? 0 : 100e6;
  place.clock.begin_us = input.Take<int64_t>() >> 8;
  place.clock.begin_raw_ns = input.Take<int64_t>() >> 8;
  place.clock.device_count = input.Take<uint64_t>();
  place.clock.end_raw_ns = flags & 64 ? place.clock.begin_raw_ns + 1'000'000'000 : 0;
  place.aicore_mhz = 1800;
  place.ctrl_cpus = {0};
  place.ai_cpus = {2, 3};
  place.qos_events = {"SDMA", "AIC"};
  place.host_disk_hz = flags & 128 ? 0 : 50;
  return place;
}

// Whole records or lines at the front of `bytes`.
size_t Whole(std::string_view bytes, size_t record_size) {
  if (record_size != 0) return bytes.size() / record_size * record_size;
  size_t end = bytes.rfind('\n');
  return end == std::string_view::npos ? 0 : end + 1;
}

void Run(fuzz::Input input) {
  const DecoderSpec& spec = Decoders()[input.TakeIndex(Decoders().size())];
  Place place = MakePlace(input, spec);
  DumpInfo dump;
  dump.chip = place.chip;
  dump.memory_total_kb = 1'000'000;
  dump.cpu_count = 8;
  dump.cards = {{"eth0", 10000}};
  DataFile file;
  file.base = spec.base;
  if (const size_t star = file.base.find('*'); star != std::string::npos) file.base.replace(star, 1, "42");
  Strings strings;
  CheckingSink sink;
  uint64_t events = 0;
  DecodeContext context;
  context.dump = &dump;
  context.place = &place;
  context.file = &file;
  context.clock = ClockMap(place.clock);
  context.strings = &strings;
  context.rows = &sink;
  context.event = [&events](const Event&) { ++events; };
  std::unique_ptr<Decoder> decoder = spec.make(context);
  FUZZ_EXPECT(decoder != nullptr);
  const size_t record_size = RecordSizeOf(spec, place);
  uint64_t fed = 0;
  std::string carry;
  while (!input.empty()) {
    const auto length = input.Take<uint16_t>();
    carry += input.TakePiece(length & 0x7FFF);
    const size_t whole = Whole(carry, record_size);
    if (whole == 0) continue;
    decoder->Feed(AsBytes(std::string_view(carry).substr(0, whole)), (length & 0x8000) != 0);
    carry.erase(0, whole);
    fed += whole;
  }
  decoder->Finish();
  // One record of the low power channel holds 55 of 16 bytes; a line gives a few rows.
  FUZZ_EXPECT(sink.rows() <= fed + 4);
  FUZZ_EXPECT(events <= fed + 4);
  FUZZ_EXPECT(decoder->stats().bad_bytes <= fed);
}

}  // namespace
}  // namespace profd::exporting

void profd::fuzz::Run(Input input) { exporting::Run(input); }
