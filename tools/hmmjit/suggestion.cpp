#include "hmmjit/suggestion.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hmmjit::tools {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  // Three rows of the matrix: of the letter before the last, of the last, and of this one.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view typed, std::span<const std::string> names) {
  std::string best;
  std::size_t least = typed.size() > 5 ? 3 : 2;
  for (const std::string& name : names) {
    const std::size_t d = distance(typed, name);
    if (d < least && d < name.size()) least = d, best = name;
  }
  return best;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> names,
                         std::string otherwise) {
  const std::string name = nearest_name(typed, names);
  return name.empty() ? otherwise : "did you mean " + name + "?";
}

}  // namespace hmmjit::tools
