// What the catalogue says of kernels in lockstep execution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "lockstep/registry.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit_lockstep {

/// Model positions that one launch covers, threads of a block and dynamic shared bytes, by the
/// catalogue entry of the instance's kernel: a search launches with nothing else. Rows of too few
/// positions give wrong scores, and launch() fails where a kernel touches more than the shared
/// memory it was given.
int covered_by_entry(const KernelInstance& instance);
unsigned threads_by_entry(const KernelInstance& instance);
std::size_t shared_bytes_by_entry(const KernelInstance& instance);
/// Bytes of scratch for each warp and each residue.
struct ScratchNeeds {
  std::size_t per_warp, per_residue;
};
ScratchNeeds scratch_by_entry(const KernelInstance& instance);
bool speculates_by_entry(const KernelInstance& instance);
/// Launches that score a model of that length.
std::uint32_t tiles_by_entry(const KernelInstance& instance, int model_length);
/// Positions of a tile; 0: the kernel takes a model in one launch.
int tile_length_by_entry(const KernelInstance& instance);

/// Kernels of catalogue entries of these stages of which no instance is compiled into this program.
std::vector<std::string> kernels_without_instance(
    std::initializer_list<hmmjit::plan::Stage> stages);

}  // namespace hmmjit_lockstep
