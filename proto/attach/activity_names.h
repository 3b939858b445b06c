// Names of an activity ring (proto/attach/activity_ring.h): numbers strings by their content, from 1 in
// the order they come. Bounded: a name beyond the limits of the ring is kTooManyNames. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "proto/attach/activity_ring.h"
#include "proto/attach/cut_text.h"

namespace profd::attach {

class ActivityNames {
 public:
  // 0: empty. One too many is counted. The text is read now and never again: the vendor's library may free
  // it, and another text may lie at the same address then.
  uint32_t Intern(const char* text_or_null) noexcept {
    if (text_or_null == nullptr || *text_or_null == '\0') return 0;
    Recent& recent = recent_[RecentSlot(text_or_null)];
    if (recent.text == text_or_null && std::strcmp(text_or_null, TextAt(recent.id)) == 0) {
      return recent.id;
    }
    std::array<char, kMaxActivityNameBytes> shortened;
    std::string_view text = CutText(text_or_null, kMaxActivityNameBytes);
    const bool is_cut = text_or_null[text.size()] != '\0';
    if (is_cut) text = WithMark(CutText(text_or_null, kMaxActivityNameBytes - kCutMark.size()), shortened.data());
    const uint32_t id = Find(text);
    // A name that was cut is not equal to what lies there.
    if (id != 0 && !is_cut) recent = {text_or_null, id};
    if (id != 0) return id;
    ++refused_;
    return TooMany();
  }

  uint32_t count() const { return static_cast<uint32_t>(entries_.size()); }
  std::string_view Name(uint32_t id) const { return {TextAt(id), entries_[id - 1].bytes}; }
  uint64_t refused() const { return refused_; }

 private:
  struct Entry {
    uint32_t offset;
    uint32_t bytes;
    uint64_t hash;
  };
  // The id that an address had the last time; good only if the text is still the same.
  struct Recent {
    const char* text = nullptr;
    uint32_t id = 0;
  };
  static constexpr size_t kRecent = 4096;
  static constexpr size_t kFirstBuckets = 1024;

  // Made at `space`.
  static std::string_view WithMark(std::string_view text, char* space) {
    std::memcpy(space, text.data(), text.size());
    std::memcpy(space + text.size(), kCutMark.data(), kCutMark.size());
    return {space, text.size() + kCutMark.size()};
  }

  static size_t RecentSlot(const char* text) {
    const auto address = reinterpret_cast<uintptr_t>(text);
    return (address >> 4 ^ address >> 16) % kRecent;
  }

  static uint64_t Hash(std::string_view text) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
    uint64_t hash = text.size() * kOdd;
    for (size_t at = 0; at < text.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, text.size() - at < 8 ? text.size() - at : 8);
      hash = (hash ^ word) * kOdd;
      hash ^= hash >> 32;
    }
    return hash;
  }

  const char* TextAt(uint32_t id) const { return texts_.data() + entries_[id - 1].offset; }

  // 0: no memory for it either.
  uint32_t TooMany() noexcept {
    if (too_many_ != 0) return too_many_;
    try {
      return too_many_ = Insert(kTooManyNames, Hash(kTooManyNames));
    } catch (...) {
      return 0;
    }
  }

  // 0: it is none of them, and cannot become one. Leaves space for kTooManyNames.
  uint32_t Find(std::string_view text) noexcept {
    const uint64_t hash = Hash(text);
    size_t bucket = 0;
    if (!buckets_.empty()) {
      for (bucket = hash & (buckets_.size() - 1); buckets_[bucket] != 0;
           bucket = (bucket + 1) & (buckets_.size() - 1)) {
        const uint32_t id = buckets_[bucket];
        if (entries_[id - 1].hash == hash && Name(id) == text) return id;
      }
    }
    if (entries_.size() + 1 >= kMaxActivityNames ||
        bytes_ + text.size() + kTooManyNames.size() > kMaxActivityNamesBytes) {
      return 0;
    }
    try {
      return Insert(text, hash);
    } catch (...) {
      return 0;  // no memory
    }
  }

  uint32_t Insert(std::string_view text, uint64_t hash) {
    if ((entries_.size() + 1) * 2 > buckets_.size()) Rehash();
    const size_t offset = texts_.size();
    texts_.insert(texts_.end(), text.begin(), text.end());
    texts_.push_back('\0');
    entries_.push_back(
        {static_cast<uint32_t>(offset), static_cast<uint32_t>(text.size()), hash});
    bytes_ += text.size();
    Place(count());
    return count();
  }

  void Rehash() {
    buckets_.assign(buckets_.empty() ? kFirstBuckets : buckets_.size() * 2, 0);
    for (uint32_t id = 1; id <= count(); ++id) Place(id);
  }

  void Place(uint32_t id) {
    size_t bucket = entries_[id - 1].hash & (buckets_.size() - 1);
    while (buckets_[bucket] != 0) bucket = (bucket + 1) & (buckets_.size() - 1);
    buckets_[bucket] = id;
  }

  std::vector<char> texts_;  // each ends with 0
  std::vector<Entry> entries_;
  std::vector<uint32_t> buckets_;  // ids; a power of two, at most half full
  std::array<Recent, kRecent> recent_{};
  size_t bytes_ = 0;
  uint64_t refused_ = 0;
  uint32_t too_many_ = 0;  // the number of kTooManyNames; 0: not yet needed
};

}  // namespace profd::attach
