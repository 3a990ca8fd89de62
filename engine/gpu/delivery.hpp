// Delivers a device's results to the client.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "work/work_board.hpp"

namespace hmmjit::gpu {

struct CascadeResult;
struct DomainWork;
struct FilteredChain;

// Targets that fall back to the CPU are delivered at once; otherwise the CPU would do them last.

/// Moves a chain's result into its work. Only the work holds the targets that passed, because
/// several threads deliver parts of it concurrently; the chain holds the rest.
void take_found(DomainWork& work, CascadeResult found, std::vector<Claim> claims);
/// Delivers a chain's open targets, before all others.
void deliver_open(FilteredChain& chain);
/// Delivers targets with more cells than that, without findings. Returns the number of their cells.
std::uint64_t deliver_large(DomainWork& work, std::uint64_t most_cells);
/// Delivers the targets with their results and, with the last part of a chain, its pairs. Returns
/// the number of pairs; nullopt while other parts remain.
std::optional<std::size_t> deliver(DomainWork& work);

}  // namespace hmmjit::gpu
