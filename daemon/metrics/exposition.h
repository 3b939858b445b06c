// Prometheus's text format 0.0.4, piece by piece, each put behind what is in `*out`.
#pragma once

#include <string>
#include <string_view>

#include "collectors/metric_spec.h"

namespace profd {

// The shortest text that is read back as this number.
void AppendNumber(double value, std::string* out);

// The value of a label, without its quotes.
void AppendLabelText(std::string_view text, std::string* out);

// Whether a text can stand behind # HELP as it is.
constexpr bool IsPlainHelp(std::string_view help) {
  return help.find_first_of("\\\n") == std::string_view::npos;
}

// The two lines in front of a metric. `help` is plain.
void AppendHead(std::string_view name, std::string_view help, MetricType type, std::string* out);

// Writes `{a="x",b="y"`, or nothing where there is no label.
class LabelWriter {
 public:
  explicit LabelWriter(std::string* out) : out_(out) {}
  void Add(std::string_view name, std::string_view value);
  // Closes what was opened, and puts the blank that the value follows.
  void End();

 private:
  std::string* out_;
  char next_ = '{';
};

}  // namespace profd
