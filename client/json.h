// The stable JSON of --json: field names are the contract's (profd.proto).
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace profd::client {

using Json = nlohmann::ordered_json;

// Every field, also when it has its default, in the contract's order. Enums are lower-case words
// ("running"), 64-bit integers are numbers, what is not finite or an unset `optional` is null.
Json ToJson(const google::protobuf::Message& message);

// One line, or indented. Pure ASCII: nothing in it can drive a terminal.
std::string JsonText(const Json& json, bool indent);

// "STATE_UNSPECIFIED" -> "unspecified", "RUNNING" -> "running"
std::string EnumWord(std::string_view name);

}  // namespace profd::client
