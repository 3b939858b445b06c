#include "export/trace/gzip_file.h"

#include <zlib.h>

namespace profd::exporting {
namespace {

constexpr std::string_view kHeader = {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10};
constexpr std::string_view kLastBlock = {"\x03\x00", 2};  // empty, with the end mark
constexpr int kLevel = 3;
constexpr int kRawDeflate = -15;  // no header, largest window

Result<std::string> Deflate(std::string_view bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kRawDeflate, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return ResourceExhausted("no memory to compress with");
  }
  // Space for the flush beside the bound.
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  int code = deflate(&stream, Z_FULL_FLUSH);
  bool whole = code == Z_OK && stream.avail_in == 0 && stream.avail_out > 0;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (!whole) return Internal("zlib did not take all");
  return out;
}

void AppendLittle(std::string* out, uint64_t value) {
  for (int shift = 0; shift < 32; shift += 8) *out += static_cast<char>(value >> shift & 0xFF);
}

}  // namespace

Status GzipFile::Create(std::string path, GoOn go_on) {
  RETURN_IF_ERROR(file_.Create(std::move(path), std::move(go_on)));
  {
    MutexLock lock(mutex_);
    crc_ = crc32(0, nullptr, 0);
  }
  return file_.Append(kHeader);
}

Status GzipFile::Append(std::string_view bytes) {
  if (bytes.empty()) return Status::Ok();
  Result<std::string> deflated = Deflate(bytes);
  if (!deflated.ok()) return deflated.status();
  unsigned long crc =
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  MutexLock lock(mutex_);
  crc_ = crc32_combine(crc_, crc, static_cast<z_off_t>(bytes.size()));
  size_ += bytes.size();
  return file_.Append(*deflated);
}

Status GzipFile::Commit() {
  std::string tail(kLastBlock);
  {
    MutexLock lock(mutex_);
    AppendLittle(&tail, crc_);
    AppendLittle(&tail, size_);
  }
  RETURN_IF_ERROR(file_.Append(tail));
  return file_.Commit();
}

}  // namespace profd::exporting
