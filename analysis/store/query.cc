// Answers of the server: FORMAT JSONCompact, which also has the cost of the query.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/store/numbers.h"
#include "analysis/store/server.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;

// Rows as they come; the rest of the answer is of no interest but for its statistics.
class RowReader : public Sax {
 public:
  RowReader(const std::function<Status(const StoreRow&)>& take, StoreCost* cost) : take_(take), cost_(*cost) {}

  const Status& status() const { return status_; }

  bool null() override { return Add({}, true); }
  bool boolean(bool value) override { return Add(value ? "1" : "0", false); }
  bool number_integer(number_integer_t value) override { return Add(fmt::format("{}", value), false); }
  bool number_unsigned(number_unsigned_t value) override { return Add(fmt::format("{}", value), false); }
  bool number_float(number_float_t, const string_t& text) override { return Add(text, false); }
  bool string(string_t& value) override { return Add(std::move(value), false); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return ++objects_ <= kDepth; }
  bool key(string_t& name) override {
    if (arrays_ == 0) (objects_ == 1 ? section_ : field_) = name;
    return true;
  }
  bool end_object() override {
    --objects_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (++arrays_ > kDepth) return false;
    if (InData() && arrays_ == 2) row_ = {};
    if (InData() && arrays_ == 3) row_.cells.emplace_back();
    return true;
  }
  bool end_array() override {
    const bool row_ends = InData() && arrays_ == 2;
    --arrays_;
    if (!row_ends) return true;
    status_ = take_(row_);
    if (status_.ok() && row_.bad > 0) status_ = DataLoss("the server's answer has a value that is not a number, or no time");
    return status_.ok();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  static constexpr int kDepth = 8;

  bool InData() const { return section_ == "data" && objects_ == 1; }

  bool Add(std::string text, bool is_null) {
    if (InData() && arrays_ == 2) row_.cells.push_back({is_null, std::move(text), {}});
    else if (InData() && arrays_ == 3) row_.cells.back().list.push_back(std::move(text));
    else if (section_ == "statistics") AddCost(text);
    return true;
  }

  void AddCost(const std::string& text) {
    double value = 0;
    if (!ParseNumber(std::string_view(text), &value) || !(value >= 0 && value < 1e18)) return;
    if (field_ == "elapsed") cost_.seconds += value;
    if (field_ == "rows_read") cost_.rows += static_cast<uint64_t>(value);
    if (field_ == "bytes_read") cost_.bytes += static_cast<uint64_t>(value);
  }

  const std::function<Status(const StoreRow&)>& take_;
  StoreCost& cost_;
  Status status_;
  StoreRow row_;
  std::string section_;
  std::string field_;
  int objects_ = 0;
  int arrays_ = 0;
};

template <class T>
T Number(std::string_view text, uint64_t* bad) {
  T value = 0;
  if (!ParseNumber(text, &value)) ++*bad;
  return value;
}

}  // namespace

const std::string& StoreRow::Text(size_t column) const {
  static const std::string none;
  return column < cells.size() ? cells[column].text : none;
}

const std::vector<std::string>& StoreRow::List(size_t column) const {
  static const std::vector<std::string> none;
  return column < cells.size() ? cells[column].list : none;
}

int64_t StoreRow::Int(size_t column) const { return Number<int64_t>(Text(column), &bad); }
uint64_t StoreRow::Uint(size_t column) const { return Number<uint64_t>(Text(column), &bad); }
double StoreRow::Float(size_t column) const { return IsNull(column) ? 0 : Number<double>(Text(column), &bad); }

std::vector<double> StoreRow::Floats(size_t column) const {
  std::vector<double> values;
  for (const std::string& each : List(column)) values.push_back(Number<double>(each, &bad));
  return values;
}

std::vector<int64_t> StoreRow::Ints(size_t column) const {
  std::vector<int64_t> values;
  for (const std::string& each : List(column)) values.push_back(Number<int64_t>(each, &bad));
  return values;
}

int64_t StoreRow::Time(size_t column) const {
  const int64_t t_ns = Int(column);
  if (IsTime(t_ns)) return t_ns;
  ++bad;
  return 0;
}

std::vector<int64_t> StoreRow::Times(size_t column) const {
  std::vector<int64_t> times = Ints(column);
  bad += static_cast<uint64_t>(std::ranges::count_if(times, [](int64_t t_ns) { return !IsTime(t_ns); }));
  return times;
}

Status StoreServer::Ask(std::string_view select, const std::function<Status(const StoreRow&)>& take) {
  const Result<std::string> answer = Send(fmt::format("{} FORMAT JSONCompact", select), {});
  if (!answer.ok()) return answer.status();
  ++cost_.queries;
  RowReader reader(take, &cost_);
  if (nlohmann::json::sax_parse(*answer, &reader)) return {};
  if (!reader.status().ok()) return reader.status();
  constexpr size_t kShown = 200;
  const std::string_view end = std::string_view(*answer).substr(answer->size() - std::min(answer->size(), kShown));
  return DataLoss(fmt::format("the server's answer is not JSON; it ends with: {}", end));
}

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

}  // namespace profd::analysis
