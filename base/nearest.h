// What a mistyped name was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace profd {

// The name that is most like `word_untrusted`: the one it is a part of, else the one that is at most
// three edits away (letters inserted, left out, replaced, or two swapped; capitals are the same
// letters) and differs in at most half of its letters. Empty when there is none.
std::string_view Nearest(std::string_view word_untrusted, std::span<const std::string_view> names);

// "; did you mean hbm?", or nothing.
std::string DidYouMean(std::string_view word_untrusted, std::span<const std::string_view> names);

}  // namespace profd
