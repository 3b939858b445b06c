#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "export/decode/text_math.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

constexpr size_t kMaxThreads = size_t{1} << 17;  // of one sample
constexpr int64_t kMaxCpus = 1 << 16;
constexpr int64_t kAllCpus = -1;
constexpr int64_t kMicro = 1'000'000;
// Beyond these nothing is a sample, and sums would overflow.
constexpr double kMaxUptime = 9e8;  // s
constexpr int64_t kMaxPassed = int64_t{1} << 45;

// Samples of `time <ns>`, a line of /proc/uptime, and /proc/<pid>/task/<tid>/stat of every thread
// (dump-format 2.15). Between two samples a CPU's usage is what the threads last seen on it ran,
// over the uptime that passed; jiffies are counted in millionths, so that nothing is rounded before
// the end.
class HostCpuDecoder final : public LineDecoder {
 public:
  HostCpuDecoder(const DecodeContext& context, TableId table)
      : LineDecoder(context, table),
        cpus_(std::clamp<int64_t>(context.dump->cpu_count, 0, kMaxCpus)),
        ticks_hz_(std::clamp<int64_t>(context.dump->clock_ticks_hz, 1, 10'000)) {}

  void Finish() override {
    // The analyser wants threads in both of the last two samples, though not in earlier ones.
    if (!now_.threads.empty() && !before_.threads.empty()) Compare();
    TableDecoder::Finish();
  }

 private:
  struct Thread {
    int64_t id = 0;
    int64_t jiffies = 0;
    int64_t cpu = 0;
  };
  struct Sample {
    bool complete = false;  // its uptime is known
    int64_t ns = 0;
    int64_t uptime_us = 0;
    std::vector<Thread> threads;
  };

  bool Line(std::string_view line) override {
    if (line.starts_with("time")) return TimeLine(line);
    if (wants_uptime_) {
      wants_uptime_ = false;
      double seconds = 0;
      if (!TextScan(line.substr(0, line.find(' '))).Real(&seconds) || seconds < 0 ||
          seconds > kMaxUptime) {
        return false;
      }
      now_.uptime_us = static_cast<int64_t>(std::nearbyint(seconds * 1e6));
      now_.complete = true;
      return true;
    }
    return ThreadLine(line);
  }

  bool TimeLine(std::string_view line) {
    TextScan scan(line);
    int64_t ns = 0;
    scan.Word();
    if (!scan.Int(&ns)) return false;
    ++stats_.records;
    if (now_.complete) {
      if (before_.complete) Compare();
      std::swap(now_, before_);
      std::ranges::sort(before_.threads, {}, &Thread::id);
    }
    now_.complete = false;
    now_.ns = ns;
    now_.threads.clear();
    wants_uptime_ = true;
    return true;
  }

  bool ThreadLine(std::string_view line) {
    if (!now_.complete || now_.threads.size() >= kMaxThreads) return false;
    TextScan head(line);
    Thread thread;
    if (!head.Int(&thread.id)) return false;
    size_t bracket = line.rfind(')');  // the name may hold blanks
    TextScan scan(bracket == std::string_view::npos ? head.rest() : line.substr(bracket + 1));
    if (bracket == std::string_view::npos && !scan.SkipWords(1)) return false;
    int64_t utime = 0;
    int64_t stime = 0;
    if (!scan.SkipWords(11) || !scan.Int(&utime) || !scan.Int(&stime) || !scan.SkipWords(23) ||
        !scan.Int(&thread.cpu)) {
      return false;
    }
    if (thread.cpu < 0 || thread.cpu >= kMaxCpus || !Plausible(utime) || !Plausible(stime)) {
      return false;
    }
    thread.jiffies = utime + stime;
    now_.threads.push_back(thread);
    return true;
  }
  static bool Plausible(int64_t jiffies) { return jiffies >= 0 && jiffies < int64_t{1} << 40; }

  // The row's time is that of the sample before.
  void Compare() {
    int64_t passed = (now_.uptime_us - before_.uptime_us) * ticks_hz_;
    if (passed <= 0 || passed > kMaxPassed) return;
    int64_t total = 0;
    for (const Thread& thread : now_.threads) {
      auto old = std::ranges::lower_bound(before_.threads, thread.id, {}, &Thread::id);
      if (old == before_.threads.end() || old->id != thread.id) continue;
      // A decrease: the id is another thread's now, and what that one ran is not known.
      int64_t ran = std::max<int64_t>(0, thread.jiffies - old->jiffies) * kMicro;
      ran = std::min(ran, passed);
      total += ran;
      auto cpu = static_cast<size_t>(thread.cpu);
      if (cpu >= ran_.size()) ran_.resize(cpu + 1, kNotSeen);
      if (ran_[cpu] == kNotSeen) {
        ran_[cpu] = 0;
        seen_.push_back(thread.cpu);
      }
      ran_[cpu] += ran;
    }
    int64_t t_ns = clock_.HostNs(before_.ns);
    for (int64_t cpu : seen_) {
      double usage = Percent(ran_[static_cast<size_t>(cpu)], passed);
      // Above: threads that moved between CPUs.
      if (usage <= 100) rows_.Add(t_ns, cpu, usage);
      ran_[static_cast<size_t>(cpu)] = kNotSeen;
    }
    seen_.clear();
    double average = cpus_ > 0 ? Percent(total, static_cast<WideInt>(passed) * cpus_) : 0.0;
    rows_.Add(t_ns, kAllCpus, average);
  }
  static double Percent(int64_t part, WideInt whole) {
    return RoundedQuotient(static_cast<WideInt>(part) * 100, whole, 6);
  }

  static constexpr int64_t kNotSeen = -1;

  int64_t cpus_;
  int64_t ticks_hz_;
  Sample now_;
  Sample before_;  // its threads by id
  bool wants_uptime_ = false;
  std::vector<int64_t> ran_;   // by CPU, in Compare
  std::vector<int64_t> seen_;  // CPUs in the order of the threads
};

}  // namespace

std::span<const DecoderSpec> HostCpuDecoders() {
  static constexpr std::array kSpecs = {TextSpec<HostCpuDecoder, TableId::kHostCpu>("host_cpu.data", kAnyChip, Place::Kind::kHost)};
  return kSpecs;
}

}  // namespace profd::exporting
