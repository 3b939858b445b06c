#include "driver/hccn_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profd {
namespace {

constexpr std::array<std::string_view, kHccnCommands> kNames = {"link", "speed", "link_stat",
                                                                "optical", "dev_info"};

// An optical answer without any value is none.
bool SaysSomething(const OpticalValues& values) {
  auto any = [](const auto& lanes) {
    return std::ranges::any_of(lanes, [](const auto& lane) { return lane.has_value(); });
  };
  return values.present || values.temperature_celsius || values.supply_volts ||
         any(values.tx_power_watts) || any(values.rx_power_watts);
}

}  // namespace

std::string_view NameOf(HccnCommand command) { return kNames[static_cast<size_t>(command)]; }

// The questions to one NPU in one pass. A tool that had to be killed is not run for this NPU again
// until the next pass: an NPU that hangs costs one timeout, not one for each question.
class HccnReader::Asker {
 public:
  Asker(HccnReader& reader, const HccnTarget& target) : reader_(reader), target_(target) {}

  // The answer, or nothing; `understood` is whether a parser found something in it.
  template <class Parser>
  auto Ask(HccnCommand command, const std::vector<std::string>& arguments, Parser parse)
      -> decltype(parse(std::string_view())) {
    using Answer = decltype(parse(std::string_view()));
    if (over_) return Answer{};
    const int64_t begin = reader_.clock_.SteadyNs();
    Result<std::string> text = reader_.tool_.Run(arguments);
    const StatusCode code = text.status().code();
    over_ = code == StatusCode::kDeadlineExceeded || code == StatusCode::kCancelled;
    if (code == StatusCode::kCancelled) return Answer{};
    Answer answer = text.ok() ? parse(*text) : Answer{};
    const bool understood = text.ok() && (Understood(answer) || SaysUnknown(*text));
    reader_.Count(command, understood, reader_.clock_.SteadyNs() - begin);
    if (!understood && status_.ok()) {
      status_ = (text.ok() ? Internal("its answer is not understood") : text.status())
                    .Annotate(fmt::format("NPU {}, -{}", target_.physical_id, NameOf(command)));
    }
    return answer;
  }

  const Status& status() const { return status_; }
  bool over() const { return over_; }

 private:
  template <class T>
  static bool Understood(const std::optional<T>& answer) {
    return answer.has_value();
  }
  static bool Understood(const OpticalValues& answer) { return SaysSomething(answer); }
  static bool Understood(const std::vector<HccnPort>& answer) { return !answer.empty(); }
  // "Unknown!" is an answer: a port that is down has no speed.
  static bool SaysUnknown(std::string_view text) {
    return text.find("Unknown") != std::string_view::npos;
  }

  HccnReader& reader_;
  const HccnTarget& target_;
  Status status_;
  bool over_ = false;
};

HccnReader::HccnReader(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), tool_(options_.tool) {
  for (const HccnTarget& target : options_.targets) {
    values_.emplace_back().device = target.device;
  }
}

HccnReader::~HccnReader() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  tool_.Cancel();
  if (executor_) executor_->Stop();
}

Status HccnReader::Usable() const {
  RETURN_IF_ERROR(options_.usable);
  if (options_.targets.empty()) {
    return Unimplemented("no NPU of this node has a port that hccn_tool knows (A2, A3, A5)");
  }
  return CheckHccnTool(options_.tool);
}

void HccnReader::Attach() {
  MutexLock lock(mutex_);
  ++users_;
  if (!executor_) {
    executor_.emplace("profd-hccn", 1);
    strand_.emplace(*executor_);
  }
  strand_->Post([this] { Arm(); });
}

void HccnReader::Detach() {
  MutexLock lock(mutex_);
  --users_;
}

HccnCounts HccnReader::Counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

void HccnReader::Refresh(std::vector<HccnValues>* known) const {
  MutexLock lock(mutex_);
  known->resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    if ((*known)[i].version != values_[i].version) (*known)[i] = values_[i];
  }
}

void HccnReader::Arm() {
  if (!next_) next_.emplace(*strand_);
  next_->At(due_ns_, [this] { Pass(); });
}

void HccnReader::Pass() {
  {
    MutexLock lock(mutex_);
    if (users_ == 0) return;  // until the next Attach
  }
  const int64_t begin = clock_.SteadyNs();
  for (size_t i = 0; i < options_.targets.size(); ++i) {
    HccnValues values = ReadDevice(options_.targets[i]);
    MutexLock lock(mutex_);
    if (stop_) return;
    Publish(i, std::move(values));
  }
  due_ns_ = std::max(begin + options_.period_ns, clock_.SteadyNs() + options_.pause_ns);
  Arm();
}

void HccnReader::Publish(size_t at, HccnValues values) {
  values.version = values_[at].version + 1;
  values_[at] = std::move(values);
}

HccnValues HccnReader::ReadDevice(const HccnTarget& target) {
  Asker asker(*this, target);
  HccnValues values;
  values.device = target.device;
  std::vector<HccnPort> ports = {HccnPort{}};
  if (target.by_port) {
    ports = asker.Ask(HccnCommand::kPorts, HccnPortTableArguments(target.device), ParseHccnPorts);
  }
  auto arguments = [&target](HccnCommand command, const HccnPort& port) {
    return target.by_port ? HccnPortArguments(target.device, NameOf(command), port)
                          : HccnArguments(target.physical_id, NameOf(command));
  };
  for (const HccnPort& port : ports) {
    if (asker.over()) break;
    HccnPortValues& one = values.ports.emplace_back();
    one.port = target.by_port ? fmt::format("{}/{}", port.die, port.port) : "0";
    one.link_up = asker.Ask(HccnCommand::kLink, arguments(HccnCommand::kLink, port), ParseHccnLink);
    one.bytes_per_second =
        asker.Ask(HccnCommand::kSpeed, arguments(HccnCommand::kSpeed, port), ParseHccnSpeed);
    one.optical =
        asker.Ask(HccnCommand::kOptical, arguments(HccnCommand::kOptical, port), ParseHccnOptical);
  }
  // A5's form of the tool has no history of links.
  if (!target.by_port) {
    values.link_ups = asker.Ask(HccnCommand::kLinkStat,
                                 arguments(HccnCommand::kLinkStat, HccnPort{}), ParseHccnLinkUps);
  }
  values.time_ns = clock_.MonotonicRawNs();
  values.status = asker.status();
  return values;
}

void HccnReader::Count(HccnCommand command, bool ok, int64_t took_ns) {
  MutexLock lock(mutex_);
  HccnCommandCount& count = counts_[static_cast<size_t>(command)];
  ++count.runs;
  if (!ok) ++count.failures;
  count.last_seconds = static_cast<double>(took_ns) / 1e9;
}

}  // namespace profd
