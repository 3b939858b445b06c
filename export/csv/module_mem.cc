#include "export/csv/module_mem.h"

#include <algorithm>

#include "driver/records/module_mem.h"
#include "export/csv/record_rows.h"
#include "export/number_text.h"

namespace profd::exporting::csv {
namespace {

constexpr size_t kTextBytes = 256 * 1024;
constexpr size_t kRowBytes = 256;

// Rows in the order of time, of one part and module, a block at a time.
class Run {
 public:
  Run(const ModuleMem& part, std::span<const ModuleMem::Block> blocks, std::string_view module)
      : part_(&part), blocks_(blocks) {
    std::string device = std::to_string(part.context().place->device);
    prefix_ = device + "," + std::string(module) + ",";
    suffix_ = ",NPU:" + device + "\n";
  }

  int64_t t_ns() const { return rows_[at_].t_ns; }
  // False at the end.
  Result<bool> Load() {
    if (blocks_.empty()) return false;
    rows_.resize(blocks_.front().rows);
    Status status = part_->context().spool->Read(blocks_.front().offset,
                                                 std::as_writable_bytes(std::span(rows_)));
    if (!status.ok()) return status;
    blocks_ = blocks_.subspan(1);
    at_ = 0;
    return true;
  }
  Result<bool> Step() {
    if (++at_ < rows_.size()) return true;
    return Load();
  }
  char* Print(char* out) const {
    out = Copy(out, prefix_);
    out = AppendMicros(out, rows_[at_].t_ns);
    *out++ = '\t';
    *out++ = ',';
    out = AppendInt(out, rows_[at_].kilobytes);
    return Copy(out, suffix_);
  }

 private:
  static char* Copy(char* out, const std::string& text) {
    return std::copy(text.begin(), text.end(), out);
  }

  const ModuleMem* part_;
  std::span<const ModuleMem::Block> blocks_;
  std::vector<ModuleMem::Row> rows_;
  size_t at_ = 0;
  std::string prefix_;
  std::string suffix_;
};

// Blocks that follow one another in time make one run.
Status AddRuns(const ModuleMem& part, int64_t module, std::vector<Run>* runs) {
  auto it = part.blocks().find(module);
  if (it == part.blocks().end()) return Status::Ok();
  std::span<const ModuleMem::Block> blocks = it->second;
  while (!blocks.empty()) {
    size_t size = 1;
    while (size < blocks.size() && blocks[size].first_ns >= blocks[size - 1].last_ns) ++size;
    Run run(part, blocks.first(size), ModuleName(module));
    auto some = run.Load();
    if (!some.ok()) return some.status();
    runs->push_back(std::move(run));
    blocks = blocks.subspan(size);
  }
  return Status::Ok();
}

class Merger {
 public:
  explicit Merger(CsvFile* file) : file_(file), text_(kTextBytes, '\0') {}

  Status Merge(std::vector<Run> runs) {
    // The next rows of all runs by time; of equal times the earlier device's first.
    std::vector<Run*> order;
    order.reserve(runs.size());
    for (Run& run : runs) order.push_back(&run);
    auto before = [](const Run* a, const Run* b) {
      return a->t_ns() != b->t_ns() ? a->t_ns() < b->t_ns() : a < b;
    };
    std::ranges::sort(order, before);
    while (!order.empty()) {
      Run* first = order.front();
      RETURN_IF_ERROR(Take(*first));
      auto more = first->Step();
      if (!more.ok()) return more.status();
      if (!*more) {
        order.erase(order.begin());
        continue;
      }
      auto place = std::lower_bound(order.begin() + 1, order.end(), first, before);
      std::move(order.begin() + 1, place, order.begin());
      *(place - 1) = first;
    }
    return Status::Ok();
  }
  Status Flush() {
    RETURN_IF_ERROR(file_->Append(std::string_view(text_).substr(0, used_), rows_));
    used_ = 0;
    rows_ = 0;
    return Status::Ok();
  }

 private:
  Status Take(const Run& run) {
    if (text_.size() - used_ < kRowBytes) RETURN_IF_ERROR(Flush());
    used_ = static_cast<size_t>(run.Print(text_.data() + used_) - text_.data());
    ++rows_;
    return Status::Ok();
  }

  CsvFile* file_;
  std::string text_;
  size_t used_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace

std::string_view ModuleName(int64_t module) {
  const std::string_view name = records::ModuleName(static_cast<uint64_t>(module));
  return name.empty() ? "UNKNOWN" : name;
}

void ModuleMem::Take(const Batch& batch) {
  auto modules = batch.Ints(0);
  auto reserved = batch.Ints(1);
  // The vendor's has -1 without its sign, in KB.
  const bool wraps = context_.compat_msprof && IsMadeInCpp(context_.place->chip);
  const auto unknown = wraps ? static_cast<int64_t>(UINT64_MAX / 1024) : int64_t{-1};
  for (size_t row = 0; row < batch.rows(); ++row) {
    if (IsBeforeStart(context_, batch.t_ns[row])) continue;
    Rows* rows = waiting_.Get(modules[row]);
    bool known = rows != nullptr;
    if (!known) rows = &others_;
    rows->push_back({batch.t_ns[row], reserved[row] < 0 ? unknown : reserved[row] / 1024});
    ++rows_;
    if (rows->size() == kBlockRows) Spill(known ? modules[row] : kOthers, rows);
  }
}

void ModuleMem::Spill(int64_t module, Rows* rows) {
  if (rows->empty() || !error_.ok()) {
    rows->clear();
    return;
  }
  auto earlier = [](const Row& a, const Row& b) { return a.t_ns < b.t_ns; };
  if (!std::ranges::is_sorted(*rows, earlier)) std::ranges::stable_sort(*rows, earlier);
  auto offset = context_.spool->Append(std::as_bytes(std::span(*rows)));
  if (!offset.ok()) {
    error_ = offset.status();
  } else {
    blocks_[module].push_back(
        {*offset, static_cast<uint32_t>(rows->size()), rows->front().t_ns, rows->back().t_ns});
  }
  rows->clear();
}

Status ModuleMem::Finish() {
  for (auto& [module, rows] : waiting_.Sorted()) Spill(module, rows);
  Spill(kOthers, &others_);
  waiting_ = {};
  others_ = {};
  return error_;
}

Status WriteModuleMem(std::span<const ModuleMem* const> parts, CsvFile* file) {
  std::set<int64_t> modules;
  for (const ModuleMem* part : parts) {
    for (const auto& [module, blocks] : part->blocks()) modules.insert(module);
  }
  Merger merger(file);
  for (int64_t module : modules) {
    std::vector<Run> runs;
    for (const ModuleMem* part : parts) RETURN_IF_ERROR(AddRuns(*part, module, &runs));
    RETURN_IF_ERROR(merger.Merge(std::move(runs)));
  }
  RETURN_IF_ERROR(merger.Flush());
  for (const ModuleMem* part : parts) {
    for (const auto& [module, blocks] : part->blocks()) {
      for (const ModuleMem::Block& block : blocks) {
        part->context().spool->Forget(block.offset, block.rows * sizeof(ModuleMem::Row));
      }
    }
  }
  return Status::Ok();
}

}  // namespace profd::exporting::csv
