#include "layout/word_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "layout/node_tables.hpp"

namespace hmmjit::layout {

std::vector<std::int16_t> make_word_moves(const WordProfile& profile,
                                          std::span<const std::uint32_t> lengths) {
  std::vector<std::int16_t> out;
  out.reserve(lengths.size());
  for (const std::uint32_t length : lengths) {
    out.push_back(profile.move(static_cast<int>(length)));
  }
  return out;
}

std::string viterbi_wavefront_gap(const WordProfile& profile) {
  const int entry = *std::min_element(profile.entry.begin(), profile.entry.end());
  if (entry < hmmjit_device::kWordLeastEntry) {
    return fmt::format("an entry score of {} is below {}", entry,
                       static_cast<int>(hmmjit_device::kWordLeastEntry));
  }
  const int score = *std::max_element(profile.match.begin(), profile.match.end());
  if (score > hmmjit_device::kWordMostScore) {
    return fmt::format("a match score of {} is above {}", score,
                       static_cast<int>(hmmjit_device::kWordMostScore));
  }
  return viterbi_row_scan_gap(profile);
}

std::string viterbi_row_scan_gap(const WordProfile& profile) {
  for (const auto* row : transition_rows(profile)) {
    const int cost = *std::max_element(row->begin(), row->end());
    if (cost > 0) return fmt::format("a transition score of {} is above 0", cost);
  }
  return {};
}

}  // namespace hmmjit::layout
