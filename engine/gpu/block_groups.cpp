#include "gpu/block_groups.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::gpu {
namespace {

// Fewer models do not keep a device busy with one segment until a much larger one has been read,
// packed and uploaded: the CPU would do most of it meanwhile. The size of a segment that models
// can wait for is proportional to their number: kModelsPerFirstSegment for each size of the first
// segment.
constexpr std::size_t kModelsOfLargeSegments = 8, kModelsPerFirstSegment = 2;

}  // namespace

void BlockGroups::begin(std::uint64_t host_bytes) {
  const MutexLock lock(mutex_);
  open_ = true;
  host_bytes_ = host_bytes;
  next_residues_ = settings_.segment_residues;
}

std::uint64_t BlockGroups::devices() const {
  return std::max<std::uint64_t>(settings_.devices.size(), 1);
}

std::uint64_t BlockGroups::segment_residues(std::uint64_t device_bytes) const {
  std::uint64_t most = next_residues_;
  // Half the device memory at most, so that two segments fit and one loads while one is used.
  if (settings_.vram > 0) most = std::min(most, settings_.vram / 4);
  most = std::min(most, device_bytes / 4);
  // A packed copy waits for each device while the next one is made.
  if (host_bytes_ > 0) most = std::min(most, host_bytes_ / (devices() + 1));
  return std::max<std::uint64_t>(most, 1);
}

BlockGroups::Groups BlockGroups::add(BlockRef block, std::uint64_t device_bytes,
                                     std::size_t models) {
  const MutexLock lock(mutex_);
  if (!open_) return {};
  residues_ += block.targets->residue_count();
  blocks_.push_back(std::move(block));
  Groups out = take(residues_ / (segment_residues(device_bytes) * devices()));
  if (!out.empty() && models >= kModelsOfLargeSegments) {
    const std::uint64_t largest = std::min(
        settings_.largest_segment, settings_.segment_residues * (models / kModelsPerFirstSegment));
    next_residues_ = std::min(next_residues_ * settings_.segment_growth,
                              std::max(settings_.segment_residues, largest));
  }
  return out;
}

BlockGroups::Groups BlockGroups::rest(std::uint64_t device_bytes) {
  const MutexLock lock(mutex_);
  if (blocks_.empty()) return {};
  const std::uint64_t round = segment_residues(device_bytes) * devices();
  return take(std::max<std::uint64_t>((residues_ + round - 1) / round, 1));
}

// The block that completes a round makes its segments a little larger, not twice as many.
BlockGroups::Groups BlockGroups::take(std::uint64_t rounds) {
  if (rounds == 0) return {};
  const std::uint64_t pieces = rounds * devices();
  const std::uint64_t total = std::exchange(residues_, 0);
  std::uint64_t reached = 0, made = 0;
  Groups out(1);
  for (BlockRef& block : std::exchange(blocks_, {})) {
    if (!out.back().empty() && reached * pieces >= total * (made + 1)) {
      out.emplace_back();
      made = reached * pieces / std::max<std::uint64_t>(total, 1);
    }
    reached += block.targets->residue_count();
    out.back().push_back(std::move(block));
  }
  return out;
}

std::vector<BlockRef> BlockGroups::end() {
  const MutexLock lock(mutex_);
  open_ = false;
  residues_ = 0;
  return std::exchange(blocks_, {});
}

}  // namespace hmmjit::gpu
