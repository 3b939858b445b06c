// Structs as JSON objects. One table of keys and members per struct serves writing and reading:
//
//   template <>
//   inline constexpr auto kJsonFields<Loss> = std::tuple(JsonField("reason", &Loss::reason), JsonField("records", &Loss::records));
//
// A member is a number, a bool, a text, a struct with a table, an enum with ToString(value) and
// FromString(text, &value), a list of these, a map of strings, or an optional of these (null when it is not set).
// A struct whose members need a correction after they were read has AfterReading(Struct*).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace profd {

using OrderedJson = nlohmann::ordered_json;

template <class T>
inline constexpr std::tuple<> kJsonFields;

template <class T>
concept HasJsonFields = std::tuple_size_v<std::remove_const_t<decltype(kJsonFields<T>)>> != 0;

// kWhenSet leaves out what has its default: zero, empty, not set.
enum class JsonWritten : uint8_t { kAlways, kWhenSet };

template <class T>
bool IsUnset(const T& value) {
  if constexpr (HasJsonFields<T>) return false;
  else if constexpr (requires { value.empty(); }) return value.empty();
  else return value == T();
}

// Takes untrusted JSON into members. Nothing throws; the key of the first wrong type, range or length is kept.
class JsonReader {
 public:
  static constexpr size_t kMaxListItems = 400'000;

  // Takes json[key] into *out if it is there and not null.
  template <class T>
  void Get(const OrderedJson& json, const char* key, T* out) {
    if (const OrderedJson* const value = Find(json, key); value != nullptr && !Take(*value, out)) Fail(key);
  }
  // json[key]; nullptr if it is missing or null.
  static const OrderedJson* Find(const OrderedJson& json, const char* key) {
    const auto it = json.find(key);
    return it == json.end() || it->is_null() ? nullptr : &*it;
  }
  template <class T, class Fields>
  void ReadFields(const OrderedJson& json, const Fields& fields, T* out) {
    std::apply([&](const auto&... field) { (field.Read(*this, json, out), ...); }, fields);
  }
  void Fail(const char* key) {
    if (error_.empty()) error_ = key;
  }
  const std::string& error() const { return error_; }

 private:
  bool Take(const OrderedJson& json, std::string* out) {
    if (!json.is_string()) return false;
    *out = json.get_ref<const std::string&>();
    return true;
  }
  bool Take(const OrderedJson& json, bool* out) {
    if (!json.is_boolean()) return false;
    *out = json.get<bool>();
    return true;
  }
  bool Take(const OrderedJson& json, double* out) {
    if (!json.is_number()) return false;
    *out = json.get<double>();
    return true;
  }
  template <class T>
  requires std::is_integral_v<T>
  bool Take(const OrderedJson& json, T* out) {
    const auto in_range = [out](auto value) {
      if (!std::in_range<T>(value)) return false;
      *out = static_cast<T>(value);
      return true;
    };
    if (json.is_number_unsigned()) return in_range(json.get<uint64_t>());
    return json.is_number_integer() && in_range(json.get<int64_t>());
  }
  template <class T>
  requires std::is_enum_v<T>
  bool Take(const OrderedJson& json, T* out) {
    return json.is_string() && FromString(json.get_ref<const std::string&>(), out);
  }
  template <class T>
  bool Take(const OrderedJson& json, std::optional<T>* out) {
    return Take(json, &out->emplace());
  }
  template <class T>
  bool Take(const OrderedJson& json, std::vector<T>* out) {
    if (!json.is_array() || json.size() > kMaxListItems) return false;
    out->reserve(json.size());
    return std::ranges::all_of(json, [&](const OrderedJson& item) { return Take(item, &out->emplace_back()); });
  }
  bool Take(const OrderedJson& json, std::map<std::string, std::string>* out) {
    if (!json.is_object() || json.size() > kMaxListItems) return false;
    for (const auto& [key, value] : json.items()) {
      if (!Take(value, &(*out)[key])) return false;
    }
    return true;
  }
  template <HasJsonFields T>
  bool Take(const OrderedJson& json, T* out) {
    if (!json.is_object()) return false;
    ReadFields(json, kJsonFields<T>, out);
    if constexpr (requires { AfterReading(out); }) AfterReading(out);
    return true;
  }

  std::string error_;
};

template <class T>
OrderedJson ToJson(const T& value);

