#include "work/work_board.hpp"

#include <utility>

namespace hmmjit {

Claim& Claim::operator=(Claim&& other) noexcept {
  if (this == &other) return *this;
  give_up();
  board_ = std::exchange(other.board_, nullptr);
  model_ = other.model_;
  block_ = other.block_;
  targets_ = std::move(other.targets_);
  return *this;
}

TargetsPtr Claim::finish() {
  if (WorkBoard* const board = std::exchange(board_, nullptr)) board->finished(model_, block_);
  return std::move(targets_);
}

void Claim::give_up() noexcept {
  if (WorkBoard* const board = std::exchange(board_, nullptr)) board->given_up(model_, block_);
  targets_.reset();
}

void WorkBoard::count_open(const Block& block, ModelId model, bool more) {
  if (!block.shard) return;
  auto& open = shards_.at(*block.shard).open;
  if (more) {
    ++open[model];
  } else if (const auto found = open.find(model); --found->second == 0) {
    open.erase(found);
  }
}

void WorkBoard::count_all_open(const Block& block, bool more) {
  for (const auto& [model, state] : block.pairs) {
    if (state == State::kOpen) count_open(block, model, more);
  }
}

TargetsPtr WorkBoard::remove(ModelId model, BlockId id) {
  Block& block = blocks_.at(id);
  const auto pair = block.pairs.find(model);
  if (pair->second == State::kOpen) count_open(block, model, false);
  block.pairs.erase(pair);
  const auto of = models_.find(model);
  of->second.blocks.erase(id);
  if (of->second.blocks.empty() && !of->second.refused) models_.erase(of);
  return block.pairs.empty() ? std::exchange(block.targets, nullptr) : nullptr;
}

void WorkBoard::leave_to_host(BlockId id, Block& block, std::vector<Pair>& left) {
  block.refused = true;
  for (auto& [model, state] : block.pairs) {
    if (state != State::kOpen) continue;
    count_open(block, model, false);
    state = State::kHost;
    left.push_back({model, id});
  }
}

void WorkBoard::tell(const std::vector<Pair>& left) const {
  for (const Pair& pair : left) left_to_host_(pair.model, pair.block);
}

void WorkBoard::add_block(BlockId block) {
  const MutexLock lock(mutex_);
  blocks_[block];
}

void WorkBoard::open(ModelId model, BlockId id, TargetsPtr targets) {
  const MutexLock lock(mutex_);
  const auto known = blocks_.find(id);
  const bool unknown = known == blocks_.end();
  Block& block = unknown ? blocks_[id] : known->second;
  block.refused = block.refused || unknown;
  Model& of = models_[model];
  const bool host = refused_ || block.refused || of.refused;
  if (!block.pairs.emplace(model, host ? State::kHost : State::kOpen).second) return;
  of.blocks.insert(id);
  block.targets = std::move(targets);
  if (!host) count_open(block, model, true);
}

std::size_t WorkBoard::withdraw(ModelId model) {
  std::vector<TargetsPtr> gone;
  const MutexLock lock(mutex_);
  const auto of = models_.find(model);
  if (of == models_.end()) return 0;
  const std::set<BlockId> blocks = of->second.blocks;
  std::size_t count = 0;
  for (const BlockId block : blocks) {
    if (blocks_.at(block).pairs.at(model) == State::kClaimed) continue;
    gone.push_back(remove(model, block));
    ++count;
  }
  return count;
}

void WorkBoard::remove_model(ModelId model) {
  const MutexLock lock(mutex_);
  const auto of = models_.find(model);
  if (of != models_.end() && of->second.blocks.empty()) models_.erase(of);
}

void WorkBoard::remove_block(BlockId id) {
  const MutexLock lock(mutex_);
  const auto block = blocks_.find(id);
  if (block == blocks_.end() || !block->second.pairs.empty()) return;
  leave_shard(block->second);
  blocks_.erase(block);
}

// Its place in the list stays: what was packed for a device counts on it.
void WorkBoard::leave_shard(Block& block) {
  if (!block.shard) return;
  const auto shard = shards_.find(*std::exchange(block.shard, std::nullopt));
  if (--shard->second.left == 0) shards_.erase(shard);
}

TargetsPtr WorkBoard::take_for_host(ModelId model, BlockId id) {
  const MutexLock lock(mutex_);
  const auto block = blocks_.find(id);
  if (block == blocks_.end()) return nullptr;
  const auto pair = block->second.pairs.find(model);
  if (pair == block->second.pairs.end() || pair->second == State::kClaimed) return nullptr;
  TargetsPtr targets = block->second.targets;
  (void)remove(model, id);  // not the last reference
  return targets;
}

bool WorkBoard::is_open(ModelId model, BlockId id) const {
  const MutexLock lock(mutex_);
  const auto block = blocks_.find(id);
  if (block == blocks_.end()) return false;
  const auto pair = block->second.pairs.find(model);
  return pair != block->second.pairs.end() && pair->second == State::kOpen;
}

ShardId WorkBoard::make_shard(std::vector<BlockId> blocks) {
  const MutexLock lock(mutex_);
  const ShardId shard = next_shard_++;
  shards_[shard].left = blocks.size();
  for (const BlockId id : blocks) {
    Block& block = blocks_[id];
    count_all_open(block, false);
    leave_shard(block);
    block.shard = shard;
    count_all_open(block, true);
  }
  shards_[shard].blocks = std::move(blocks);
  return shard;
}

std::vector<Claim> WorkBoard::claim(ModelId model, ShardId id) {
  std::vector<Claim> claims;
  const MutexLock lock(mutex_);
  const auto shard = shards_.find(id);
  if (shard == shards_.end()) return claims;
  claims.resize(shard->second.blocks.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const BlockId block_id = shard->second.blocks[i];
    const auto block = blocks_.find(block_id);
    if (block == blocks_.end() || block->second.shard != id) continue;
    const auto pair = block->second.pairs.find(model);
    if (pair == block->second.pairs.end() || pair->second != State::kOpen) continue;
    count_open(block->second, model, false);
    pair->second = State::kClaimed;
    claims[i] = Claim(*this, model, block_id, block->second.targets);
  }
  return claims;
}

std::size_t WorkBoard::open_models(ShardId shard) const {
  const MutexLock lock(mutex_);
  const auto found = shards_.find(shard);
  return found == shards_.end() ? 0 : found->second.open.size();
}

void WorkBoard::refuse_model(ModelId model) {
  std::vector<Pair> left;
  {
    const MutexLock lock(mutex_);
    Model& of = models_[model];
    of.refused = true;
    for (const BlockId id : of.blocks) {
      Block& block = blocks_.at(id);
      State& state = block.pairs.at(model);
      if (state != State::kOpen) continue;
      count_open(block, model, false);
      state = State::kHost;
      left.push_back({model, id});
    }
  }
  tell(left);
}

void WorkBoard::refuse_shard(ShardId shard) {
  std::vector<Pair> left;
  {
    const MutexLock lock(mutex_);
    const auto found = shards_.find(shard);
    if (found == shards_.end()) return;
    for (const BlockId id : found->second.blocks) {
      const auto block = blocks_.find(id);
      if (block != blocks_.end() && block->second.shard == shard)
        leave_to_host(id, block->second, left);
    }
  }
  tell(left);
}

void WorkBoard::refuse_all() {
  std::vector<Pair> left;
  {
    const MutexLock lock(mutex_);
    refused_ = true;
    for (auto& [id, block] : blocks_) leave_to_host(id, block, left);
  }
  tell(left);
}

bool WorkBoard::close_if_done(ShardId shard) {
  const MutexLock lock(mutex_);
  const auto found = shards_.find(shard);
  if (found == shards_.end()) return true;
  if (!found->second.open.empty()) return false;
  for (const BlockId id : found->second.blocks) {
    const auto block = blocks_.find(id);
    if (block != blocks_.end() && block->second.shard == shard) block->second.refused = true;
  }
  return true;
}

void WorkBoard::finished(ModelId model, BlockId block) {
  TargetsPtr gone;
  const MutexLock lock(mutex_);
  gone = remove(model, block);
}

void WorkBoard::given_up(ModelId model, BlockId id) {
  {
    const MutexLock lock(mutex_);
    blocks_.at(id).pairs.at(model) = State::kHost;
  }
  left_to_host_(model, id);
}

}  // namespace hmmjit
