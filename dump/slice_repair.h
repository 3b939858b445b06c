// How far a slice that was not ended is complete. A crash of the process may cut the last write off
// anywhere; a crash of the machine may leave zeros in place of what never reached the disk.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace profd {

struct SliceShape {
  enum class Kind : uint8_t {
    kBinary,   // records of record_size bytes
    kLines,    // each line is a record, but for those with header_token
    kBlocks,   // "TimeStamp:", "Index:", "DataLen:<n>", n bytes, an empty line
    kSamples,  // a line "time <ns>", then lines up to the next of these
    kUnknown,  // taken as it is
  };
  Kind kind = Kind::kLines;
  uint32_t record_size = 0;
  std::string_view header_token = {};
};

// Of the file called `base` in data/ of the host or a device.
SliceShape ShapeOf(std::string_view base, bool of_host);

struct WholePart {
  uint64_t bytes = 0;
  uint64_t records = 0;  // in these bytes
};

// `trailing_zeros_untrue`: records of nothing but zeros at the end were never written.
Result<WholePart> FindWholePart(int fd, uint64_t size, const SliceShape& shape,
                                bool trailing_zeros_untrue);

}  // namespace profd
