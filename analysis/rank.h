// What one rank of a run did, from any source: a dump, a framework's profiler, MindSpore's raw logs. Readers
// (read/) fill it, analyses (views/) are functions of it. Times are ns since the epoch, or since a device's own zero
// where that is all there is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "export/operators/overlap.h"
#include "export/strings.h"

namespace profd::exporting::operators { struct StepShare; }

namespace profd::analysis {

using exporting::operators::Interval;
using exporting::operators::Intervals;
using exporting::operators::Overlap;
using exporting::operators::OverlapKind;

// Number of a text in Rank::texts; kNoText: it is not known.
using TextId = int32_t;
inline constexpr TextId kNoText = -1;
inline constexpr std::string_view kAiCpuCore = "AI_CPU";  // of operators

// What is executed, once per name, type, kind of core and shapes of its inputs.
struct Operator {
  TextId name = kNoText;
  TextId type = kNoText;
  TextId core = kNoText;
  TextId input_shapes = kNoText;
  // Of its first execution.
  TextId input_types = kNoText;
  TextId output_shapes = kNoText;
  TextId output_types = kNoText;
  std::vector<std::pair<TextId, TextId>> other_types;  // of inputs and outputs of further executions on the AI CPU
  // Of dumps and of MindSpore; else kNoText.
  TextId input_formats = kNoText;
  TextId output_formats = kNoText;
  // Counters: shares of the core's time by Rank::ratio_names, weighted by the time of the executions that have them.
  std::vector<double> ratio_ns;
  double counted_ns = 0;
  // The same, of each execution as much.
  std::vector<double> ratio_sums;
  uint64_t counted = 0;
  // Times by Rank::unit_names, of all executions together.
  std::vector<double> unit_ns;

