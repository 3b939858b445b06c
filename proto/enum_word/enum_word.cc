#include "proto/enum_word/enum_word.h"

#include <google/protobuf/descriptor.h>

#include "base/text.h"

namespace profd {
namespace {

// "FoundBy" -> "FOUND_BY_"
std::string PrefixOf(const google::protobuf::EnumDescriptor& type) {
  std::string prefix;
  for (char c : type.name()) {
    if (!prefix.empty() && c >= 'A' && c <= 'Z') prefix += '_';
    prefix += ToUpper(c);
  }
  return prefix + '_';
}

}  // namespace

std::string EnumWord(const google::protobuf::EnumDescriptor& type, int number) {
  const google::protobuf::EnumValueDescriptor* value = type.FindValueByNumber(number);
  if (value == nullptr) return {};
  const std::string prefix = PrefixOf(type);
  return LowerCase(value->name().starts_with(prefix) ? value->name().substr(prefix.size()) : value->name());
}

int EnumNumber(const google::protobuf::EnumDescriptor& type, std::string_view word) {
  std::string name = PrefixOf(type);
  for (char c : word) name += c == ' ' ? '_' : ToUpper(c);
  const google::protobuf::EnumValueDescriptor* value = type.FindValueByName(name);
  return value == nullptr ? 0 : value->number();
}

}  // namespace profd
