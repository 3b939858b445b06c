// A rank as rows of the tables, in blocks: TabSeparated, as every release of the server reads it.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rank.h"
#include "analysis/store/tables.h"
#include "base/status.h"

namespace profd::analysis {

// Kind of an interval in which Python collected garbage; the others are exporting::operators::OverlapName().
inline constexpr std::string_view kGarbageKind = "Garbage";

// One row behind another; each value is of the next column.
class RowText {
 public:
  explicit RowText(std::string* out) : out_(*out) {}
  RowText& Text(std::string_view text);
  RowText& Int(int64_t value);
  RowText& Uint(uint64_t value);
  RowText& Float(double value);
  RowText& FloatOrNull(const std::optional<double>& value) { return value && std::isfinite(*value) ? Float(*value) : Null(); }
  RowText& IntOrNull(const std::optional<int64_t>& value) { return value ? Int(*value) : Null(); }
  RowText& Texts(const std::vector<std::string>& values);
  RowText& Floats(const std::vector<double>& values);
  template <class T>
  RowText& Ints(const std::vector<T>& values) {
    return List(values, [this](T value) { out_ += std::to_string(value); });
  }
  void End() { out_ += '\n'; }

 private:
  void Begin();
  RowText& Null();
  void AddFloat(double value);
  template <class T, class Add>
  RowText& List(const std::vector<T>& values, const Add& add) {
    Begin();
    out_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ',';
      add(values[i]);
    }
    out_ += ']';
    return *this;
  }

  std::string& out_;
  bool first_ = true;
};

// Whose rows they are, and of which load.
struct RowHead {
  std::string run;
  int32_t rank = -1;
  uint64_t load = 0;
};

// Collects rows by table and hands them on in blocks of about kBlockBytes.
class RowBlocks {
 public:
  static constexpr size_t kBlockBytes = 4U << 20;
  using Send = std::function<Status(const StoreTable& table, const std::string& rows, uint64_t count)>;

  RowBlocks(const RowHead& head, Send send);

  // The row that is begun is complete at its End(), at the latest when the next begins.
  RowText Row(std::string_view table);
  // What is left. The first error of any block.
  Status Finish();
  const Status& status() const { return status_; }
  uint64_t rows() const { return rows_; }
  const std::map<std::string_view, uint64_t>& rows_by_table() const { return by_table_; }

 private:
  struct Block {
    std::string rows;
    uint64_t count = 0;
  };
  void Flush(std::string_view table, Block* block);

  std::string head_;
  Send send_;
  Status status_;
  std::map<std::string_view, Block> blocks_;
  std::map<std::string_view, uint64_t> by_table_;
  uint64_t rows_ = 0;
};

// What was wrong in what was read: facts of this name, a dot and the place.
inline constexpr std::string_view kProblemFact = "problem.";
void WriteProblems(const std::vector<Problem>& problems, RowBlocks* blocks);

// All tables but loads and findings.
void WriteRank(const Rank& rank, RowBlocks* blocks);

}  // namespace profd::analysis
