#include "bench/targets.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::bench {

Sequences distinct_targets(const Sequences& sequences, std::size_t most) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (!sequences[i].empty()) chosen.push_back(i);
  }
  const std::size_t wanted = most == 0 ? chosen.size() : std::max<std::size_t>(1, most / 2);
  const std::size_t step = std::max<std::size_t>(1, (chosen.size() + wanted - 1) / wanted);
  Sequences out;
  for (std::size_t i = 0; i < chosen.size(); i += step) {
    const auto& s = sequences[chosen[i]];
    out.push_back(s);
    out.emplace_back(s.rbegin(), s.rend());
  }
  return out;
}

Result<std::unique_ptr<DeviceTargets>> DeviceTargets::create(const driver::DevicePtr& device,
                                                             const Sequences& distinct,
                                                             std::vector<std::uint32_t> indices,
                                                             std::uint64_t residues) {
  std::unique_ptr<DeviceTargets> out(new DeviceTargets);
  std::vector<std::span<const Residue>> all;
  std::uint64_t once = 0;
  for (const std::uint32_t i : indices) once += distinct[i].size();
  if (once == 0) return fail(ErrorCode::kInput, "no residues to measure with", "targets");
  out->copies_ = static_cast<int>(std::max<std::uint64_t>(1, (residues + once - 1) / once));
  for (int copy = 0; copy < out->copies_; ++copy) {
    for (const std::uint32_t i : indices) all.emplace_back(distinct[i]);
  }
  out->indices_ = std::move(indices);
  HMMJIT_ASSIGN(gpu::Uploader uploader, gpu::Uploader::create(device));
  const auto segment = std::make_shared<gpu::PackedSegment>();
  segment->targets = layout::pack_targets(all);
  HMMJIT_ASSIGN(out->device_, gpu::DeviceTargets::create(device, segment, uploader));
  segment->targets.residues = {};
  return out;
}

}  // namespace hmmjit::bench
