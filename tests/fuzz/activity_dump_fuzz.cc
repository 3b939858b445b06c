// Input: the names of a dump (with their length), which activity file, then pieces of it with their length,
// cut anywhere. Every record is a row or counted as bad; the rows' slices nest on the rows of a timeline,
// and each is begun once and ended once.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "dump/activity_files.h"
#include "export/decoder.h"
#include "export/repaired_text.h"
#include "export/trace/activity_slices.h"
#include "export/trace/nested_lanes.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::exporting {
namespace {

class CheckingLanes final : public NestedLanes::Events {
 public:
  void Begin(const Slice& slice, size_t lane, size_t row) override {
    Row& to = rows_[{lane, row}];
    FUZZ_EXPECT(row < NestedLanes::kRows && slice.dur_ns >= 0 && slice.t_ns >= to.last_ns);
    const int64_t end = slice.t_ns + slice.dur_ns;
    FUZZ_EXPECT(to.open.empty() || end <= to.open.back());
    to.last_ns = slice.t_ns;
    to.open.push_back(end);
    ++slices_;
  }
  void End(int64_t t_ns, size_t lane, size_t row) override {
    Row& of = rows_[{lane, row}];
    FUZZ_EXPECT(!of.open.empty() && of.open.back() == t_ns && t_ns >= of.last_ns);
    of.last_ns = t_ns;
    of.open.pop_back();
  }
  void Crowded(const Slice&, size_t) override { ++slices_; }

  void ExpectAllEnded(uint64_t slices) const {
    FUZZ_EXPECT(slices_ == slices);
    for (const auto& [key, row] : rows_) FUZZ_EXPECT(row.open.empty());
  }

 private:
  struct Row {
    std::vector<int64_t> open;
    int64_t last_ns = INT64_MIN;
  };
  std::map<std::pair<size_t, size_t>, Row> rows_;
  uint64_t slices_ = 0;
};

class SliceSink final : public BatchSink {
 public:
  SliceSink(const DumpInfo& dump, const Strings& strings) : slices_(dump, strings) {}

  void Take(const Batch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row) {
      ++rows_;
      std::optional<Slice> slice = slices_.Of(batch, row);
      FUZZ_EXPECT(slice || batch.table->id == TableId::kMarker);
      if (!slice) continue;
      FUZZ_EXPECT(!slice->track.empty() && !slice->thread.empty());
      FUZZ_EXPECT(RepairedText(slice->name, SIZE_MAX) == slice->name);
      if (slice->kind != Slice::Kind::kSlice) continue;
      ++nested_count_;
      nested_.Add(static_cast<size_t>(slice->tid & 3), std::move(*slice));
    }
  }
  void Finish() {
    nested_.Finish();
    lanes_.ExpectAllEnded(nested_count_);
  }
  uint64_t rows() const { return rows_; }

 private:
  ActivitySlices slices_;
  CheckingLanes lanes_;
  NestedLanes nested_{lanes_};
  uint64_t rows_ = 0;
  uint64_t nested_count_ = 0;
};

void LoadNames(std::string_view text, ActivityNames* names) {
  UniqueFd file(::memfd_create("names", MFD_CLOEXEC));
  FUZZ_EXPECT(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::lseek(file.get(), 0, SEEK_SET);
  names->Load(file.get()).Ignore();  // what of it is not a name
  FUZZ_EXPECT(names->size() <= text.size());
  FUZZ_EXPECT(names->Text(0).empty());
}

// What the daemon writes of a name is one line that is read again.
void WriteAndRead(std::string_view name) {
  std::string text(kActivityNamesHeading);
  AppendActivityName(7, name, &text);
  ActivityNames names;
  LoadNames(text, &names);
  FUZZ_EXPECT(names.size() == 1 && RepairedText(names.Text(7), SIZE_MAX) == names.Text(7));
}

void Run(fuzz::Input input) {
  const std::string_view text = input.TakePiece(input.Take<uint16_t>());
  WriteAndRead(text);
  DumpInfo dump;
  LoadNames(text, &dump.activity_names);
  const ActivityFile& file = ActivityFiles()[input.TakeIndex(kActivityFiles)];
  Place place;
  place.kind = Place::Kind::kHost;
  place.clock.begin_us = 1'767'225'600'000'000;
  place.clock.begin_raw_ns = input.Take<int64_t>() >> 8;
  dump.manifest.emplace().processes = {{77, 0, true, {0}, "train.py"}, {78, 1, true, {0, 1}, "train.py"}};
  DataFile data;
  data.base = file.file;
  Strings strings;
  SliceSink sink(dump, strings);
  DecodeContext context;
  context.dump = &dump;
  context.place = &place;
  context.file = &data;
  context.clock = ClockMap(place.clock);
  context.strings = &strings;
  context.rows = &sink;
  const auto spec = std::ranges::find(Decoders(), file.file, &DecoderSpec::base);
  FUZZ_EXPECT(spec != Decoders().end());
  std::unique_ptr<Decoder> decoder = spec->make(context);
  uint64_t fed = 0;
  while (!input.empty()) {
    const std::string_view piece = input.TakePiece(input.Take<uint16_t>());
    decoder->Feed(std::as_bytes(std::span(piece)), false);
    fed += piece.size();
  }
  decoder->Finish();
  sink.Finish();
  const DecodeStats& stats = decoder->stats();
  FUZZ_EXPECT(stats.records == sink.rows());
  FUZZ_EXPECT(stats.records + stats.bad_records == fed / file.record_bytes);
  FUZZ_EXPECT(stats.bad_bytes == stats.bad_records * file.record_bytes + fed % file.record_bytes);
}

}  // namespace
}  // namespace profd::exporting

void profd::fuzz::Run(Input input) { exporting::Run(input); }
