#include "gpu/delivery.hpp"

#include <memory>
#include <utility>

#include "gpu/active_models.hpp"
#include "gpu/domain_queue.hpp"

namespace hmmjit::gpu {
namespace {

using Blocks = std::vector<FilteredBlock>;

// The targets of a part, by block of the segment.
Blocks blocks_of(DomainWork& work) {
  Blocks out(work.chain->claims.size());
  const std::vector<std::shared_ptr<const ParsedTarget>>& parsed = work.request.parsed;
  for (std::size_t i = 0; i < work.passed.size(); ++i) {
    FilteredBlock& block = out[work.passed[i].block];
    block.passed.push_back(work.passed[i].index);
    if (!parsed.empty()) block.parsed.push_back(parsed[i]);
  }
  return out;
}

UsedKernels kernels_of(const DomainWork& work) {
  std::vector<UsedKernel> all = work.chain->kernels;
  all.insert(all.end(), work.kernels.begin(), work.kernels.end());
  return std::make_shared<const std::vector<UsedKernel>>(std::move(all));
}

void deliver_early(FilteredChain& chain, Blocks blocks, const UsedKernels& used) {
  std::vector<Delivery> delivered;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!chain.claims[b] || (blocks[b].open.empty() && blocks[b].passed.empty())) continue;
    blocks[b].sample.kernels = used;
    delivered.push_back({{}, chain.claims[b].targets(), std::move(blocks[b])});
  }
  if (delivered.empty()) return;
  chain.begun = true;
  chain.use->client.deliver(chain.model->id(), std::move(delivered), true);
}

}  // namespace

void take_found(DomainWork& work, CascadeResult found, std::vector<Claim> claims) {
  FilteredChain& chain = *work.chain;
  chain.claims = std::move(claims);
  chain.blocks = std::move(found.blocks);
  for (FilteredBlock& block : chain.blocks) block.passed = {};
  work.passed = std::move(found.passed_targets);
}

void deliver_open(FilteredChain& chain) {
  Blocks early(chain.blocks.size());
  for (std::size_t b = 0; b < early.size(); ++b)
    early[b].open = std::exchange(chain.blocks[b].open, {});
  deliver_early(chain, std::move(early),
                std::make_shared<const std::vector<UsedKernel>>(chain.kernels));
}

std::uint64_t deliver_large(DomainWork& work, std::uint64_t most_cells) {
  const std::vector<std::uint32_t>& length = work.request.targets->packed().targets.length;
  const auto M = static_cast<std::uint64_t>(work.request.model->hmm.M);
  std::vector<PassedTarget> large, rest;
  std::uint64_t cells = 0;
  for (const PassedTarget& p : work.passed) {
    const bool is_large = length[p.target] * M > most_cells;
    (is_large ? large : rest).push_back(p);
    if (is_large) cells += length[p.target] * M;
  }
  if (large.empty()) return 0;
  Blocks early(work.chain->claims.size());
  for (const PassedTarget& p : large) early[p.block].passed.push_back(p.index);
  deliver_early(*work.chain, std::move(early), kernels_of(work));
  work.passed = std::move(rest);
  return cells;
}

std::optional<std::size_t> deliver(DomainWork& work) {
  FilteredChain& chain = *work.chain;
  const auto used = kernels_of(work);
  Blocks found = blocks_of(work);
  if (chain.parts > 1) {
    deliver_early(chain, std::move(found), used);
    found.clear();
  }
  std::vector<Delivery> delivered;
  delivered.reserve(chain.claims.size());
  if (--chain.parts > 0) return std::nullopt;
  for (std::size_t b = 0; b < chain.claims.size(); ++b) {
    if (!chain.claims[b]) continue;
    FilteredBlock block = b < chain.blocks.size() ? std::move(chain.blocks[b]) : FilteredBlock{};
    if (b < found.size()) {  // otherwise this part has been delivered early, too
      block.passed = std::move(found[b].passed);
      block.parsed = std::move(found[b].parsed);
    }
    block.sample.kernels = used;
    TargetsPtr targets = chain.claims[b].targets();
    delivered.push_back({std::move(chain.claims[b]), std::move(targets), std::move(block)});
  }
  const std::size_t count = delivered.size();
  chain.use->client.deliver(chain.model->id(), std::move(delivered), false);
  return count;
}

}  // namespace hmmjit::gpu
