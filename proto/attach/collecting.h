// What can be collected inside a training process, through which of the vendor's interfaces, and the states of that. The
// words are those of packets, of manifests and of the contract's ProcessCollector.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace profd::attach {

enum class CollectKind : uint8_t { kKernel, kCommunication, kAclApi, kNodeApi, kRuntimeApi, kMarker, kMemory };
enum class CollectProvider : uint8_t { kUnknown, kAuto, kMspti, kAclprof };
enum class CollectState : uint8_t {
  kOff,
  kWaiting,      // for the application's runtime, or the end of the session before
  kOn,
  kPartial,      // on, but some kinds were refused or left out
  kSilent,       // on, but no records arrive while steps advance
  kBusy,         // another profiler has the process
  kUnsupported,
  kFailed,
  kStopping,     // of aclprof: its files are being written
  kFiles,        // of aclprof: they are there; the last report of a session, to be answered with FilesTaken
};

// By number; in the order of the enums.
inline constexpr std::array<std::string_view, 7> kCollectKindWords = {
    "kernel", "communication", "acl_api", "node_api", "runtime_api", "marker", "memory"};
inline constexpr std::array<std::string_view, 4> kCollectProviderWords = {"unknown", "auto", "mspti", "aclprof"};
inline constexpr std::array<std::string_view, 10> kCollectStateWords = {
    "off", "waiting", "on", "partial", "silent", "busy", "unsupported", "failed", "stopping", "files"};

constexpr std::string_view WordOf(CollectKind kind) { return kCollectKindWords.at(static_cast<size_t>(kind)); }
constexpr std::string_view WordOf(CollectProvider provider) { return kCollectProviderWords.at(static_cast<size_t>(provider)); }
constexpr std::string_view WordOf(CollectState state) { return kCollectStateWords.at(static_cast<size_t>(state)); }

// The value that a word stands for, by its table; nothing for another word.
template <class E, size_t kSize>
constexpr std::optional<E> FromWord(const std::array<std::string_view, kSize>& words, std::string_view word) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) return std::nullopt;
  return static_cast<E>(found - words.begin());
}

// A set of kinds. Bit n is kind n, as in collect_plugin.h.
class CollectKinds {
 public:
  constexpr CollectKinds() = default;
  constexpr CollectKinds(std::initializer_list<CollectKind> kinds) {
    for (const CollectKind kind : kinds) *this |= kind;
  }
  static constexpr CollectKinds OfBits(uint32_t bits) {
    CollectKinds kinds;
    kinds.bits_ = bits & kAll;
    return kinds;
  }
  constexpr uint32_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Has(CollectKind kind) const { return (bits_ & BitOf(kind)) != 0; }
  // Those of both.
  constexpr CollectKinds operator&(CollectKinds other) const { return OfBits(bits_ & other.bits_); }
  // Those that are not the other's.
  constexpr CollectKinds operator-(CollectKinds other) const { return OfBits(bits_ & ~other.bits_); }
  constexpr CollectKinds& operator|=(CollectKinds other) {
    bits_ |= other.bits_;
    return *this;
  }
  constexpr CollectKinds& operator|=(CollectKind kind) {
    bits_ |= BitOf(kind);
    return *this;
  }
  constexpr bool operator==(const CollectKinds&) const = default;

  // f(CollectKind), in the order of the enum.
  template <class F>
  constexpr void ForEach(F&& f) const {
    for (size_t i = 0; i < kCollectKindWords.size(); ++i) {
      if (const auto kind = static_cast<CollectKind>(i); Has(kind)) f(kind);
    }
  }

 private:
  static constexpr uint32_t kAll = (1U << kCollectKindWords.size()) - 1;
  static constexpr uint32_t BitOf(CollectKind kind) { return 1U << static_cast<unsigned>(kind); }
  uint32_t bits_ = 0;
};

}  // namespace profd::attach
