// The stable JSON of --json: field names are the contract's (profd.proto).
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace profd::v1 {
class Session;
}

namespace profd::client {

using Json = nlohmann::ordered_json;

// Every field, also when it has its default, in the contract's order. Enums are lower-case words
// ("running"), 64-bit integers are numbers, what is not finite or an unset `optional` is null.
Json ToJson(const google::protobuf::Message& message);

// Null where it is not finite.
Json NumberJson(double value);

// A session's facts side by side: its owner's, its status's, and of its spec what lists and reports show.
Json ToJson(const v1::Session& session);

// One line, or indented. Pure ASCII: nothing in it can drive a terminal.
std::string JsonText(const Json& json, bool indent);

}  // namespace profd::client
