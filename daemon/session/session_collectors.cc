#include "daemon/session/session_collectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "daemon/session/option_plan.h"
#include "daemon/session/outcome_counts.h"
#include "daemon/session/session_poll_sink.h"
#include "proto/enum_word/enum_word.h"

namespace profd {
namespace {

// As the contract's words; a collector that has not answered has failed.
std::string ManifestState(v1::Outcome::Result state) {
  return EnumWord(state == v1::Outcome::RESULT_UNSPECIFIED ? v1::Outcome::RESULT_FAILED : state);
}

Problem::Kind KindOf(v1::Outcome::Result state) {
  switch (state) {
    case v1::Outcome::RESULT_UNSUPPORTED:
      return Problem::Kind::kUnsupported;
    case v1::Outcome::RESULT_DENIED:
      return Problem::Kind::kDenied;
    case v1::Outcome::RESULT_BUSY:
      return Problem::Kind::kBusy;
    default:
      return Problem::Kind::kFailed;
  }
}

// Runs `settled` with the last of several answers.
std::function<void()> Last(std::shared_ptr<size_t> waiting, std::function<void()> settled) {
  return [waiting = std::move(waiting), settled = std::move(settled)] {
    if (--*waiting == 0) settled();
  };
}

}  // namespace

void SessionCollectors::Start(std::shared_ptr<WriterSession> dump_or_null, int64_t since_ns, std::function<void()> settled) {
  dump_ = std::move(dump_or_null);
  // Held until all are begun, so that an early answer does not settle the session.
  auto waiting = std::make_shared<size_t>(1);
  const std::function<void()> answered = Last(waiting, std::move(settled));
  for (const PlannedCollector& planned : deps_.plan.collectors) {
    if (Collectors()[planned.index].spec->source != CollectorSource::kChannel) {
      StartPoller(planned, since_ns);
      continue;
    }
    if (deps_.host.devices.empty() && planned.named && !planned.by_option) {
      Row& row = rows_.emplace_back();
      row.collector = planned.index;
      row.named = true;
      row.answer = {v1::Outcome::RESULT_UNSUPPORTED, std::string(kNoDevices), 0, 0};
    }
    *waiting += deps_.plan.devices.size();
    for (int device : deps_.plan.devices) StartChannel(planned, device, since_ns, answered);
  }
  answered();
}

void SessionCollectors::Join(const SessionPlan& plan, int device, std::function<void()> settled) {
  auto waiting = std::make_shared<size_t>(1);
  const std::function<void()> answered = Last(waiting, std::move(settled));
  for (const PlannedCollector& planned : plan.collectors) {
    if (Collectors()[planned.index].spec->source != CollectorSource::kChannel) continue;
    ++*waiting;
    StartChannel(planned, device, 0, answered);
  }
  answered();
}

void SessionCollectors::StartChannel(const PlannedCollector& planned, int id, int64_t since_ns, std::function<void()> settled) {
  const CollectorEntry& entry = Collectors()[planned.index];
  const DeviceInfo& device = *deps_.host.FindDevice(id);
  Row row;
  row.collector = planned.index;
  row.device = id;
  row.named = planned.named;
  Status probe = ProbeDevice(entry, deps_.host, device);
  if (!probe.ok()) {
    // Of an option's collectors the chip has some and lacks others; that it has none of them the
    // request's check would have reported. A device that cannot be read is missing where another has it.
    const bool missing = !device.usable.ok() && std::ranges::any_of(deps_.host.devices, [&](const DeviceInfo& other) {
      return ProbeDevice(entry, deps_.host, other).ok();
    });
    if (missing || (planned.named && !planned.by_option)) {
      const bool lacks = probe.code() == StatusCode::kUnimplemented;
      row.answer = {lacks ? v1::Outcome::RESULT_UNSUPPORTED : v1::Outcome::RESULT_FAILED, probe.message(), 0, 0};
      rows_.push_back(std::move(row));
    }
    settled();
    return;
  }
  ClaimRequest claim{.device = id, .collector = planned.index, .options = planned.channel, .owner = session_id_,
                     .dump = dump_};
  // A device without clocks may report them later, and deliver.
  const ClockPair* clock = deps_.clocks.Of(id);
  claim.session_start_ns = clock == nullptr ? deps_.clocks.start_raw_ns() : clock->host_ns;
  claim.since_ns = since_ns;
  row.claim = deps_.arbiter.Claim(claim, std::move(settled));
  row.feeds = deps_.arbiter.FeedsOf(*row.claim);
  rows_.push_back(std::move(row));
}

void SessionCollectors::StartPoller(const PlannedCollector& planned, int64_t since_ns) {
  const CollectorEntry& entry = Collectors()[planned.index];
  Row row;
  row.collector = planned.index;
  row.named = planned.named;
  Status probe = entry.probe_host(deps_.host);
  if (!probe.ok()) {
    if (!planned.named) return;
    row.answer = {v1::Outcome::RESULT_UNSUPPORTED, probe.message(), 0, 0};
    rows_.push_back(std::move(row));
    return;
  }
  row.sink = std::make_shared<SessionPollSink>(deps_.store, dump_, *entry.spec, planned.hz);
  if (row.sink->feed() != nullptr) row.feeds.push_back(row.sink->feed());
  if (since_ns != 0) {
    RecorderHistory& past = *deps_.history_or_null;
    row.sink->Replay(past.HostSince(planned.index, since_ns), past.HostHz(planned.index), deps_.host.clock.MonotonicRawNs());
  }
  Result<PollEngine::Handle> handle =
      deps_.pollers.Start(planned.index, planned.poll, row.sink);
  if (handle.ok()) {
    row.poller = *handle;
    row.answer = {v1::Outcome::RESULT_RUNNING, "", planned.hz, 0};
  } else {
    row.answer = {v1::Outcome::RESULT_FAILED, handle.status().message(), 0, 0};
  }
  rows_.push_back(std::move(row));
}

void SessionCollectors::Release(std::function<void()> gone) {
  DCHECK_ON(deps_.control);
  for (Row& row : rows_) {
    if (row.claim) row.answer = deps_.arbiter.AnswerOf(*row.claim);
  }
  released_ = true;
  leaving_ = 1;
  const auto one_gone = [this, gone] {
    deps_.control.Post([this, gone] { OnGone(gone); });
  };
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.claim) {
      ++leaving_;
      deps_.arbiter.Release(*row.claim, [this, one_gone, i](const ChannelArbiter::GarbageBytes& bytes) {
        NoteGarbage(i, bytes);
        one_gone();
      });
    }
    if (row.poller) {
      ++leaving_;
      deps_.pollers.Stop(*row.poller, one_gone);
    }
  }
  OnGone(gone);
}

