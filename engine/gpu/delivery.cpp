#include "gpu/delivery.hpp"

#include <memory>
#include <utility>

#include "gpu/active_models.hpp"

namespace hmmjit::gpu {

void deliver_early(DomainWork& work, double patience) {
  CascadeResult& found = work.found;
  const layout::PackedTargets& targets = work.request.targets->packed().targets;
  const int M = work.model->search()->hmm.M;
  const auto mine = [&](const PassedTarget& p) {
    return DomainStage::takes(targets.length[p.target], M, patience);
  };
  std::vector<FilteredBlock> early(found.blocks.size()), late(found.blocks.size());
  for (std::size_t b = 0; b < found.blocks.size(); ++b) early[b].open = found.blocks[b].open;
  for (const PassedTarget& p : found.passed_targets)
    (mine(p) ? late : early)[p.block].passed.push_back(p.index);
  std::vector<EarlyDelivery> delivered;
  const auto used = std::make_shared<const std::vector<UsedKernel>>(work.kernels);
  for (std::size_t b = 0; b < early.size(); ++b) {
    if (!work.claims[b] || (early[b].open.empty() && early[b].passed.empty())) continue;
    early[b].sample.kernels = used;
    delivered.push_back({work.claims[b].targets(), std::move(early[b])});
  }
  if (delivered.empty() || !work.use.client().deliver_early(work.model->id(), std::move(delivered)))
    return;
  for (std::size_t b = 0; b < found.blocks.size(); ++b) {
    found.blocks[b].open.clear();
    found.blocks[b].passed = std::move(late[b].passed);
  }
  std::erase_if(found.passed_targets, [&](const PassedTarget& p) { return !mine(p); });
}

std::size_t deliver(DomainWork& work) {
  std::vector<FilteredBlock>& results = work.found.blocks;
  auto& parsed = work.request.parsed;
  for (std::size_t i = 0; i < parsed.size(); ++i)
    results[work.found.passed_targets[i].block].parsed.push_back(std::move(parsed[i]));
  std::vector<Delivery> delivered;
  const auto used = std::make_shared<const std::vector<UsedKernel>>(std::move(work.kernels));
  for (std::size_t i = 0; i < work.claims.size(); ++i) {
    if (!work.claims[i]) continue;
    delivered.push_back(
        {std::move(work.claims[i]), i < results.size() ? std::move(results[i]) : FilteredBlock{}});
    delivered.back().found.sample.kernels = used;
  }
  const std::size_t count = delivered.size();
  work.use.client().deliver(work.model->id(), std::move(delivered));
  return count;
}

}  // namespace hmmjit::gpu
