#include "client/json.h"

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <map>

#include "client/session_view.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

Json EnumValue(const FieldDescriptor* field, int number) {
  std::string word = EnumWord(*field->enum_type(), number);
  return word.empty() ? "unknown_" + std::to_string(number) : word;
}

// The value of a field; its element `i` if it is repeated.
Json Value(const Message& message, const FieldDescriptor* field, int i = 0) {
  const Reflection* get = message.GetReflection();
  const auto value = [&](auto single, auto repeated) {
    return field->is_repeated() ? (get->*repeated)(message, field, i) : (get->*single)(message, field);
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return value(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return value(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return value(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return value(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberJson(value(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberJson(static_cast<double>(value(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return value(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumValue(field, value(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue));
    case FieldDescriptor::CPPTYPE_STRING:
      return value(&Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(field->is_repeated() ? get->GetRepeatedMessage(message, field, i) : get->GetMessage(message, field));
  }
  return nullptr;
}

// The contract's maps have string keys; sorted, as protobuf's own order is none.
Json Map(const Message& message, const FieldDescriptor* field) {
  std::map<std::string, Json> sorted;
  const Reflection* get = message.GetReflection();
  const FieldDescriptor* key = field->message_type()->map_key();
  const FieldDescriptor* value = field->message_type()->map_value();
  for (int i = 0; i < get->FieldSize(message, field); ++i) {
    const Message& entry = get->GetRepeatedMessage(message, field, i);
    if (key->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    sorted[entry.GetReflection()->GetString(entry, key)] = Value(entry, value);
  }
  Json json = Json::object();
  for (auto& [name, entry] : sorted) json[name] = std::move(entry);
  return json;
}

}  // namespace

Json NumberJson(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ToJson(const Message& message) {
  Json json = Json::object();
  const Reflection* get = message.GetReflection();
  const auto* type = message.GetDescriptor();
  for (int f = 0; f < type->field_count(); ++f) {
    const FieldDescriptor* field = type->field(f);
    Json& slot = json[field->name()];
    if (field->is_map()) {
      slot = Map(message, field);
    } else if (field->is_repeated()) {
      slot = Json::array();
      for (int i = 0; i < get->FieldSize(message, field); ++i) {
        slot.push_back(Value(message, field, i));
      }
    } else if (field->has_presence() && !get->HasField(message, field)) {
      slot = nullptr;
    } else {
      slot = Value(message, field);
    }
  }
  return json;
}

Json ToJson(const v1::Session& session) {
  Json json = {{"session_id", session.session_id()}};
  json.update(ToJson(session.owner()));
  json.update(ToJson(session.status()));
  const v1::SessionSpec& spec = session.spec();
  auto take = [&json](const Message& part, std::initializer_list<const char*> names) {
    const Json facts = ToJson(part);
    for (const char* name : names) json[name] = facts.at(name);
  };
  take(spec, {"label", "metadata", "priority"});
  take(spec.target(), {"job_id", "rank"});
  take(spec.schedule(), {"duration_ms", "start_at_ns", "start_step", "steps"});
  json["lease_ms"] = spec.has_lease() ? Json(spec.lease().lease_ms()) : Json(nullptr);
  json["partial"] = IsPartial(session);
  return json;
}

std::string JsonText(const Json& json, bool indent) {
  return json.dump(indent ? 2 : -1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace profd::client
