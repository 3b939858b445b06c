// Compressed answers. One compressor is kept and reset for each: its tables are a quarter of a megabyte.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace profd {

// Whether a value of Accept-Encoding takes gzip: named, or by "*", and not with q=0.
bool AcceptsGzip(std::string_view accept_encoding);

class GzipCompressor {
 public:
  GzipCompressor();
  ~GzipCompressor();
  // False when zlib has no memory; `*out` is then worth nothing.
  bool Compress(std::string_view text, std::string* out);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace profd
