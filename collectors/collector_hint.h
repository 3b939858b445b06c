#pragma once

#include <string>
#include <string_view>

namespace profd {

// What follows "no such collector": "; did you mean hbm? (see `profctl collectors`)".
std::string CollectorHint(std::string_view name_untrusted);

}  // namespace profd
