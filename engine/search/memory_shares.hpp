// How a search divides its memory bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "core/error.hpp"
#include "search/options.hpp"

namespace hmmjit::search_run {

/// In bytes.
struct MemoryShares {
  std::uint64_t targets, models, results;
  /// Targets read ahead of their blocks.
  std::uint64_t ahead;
  /// Copies of targets in device layout, on their way to it.
  std::uint64_t device;
  /// Most residues of a block of several targets, and of one target.
  std::uint64_t block, one_target;
  /// The largest matrix of each thread, and of a thread that scores a target alone.
  std::size_t matrix_shared, matrix_alone;
  /// Residues of the targets that a thread scores together.
  std::uint64_t batch_rows;
};

/// Divides `options.memory` for a search with `threads` threads; `device`: a device takes part;
/// `available`: bytes of the machine.
MemoryShares divide_memory(const SearchOptions& options, int threads, bool device,
                           std::uint64_t available);

/// Whether the domain stage has thrown this because memory ran out: a matrix exceeded its bound, or
/// an allocation failed.
bool is_memory_error(const std::exception& error);

}  // namespace hmmjit::search_run

namespace hmmjit {

/// Bytes that hits kept for output by target may take in addition to a search with these options: a
/// twentieth of the memory bound. Fails with kResources as grant_memory does.
Result<std::uint64_t> memory_by_target(const SearchOptions& options);

}  // namespace hmmjit
