#pragma once

#include <string>
#include <string_view>

namespace profd {

// What follows "no such collector": "; did you mean hbm?", or nothing.
std::string CollectorHint(std::string_view name_untrusted);

}  // namespace profd
