// A session for people.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "client/context.h"
#include "client/render.h"
#include "proto/session_state.h"

namespace profd::client {

// Exit code for a session that ended: kExitPartial for failed and interrupted ones.
int ExitForEnded(const v1::Session& session);

// Something that was requested is not collected, or in part only; `profctl show` shows what.
bool IsPartial(const v1::Session& session);
Cell StateCell(v1::Session::State state);
// "done, partial"
Cell StateCell(const v1::Session& session);

// What each collector answered; equal answers over devices in one row. `with_counts` adds what was
// recorded and lost.
void PrintOutcomes(std::ostream& out, const v1::Session& session, bool with_counts, bool color);

// On stderr, once a session has ended: what makes it partial. `named`: with its id, where several are reported.
void PrintNotCollected(const Context& context, const v1::Session& session, bool named = false);

// How long it ran, or has been running by the node's clock, which shows `now_ns`.
std::string RanFor(const v1::Session& session, int64_t now_ns);

// "session 8f3a  running  (why)"
void PrintSessionHead(std::ostream& out, const v1::Session& session, const Cell& state, bool color);
void PrintSession(const Context& context, std::ostream& out, bool color,
                  const v1::Session& session);

// The option's value; if it was not requested, with the note on where it comes from.
std::string StorageLimitText(std::string_view value, std::string_view asked, std::string_view note);
// "3 dropped"; where only bytes are known to be lost: "135.3 KiB dropped".
std::string DroppedText(const v1::Session& session);
// What was removed from a dump again, and why. Empty if nothing was.
std::string RemovedText(uint64_t records, uint64_t for_space, std::string_view limit);
std::string RemovedText(const v1::Session& session);

// What the NPUs used: a row for each; nothing where nothing was read.
void PrintStatistics(std::ostream& out, const v1::Session& session, bool color);

// "1 of 2 ranks attached" while some are missing, else empty.
std::string MissingRanks(const v1::Session& session);

// "of 2 processes, for at most 93 s" while it ends and collects files, else empty.
std::string CollectingFiles(const v1::Session& session);

// The session's warnings, each on a line; `named` as above.
void PrintWarnings(std::ostream& out, const v1::Session& session, bool color, bool named = false);

}  // namespace profd::client
