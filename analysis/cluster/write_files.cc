#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "analysis/cluster/output.h"
#include "analysis/read/readers.h"
#include "base/fd.h"
#include "export/spool.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kFiles = {kClusterSteps, "cluster_communication.json", "cluster_communication_matrix.json",
                                                    "communication_group.json", kClusterDatabase};
// Those that every operation has, zero where nothing went over them.
constexpr std::array<std::string_view, 5> kTransports = {"RDMA", "HCCS", "PCIE", "SDMA", "SIO"};

// A file of another name until all of it is there.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string path) : path_(std::move(path)), unfinished_(fmt::format("{}.{}.unfinished", path_, ::getpid())) {}
  ~UnfinishedFile() {
    if (!finished_) ::unlink(unfinished_.c_str());
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const std::string& unfinished() const { return unfinished_; }
  Status Open() {
    fd_ = UniqueFd(::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640));
    return fd_.valid() ? Status::Ok() : Status::FromErrno(errno, unfinished_);
  }
  std::string* text() { return &text_; }
  // What was added to text(), where it is much.
  Status Flush(size_t least = 1 << 20) {
    if (text_.size() < least) return Status::Ok();
    RETURN_IF_ERROR(exporting::WriteAll(fd_.get(), text_, unfinished_));
    text_.clear();
    return Status::Ok();
  }
  Status Finish() {
    RETURN_IF_ERROR(Flush(0));
    if (::rename(unfinished_.c_str(), path_.c_str()) != 0) return Status::FromErrno(errno, path_);
    finished_ = true;
    return Status::Ok();
  }

 private:
  std::string path_;
  std::string unfinished_;
  UniqueFd fd_;
  std::string text_;
  bool finished_ = false;
};

// Levels of objects in objects, each opened and closed as their keys change.
class JsonLevels {
 public:
  explicit JsonLevels(std::string* text) : text_(*text) { text_ += '{'; }

