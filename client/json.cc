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

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json EnumValue(const FieldDescriptor* field, int number) {
  std::string word = EnumWord(*field->enum_type(), number);
  return word.empty() ? "unknown_" + std::to_string(number) : word;
}

Json Single(const Message& message, const FieldDescriptor* field) {
  const Reflection* get = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return get->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get->GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get->GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Number(get->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Number(static_cast<double>(get->GetFloat(message, field)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return get->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumValue(field, get->GetEnumValue(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return get->GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(get->GetMessage(message, field));
  }
  return nullptr;
}

Json Element(const Message& message, const FieldDescriptor* field, int i) {
  const Reflection* get = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get->GetRepeatedInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return get->GetRepeatedInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get->GetRepeatedUInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get->GetRepeatedUInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Number(get->GetRepeatedDouble(message, field, i));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Number(static_cast<double>(get->GetRepeatedFloat(message, field, i)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return get->GetRepeatedBool(message, field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumValue(field, get->GetRepeatedEnumValue(message, field, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return get->GetRepeatedString(message, field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(get->GetRepeatedMessage(message, field, i));
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
    sorted[entry.GetReflection()->GetString(entry, key)] = Single(entry, value);
  }
  Json json = Json::object();
  for (auto& [name, entry] : sorted) json[name] = std::move(entry);
  return json;
}

}  // namespace

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
        slot.push_back(Element(message, field, i));
      }
    } else if (field->has_presence() && !get->HasField(message, field)) {
      slot = nullptr;
    } else {
      slot = Single(message, field);
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
