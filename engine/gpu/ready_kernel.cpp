#include "gpu/ready_kernel.hpp"

#include <fmt/format.h>

#include "layout/table_block.hpp"

namespace hmmjit::gpu {
namespace {

double seconds_per_cell(const plan::DeviceTraits& device, double cells_per_clock_per_sm) {
  return 1 /
         (cells_per_clock_per_sm * device.sm_count * (static_cast<double>(device.clock_khz) * 1e3));
}

}  // namespace

ModelExtent extent_of(const SearchModel& model) { return {model.bytes.M, model.bytes.Kp}; }

Status ReadyKernel::require(const ModelExtent& model) const {
  if (covers(model)) return {};
  return fail(
      ErrorCode::kCompile,
      fmt::format("the kernel serves models of up to {} positions over {} residue codes, "
                  "and this model has {} over {}",
                  extent_.positions, extent_.alphabet_codes, model.positions, model.alphabet_codes),
      name(), "the model is searched on the CPU; please report this message");
}

ReadyKernel::Scratch ReadyKernel::scratch(const driver::Device& device,
                                          std::size_t residue_bytes) const {
  constexpr std::size_t kWarp = 32;
  const plan::Expected& expected = candidate().expected;
  const std::size_t warps = resident_blocks(device) *
                            static_cast<std::size_t>(candidate().expected.launch.block_threads) /
                            kWarp;
  return {layout::aligned_size(warps * static_cast<std::size_t>(expected.scratch_per_warp)),
          residue_bytes * static_cast<std::size_t>(expected.scratch_per_residue)};
}

double ReadyKernel::expected_seconds(const driver::Device& device, std::uint64_t residues) const {
  return static_cast<double>(residues) * candidate().expected.covered_length *
         seconds_per_cell(device.traits(), candidate().expected.cells_per_clock_per_sm);
}

double ReadyKernel::cell_seconds(const driver::Device& device, const ModelExtent& model) const {
  const plan::Candidate& c = candidate();
  const plan::KernelVariant& variant = *c.variant;
  const plan::ModelShape shape{variant.stage, model.positions, model.alphabet_codes};
  return seconds_per_cell(device.traits(), variant.rate != nullptr
                                               ? variant.rate(shape, c.constants, device.traits())
                                               : c.expected.cells_per_clock_per_sm);
}

double ReadyKernel::item_cell_seconds(const driver::Device& device,
                                      const ModelExtent& model) const {
  return cell_seconds(device, model) * candidate().expected.items_per_sm * device.traits().sm_count;
}

Status ReadyKernel::launch(const driver::Stream& stream, const driver::Device& device,
                           const ModelExtent& model, const void* parameters,
                           unsigned blocks) const {
  HMMJIT_TRY(require(model));
  const plan::LaunchShape& shape = candidate().expected.launch;
  const driver::LaunchGrid grid{
      .blocks = blocks != kAnyBlocks ? blocks : resident_blocks(device),
      .block_threads = static_cast<unsigned>(shape.block_threads),
      .dynamic_shared_bytes = static_cast<unsigned>(shape.dynamic_shared_bytes)};
  return kernel_.loaded->launch(stream, grid, parameters);
}

}  // namespace hmmjit::gpu
