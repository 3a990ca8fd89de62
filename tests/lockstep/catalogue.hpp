// Catalogue data of kernels in lockstep execution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "lockstep/registry.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit_lockstep {

/// Model positions per launch, threads per block and dynamic shared bytes, from the catalogue entry
/// of the instance's kernel, as in a search. Too few positions give wrong scores, and launch()
/// fails if a kernel touches more shared memory than it was given.
int covered_by_entry(const KernelInstance& instance);
unsigned threads_by_entry(const KernelInstance& instance);
std::size_t shared_bytes_by_entry(const KernelInstance& instance);
/// Bytes of scratch per warp and per residue.
struct ScratchNeeds {
  std::size_t per_warp, per_residue;
};
ScratchNeeds scratch_by_entry(const KernelInstance& instance);
bool speculates_by_entry(const KernelInstance& instance);
/// Launches for a model of that length.
std::uint32_t tiles_by_entry(const KernelInstance& instance, int model_length);
/// Positions per tile; 0: the kernel takes a model in one launch.
int tile_length_by_entry(const KernelInstance& instance);

/// Variants of these stages without an instance in this program.
std::vector<std::string> variants_without_instance(
    std::initializer_list<hmmjit::plan::Stage> stages);

}  // namespace hmmjit_lockstep