template <class T>
OrderedJson ToJson(const std::vector<T>& list) {
  OrderedJson json = OrderedJson::array();
  for (const T& item : list) json.push_back(ToJson(item));
  return json;
}

template <class T>
OrderedJson ToJson(const std::optional<T>& value) {
  return value ? ToJson(*value) : OrderedJson(nullptr);
}

template <class T, class Fields>
void WriteFields(const T& object, const Fields& fields, OrderedJson* json) {
  std::apply([&](const auto&... field) { (field.Write(object, json), ...); }, fields);
}

template <class T>
OrderedJson ToJson(const T& value) {
  if constexpr (HasJsonFields<T>) {
    OrderedJson json = OrderedJson::object();
    WriteFields(value, kJsonFields<T>, &json);
    return json;
  } else if constexpr (std::is_enum_v<T>) {
    return ToString(value);
  } else {
    return value;
  }
}

template <class Member>
class JsonField {
 public:
  constexpr JsonField(const char* key, Member member, JsonWritten written = JsonWritten::kAlways) : key_(key), member_(member), written_(written) {}

  template <class T>
  void Write(const T& object, OrderedJson* json) const {
    if (!Skips(object)) (*json)[key_] = ToJson(std::invoke(member_, object));
  }
  template <class T>
  void Read(JsonReader& reader, const OrderedJson& json, T* object) const {
    reader.Get(json, key_, &std::invoke(member_, *object));
  }
  template <class T>
  bool Skips(const T& object) const {
    return written_ == JsonWritten::kWhenSet && IsUnset(std::invoke(member_, object));
  }

 private:
  const char* key_;
  Member member_;
  JsonWritten written_;
};

// A check sum: eight digits of hex, where it is set.
template <class Member>
class JsonHexField {
 public:
  constexpr JsonHexField(const char* key, Member member) : key_(key), member_(member) {}

  template <class T>
  void Write(const T& object, OrderedJson* json) const {
    const auto& sum = std::invoke(member_, object);
    if (!IsUnset(sum)) (*json)[key_] = fmt::format("{:08x}", std::optional<uint32_t>(sum).value());
  }
  template <class T>
  void Read(JsonReader& reader, const OrderedJson& json, T* object) const {
    std::optional<std::string> text;
    reader.Get(json, key_, &text);
    if (!text) return;
    uint32_t value = 0;
    const char* const end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value, 16);
    if (text->size() != 8 || error != std::errc() || stop != end) return reader.Fail(key_);
    std::invoke(member_, *object) = value;
  }

 private:
  const char* key_;
  Member member_;
};

// Members of the same struct that stand in an object of their own. kWhenSet: left out when the first has its default.
template <class... Fields>
class JsonGroup {
 public:
  constexpr JsonGroup(const char* key, JsonWritten written, Fields... fields) : key_(key), written_(written), fields_(fields...) {}

  template <class T>
  void Write(const T& object, OrderedJson* json) const {
    OrderedJson group = OrderedJson::object();
    WriteFields(object, fields_, &group);
    if (written_ == JsonWritten::kWhenSet && std::get<0>(fields_).Skips(object)) return;
    (*json)[key_] = std::move(group);
  }
  template <class T>
  void Read(JsonReader& reader, const OrderedJson& json, T* object) const {
    const OrderedJson* const group = JsonReader::Find(json, key_);
    if (group == nullptr) return;
    if (!group->is_object()) return reader.Fail(key_);
    reader.ReadFields(*group, fields_, object);
  }

 private:
  const char* key_;
  JsonWritten written_;
  std::tuple<Fields...> fields_;
};

// The members of a member, in the same object.
template <class Member>
class JsonInline {
 public:
  constexpr explicit JsonInline(Member member) : member_(member) {}

  template <class T>
  void Write(const T& object, OrderedJson* json) const {
    const auto& inner = std::invoke(member_, object);
    WriteFields(inner, kJsonFields<std::remove_cvref_t<decltype(inner)>>, json);
  }
  template <class T>
  void Read(JsonReader& reader, const OrderedJson& json, T* object) const {
    auto& inner = std::invoke(member_, *object);
    reader.ReadFields(json, kJsonFields<std::remove_cvref_t<decltype(inner)>>, &inner);
  }

 private:
  Member member_;
};

}  // namespace profd
