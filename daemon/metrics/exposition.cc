#include "daemon/metrics/exposition.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>

namespace profd {
namespace {

// Below, a whole number is written with all its digits and no exponent.
constexpr double kPlainWhole = 1e15;

std::string_view TypeText(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kGauge:
      break;
  }
  return "gauge";
}

}  // namespace

void AppendNumber(double value, std::string* out) {
  char text[32];  // 17 digits, sign, point and exponent
  if (std::abs(value) < kPlainWhole && !(value == 0 && std::signbit(value))) {
    const auto whole = static_cast<int64_t>(value);
    if (static_cast<double>(whole) == value) {
      out->append(text, std::to_chars(text, text + sizeof text, whole).ptr);
      return;
    }
  }
  if (std::isnan(value)) {
    *out += "NaN";
  } else if (std::isinf(value)) {
    *out += value > 0 ? "+Inf" : "-Inf";
  } else {
    out->append(text, fmt::format_to(text, "{}", value));
  }
}

void AppendLabelText(std::string_view text, std::string* out) {
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '\\' && c != '\n' && c != '"') continue;
    out->append(text, plain, i - plain);
    *out += '\\';
    *out += c == '\n' ? 'n' : c;
    plain = i + 1;
  }
  out->append(text, plain);
}

void AppendHead(std::string_view name, std::string_view help, MetricType type, std::string* out) {
  out->append("# HELP ").append(name).append(" ").append(help);
  out->append("\n# TYPE ").append(name).append(" ").append(TypeText(type));
  *out += '\n';
}

void LabelWriter::Add(std::string_view name, std::string_view value) {
  *out_ += next_;
  out_->append(name).append("=\"");
  AppendLabelText(value, out_);
  *out_ += '"';
  next_ = ',';
}

void LabelWriter::End() {
  if (next_ == ',') *out_ += '}';
  *out_ += ' ';
}

}  // namespace profd
