// Delivers a device's results to the owner of the search.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "work/work_board.hpp"

namespace hmmjit::gpu {

struct CascadeResult;
struct DomainWork;
struct FilteredChain;

// Targets that fall back to the CPU are delivered at once; otherwise it would do them last.

/// Moves the result of a chain into its work. Only the work holds the targets that passed, since
/// several threads deliver parts of it at a time; the chain holds the rest.
void take_found(DomainWork& work, CascadeResult found, std::vector<Claim> claims);
/// Delivers the open targets of a chain before all others.
void deliver_open(FilteredChain& chain);
/// Delivers the targets of more cells without findings. Returns their cells.
std::uint64_t deliver_large(DomainWork& work, std::uint64_t most_cells);
/// Delivers the targets with their results and, with the last part of a chain, its pairs. Returns
/// the number of these; nullopt while other parts are left.
std::optional<std::size_t> deliver(DomainWork& work);

}  // namespace hmmjit::gpu
