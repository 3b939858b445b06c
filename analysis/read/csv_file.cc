#include "analysis/read/csv_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "analysis/read/readers.h"
#include "analysis/times.h"
#include "base/count_text.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

constexpr size_t kReadBytes = 1 << 20;

}  // namespace

std::string BadLines::Text() const {
  return count_ == 0 ? "" : fmt::format("{} no sense: left out, the first is line {}", CountText(count_, "line makes", "lines make"), first_);
}

std::optional<int64_t> MicrosAsNs(std::string_view text) {
  text = Trim(text);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int64_t whole = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc() || whole < 0 || whole > kLatestNs / 1000 - 1) return std::nullopt;
  constexpr int64_t kLatestUs = kLatestNs / 1000;
  int64_t ns = whole * 1000;
  if (after != end) {
    double rest = 0;
    // An exponent, or decimals beyond ns: as a number.
    const auto [last, failed] = std::from_chars(after, end, rest, std::chars_format::fixed);
    if (*after != '.' || failed != std::errc() || last != end) {
      double all = 0;
      const auto [stop, bad] = std::from_chars(text.data(), end, all);
      if (bad != std::errc() || stop != end || !(std::abs(all) < static_cast<double>(kLatestUs))) return std::nullopt;
      ns = std::llround(all * 1000);
    } else {
      ns += std::llround(rest * 1000);
    }
  }
  return negative ? -ns : ns;
}

Result<CsvFile> CsvFile::Open(const std::filesystem::path& path) {
  Result<UniqueFd> fd = OpenPlain(path);
  if (!fd.ok()) return fd.status();
  CsvFile file(std::move(*fd));
  if (!file.ReadRecord()) {
    if (!file.status_.ok()) return file.status_;
    return InvalidArgument("the file is empty");
  }
  for (size_t i = 0; i < file.ends_.size(); ++i) {
    std::string_view name = file.Field(static_cast<int>(i));
    if (file.header_.empty() && name.starts_with(kByteOrderMark)) name.remove_prefix(kByteOrderMark.size());
    file.header_.emplace_back(name);
    if (!name.empty()) file.named_ = i + 1;
  }
  return file;
}

int CsvFile::Column(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(header_, name);
    if (found != header_.end()) return static_cast<int>(found - header_.begin());
  }
  return -1;
}

bool CsvFile::Fill() {
  if (at_end_) return false;
  const size_t old = buffer_.size();
  if (old - begin_ > kMaxRecord) {
    status_ = InvalidArgument("a record is longer than 64 MiB");
    at_end_ = true;
    return false;
  }
  buffer_.resize(old + kReadBytes);
  ssize_t got = 0;
  do {
    got = ::read(fd_.get(), buffer_.data() + old, kReadBytes);
  } while (got < 0 && errno == EINTR);
  if (got < 0) status_ = Status::FromErrno(errno, "read");
  buffer_.resize(old + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  at_end_ = got <= 0;
  return got > 0;
}

bool CsvFile::ReadRecord() {
  // Not behind each record: what is moved is many times as long as one.
  if (begin_ > kReadBytes) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  record_.clear();
  ends_.clear();
  line_ended_ = false;
  bool quoted = false;
  size_t at = begin_;
  while (at < buffer_.size() || Fill()) {
    const size_t run = at;
    while (at < buffer_.size() && buffer_[at] != '"' && (quoted || (buffer_[at] != ',' && buffer_[at] != '\n'))) ++at;
    record_.append(buffer_, run, at - run);
    if (at == buffer_.size()) continue;
    const char stop = buffer_[at++];
    if (stop == '\n') {
      line_ended_ = true;
      break;
    }
    if (stop == ',') {
      ends_.push_back(record_.size());
    } else if (!quoted) {
      quoted = true;
    } else if ((at < buffer_.size() || Fill()) && buffer_[at] == '"') {
      record_ += '"';
      ++at;
    } else {
      quoted = false;
    }
  }
  const size_t from = std::exchange(begin_, at);
  line_ = next_line_;
  next_line_ += static_cast<uint64_t>(std::ranges::count(std::string_view(buffer_).substr(from, at - from), '\n'));
  ends_.push_back(record_.size());
  return at > from && status_.ok();
}

bool CsvFile::Next() {
  while (ReadRecord()) {
    if (ends_.size() == 1 && Field(0).empty()) continue;
    has_records_ = true;
    if (may_lack_ > 0 && line_ended_ && ends_.size() + 1 == named_) {
      const auto at = ends_.begin() + may_lack_;
      ends_.insert(at, *std::prev(at));
    }
    if (ends_.size() >= named_) return true;
    bad_.Add(line_);
  }
  return false;
}

std::string_view CsvFile::Field(int column) const {
  if (column < 0 || static_cast<size_t>(column) >= ends_.size()) return {};
  const auto index = static_cast<size_t>(column);
  const size_t from = index == 0 ? 0 : ends_[index - 1];
  return Trim(std::string_view(record_).substr(from, ends_[index] - from));
}

std::optional<double> CsvFile::Number(int column) const {
  const std::string_view text = Field(column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> CsvFile::Integer(int column) const {
  const auto value = Number(column);
  if (!value || std::abs(*value) >= 1e15) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<int64_t> CsvFile::MicrosAsNs(int column) const { return analysis::MicrosAsNs(Field(column)); }

}  // namespace profd::analysis
