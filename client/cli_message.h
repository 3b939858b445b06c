// What a daemon reports about the fields of a request, in the words the request was written in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/commands/dump.h"
#include "client/commands/start.h"

namespace profd::client {

// The names refer to `options`, which must outlive them.
// "start_at_ns = 1577836800000000000: 2517d 03h ago by this node's clock" becomes
// "--at 2020-01-01T00:00:00Z: 2517d 03h ago by this node's clock". Problems of fields that profctl has no flag
// for, or that the caller did not write, keep the field's name.
FieldNames NamesOf(const StartOptions& options);
// Of one field of another request.
FieldNames NameOf(std::string_view field, std::string_view flag, const std::optional<std::string>& value);
// Those of `profctl dump`.
FieldNames NamesOf(const DumpOptions& options);

// With these words as its message.
Status ToCliMessage(const Status& status, const FieldNames& names);
// The problems in these words, one per line, and the commands of profctl that help with them ("see `profctl jobs`").
std::string DescribeForCli(std::span<const Problem> problems, const FieldNames& names);

// Of kNotFound: with "; see `command`" behind its message, which lists what there is. Others are unchanged.
Status SeeIfNotFound(const Status& status, std::string_view command);
// Of kNotFound: with "; `profctl fetch ID` copies it here ..." behind its message, if one of `paths` is not there and may
// be the id of a session or the name of a dump. Others are unchanged.
Status WithFetchHint(const Status& status, std::span<const std::string> paths);
inline constexpr std::string_view kListSessions = "profctl list";
inline constexpr std::string_view kListDumps = "profctl list --dumps";

}  // namespace profd::client
