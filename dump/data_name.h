// Names of data files in PROF directories (dump-format 1.1 and section 2): today's and the two
// historical ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "driver/abi/channels.h"

namespace profd {

struct DataName {
  std::string base;  // "hbm.data"
  int device = -1;   // as the name says; -1 = it says none
  uint64_t slice = 0;
  bool compressed = false;
};

// Nothing: no name of a data file.
std::optional<DataName> ParseDataName(std::string_view name);
// The driver channel behind a device's file of this base name ("hbm.data"), whatever it is called on
// the chip; null for files of no channel.
const abi::ChannelFormat* FormatOfFile(std::string_view base);
// Notes that lie beside data files: .done, .complete, .zip.
bool IsNoteName(std::string_view name);

}  // namespace profd
