// A kernel that can be launched on one device, and the models that it serves.
//
// A kernel is compiled for a class of models: it computes a fixed number of positions, for one
// alphabet. A longer model would be scored without its last positions, which no device can detect:
// scores would be too low and hits lost. The extent therefore travels with the kernel, from its
// catalogue entry on, and ReadyKernel::launch(), the only way to launch a search's kernel, compares
// it with the model's.
#pragma once

#include <limits>
#include <memory>
#include <utility>

#include "compile/kernel_provider.hpp"
#include "core/error.hpp"
#include "driver/driver.hpp"
#include "model/profile.hpp"

namespace hmmjit::gpu {

/// Positions of a model and codes of its alphabet: those of one model, or the most that a kernel
/// serves.
struct ModelExtent {
  int positions = 0;
  int alphabet_codes = 0;
};
ModelExtent extent_of(const SearchModel& model);

/// A kernel that keeps its promises on one device.
struct AcceptedKernel {
  compile::KernelPtr kernel;  ///< from the plan's choice or a fallback
  std::shared_ptr<driver::LoadedKernel> loaded;
  driver::LoadedResources resources;  ///< blocks_per_sm is at least 1
};

/// Immutable; empty if a stage has no kernel and falls back to the CPU.
class ReadyKernel {
 public:
  static constexpr unsigned kAnyBlocks = std::numeric_limits<unsigned>::max();

  ReadyKernel() = default;
  /// `alphabet_codes`: that of its plan.
  ReadyKernel(AcceptedKernel kernel, int alphabet_codes)
      : kernel_(std::move(kernel)), extent_{plan::positions_served(candidate()), alphabet_codes} {}
  explicit operator bool() const { return kernel_.loaded != nullptr; }

  /// The largest model it serves.
  const ModelExtent& extent() const { return extent_; }
  bool covers(const ModelExtent& model) const {
    return model.positions <= extent_.positions && model.alphabet_codes == extent_.alphabet_codes;
  }
  /// Fails with kCompile and both extents unless the kernel covers the model.
  Status require(const ModelExtent& model) const;

  /// Device memory of a launch in addition to tables, lists and results:
  /// Expected::scratch_per_warp and Expected::scratch_per_residue. The boundary lies after the
  /// rows.
  struct Scratch {
    std::size_t rows = 0, boundary = 0;
    std::size_t bytes() const { return rows + boundary; }
    /// Points parameters that have such members to scratch memory at `address`; null: no memory.
    template <typename Params>
    void place(Params& p, std::uintptr_t address) const {
      if constexpr (requires { p.rows; })
        p.rows = rows > 0 ? reinterpret_cast<decltype(p.rows)>(address) : nullptr;
      if constexpr (requires { p.boundary; })
        p.boundary =
            boundary > 0 ? reinterpret_cast<decltype(p.boundary)>(address + rows) : nullptr;
    }
  };
  /// `residue_bytes`: of the database as it lies on the device.
  Scratch scratch(const driver::Device& device, std::size_t residue_bytes) const;

  /// Seconds for `residues` residues at the rate that the planner assumes
  /// (plan::Expected::cells_per_clock_per_sm, which `hmmjit bench` measures).
  double expected_seconds(const driver::Device& device, std::uint64_t residues) const;

  /// Seconds per cell of a model, for the whole device: a kernel that serves models of many lengths
  /// has a rate for each.
  double cell_seconds(const driver::Device& device, const ModelExtent& model) const;
  /// Seconds per cell of a model for one item, if as many items are in progress as fit.
  double item_cell_seconds(const driver::Device& device, const ModelExtent& model) const;
  /// Number of blocks that the device holds at once.
  unsigned resident_blocks(const driver::Device& device) const {
    return static_cast<unsigned>(device.traits().sm_count * kernel_.resources.blocks_per_sm);
  }

  const AcceptedKernel& accepted() const { return kernel_; }
  const std::string& name() const { return kernel_.kernel->name; }
  const plan::Candidate& candidate() const { return kernel_.kernel->candidate; }

  /// Queues a launch for a model, with all resident blocks of the device or with `blocks` of them.
  /// Fails as require() does, before anything is queued.
  Status launch(const driver::Stream& stream, const driver::Device& device,
                const ModelExtent& model, const void* parameters,
                unsigned blocks = kAnyBlocks) const;
  /// The same with all blocks, once for each tile of the model. Only the work counter, which lies
  /// in `counters`, is cleared in between.
  template <typename Params>
  Status launch_tiles(const driver::Stream& stream, const driver::Device& device,
                      const ModelExtent& model, Params& p,
                      const driver::DeviceBuffer& counters) const {
    const auto next = reinterpret_cast<std::uintptr_t>(&p.counters->next) - counters.address();
    p.tile_count =
        static_cast<decltype(p.tile_count)>(plan::tiles_of(candidate(), model.positions));
    for (p.tile = 0; p.tile < p.tile_count; ++p.tile) {
      if (p.tile > 0) HMMJIT_TRY(counters.fill(stream, 0, sizeof(p.counters->next), next));
      HMMJIT_TRY(launch(stream, device, model, &p));
    }
    return {};
  }

 private:
  AcceptedKernel kernel_;
  ModelExtent extent_;
};

}  // namespace hmmjit::gpu
