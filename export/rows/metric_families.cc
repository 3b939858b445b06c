#include "export/rows/metric_families.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/text.h"
#include "export/rows/text.h"

namespace profd::exporting {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr size_t kWriteBytes = 256u << 10;

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : CleanUtf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string LabelText(const std::vector<Label>& labels) {
  std::string text = "{";
  std::set<std::string> keys;
  for (const Label& label : labels) {
    std::string key = MetricName(label.key);
    std::ranges::replace(key, ':', '_');
    if (!keys.insert(key).second) continue;  // one of each
    if (text.size() > 1) text += ',';
    text += key + "=\"" + Escaped(label.value) + '"';
  }
  return text + '}';
}

}  // namespace

std::string MetricName(std::string_view text) {
  std::string name;
  for (char c : text) {
    if (IsDigit(c) && name.empty()) name += '_';
    name += IsLetterOrDigit(c) || c == '_' || c == ':' ? c : '_';
  }
  return name.empty() ? "_" : name;
}

std::string_view UnitOf(std::string_view metric) {
  for (std::string_view unit :
       {"bytes_per_second", "packets_per_second", "bytes", "seconds", "ratio", "hertz", "volts",
        "celsius", "watts", "joules", "packets", "pages", "jiffies"}) {
    if (metric.size() > unit.size() && metric.ends_with(unit) &&
        metric[metric.size() - unit.size() - 1] == '_') {
      return metric.substr(metric.size() - unit.size());
    }
  }
  return {};
}

Status MetricFamilies::Begin(const std::string& dir) {
  Result<std::unique_ptr<Spool>> spool = Spool::Create(dir);
  if (!spool.ok()) return spool.status();
  spool_ = std::move(*spool);
  return {};
}

MetricFamilies::Series* MetricFamilies::Add(std::string_view metric,
                                            const std::vector<Label>& labels, std::string* prefix) {
  std::string name = MetricName(metric);
  std::string text = LabelText(labels);
  *prefix = name + text + ' ';
  MutexLock lock(mutex_);
  if (known_.size() >= kMaxSeries || !known_.emplace(*prefix, true).second) return nullptr;
  bool counter = name.ends_with(kTotal) && name.size() > kTotal.size();
  std::string family = counter ? name.substr(0, name.size() - kTotal.size()) : name;
  Family& entry = families_[family];
  if (entry.series.empty()) entry.counter = counter;
  // A gauge of the same name as a counter's family cannot be written.
  if (entry.counter != counter) return nullptr;
  return &entry.series.emplace_back(Series{std::move(text), {}});
}

Status MetricFamilies::Append(Series* series, std::string_view lines) {
  const Result<uint64_t> offset = spool_->Append(lines);
  if (!offset.ok()) return offset.status();
  auto& pieces = series->pieces;
  if (!pieces.empty() && pieces.back().offset + pieces.back().size == *offset) {
    pieces.back().size += lines.size();
  } else {
    pieces.push_back({*offset, lines.size()});
  }
  return {};
}

void MetricFamilies::AddLeftOut(uint64_t samples) {
  MutexLock lock(mutex_);
  left_out_ += samples;
}

Status MetricFamilies::Write(SharedFile* out) {
  MutexLock lock(mutex_);
  std::string text;
  for (auto& [name, family] : families_) {
    text += "# TYPE " + name + (family.counter ? " counter\n" : " gauge\n");
    if (std::string_view unit = UnitOf(name); !unit.empty()) {
      text += "# UNIT " + name + ' ' + std::string(unit) + '\n';
    }
    std::ranges::sort(family.series, {}, &Series::labels);
    for (const Series& series : family.series) {
      for (Series::Piece piece : series.pieces) {
        while (piece.size > 0) {
          size_t size = std::min<uint64_t>(piece.size, kWriteBytes);
          text.resize(text.size() + size);
          RETURN_IF_ERROR(spool_->Read(piece.offset, std::as_writable_bytes(std::span(text).last(size))));
          piece.offset += size;
          piece.size -= size;
          if (text.size() < kWriteBytes) continue;
          RETURN_IF_ERROR(out->Append(text));
          text.clear();
        }
      }
    }
  }
  if (left_out_ > 0) {
    // No sample: it would need a time, and be one of the dump's.
    text +=
        "# TYPE profd_export_left_out_samples gauge\n"
        "# HELP profd_export_left_out_samples " +
        std::to_string(left_out_) + " samples of a millisecond that has one already\n";
  }
  text += "# EOF\n";
  RETURN_IF_ERROR(out->Append(text));
  spool_.reset();
  return {};
}

}  // namespace profd::exporting
