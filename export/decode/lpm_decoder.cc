#include <optional>

#include "driver/abi/channels.h"
#include "driver/records/lpm.h"
#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

using records::LpmEntry;
using records::LpmRecord;

constexpr int kNoDie = -1;
// What the vendor's analyser takes for the voltage at the device's start when no change from before it was delivered.
constexpr int64_t kVendorMillivolts = 900;

// Changes of one value, from the device's start on: what was before only gives the value with which it
// begins. The first change of all is preceded by that value at the start, if it is known.
class ChangeSeries {
 public:
  ChangeSeries(uint64_t start_count, std::optional<int64_t> initial) : start_(start_count), value_(initial) {}

  // `row(count, value)`. False: a change of the past behind later ones.
  template <class Row>
  bool Add(uint64_t count, int64_t value, Row row) {
    if (count < start_) {
      if (began_) return false;
      value_ = value;
      return true;
    }
    Begin(row);
    value_ = value;
    row(count, value);
    return true;
  }
  template <class Row>
  void Begin(Row row) {
    if (began_) return;
    began_ = true;
    if (value_) row(start_, *value_);
  }
  std::optional<int64_t> value() const { return value_; }

 private:
  uint64_t start_;
  std::optional<int64_t> value_;
  bool began_ = false;
};

// Rows of the AI Core clock as the vendor's analyser has them: one at the begin of the collection,
// one at the device's start, one per change, one at the end of the collection.
class FrequencyRows {
 public:
  explicit FrequencyRows(const DecodeContext& context)
      : clock_(context.clock),
        start_mhz_(context.place->aicore_mhz),
        last_mhz_(context.place->aicore_mhz),
        rows_(TableOf(TableId::kAicoreFreq), context.place->device, context.window, *context.rows) {
  }

  void Add(uint64_t count, int64_t mhz) {
    last_mhz_ = mhz;
    int64_t t_ns = clock_.DeviceCounter(count);
    if (t_ns < BeginNs()) {
      if (!began_) start_mhz_ = mhz;
      return;
    }
    Begin();
    Row(t_ns, mhz);
  }
  void Finish() {
    Begin();
    if (clock_.facts().end_us > 0) Row(Nanos(clock_.facts().end_us), last_mhz_);
    rows_.Flush();
  }

 private:
  // What control files say is untrusted: wraps around rather than overflows.
  static int64_t Nanos(int64_t micros) {
    return static_cast<int64_t>(static_cast<uint64_t>(micros) * 1000);
  }
  int64_t BeginNs() const { return Nanos(clock_.facts().begin_us); }
  void Begin() {
    if (began_) return;
    began_ = true;
    if (BeginNs() > 0) Row(BeginNs(), start_mhz_);
  }
  void Row(int64_t t_ns, int64_t mhz) { rows_.Add(t_ns, kNoDie, static_cast<double>(mhz)); }

  ClockMap clock_;
  int64_t start_mhz_;
  int64_t last_mhz_;
  bool began_ = false;
  BatchBuilder rows_;
};

// Its own rows are those of voltages.
class LpmDecoder final : public RecordDecoder<LpmDecoder, LpmRecord, TableDecoder> {
 public:
  enum class File : uint8_t { kFrequency, kInfo };

  LpmDecoder(const DecodeContext& context, File file)
      : RecordDecoder(context, TableId::kVoltage),
        file_(file),
        frequency_(context.clock.facts().device_count, context.place->aicore_mhz),
        voltages_{ChangeSeries(context.clock.facts().device_count, InitialMillivolts(context)),
                  ChangeSeries(context.clock.facts().device_count, InitialMillivolts(context))} {
    const Place& place = *context.place;
    // One source: on chips 15 and 16 the records of low power have the clock, per die; and a dump
    // that has both files has the same changes twice.
    bool told_elsewhere = file == File::kFrequency
                              ? IsV6(place.chip) && HasFile(place, "stars_soc_profile.data")
                              : HasFile(place, "lpmFreqConv.data");
    if (!told_elsewhere) frequency_rows_.emplace(context);
  }

  bool DecodeRecord(const LpmRecord& record) {
    const uint32_t count = record.count();
    const uint32_t type = file_ == File::kFrequency ? LpmRecord::kFrequencyMhz : record.type();
    if (count > LpmRecord::kMaxEntries || type >= LpmRecord::kTypes) return false;
    bool good = true;
    for (size_t i = 0; i < count; ++i) {
      const LpmEntry entry = record.entry(i);
      good &= Entry(type, entry.device_count, entry.value);
    }
    seen_[type] = true;
    return good;
  }
  void FinishRows() {
    for (uint32_t type = 0; type < seen_.size(); ++type) {
      if (seen_[type]) Begin(type);
    }
    if (frequency_rows_) frequency_rows_->Finish();
    EndVoltages();
    rows_.Flush();
  }

 private:
  static std::optional<int64_t> InitialMillivolts(const DecodeContext& context) {
    if (context.dump->manifest) return std::nullopt;
    return kVendorMillivolts;
  }
  bool Entry(uint32_t type, uint64_t count, int64_t value) {
    if (type == LpmRecord::kFrequencyMhz) {
      return frequency_.Add(count, value, [this](uint64_t at, int64_t mhz) { Frequency(at, mhz); });
    }
    return voltages_[type - 1].Add(count, value,
                                   [&](uint64_t at, int64_t mv) { Voltage(type, at, mv); });
  }
  // Nothing more of the past will come: the value at the start is known.
  void Begin(uint32_t type) {
    if (type == LpmRecord::kFrequencyMhz) {
      frequency_.Begin([this](uint64_t at, int64_t mhz) { Frequency(at, mhz); });
    } else {
      voltages_[type - 1].Begin([&](uint64_t at, int64_t mv) { Voltage(type, at, mv); });
    }
  }
  // The last values hold until the end of the collection.
  void EndVoltages() {
    int64_t end_us = clock_.facts().end_us;
    if (end_us <= 0) return;
    auto t_ns = static_cast<int64_t>(static_cast<uint64_t>(end_us) * 1000);
    for (uint32_t type = 1; type < LpmRecord::kTypes; ++type) {
      const std::optional<int64_t> last = voltages_[type - 1].value();
      if (seen_[type] && last) rows_.Add(t_ns, type - 1, static_cast<double>(*last));
    }
  }
  void Frequency(uint64_t count, int64_t mhz) {
    if (frequency_rows_) frequency_rows_->Add(count, mhz);
  }
  void Voltage(uint32_t type, uint64_t count, int64_t mv) {
    rows_.Add(clock_.DeviceCounter(count), type - 1, static_cast<double>(mv));
  }

  File file_;
  ChangeSeries frequency_;
  std::array<ChangeSeries, 2> voltages_;  // AI Core, bus
  std::array<bool, LpmRecord::kTypes> seen_{};
  std::optional<FrequencyRows> frequency_rows_;
};

}  // namespace

std::span<const DecoderSpec> LpmDecoders() {
  static constexpr auto kSpecs = std::to_array<DecoderSpec>({
      ChannelDecoder(records::kLpmFormat, Chips({5, 7, 15, 16}), kTables<TableId::kAicoreFreq>,
                     MakeDecoder<LpmDecoder, LpmDecoder::File::kFrequency>),
      {abi::kLpInfoFile, Place::Kind::kDevice, Chips({5}), records::LpmRecord::kSize, 0,
       kTables<TableId::kAicoreFreq, TableId::kVoltage>, MakeDecoder<LpmDecoder, LpmDecoder::File::kInfo>},
  });
  return kSpecs;
}

}  // namespace profd::exporting