void SessionCollectors::OnGone(const std::function<void()>& gone) {
  if (--leaving_ == 0) gone();
}

void SessionCollectors::NoteGarbage(size_t row, const ChannelArbiter::GarbageBytes& bytes) {
  DCHECK_ON(deps_.control);
  ClaimAnswer& answer = rows_[row].answer;
  for (const auto& [channel, garbage] : bytes) {
    const auto own = answer.channels.find(channel);
    if (own == answer.channels.end()) continue;  // it has not answered
    answer.garbage_bytes += garbage - std::min(garbage, own->second.garbage_bytes);
    own->second.garbage_bytes = std::max(own->second.garbage_bytes, garbage);
  }
}

ClaimAnswer SessionCollectors::AnswerOf(const Row& row) const {
  if (!row.claim) {
    ClaimAnswer answer = row.answer;
    if (row.sink != nullptr && answer.state == v1::Outcome::RESULT_RUNNING) {
      answer.detail = row.sink->LastError();
      const auto add = [&answer](uint64_t samples, std::string_view what) {
        if (samples > 0) answer.detail += fmt::format("{}{} samples {}", answer.detail.empty() ? "" : "; ", samples, what);
      };
      add(row.sink->missed(), "missed (collector late)");
      add(row.sink->left_out(), "left out (profd over its budget)");
    }
    return answer;
  }
  return released_ ? row.answer : deps_.arbiter.AnswerOf(*row.claim);
}

bool SessionCollectors::AnyRunning() const {
  return std::ranges::any_of(rows_, [this](const Row& row) { return AnswerOf(row).state == v1::Outcome::RESULT_RUNNING; });
}

bool SessionCollectors::AllUnsupported() const {
  return !rows_.empty() && std::ranges::all_of(rows_, [this](const Row& row) {
    return AnswerOf(row).state == v1::Outcome::RESULT_UNSUPPORTED;
  });
}

