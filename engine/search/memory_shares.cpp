#include "search/memory_shares.hpp"

#include <algorithm>
#include <new>

#include "core/memory.hpp"

namespace hmmjit::search_run {

MemoryShares divide_memory(const SearchOptions& options, int threads, bool device,
                           std::uint64_t available) {
  constexpr std::uint64_t kThreadMatrixBytes = std::uint64_t{5}
                                               << 19;              // of kThreadMemory, one of two
  constexpr std::uint64_t kSmallestRest = std::uint64_t{4} << 10;  // no share is nothing
  const auto count = static_cast<std::uint64_t>(threads);
  const std::uint64_t bound = options.memory;
  const std::uint64_t fixed = kProgramMemory + count * kThreadMemory;
  // A bound below the minimum of every search cannot be kept; it still makes everything else small.
  const std::uint64_t rest = std::max({bound - std::min(bound, fixed), bound / 4, kSmallestRest});
  const std::uint64_t targets = rest / 20 * 6, for_device = device ? targets / 4 : 0;
  MemoryShares shares{.targets = targets - for_device,
                      .models = rest / 4,
                      .results = rest / 10,
                      .ahead = rest / 20,
                      .device = for_device,
                      .block = std::max<std::uint64_t>((targets - for_device) / 8, 4096),
                      // The rest of the bound can be one target. Every bound has room for 16 Mi.
                      .one_target = std::max<std::uint64_t>(bound / 2, std::uint64_t{1} << 24),
                      .matrix_shared = 0,
                      .matrix_alone = available / 10 * 3,
                      .batch_rows = 0};
  // Alignments need two matrices. One that exceeds a thread's share must not stop the search: it is
  // allocated while no other thread has such a matrix, and freed afterwards.
  shares.matrix_shared = std::min<std::uint64_t>(kThreadMatrixBytes + rest / 10 * 3 / (2 * count),
                                                 available / 10 * 3 / (2 * count));
  if (options.domain.max_matrix_bytes > 0) {
    shares.matrix_alone = options.domain.max_matrix_bytes;
    shares.matrix_shared = shares.matrix_alone / (2 * count);
  }
  shares.matrix_shared = std::max<std::size_t>(1, shares.matrix_shared);
  // Special states of Forward and Backward take some 100 bytes a residue.
  shares.batch_rows = std::clamp<std::uint64_t>(shares.matrix_shared / 256, 1, 1 << 18);
  return shares;
}

bool is_memory_error(const std::exception& error) {
  return dynamic_cast<const domain::MatrixTooLarge*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
}

}  // namespace hmmjit::search_run

namespace hmmjit {

Result<std::uint64_t> memory_by_target(const SearchOptions& options) {
  const int threads = std::max(1, options.threads);
  HMMJIT_ASSIGN(const MemoryGrant grant, grant_memory(options.memory, threads));
  const std::uint64_t program =
      kProgramMemory + static_cast<std::uint64_t>(threads) * kThreadMemory;
  constexpr std::uint64_t kLeast = std::uint64_t{256} << 10;
  return std::max((grant.bound - std::min(grant.bound, program)) / 20, kLeast);
}

}  // namespace hmmjit
