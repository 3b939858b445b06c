// Reading one JSON object of the attach protocol: types and sizes are checked member by member, the
// first thing that is wrong is kept and makes everything after it a no-op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace profd::attach {

class PacketReader {
 public:
  // `object` must be a JSON object that outlives the reader; `where` begins every complaint.
  PacketReader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  void Text(const char* key, size_t max_bytes, std::string* out);
  void Flag(const char* key, bool* out);
  void Real(const char* key, double* out);
  template <class Int>
  void Number(const char* key, Int least, Int most, Int* out);
  template <class Int>
  void Number(const char* key, Int least, Int most, std::optional<Int>* out) {
    if (Find(key) == nullptr) return;
    Number(key, least, most, &out->emplace());
  }
  void Numbers(const char* key, size_t max_items, std::vector<int>* out);
  void Texts(const char* key, size_t max_items, size_t max_bytes, std::vector<std::string>* out);
  void TextMap(const char* key, size_t max_items, size_t max_name_bytes, size_t max_value_bytes,
               std::map<std::string, std::string>* out);
  // What is read next must be there.
  PacketReader& Must() {
    must_ = true;
    return *this;
  }
  // The object or array of that name; null when there is none.
  const nlohmann::json* Object(const char* key);
  const nlohmann::json* Array(const char* key, size_t max_items);

  void Fail(const char* key, const std::string& what);
  void Adopt(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* key);

  const nlohmann::json& object_;
  std::string where_;
  Status status_;
  bool must_ = false;
};

// JSON has one kind of integer; that `value` fits is asked with its sign.
template <class Int>
bool IntegerWithin(const nlohmann::json& value, Int least, Int most, Int* out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned()) {
    const auto number = *value.get_ptr<const uint64_t*>();
    if (most < 0 || number > static_cast<uint64_t>(most)) return false;
    if (least > 0 && number < static_cast<uint64_t>(least)) return false;
    *out = static_cast<Int>(number);
    return true;
  }
  const auto number = *value.get_ptr<const int64_t*>();
  if (number < 0 && (least >= 0 || number < static_cast<int64_t>(least))) return false;
  if (number >= 0 && (static_cast<uint64_t>(number) > static_cast<uint64_t>(most))) return false;
  if (least > 0 && number < static_cast<int64_t>(least)) return false;
  *out = static_cast<Int>(number);
  return true;
}

template <class Int>
void PacketReader::Number(const char* key, Int least, Int most, Int* out) {
  const nlohmann::json* value = Find(key);
  if (value != nullptr && !IntegerWithin(*value, least, most, out)) {
    Fail(key, "must be an integer in " + std::to_string(least) + ".." + std::to_string(most));
  }
}

}  // namespace profd::attach
