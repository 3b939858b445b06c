#include "proto/enum_word/enum_word.h"

#include <google/protobuf/descriptor.h>

#include <cctype>

namespace profd {
namespace {

char Upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }
char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// "FoundBy" -> "FOUND_BY_"
std::string PrefixOf(const google::protobuf::EnumDescriptor& type) {
  std::string prefix;
  for (char c : type.name()) {
    if (!prefix.empty() && c >= 'A' && c <= 'Z') prefix += '_';
    prefix += Upper(c);
  }
  return prefix + '_';
}

}  // namespace

std::string EnumWord(const google::protobuf::EnumDescriptor& type, int number) {
  const google::protobuf::EnumValueDescriptor* value = type.FindValueByNumber(number);
  if (value == nullptr) return {};
  const std::string prefix = PrefixOf(type);
  std::string word = value->name().starts_with(prefix) ? value->name().substr(prefix.size()) : value->name();
  for (char& c : word) c = Lower(c);
  return word;
}

int EnumNumber(const google::protobuf::EnumDescriptor& type, std::string_view word) {
  std::string name = PrefixOf(type);
  for (char c : word) name += c == ' ' ? '_' : Upper(c);
  const google::protobuf::EnumValueDescriptor* value = type.FindValueByName(name);
  return value == nullptr ? 0 : value->number();
}

}  // namespace profd
