#include "daemon/web/gzip.h"

#include <zlib.h>

#include <array>

#include "base/text.h"

namespace profd {
namespace {

// For text like ours, 3 makes a tenth, at a third of the time 6 takes for a little less.
constexpr int kLevel = 3;
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemory = 8;
// Compressed bytes that are taken from zlib at a time.
constexpr size_t kPiece = 16 * 1024;

// "gzip;q=0.5": name and whether it is wanted at all.
struct Coding {
  std::string_view name;
  bool wanted = true;
};

Coding ParseCoding(std::string_view text) {
  Coding coding;
  size_t semicolon = text.find(';');
  coding.name = Trim(text.substr(0, semicolon));
  if (semicolon == std::string_view::npos) return coding;
  std::string_view weight = Trim(text.substr(semicolon + 1));
  if (!weight.starts_with("q=") && !weight.starts_with("Q=")) return coding;
  weight.remove_prefix(2);
  // Zero is "0", "0.", "0.0", "0.00" or "0.000".
  coding.wanted = weight.empty() || weight.find_first_not_of("0.") != std::string_view::npos;
  return coding;
}

}  // namespace

bool AcceptsGzip(std::string_view accept_encoding) {
  bool any = false;
  for (std::string_view item; NextPart(&accept_encoding, ',', &item);) {
    Coding coding = ParseCoding(item);
    if (SameIgnoringCase(coding.name, "gzip") || SameIgnoringCase(coding.name, "x-gzip")) return coding.wanted;
    if (coding.name == "*") any = coding.wanted;
  }
  return any;
}

struct GzipCompressor::Stream {
  z_stream z{};
  bool ready = false;
};

GzipCompressor::GzipCompressor() : stream_(std::make_unique<Stream>()) {}

GzipCompressor::~GzipCompressor() {
  if (stream_->ready) ::deflateEnd(&stream_->z);
}

bool GzipCompressor::Compress(std::string_view text, std::string* out) {
  z_stream& z = stream_->z;
  if (!stream_->ready) {
    stream_->ready = ::deflateInit2(&z, kLevel, Z_DEFLATED, kGzipWindow, kMemory,
                                    Z_DEFAULT_STRATEGY) == Z_OK;
    if (!stream_->ready) return false;
  } else if (::deflateReset(&z) != Z_OK) {
    return false;
  }
  if (text.size() > UINT32_MAX / 2) return false;
  // zlib does not write through next_in; its type is older than const.
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  out->clear();
  int state = Z_OK;
  for (std::array<Bytef, kPiece> piece; state == Z_OK;) {
    z.next_out = piece.data();
    z.avail_out = kPiece;
    state = ::deflate(&z, Z_FINISH);
    out->append(reinterpret_cast<const char*>(piece.data()), kPiece - z.avail_out);
  }
  return state == Z_STREAM_END;
}

}  // namespace profd
