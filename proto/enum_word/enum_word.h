// The contract's enum values as words: "running" is STATE_RUNNING of Session.State. The prefix is the enum's name.
#pragma once

#include <google/protobuf/generated_enum_reflection.h>

#include <string>
#include <string_view>

namespace profd {

// Empty when the number is none of the enum's.
std::string EnumWord(const google::protobuf::EnumDescriptor& type, int number);
template <class E>
std::string EnumWord(E value) {
  return EnumWord(*google::protobuf::GetEnumDescriptor<E>(), static_cast<int>(value));
}

// Case and spaces instead of '_' do not matter; 0, which is ..._UNSPECIFIED, for a word that is none of them.
int EnumNumber(const google::protobuf::EnumDescriptor& type, std::string_view word);
template <class E>
E EnumOf(std::string_view word) {
  return static_cast<E>(EnumNumber(*google::protobuf::GetEnumDescriptor<E>(), word));
}

}  // namespace profd
