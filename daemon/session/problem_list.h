// What is wrong with an order, one problem per line. However long the order, the list stays short
// enough for the trailer of a gRPC call (8 KiB, escaped): what is beyond is counted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

class ProblemList {
 public:
  bool empty() const { return lines_.empty(); }
  // `make` is called only when there is room for what it returns.
  template <class Make>
  void Add(Make make) {
    if (lines_.size() == kMaxLines || bytes_ >= kMaxBytes) {
      ++left_out_;
      return;
    }
    AddLine(make());
  }
  void Append(const ProblemList& other);
  std::string Text() const;

 private:
  static constexpr size_t kMaxLines = 32;
  static constexpr size_t kMaxLineBytes = 360;
  static constexpr size_t kMaxBytes = 5200;

  void AddLine(std::string line_untrusted);

  std::vector<std::string> lines_;
  size_t bytes_ = 0;
  size_t left_out_ = 0;
};

}  // namespace profd