  // 0: it was not counted.
  double Ratio(size_t number) const { return number < ratio_ns.size() && counted_ns > 0 ? ratio_ns[number] / counted_ns : 0; }
  // Where each execution counts as much; of a run from a store, which lacks these sums, by time.
  double MeanRatio(size_t number) const {
    if (counted == 0) return Ratio(number);
    return number < ratio_sums.size() ? ratio_sums[number] / static_cast<double>(counted) : 0;
  }
  void AddTypes(TextId inputs, TextId outputs);
  // One of the ratios of an execution, and that all of them were added.
  void AddRatio(size_t number, double ratio, double ns);
  void EndRatios(double ns);
};

// Not recorded.
inline constexpr uint16_t kNoBlocks = UINT16_MAX;

// One execution of an operator on a device.
struct Execution {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int32_t op = -1;    // index of Rank::operators
  int32_t lane = -1;  // of Rank::lanes: its stream
  // How many cores it was cut for, and of the other kind of core in one that has both.
  uint16_t blocks = kNoBlocks;
  uint16_t mix_blocks = kNoBlocks;
  TextId task = kNoText;  // the kind of core by the timeline's task; kNoText: it is not there
};

// How often something was executed, and how long.
struct ExecutionTimes {
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = INT64_MAX;
  int64_t max_ns = 0;
  void Add(int64_t ns);
  void Add(const ExecutionTimes& other);
  double MeanMs() const;
};

// Something else on the timeline: an API call, a framework operator, a collective.
struct Slice {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  TextId name = kNoText;
  int32_t lane = -1;
  bool is_operator = false;  // of the framework, by what it calls its kind
};

struct Lane {
  std::string group;  // "Ascend Hardware", "CANN", ...
  std::string name;   // "Stream 3"
};

// A launch and what it launched.
struct Flow {
  uint32_t slice = 0;      // of Rank::slices
  uint32_t execution = 0;  // of Rank::executions
};

// What the application marked on the host.
struct Mark {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  TextId name = kNoText;
  TextId domain = kNoText;
  bool is_instant = false;
  int64_t thread = 0;
};

struct Reduce {
  TextId name = kNoText;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct Step {
  int64_t number = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::optional<int64_t> fp_ns;  // forward starts
  std::optional<int64_t> bp_ns;  // backward ends
  std::vector<Reduce> reduces;   // by start
};

// How a device spent its time, in a step or in all, ms.
struct Shares {
  double computing = 0;
  double communication = 0;
  double uncovered = 0;  // communication while nothing was computed
  double free = 0;
  // Of a pipeline of ranks, as frameworks count them. None: not recorded.
  std::optional<double> stage = std::nullopt;            // the step without what is waited for in it
  std::optional<double> bubble = std::nullopt;           // it waits for another stage's data
  std::optional<double> without_receive = std::nullopt;  // of uncovered
  std::optional<double> preparing = std::nullopt;        // until the first operator
  // The first four fields for the intervals that begin in the step, not cut at its end; `stage` counts these intervals,
  // too. None: the fields are not cut either.
  std::optional<std::array<double, 4>> begun = std::nullopt;
  double overlapped() const { return communication - uncovered; }
  double whole() const { return computing + uncovered + free; }
  void Add(const Shares& other);  // the first four fields, as MeanOf()
  Shares MeanOf(double count) const;
};

// All that was recorded, end to end.
struct Overall {
  double e2e_ms = 0;
  Shares shares;
};

Shares SharesOf(const exporting::operators::StepShare& share);

struct PacketSize {
  double mb = 0;
  uint64_t count = 0;
  double time_ms = 0;  // of all of them
};

struct Transport {
  std::string name;  // "HCCS", "SDMA", ...
  double size_mb = 0;
  double time_ms = 0;
  uint64_t packets = 0;
  uint64_t large_packets = 0;
  double large_ratio = 0;               // of packets
  std::vector<PacketSize> sizes = {};   // as recorded
  void Add(const Transport& part) { size_mb += part.size_mb; time_ms += part.time_ms; }  // size and time alone
};

// Of a message: the two ranks are not known.
inline constexpr std::pair<int32_t, int32_t> kUnknownEnds = {-1, -1};

// One operation of communication. The parts are not known where only the operation was recorded.
struct Collective {
  TextId name = kNoText;
  TextId type = kNoText;
  TextId group = kNoText;
  int64_t start_ns = 0;
  uint64_t count = 1;  // several of one name that a database added up
  double elapse_ms = 0;
  struct Parts {
    double transit_ms = 0;
    double wait_ms = 0;
    double synchronization_ms = 0;
    double idle_ms = 0;
    void Add(const Parts& other);
  };
  std::optional<Parts> parts;
  std::vector<Transport> transports;
  int64_t step = -1;  // -1: not known
  bool p2p = false;   // between two ranks
  std::pair<int32_t, int32_t> between = kUnknownEnds;  // which, numbered within their group, the smaller first
};

// A task of a collective that moves data.
struct Transfer {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t bytes = 0;
  TextId name = kNoText;  // of the collective
  TextId transport = kNoText;
  TextId link = kNoText;
};

// A copy that a stream carries out itself.
struct Copy {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int32_t lane = -1;  // its stream
};
// Kinds of tasks that are copies.
inline constexpr std::string_view kCopyTasks[] = {"SDMA_SQE", "PCIE_DMA_SQE"};

// A task of a collective on one of its planes, by its name.
struct PlaneTask {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int32_t plane = 0;
  std::string_view name;  // "Notify_Wait", "RDMASend", "Memcpy", ...
};
// One that waits for another rank.
struct PlaneWait {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int32_t plane = 0;
  bool behind_rdma = false;  // right behind what the same plane sent
};
// A plane's number in a rank has the number of its group, by which waits are looked at.
constexpr int32_t PlaneNumber(uint64_t group, uint64_t plane) { return static_cast<int32_t>((group << 16 | (plane & 0xffff)) & 0x7fffffff); }
constexpr int32_t GroupOfPlane(int32_t number) { return number >> 16; }

// Between two ranks, numbered within their group or in all.
struct Link {
  TextId group = kNoText;
  TextId source = kNoText;
  TextId destination = kNoText;
  TextId transport = kNoText;
  double size_mb = 0;
  double time_ms = 0;
  TextId name = kNoText;  // "allreduce-top1"
  TextId op = kNoText;    // of which operation, where it is one
  int64_t step = -1;      // -1: not known
  bool p2p = false;
  bool part = false;  // of what another link has in all
};

// Ranks that communicate with each other, as the framework made them.
struct GroupFacts {
  std::string id;
  std::string label;       // "tp", "dp", ...
  std::vector<int> ranks;  // of all, by number within the group
};

// Memory of a component at a time, MB (2^20 bytes).
struct MemorySample {
  int64_t t_ns = 0;
  std::optional<double> allocated;
  std::optional<double> reserved;
  std::optional<double> active;
};

struct MemoryBlock {
  TextId name = kNoText;
  double size_kb = 0;
  int64_t taken_ns = 0;
  std::optional<int64_t> released_ns;
};

// Samples of one counter, by time. Where there are more than MostPoints(), neighbours are one with their mean, so that
// memory is bounded; of the clock of AI Cores with the highest, so that no operator looks slower than it was.
class Series {
 public:
  static constexpr size_t kMaxPoints = 16384;
  static constexpr size_t kMaxChanges = 1 << 20;  // of the clock of AI Cores: means of them are none of its values
  size_t MostPoints() const { return IsCoreClock() ? kMaxChanges : kMaxPoints; }
  struct Point {
    int64_t t_ns = 0;
    double value = 0;
  };
  void Add(int64_t t_ns, double value);
  // Of those whose time lies in it; no value: none does.
  std::optional<double> Mean(const Interval& span) const;
  // The clock of AI Cores is recorded when it changes: a sample holds until the next. Not DCMI's, which is read too seldom
  // for that ("frequency_hertz npu=...").
  bool IsCoreClock() const;
  // Of one whose samples hold, by time; no value: the first sample is behind it.
  std::optional<double> MeanByTime(const Interval& span) const;
  void Sort();

