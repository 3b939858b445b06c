// What a command under tuning shows of its progress: signs in its output, and the result files it writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "analysis/tuning/tuning_view.h"

namespace profd::client {

// The two signs of work (analysis 8.1), wherever the output is cut.
class TuneSigns {
 public:
  void Feed(std::string_view bytes);
  bool adapter() const { return adapter_; }  // the framework's adapter hands graphs over
  bool tool() const { return tool_; }        // the tool has begun

 private:
  std::string tail_;  // what a sign may have begun in
  bool adapter_ = false;
  bool tool_ = false;
};

// Result files of a folder that are new or have changed since the watch began.
class TuneResultWatch {
 public:
  explicit TuneResultWatch(std::string folder);
  // The files; their contents are read again where a size or time differs from that of the call before.
  const analysis::TuningResults& Look();
  uint64_t bytes() const { return bytes_; }
  const std::string& folder() const { return folder_; }

 private:
  using State = std::map<std::string, std::pair<uint64_t, int64_t>>;  // path: size, time
  State StateOf() const;

  const std::string folder_;
  const State before_;
  State seen_;
  uint64_t bytes_ = 0;
  analysis::TuningResults results_;
};

}  // namespace profd::client
