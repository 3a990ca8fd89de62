#include "layout/word_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hmmjit::layout {
namespace {

constexpr std::int16_t kImpossible = -32768;

std::array<const std::vector<std::int16_t>*, hmmjit_device::kWordTransitions> transition_rows(
    const WordProfile& profile) {
  std::array<const std::vector<std::int16_t>*, hmmjit_device::kWordTransitions> rows{};
  rows[hmmjit_device::kWordEntry] = &profile.entry;
  rows[hmmjit_device::kWordMmIn] = &profile.mm_in;
  rows[hmmjit_device::kWordImIn] = &profile.im_in;
  rows[hmmjit_device::kWordDmIn] = &profile.dm_in;
  rows[hmmjit_device::kWordMdOut] = &profile.md_out;
  rows[hmmjit_device::kWordMiOut] = &profile.mi_out;
  rows[hmmjit_device::kWordIiOut] = &profile.ii_out;
  rows[hmmjit_device::kWordDdOut] = &profile.dd_out;
  return rows;
}

}  // namespace

WordTables make_word_tables(const WordProfile& profile) {
  WordTables out;
  const auto M = static_cast<std::size_t>(profile.M);
  out.stride = static_cast<std::uint32_t>((M + 15) / 16 * 16);
  out.emissions.assign(static_cast<std::size_t>(hmmjit_device::kSymbolRows) * out.stride,
                       kImpossible);
  out.transitions.assign(static_cast<std::size_t>(hmmjit_device::kWordTransitions) * out.stride,
                         kImpossible);
  for (int x = 0; x < profile.Kp; ++x) {
    std::copy_n(profile.match.begin() + static_cast<std::ptrdiff_t>(x) * profile.M, M,
                out.emissions.begin() + static_cast<std::ptrdiff_t>(x) * out.stride);
  }
  std::size_t at = 0;
  for (const auto* row : transition_rows(profile)) {
    std::copy_n(row->begin(), M, out.transitions.begin() + static_cast<std::ptrdiff_t>(at));
    at += out.stride;
  }
  return out;
}

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
