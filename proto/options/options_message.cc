#include "proto/options/options_message.h"

#include "base/text.h"
#include "base/utf8.h"
#include "profd/v1/options.pb.h"
#include "proto/options/option_value.h"

namespace profd::options {
namespace {

using google::protobuf::FieldDescriptor;

const FieldDescriptor* FieldOf(const Option& option) {
  return v1::ProfilingOptions::descriptor()->FindFieldByNumber(option.field);
}

}  // namespace

std::vector<OptionInput> FromMessage(const v1::ProfilingOptions& message) {
  std::vector<OptionInput> given;
  const google::protobuf::Reflection* reflection = message.GetReflection();
  for (const Option& option : Table()) {
    const FieldDescriptor* field = FieldOf(option);
    if (field == nullptr || !reflection->HasField(message, field)) continue;
    std::string value = field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
                            ? std::to_string(reflection->GetUInt32(message, field))
                            : reflection->GetString(message, field);
    given.push_back(
        {.key = std::string(option.key), .value = std::move(value), .via = OptionSyntax::kField});
  }
  return given;
}

bool SetField(std::string_view key, std::string_view value, v1::ProfilingOptions* message) {
  const Option* option = Find(key);
  const FieldDescriptor* field = option == nullptr ? nullptr : FieldOf(*option);
  if (field == nullptr) return false;
  const google::protobuf::Reflection* reflection = message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    uint32_t number = 0;
    if (!ParseNumber(TrimValue(option->type, value), &number)) return false;
    reflection->SetUInt32(message, field, number);
    return true;
  }
  // What the wire does not carry is not a text.
  if (!IsUtf8(value)) return false;
  reflection->SetString(message, field, std::string(value));
  return true;
}

}  // namespace profd::options