  // The next value is behind these keys.
  void At(std::initializer_list<std::string_view> keys) {
    size_t same = 0;
    for (const std::string_view key : keys) {
      if (same + 1 >= keys.size() || same >= keys_.size() || keys_[same] != key) break;
      ++same;
    }
    while (keys_.size() > same) Close();
    size_t level = 0;
    for (const std::string_view key : keys) {
      if (level++ < same) continue;
      if (more_) text_ += ", ";
      text_ += Quoted(key);
      text_ += ": ";
      if (level < keys.size()) {
        text_ += '{';
        keys_.emplace_back(key);
        more_ = false;
      }
    }
    more_ = true;
  }
  void End() {
    while (!keys_.empty()) Close();
    text_ += '}';
  }
  static std::string Quoted(std::string_view text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

 private:
  void Close() {
    text_ += '}';
    keys_.pop_back();
    more_ = true;
  }
  std::string& text_;
  std::vector<std::string> keys_;
  bool more_ = false;
};

std::string OpKey(const OutputModel& model, const std::string& name, size_t group) { return name + "@" + model.cluster().groups()[group].name; }

void AddTimes(const Collective& op, bool total, std::string* text) {
  auto out = std::back_inserter(*text);
  *text += R"j({"Communication Time Info": {)j";
  if (!total) {
    const int64_t whole_us = op.start_ns / 1000;
    fmt::format_to(out, R"j("Start Timestamp(us)": {}.{:03}, )j", whole_us, op.start_ns - whole_us * 1000);
  }
  fmt::format_to(out, R"j("Elapse Time(ms)": {})j", op.elapse_ms);
  if (op.parts) {
    const Collective::Parts& parts = *op.parts;
    fmt::format_to(out, R"j(, "Transit Time(ms)": {}, "Wait Time(ms)": {}, "Synchronization Time(ms)": {}, "Idle Time(ms)": {}, "Wait Time Ratio": {}, "Synchronization Time Ratio": {})j",
                   parts.transit_ms, parts.wait_ms, parts.synchronization_ms, parts.idle_ms, OutputRatio(parts.wait_ms, parts.transit_ms),
                   OutputRatio(parts.synchronization_ms, parts.transit_ms));
  }
  *text += "}, ";
}

void AddTransport(std::string_view name, const Transport* of, bool total, std::string* text) {
  const Transport none;
  const Transport& transport = of == nullptr ? none : *of;
  auto out = std::back_inserter(*text);
  fmt::format_to(out, R"j({}: {{"Transit Size(MB)": {}, "Transit Time(ms)": {}, "Bandwidth(GB/s)": {}, )j", JsonLevels::Quoted(name), transport.size_mb,
                 transport.time_ms, OutputSpeed(transport.size_mb, transport.time_ms));
  if (!total) fmt::format_to(out, R"j("Large Packet Ratio": {}, )j", transport.large_ratio);
  *text += R"j("Size Distribution": {)j";
  const char* comma = "";
  for (const PacketSize& size : transport.sizes) {
    fmt::format_to(out, R"j({}"{}": [{}, {}])j", comma, size.mb, size.count, size.time_ms);
    comma = ", ";
  }
  *text += "}}";
}

void AddOp(const Collective& op, bool total, std::string* text) {
  AddTimes(op, total, text);
  *text += R"j("Communication Bandwidth Info": {)j";
  const char* comma = "";
  const auto add = [&](std::string_view name, const Transport* transport) {
    *text += comma;
    AddTransport(name, transport, total, text);
    comma = ", ";
  };
  for (const std::string_view name : kTransports) {
    const auto found = std::ranges::find(op.transports, name, &Transport::name);
    add(name, found == op.transports.end() ? nullptr : &*found);
  }
  for (const Transport& each : op.transports) {
    if (std::ranges::find(kTransports, each.name) == kTransports.end()) add(each.name, &each);
  }
  *text += "}}";
}

Status WriteCommunication(const OutputModel& model, UnfinishedFile* file) {
  JsonLevels levels(file->text());
  Status written = model.EachOp([&](const OutputOp& op) {
    const std::string key = OpKey(model, op.name, op.group);
    const std::string step = StepKey(op.step);
    for (const auto& [rank, each] : op.ranks) {
      levels.At({model.sets()[op.set], step, key, std::to_string(rank)});
      AddOp(*each, op.name == OutputModel::kTotalOp, file->text());
    }
    return file->Flush();
  });
  levels.End();
  return written;
}

Status WriteMatrix(const OutputModel& model, UnfinishedFile* file) {
  JsonLevels levels(file->text());
  for (const OutputLinks& links : model.Links()) {
    const std::string key = OpKey(model, links.name, links.group);
    const std::string step = StepKey(links.step);
    for (const auto& [pair, link] : links.pairs) {
      levels.At({model.sets()[links.set], step, key, fmt::format("{}-{}", pair.first, pair.second)});
      fmt::format_to(std::back_inserter(*file->text()), R"j({{"Transport Type": {}, "Transit Time(ms)": {}, "Transit Size(MB)": {}, "Op Name": {}, "Bandwidth(GB/s)": {}}})j",
                     JsonLevels::Quoted(link.transport), link.time_ms, link.size_mb, JsonLevels::Quoted(link.op), OutputSpeed(link.size_mb, link.time_ms));
    }
    if (Status flushed = file->Flush(); !flushed.ok()) return flushed;
  }
  levels.End();
  return Status::Ok();
}

Status WriteGroups(const OutputModel& model, UnfinishedFile* file) {
  const Cluster& cluster = model.cluster();
  nlohmann::ordered_json json = {{"collective", nlohmann::json::array()}, {"p2p", nlohmann::json::array()}, {"comm_group_parallel_info", nlohmann::json::array()}};
  for (const ClusterGroup& group : cluster.groups()) {
    const std::vector<int> ranks = RanksOf(cluster, group);
    if (!group.p2p) json["collective"].push_back(ranks);
    json["comm_group_parallel_info"].push_back({{"type", group.p2p ? "p2p" : "collective"}, {"rank_set", ranks}, {"group_name", group.name},
                                                {"group_id", group.facts.id}, {"pg_name", group.facts.label}});
  }
  for (const auto& stage : cluster.stages()) {
    std::vector<int> ranks;
    ranks.reserve(stage.size());
    for (const size_t rank : stage) ranks.push_back(cluster.NumberOf(rank));
    json["p2p"].push_back(ranks);
  }
  *file->text() += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Status::Ok();
}

Status WriteSteps(const OutputModel& model, UnfinishedFile* file) {
  const auto rows = model.Steps();
  const bool parallel = std::ranges::any_of(rows, [](const OutputModel::StepRow& row) { return row.parallel.has_value(); });
  std::string& text = *file->text();
  text += "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
          "Communication(Not Overlapped and Exclude Receive),Preparing";
  text += parallel ? ",DP Index,PP Index,TP Index\n" : "\n";
  for (const OutputModel::StepRow& row : rows) {
    text += row.step < 0 ? "" : std::to_string(row.step);
    text += row.stage ? fmt::format(",stage,\"{}\"", row.index) : ",rank," + row.index;
    for (const auto& us : row.us) text += us ? fmt::format(",{}", *us) : ",";
    if (parallel) text += row.parallel ? fmt::format(",{},{},{}", (*row.parallel)[0], (*row.parallel)[1], (*row.parallel)[2]) : ",,,";
    text += '\n';
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> WriteClusterOutput(const Cluster& cluster, const std::string& directory, bool replace) {
  const fs::path out = fs::path(directory) / kClusterOutput;
  std::error_code error;
  fs::create_directories(out, error);
  if (error) return Status::FromErrno(error.value(), out.string());
  for (const std::string_view name : kFiles) {
    struct stat facts {};
    if (!replace && ::lstat((out / name).c_str(), &facts) == 0) {
      return Status(StatusCode::kAlreadyExists, (out / name).string() + " is there already; --force replaces it");
    }
  }
  const OutputModel model(cluster);
  using Write = Status (*)(const OutputModel&, UnfinishedFile*);
  constexpr std::array<Write, kFiles.size()> kWrite = {WriteSteps, WriteCommunication, WriteMatrix, WriteGroups, nullptr};
  for (size_t i = 0; i < kFiles.size(); ++i) {
    UnfinishedFile file((out / kFiles[i]).string());
    Status written = kWrite[i] == nullptr ? WriteClusterTables(model, file.unfinished()) : file.Open();
    if (written.ok() && kWrite[i] != nullptr) written = kWrite[i](model, &file);
    if (written.ok()) written = file.Finish();
    if (!written.ok()) return written;
  }
  return out.string();
}

}  // namespace profd::analysis
