#include "dump/manifest_writer.h"

#include <string>
#include <utility>

#include "dump/manifest.h"

namespace profd {
namespace {

constexpr int64_t kIntervalNs = 10 * kNsPerSecond;

}  // namespace

ManifestWriter::~ManifestWriter() { CallOff(); }

void ManifestWriter::CallOff() {
  if (pending_ != nullptr) std::exchange(pending_, nullptr)->CallOff();
}

void ManifestWriter::TouchNow() {
  touched_ = true;
  written_ns_ = 0;
}

bool ManifestWriter::TakeDue() {
  if (!touched_) return false;
  const int64_t now = clock_.SteadyNs();
  if (written_ns_ != 0 && now - written_ns_ < kIntervalNs) return false;
  if (pending_ != nullptr && !pending_->over()) return false;
  written_ns_ = now;
  touched_ = false;
  return true;
}

Status ManifestWriter::Put(std::string_view text, bool soon) {
  CallOff();
  bytes_ = text.size();
  if (!soon || !sync_.on()) {
    synced_ = false;
    return ReplaceFile(folders_.io(), folders_.top(), std::string(kManifestFile), text, folders_.owner(), false);
  }
  const std::string next(kNextManifest);
  folders_.io().Unlink(folders_.top(), next);
  RETURN_IF_ERROR(WriteNewFile(folders_.io(), folders_.top(), next, text, folders_.owner()));
  Result<UniqueFd> fd = OpenFileAt(folders_.top(), next);
  if (!fd.ok()) return fd.status();
  pending_ = std::make_shared<PendingReplacement>(CopyOf(folders_.top()), next, std::string(kManifestFile));
  if (!sync_.Replace(std::move(*fd), pending_)) {
    CallOff();
    touched_ = true;
  }
  return {};
}

void ManifestWriter::Sync() {
  if (synced_) return;
  Result<UniqueFd> fd = OpenFileAt(folders_.top(), std::string(kManifestFile));
  if (fd.ok()) synced_ = sync_.Take(std::move(*fd));
}

}  // namespace profd