  std::string name;
  std::string unit;
  int device = -1;
  uint64_t count = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
  std::vector<Point> points;

 private:
  void Thin();
  uint64_t per_point_ = 1;  // samples
  uint64_t in_last_ = 0;    // of the last point
};

// What the input pipeline of a training recorded (MindData).
struct Pipeline {
  struct Queue {
    std::optional<int64_t> capacity;
    std::vector<double> sizes;  // by step
  };
  std::optional<Queue> host;    // between the pipeline and the device
  std::optional<Queue> device;  // on the chip
  bool host_is_iterator = false;  // no sink mode: the queue is the dataset iterator's
  // Parts of the host's CPUs, % of all of them, by sample.
  struct CpuUse {
    std::vector<double> user;
    std::vector<double> sys;
  };
  std::optional<int64_t> processors;
  std::optional<CpuUse> cpu;  // of the process
  std::vector<double> get_next_ms;
  std::vector<double> get_ms;
  std::vector<double> push_ms;
  std::vector<double> total_ms;
  struct Operator {
    int64_t id = 0;
    std::string type;
    int64_t workers = 0;
    std::optional<int64_t> queue_length;
    std::vector<double> queue_sizes;
    std::optional<int64_t> parent;
    std::vector<int64_t> children;
    std::optional<CpuUse> cpu;
    std::optional<double> Mean() const;
    std::optional<double> Use() const;  // mean of the queue by its length
  };
  std::vector<Operator> operators;  // by id
  std::optional<int64_t> sampling_ms;  // between samples of their queues
  bool empty() const { return !host && !device && operators.empty(); }
};

// One execution of an operator of the AI CPU, on a clock of its own.
struct CpuOperator {
  TextId type = kNoText;
  double total_ms = 0;
  double dispatch_ms = 0;
  int64_t run_start = 0;  // as recorded
  int64_t run_end = 0;
};

// Records of a channel that are missing.
struct Loss {
  int64_t t_ns = 0;
  int64_t duration_ns = 0;
  int64_t lost = 0;  // 0: unknown
  TextId channel = kNoText;
};

// What a database added up, in place of executions, slices and intervals.
struct Sums {
  int64_t begin_ns = 0;
  uint64_t streams = 0;
  uint64_t executions = 0;
  bool has_overall = false;
  double e2e_ms = 0;
  Shares overall;
  std::vector<ExecutionTimes> operators;  // by index of Rank::operators
};

struct Problem {
  std::string where;
  std::string what;
};
// Of a dump of a session that runs: it is not damaged.
inline constexpr std::string_view kUnfinished = "is still being written: what follows is missing";
inline bool IsDamage(const Problem& problem) { return problem.what != kUnfinished; }

// Of Rank::facts: CPUs that collecting took in the training process, those that its first thread and the one that launches
// its kernels may run on, and those next to its device (these three as the kernel lists them).
inline constexpr std::string_view kCollectingCpus = "collecting_cpus";
inline constexpr std::string_view kProcessCpus = "process_cpus";
inline constexpr std::string_view kLaunchCpus = "launch_cpus";
inline constexpr std::string_view kLocalCpus = "local_cpus";

struct Rank {
  std::optional<int> rank;
  std::optional<int> device;
  std::string host;
  std::string source;  // "PyTorch, text"
  std::string path;

