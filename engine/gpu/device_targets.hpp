// A segment of the target database: packed once on the host, resident on a device while needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/gate_params.h"
#include "core/mutex.hpp"
#include "driver/driver.hpp"
#include "layout/packed_targets.hpp"
#include "layout/table_block.hpp"
#include "model/targets.hpp"

namespace hmmjit::gpu {

/// A target block and its id on the board.
struct BlockRef {
  std::uint64_t id = 0;
  std::shared_ptr<const TargetBlock> targets;
};

/// The origin of a packed target.
struct TargetOrigin {
  std::uint32_t block = 0;  ///< position in the segment's list of blocks
  std::uint32_t index = 0;  ///< in the target's block
};

/// The non-empty targets of several blocks in device layout, on the host.
struct PackedSegment {
  layout::PackedTargets targets;
  std::vector<TargetOrigin> origins;  ///< by PackedTargets::original
  std::vector<std::uint32_t> block;   ///< [sorted targets] position in the list of blocks
  std::vector<float> null_nats;       ///< [length classes]
};
/// Blocks that are views of a database stay in place: the segment then refers to their residues,
/// and the blocks must live until it is on a device.
PackedSegment pack_segment(std::span<const BlockRef> blocks);

/// Copies through two small pinned buffers, so that nothing large has to be page-locked: one is
/// filled while the other is being copied. One thread at a time.
class Uploader {
 public:
  static Result<Uploader> create(const driver::DevicePtr& device);
  /// Queues all of `from`, to `offset` in the buffer; returns when the last piece is in a pinned
  /// buffer. Call finish() before using the data on another stream.
  Status upload(const driver::DeviceBuffer& to, const void* from, std::size_t bytes,
                std::size_t offset = 0) {
    return upload_bytes(to, from, bytes, offset, false);
  }
  /// The same for residues in a mapped file, which another process may overwrite: kernels never get
  /// a code beyond the rows of their tables.
  Status upload_residues(const driver::DeviceBuffer& to, std::span<const Residue> residues,
                         std::size_t offset) {
    return upload_bytes(to, residues.data(), residues.size(), offset, true);
  }
  Status finish();
  std::uint64_t bytes() const { return bytes_; }

 private:
  Status upload_bytes(const driver::DeviceBuffer& to, const void* from, std::size_t bytes,
                      std::size_t offset, bool changeable);

  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  driver::Stream stream_;
  driver::PinnedBuffer pieces_[2];
  driver::Event passed_[2];
  bool used_[2] = {false, false};
  int next_ = 0;
  std::uint64_t bytes_ = 0;
};

/// A packed segment on a device. Immutable once made, except for work lists that are made on first
/// use; several streams may read it.
class DeviceTargets {
 public:
  /// Bytes of device memory that a segment will take.
  static std::size_t bytes_for(const PackedSegment& segment);
  /// Fails with kResources if the device has no room. Does not use the segment's residues
  /// afterwards.
  static Result<std::unique_ptr<DeviceTargets>> create(const driver::DevicePtr& device,
                                                       std::shared_ptr<const PackedSegment> segment,
                                                       Uploader& uploader);

  const PackedSegment& packed() const { return *segment_; }
  hmmjit_device::DatabaseView view() const;
  /// Device memory held, including work lists.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::size_t residue_bytes() const { return residues_.size(); }

  /// Values that depend only on target lengths, [length classes], and the block of each target.
  const hmmjit_device::u32* block() const { return pointer<hmmjit_device::u32>(block_); }
  const float* null_nats() const { return pointer<float>(null_nats_); }
  const float* bias_lengths() const { return pointer<float>(bias_lengths_); }
  const hmmjit_device::FloatLength* float_lengths() const {
    return pointer<hmmjit_device::FloatLength>(float_lengths_);
  }

  const hmmjit_device::FloatLength* unihit_lengths() const {
    return pointer<hmmjit_device::FloatLength>(unihit_lengths_);
  }

  /// Work items for models up to a length, or whole targets.
  struct WorkItems {
    driver::DeviceBuffer items;
    std::uint32_t count = 0;
    std::vector<hmmjit_device::SplitState> splits;  ///< to copy for each launch
  };
  /// Thread-safe. `whole`: do not split targets (tiled kernels, the MSV recurrence).
  Result<const WorkItems*> work(int model_length, bool whole);

 private:
  DeviceTargets() = default;
  template <typename T>
  static const T* pointer(const driver::DeviceBuffer& buffer) {
    return reinterpret_cast<const T*>(buffer.address());
  }
  driver::DevicePtr device_;
  std::shared_ptr<const PackedSegment> segment_;
  driver::DeviceBuffer residues_, start_, length_, length_class_, block_, null_nats_, bias_lengths_,
      float_lengths_, unihit_lengths_;
  std::atomic<std::size_t> bytes_{0};
  Mutex mutex_;
  std::map<std::uint32_t, WorkItems> work_ HMMJIT_GUARDED_BY(mutex_);  // by overlap; 0: whole
};

}  // namespace hmmjit::gpu
