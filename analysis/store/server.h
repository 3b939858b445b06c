// A database server that holds runs (ClickHouse), as this module queries it. The client provides the connection.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace profd::analysis {

// What queries cost, as the server counted.
struct StoreCost {
  uint64_t queries = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};

struct StoreCell {
  bool is_null = false;
  std::string text;               // of a text or a number
  std::vector<std::string> list;  // of an array
};

// One row of an answer. What is not a number, or is not there, is 0 and counted in `bad`.
class StoreRow {
 public:
  std::vector<StoreCell> cells;

  const std::string& Text(size_t column) const;
  const std::vector<std::string>& List(size_t column) const;
  bool IsNull(size_t column) const { return column >= cells.size() || cells[column].is_null; }
  int64_t Int(size_t column) const;
  uint64_t Uint(size_t column) const;
  double Float(size_t column) const;
  std::vector<double> Floats(size_t column) const;
  std::vector<int64_t> Ints(size_t column) const;
  // Of a time in ns: beyond the year 2116 it is bad, so that no difference of two is too long.
  int64_t Time(size_t column) const;
  std::vector<int64_t> Times(size_t column) const;

  mutable uint64_t bad = 0;
};

class StoreServer {
 public:
  virtual ~StoreServer() = default;
  // One statement and what belongs behind it (rows of an INSERT); the text of the answer. Every wait has a deadline.
  virtual Result<std::string> Send(std::string_view statement, std::string_view rows) = 0;
  // A statement ON CLUSTER: the server waits so long for the others, with 0 for none. Where some are not done by then
  // its error reports that, and they execute it later.
  virtual Result<std::string> SendToCluster(std::string_view statement, int wait_s) {
    static_cast<void>(wait_s);
    return Send(statement, {});
  }
  virtual const std::string& database() const = 0;
  // Waits before something is tried again.
  virtual void Pause(int ms) = 0;

  Status Execute(std::string_view statement) { return Send(statement, {}).status(); }
  // A SELECT without FORMAT; `take` is called for each row, and an error of its, if it answers a Status, ends the query.
  template <class Take>
  Status Query(std::string_view select, const Take& take) {
    if constexpr (std::is_void_v<std::invoke_result_t<const Take&, const StoreRow&>>) {
      return Ask(select, [&take](const StoreRow& row) { return take(row), Status(); });
    } else {
      return Ask(select, take);
    }
  }
  const StoreCost& cost() const { return cost_; }

 private:
  Status Ask(std::string_view select, const std::function<Status(const StoreRow&)>& take);

  StoreCost cost_;
};

// 'it\'s', as SQL has texts.
std::string Quoted(std::string_view text);

}  // namespace profd::analysis
