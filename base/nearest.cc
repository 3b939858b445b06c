#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/text.h"

namespace profd {
namespace {

// The work grows with its square.
constexpr size_t kMaxWord = 64;
constexpr size_t kMaxEdits = 3;
// From this length on a prefix is enough.
constexpr size_t kTellingLength = 5;

// "HBM" is hbm.
bool SameLetter(char a, char b) { return ToLower(a) == ToLower(b); }

size_t Edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (SameLetter(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && SameLetter(a[i - 1], b[j - 2]) && SameLetter(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> names) {
  if (word.empty() || word.size() > kMaxWord) return {};
  std::string_view best;
  size_t best_edits = kMaxEdits + 1;
  for (std::string_view name : names) {
    if (word.size() >= kTellingLength && (name.starts_with(word) || word.starts_with(name))) {
      return name;
    }
    const size_t edits = Edits(word, name);
    if (edits < best_edits && edits * 2 <= name.size()) {
      best = name;
      best_edits = edits;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view nearest = Nearest(word, names);
  return nearest.empty() ? std::string() : "; did you mean " + std::string(nearest) + "?";
}

}  // namespace profd
