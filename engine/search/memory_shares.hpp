// What the parts of a search may hold of its memory bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "core/error.hpp"
#include "search/options.hpp"

namespace hmmjit::search_run {

/// In bytes.
struct MemoryShares {
  std::uint64_t bound, targets, models, results;
  /// The largest matrix of each thread, and of a thread that scores a target while no other one
  /// has such a matrix.
  std::size_t matrix_shared, matrix_alone;
};

/// Shares of `options.memory` for a search with so many threads, where so much is available.
MemoryShares divide_memory(const SearchOptions& options, int threads, std::uint64_t available);

/// Whether the domain stage has thrown this for want of memory: a matrix beyond its bound, or an
/// allocation that failed.
bool is_memory_error(const std::exception& error);

}  // namespace hmmjit::search_run

namespace hmmjit {

/// Bytes that what is kept of hits for output by target may hold beside a search with these
/// options: a twentieth of what its bound leaves. Fails with kResources as grant_memory.
Result<std::uint64_t> memory_by_target(const SearchOptions& options);

}  // namespace hmmjit
