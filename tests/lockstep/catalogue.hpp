// What the catalogue says of kernels in lockstep execution.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "lockstep/registry.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit_lockstep {

/// Model positions that one launch covers and dynamic shared bytes that it needs, by the catalogue
/// entry of the instance's kernel. The tests of older kernels have formulas of their own, so that
/// an error in an entry cannot hide one in its kernel.
int covered_by_entry(const KernelInstance& instance);
std::size_t shared_bytes_by_entry(const KernelInstance& instance);
/// Positions of a tile; 0: the kernel takes a model in one launch.
int tile_length_by_entry(const KernelInstance& instance);

/// Kernels of catalogue entries of these stages of which no instance is compiled into this program.
std::vector<std::string> kernels_without_instance(
    std::initializer_list<hmmjit::plan::Stage> stages);

}  // namespace hmmjit_lockstep
