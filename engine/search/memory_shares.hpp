// What the parts of a search may hold of its memory bound.
#pragma once

#include <cstddef>
#include <cstdint>

#include "search/options.hpp"

namespace hmmjit::search_run {

/// In bytes.
struct MemoryShares {
  std::uint64_t bound, targets, models, results;
  /// The largest matrix of each thread, and of a thread that scores a target while no other one
  /// has such a matrix.
  std::size_t matrix_shared, matrix_alone;
};

/// Shares of `options.memory` for a search with so many threads.
MemoryShares divide_memory(const SearchOptions& options, int threads);

}  // namespace hmmjit::search_run
