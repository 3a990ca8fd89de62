// Targets of a measurement: distinct sequences on the host, and copies of them on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device_targets.hpp"

namespace hmmjit::bench {

using Sequences = std::vector<std::vector<Residue>>;

/// Every n-th of `sequences`, with n such that at most `most` remain (0: all) and all lengths are
/// represented, each followed by its reverse, which is no real protein but has real composition.
/// Skips empty sequences.
Sequences distinct_targets(const Sequences& sequences, std::size_t most);

/// A device copy of a host vector; the upload is complete on return.
template <typename T>
Result<driver::DeviceBuffer> to_device(const driver::Stream& stream, const std::vector<T>& host) {
  HMMJIT_ASSIGN(auto buffer,
                driver::DeviceBuffer::create(stream.device(), host.size() * sizeof(T)));
  if (!host.empty()) {
    HMMJIT_TRY(buffer.upload(stream, host.data(), host.size() * sizeof(T)));
    HMMJIT_TRY(stream.synchronize());
  }
  return buffer;
}
template <typename T>
T* device_pointer(const driver::DeviceBuffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}
template <typename T>
Result<std::vector<T>> to_host(const driver::Stream& stream, const driver::DeviceBuffer& buffer,
                               std::size_t count) {
  std::vector<T> out(count);
  HMMJIT_TRY(buffer.download(stream, out.data(), count * sizeof(T)));
  HMMJIT_TRY(stream.synchronize());
  return out;
}

/// Some of the distinct targets, copied up to a given number of residues.
class DeviceTargets {
 public:
  /// `indices` refer to `distinct`, which may be freed afterwards. Fails with kResources if the
  /// device has no room.
  static Result<std::unique_ptr<DeviceTargets>> create(const driver::DevicePtr& device,
                                                       const Sequences& distinct,
                                                       std::vector<std::uint32_t> indices,
                                                       std::uint64_t residues);
  gpu::DeviceTargets& on_device() const { return *device_; }
  /// The packed targets, without residues.
  const layout::PackedTargets& packed() const { return device_->packed().targets; }
  std::size_t size() const { return packed().size(); }
  std::uint64_t residues() const { return packed().residue_count; }
  int copies() const { return copies_; }
  /// Index into the distinct targets.
  std::uint32_t distinct_of(std::size_t target) const {
    return indices_[packed().original[target] % indices_.size()];
  }

 private:
  DeviceTargets() = default;
  std::unique_ptr<gpu::DeviceTargets> device_;
  std::vector<std::uint32_t> indices_;
  int copies_ = 1;
};

}  // namespace hmmjit::bench