std::vector<Problem> SessionCollectors::Unstarted() const {
  struct Answer {
    Problem::Kind kind = Problem::Kind::kInvalid;
    std::string holder;
    std::vector<int> devices;
  };
  std::map<std::pair<CollectorIndex, std::string>, Answer> unstarted;
  for (const Row& row : rows_) {
    ClaimAnswer answer = AnswerOf(row);
    if (answer.state == v1::Outcome::RESULT_RUNNING || !row.named) continue;
    Answer& same = unstarted[{row.collector, answer.detail}];
    same.kind = KindOf(answer.state);
    same.holder = answer.holder;
    same.devices.push_back(row.device);
  }
  std::vector<Problem> problems;
  for (const auto& [what, answer] : unstarted) {
    const auto& [collector, detail] = what;
    const std::vector<int>& devices = answer.devices;
    std::string text(Collectors()[collector].spec->name);
    if (devices.front() == kHostDevice) {
      if (Collectors()[collector].spec->source != CollectorSource::kChannel) text += " on the host";
    } else if (devices.size() < deps_.plan.devices.size() || devices.size() == 1) {
      text += fmt::format(" on device{} {}", devices.size() == 1 ? "" : "s",
                          fmt::join(devices, ", "));
    }
    text.append(": ").append(detail);
    problems.push_back({.kind = answer.kind, .text = std::move(text), .holder = answer.holder});
  }
  return problems;
}

void SessionCollectors::Fill(bool finished, v1::SessionStatus* out) const {
  for (const Row& row : rows_) {
    v1::Outcome& outcome = *out->add_outcomes();
    FillRow(row, &outcome);
    if (finished && outcome.result() == v1::Outcome::RESULT_RUNNING) outcome.set_result(v1::Outcome::RESULT_FINISHED);
    AddRecordsOf(outcome, out);
  }
}

void SessionCollectors::FillRow(const Row& row, v1::Outcome* out) const {
  const ClaimAnswer answer = AnswerOf(row);
  out->set_collector(std::string(Collectors()[row.collector].spec->name));
  if (row.device != kHostDevice) out->set_device(static_cast<uint32_t>(row.device));
  out->set_result(answer.state);
  out->set_detail(answer.detail);
  out->set_holder(answer.holder);
  if (answer.hz > 0) out->set_hz(answer.hz);
  out->set_garbage_bytes(answer.garbage_bytes);
  for (const DumpFeed* feed : row.feeds) AddRecordsOf(*feed, out);
  if (dump_ == nullptr && row.sink != nullptr) out->set_records(row.sink->readings());
}

std::function<void(Manifest&)> SessionCollectors::Outcomes() const {
  std::vector<Row> rows = rows_;
  for (Row& row : rows) {
    if (!released_) row.answer = AnswerOf(row);
    if (released_ && row.answer.state == v1::Outcome::RESULT_RUNNING) row.answer.state = v1::Outcome::RESULT_FINISHED;
  }
  // The dump's feeds live as long as what is done with its manifest.
  return [rows = std::move(rows)](Manifest& manifest) {
    for (const Row& row : rows) WriteOutcome(row, &manifest);
  };
}

void SessionCollectors::WriteOutcome(const Row& row, Manifest* manifest) {
  const auto note = [&](uint32_t channel_id, std::string_view file) {
    std::string_view name = Collectors()[row.collector].spec->name;
    auto entry = std::ranges::find_if(manifest->channels, [&](const ManifestChannel& channel) {
      return channel.collector == name &&
             channel.device == row.device &&
             channel.channel == channel_id;
    });
    if (entry == manifest->channels.end()) {
      manifest->channels.emplace_back();
      entry = manifest->channels.end() - 1;
      entry->collector = name;
      entry->device = row.device;
      entry->channel = channel_id;
      entry->file = file;
    }
    entry->state = ManifestState(row.answer.state);
    entry->detail = row.answer.detail;
    entry->garbage_bytes = row.answer.garbage_bytes;
    auto own = row.answer.channels.find(channel_id);
    if (own == row.answer.channels.end()) return;
    bool finished = row.answer.state == v1::Outcome::RESULT_FINISHED &&
                    own->second.state == v1::Outcome::RESULT_RUNNING;
    entry->state = ManifestState(finished ? v1::Outcome::RESULT_FINISHED : own->second.state);
    entry->detail = own->second.detail;
    entry->garbage_bytes = own->second.garbage_bytes;
  };
  for (const DumpFeed* feed : row.feeds) {
    const FeedOptions& options = feed->options();
    std::string_view file = options.file;
    if (file.empty() && options.format != nullptr) file = options.format->file;
    note(options.channel, file);
  }
  if (row.feeds.empty()) note(0, {});
}

}  // namespace profd
