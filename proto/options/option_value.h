// One value of one option: what it may be, and how it is written when it is right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/options/options.h"

namespace profd::options {

// Fit for messages and terminals: well-formed UTF-8 without control characters, at most so many
// bytes of it; what is neither as \x escapes. Quoted puts it in quotes.
inline constexpr size_t kMaxShown = 64;
std::string Shown(std::string_view untrusted, size_t max_bytes = kMaxShown);
std::string Quoted(std::string_view untrusted);

// "sys_io_sampling_freq = \"0\": must be ...".
Problem MakeProblem(Problem::Kind kind, std::string_view key, std::string_view value,
                    std::string_view what);
// With the nearest known key, if one is near.
Problem UnknownOption(std::string_view key, std::string_view value);

// Blanks around it; of a path only spaces, as the others are forbidden in it.
std::string_view TrimValue(Type type, std::string_view text);

// Of a switch of PyTorch's profiler, as the documents write it and as Python does; "" = neither.
std::string_view OnOff(std::string_view value);

// The canonical value ("off" where that is one), or what is wrong ("must be ...; do ...") as an
// invalid argument. `warning` gets what was understood with a shrug (aicpu).
Result<std::string> Canonical(const Option& option, std::string_view value, std::string* warning);

// The key of the table that is most like this one; empty when none is.
std::string_view Nearest(std::string_view key_untrusted);

std::vector<std::string_view> SplitList(std::string_view list);

}  // namespace profd::options
