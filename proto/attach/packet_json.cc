#include "proto/attach/packet_json.h"

#include <utility>

namespace profd::attach {

using nlohmann::json;

void PacketReader::Fail(const char* key, const std::string& what) {
  if (status_.ok()) status_ = InvalidArgument(where_ + ": " + key + " " + what);
}

const json* PacketReader::Find(const char* key) {
  const bool must = std::exchange(must_, false);
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(key);
  if (found != object_.end()) return &*found;
  if (must) Fail(key, "is missing");
  return nullptr;
}

void PacketReader::Text(const char* key, size_t max_bytes, std::string* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  const auto* text = value->get_ptr<const json::string_t*>();
  if (text == nullptr) return Fail(key, "must be a string");
  if (text->size() > max_bytes) {
    return Fail(key, "has more than " + std::to_string(max_bytes) + " bytes");
  }
  *out = *text;
}

void PacketReader::Flag(const char* key, bool* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  const auto* flag = value->get_ptr<const json::boolean_t*>();
  if (flag == nullptr) return Fail(key, "must be true or false");
  *out = *flag;
}

void PacketReader::Real(const char* key, double* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  if (const auto* number = value->get_ptr<const double*>()) {
    *out = *number;
  } else if (const auto* whole = value->get_ptr<const int64_t*>()) {
    // Also for unsigned ones, which nlohmann keeps in a kind of their own.
    *out = value->is_number_unsigned() ? static_cast<double>(*value->get_ptr<const uint64_t*>())
                                       : static_cast<double>(*whole);
  } else {
    Fail(key, "must be a number");
  }
}

const json* PacketReader::Object(const char* key) {
  const json* value = Find(key);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return value;
  Fail(key, "must be an object");
  return nullptr;
}

const json* PacketReader::Array(const char* key, size_t max_items) {
  const json* value = Find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    Fail(key, "must be a list");
    return nullptr;
  }
  if (value->size() > max_items) {
    Fail(key, "has more than " + std::to_string(max_items) + " items");
    return nullptr;
  }
  return value;
}

void PacketReader::Numbers(const char* key, size_t max_items, std::vector<int>* out) {
  const json* list = Array(key, max_items);
  if (list == nullptr) return;
  for (const json& item : *list) {
    int number = 0;
    if (!IntegerWithin(item, 0, std::numeric_limits<int>::max(), &number)) {
      return Fail(key, "must be a list of numbers from 0");
    }
    out->push_back(number);
  }
}

void PacketReader::Texts(const char* key, size_t max_items, size_t max_bytes,
                         std::vector<std::string>* out) {
  const json* list = Array(key, max_items);
  if (list == nullptr) return;
  for (const json& item : *list) {
    const auto* text = item.get_ptr<const json::string_t*>();
    if (text == nullptr || text->size() > max_bytes) {
      return Fail(key,
                  "must be a list of strings of at most " + std::to_string(max_bytes) + " bytes");
    }
    out->push_back(*text);
  }
}

void PacketReader::TextMap(const char* key, size_t max_items, size_t max_name_bytes,
                           size_t max_value_bytes, std::map<std::string, std::string>* out) {
  const json* object = Object(key);
  if (object == nullptr) return;
  if (object->size() > max_items) {
    return Fail(key, "has more than " + std::to_string(max_items) + " members");
  }
  for (const auto& [name, value] : object->items()) {
    const auto* text = value.get_ptr<const json::string_t*>();
    if (name.empty() || name.size() > max_name_bytes || text == nullptr ||
        text->size() > max_value_bytes) {
      return Fail(key, "must have names of 1.." + std::to_string(max_name_bytes) +
                           " bytes and strings of at most " + std::to_string(max_value_bytes));
    }
    out->emplace(name, *text);
  }
}

}  // namespace profd::attach
