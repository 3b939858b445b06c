#include "proto/options/options_message.h"

#include "base/text.h"
#include "base/utf8.h"
#include "profd/v1/options.pb.h"
#include "profd/v1/profd.pb.h"
#include "proto/enum_word/enum_word.h"
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

void ToWire(const Effective& effective, v1::EffectiveOption* out) {
  out->set_key(effective.key);
  out->set_value(effective.value);
  out->set_asked(effective.asked);
  out->set_note(effective.note);
}

void ToWire(const Option& option, const NodeSupport* node, v1::OptionInfo* out) {
  out->set_key(std::string(option.key));
  out->set_type(EnumOf<v1::OptionInfo::Type>(TypeName(option.type)));
  out->set_range(RangeText(option));
  out->set_default_value(DefaultText(option));
  out->set_unit(std::string(option.unit));
  out->set_effect(std::string(option.effect));
  out->set_conflicts(std::string(option.conflicts));
  out->set_source(EnumOf<v1::OptionInfo::Source>(OriginName(option.origin)));
  if (node != nullptr) out->set_reason(WhyUnsupported(option, *node));
  out->set_supported(out->reason().empty());
}

}  // namespace profd::options