  exporting::Strings texts;
  std::vector<Operator> operators;
  std::vector<Execution> executions;
  std::vector<std::string> ratio_names;  // "aic_mac"
  std::vector<std::string> unit_names;   // "aicore", "aic_mte2"
  std::vector<uint32_t> communication_at;  // indexes of executions that a row of communication stands in front of
  int64_t longest_communication_ns = 0;    // of the operations of communication beside executions
  int64_t communication_sum_ns = 0;        // lengths of all operations of communication
  std::vector<Lane> lanes;
  std::vector<Slice> slices;
  std::optional<int64_t> first_call_ns;  // of those that are left out (ReadDetail)
  std::vector<Flow> flows;
  std::unordered_map<uint32_t, TextId> stacks;  // of framework operators, by index of slices: frames parted by ';'

  // Of the application; ranges of collections of garbage count as such.
  void AddMark(const Mark& mark);
  std::vector<Mark> marks;

  std::vector<Step> steps;  // by start
  bool first_step_is_short = false;   // it begins with forward: averages leave it out
  int64_t count_ns = 0;               // of the steps' clock: averages are integer counts of it; 0: as they are
  std::map<int64_t, Shares> shares;   // by step, where the analysis has it
  bool shares_of_intervals = false;   // no other tool's table: made of what was left out, or is in a database
  TextId fp_point = kNoText;
  TextId bp_point = kNoText;

  Overlap overlap;                 // by OverlapKind; empty: not known
  std::optional<Interval> span;    // what end to end means; none: that of the overlap
  // From the first to the last that the device was recorded to run, where steps may reach beyond it; none: they do not.
  std::optional<Interval> recorded;

  std::vector<Collective> collectives;
  std::vector<Copy> copies;
  std::vector<Transfer> transfers;
  std::vector<PlaneWait> waits;  // by start
  std::vector<Link> links;
  std::map<std::string, GroupFacts, std::less<>> groups;       // by the name that operations have
  std::map<std::string, int64_t, std::less<>> parallel_sizes;  // "tensor_model_parallel_size"
  // Indexes of data, pipeline and tensor parallelism, where what was read has them.
  std::optional<std::array<int64_t, 3>> parallel_index;
  std::string host_uid;  // empty: not known
  std::map<std::string, std::vector<MemorySample>> memory;  // by component
  std::vector<MemoryBlock> blocks;
  Pipeline pipeline;
  std::vector<CpuOperator> cpu_operators;
  std::vector<std::shared_ptr<Series>> hardware;  // what is of the host, its ranks share
  std::vector<Interval> garbage;       // collections of Python's garbage
  std::set<std::string> op_states;     // of executions: "static", "dynamic"; empty: not recorded
  std::map<std::string, std::string> environment;  // variables of the training process
  std::string cann_version;                        // "8.0.0"; empty: not recorded
  bool only_device = false;  // the framework's profiler recorded nothing of the host
  bool details_left_out = false;  // executions, slices and what else only a look at one rank needs (details.h)
  std::optional<Overall> overall;  // where the intervals that it is made of were left out
  std::map<std::string, std::string> facts;        // of the recording: session, job, versions
  std::vector<Loss> losses;
  std::optional<Sums> sums;
  int cube_cores = 0;  // of the device, as what follows; 0: not known
  int vector_cores = 0;
  double core_mhz = 0;  // nominal

  // Leaves out the details; `step_shares` and `all` are what was made of them.
  void DropDetails(std::map<int64_t, Shares> step_shares, const std::optional<Overall>& all);

  TextId Text(std::string_view text);
  std::string_view TextOf(TextId id) const { return id == kNoText ? std::string_view() : texts.Text(id); }
  int32_t LaneOf(std::string_view group, std::string_view name);
  // Index of the operator; one that is not there yet is made.
  int32_t OperatorOf(TextId name, TextId type, TextId core, TextId input_shapes = kNoText);
  // Number of a text in `names`, which gets it where it is not there yet.
  static size_t NumberIn(std::vector<std::string>* names, std::string_view name);
  // Keeps those of the tasks that wait. Needs all tasks of their planes, in any order. `idle_planes`: each plane has a wait
  // of no time besides, so that one without waits is the one that waits least.
  void AddWaits(std::vector<PlaneTask> tasks, bool idle_planes = false);
  // Adds to one of an operator's values by number.
  static void AddTo(std::vector<double>* values, size_t number, double value);

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  struct Hash {
    size_t operator()(const Key& key) const { return (key.first * 0x9E3779B97F4A7C15u) ^ (key.second * 0xD6E8FEB86659FD93u); }
  };
  std::unordered_map<Key, int32_t, Hash> operator_ids_;
  std::map<std::pair<std::string, std::string>, int32_t, std::less<>> lane_ids_;
};

// By index of the operator: of the executions, or as a database added them up.
std::vector<ExecutionTimes> TimesOf(const Rank& rank);

inline double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace profd::analysis
