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
  if (WorkBoard* const board = std::exchange(board_, nullptr))
    board->end_claim(model_, block_, true);
  return std::move(targets_);
}

void Claim::give_up() noexcept {
  if (WorkBoard* const board = std::exchange(board_, nullptr))
    board->end_claim(model_, block_, false);
  targets_.reset();
}

void WorkBoard::count_open(const Block& block, ModelId model, bool more) {
  if (!block.segment) return;
  auto& open = segments_.at(*block.segment).open;
  if (more) {
    ++open[model];
  } else if (const auto found = open.find(model); --found->second == 0) {
    open.erase(found);
  }
}

// The block keeps its place in the list of the segment that it leaves: packed targets refer to it.
void WorkBoard::assign(Block& block, std::optional<SegmentId> segment) {
  const auto count_all = [&](bool more) HMMJIT_REQUIRES(mutex_) {
    for (const auto& [model, state] : block.pairs) {
      if (state == State::kOpen) count_open(block, model, more);
    }
  };
  count_all(false);
  if (block.segment) {
    const auto left = segments_.find(*block.segment);
    if (--left->second.left == 0) segments_.erase(left);
  }
  block.segment = segment;
  count_all(true);
}

TargetsPtr WorkBoard::remove(ModelId model, BlockId id) {
  Block& block = blocks_.at(id);
  const auto pair = block.pairs.find(model);
  if (pair->second == State::kOpen) count_open(block, model, false);
  block.pairs.erase(pair);
  return block.pairs.empty() ? std::exchange(block.targets, nullptr) : nullptr;
}

void WorkBoard::leave_to_host(ModelId model, BlockId id, std::vector<Pair>& left) {
  Block& block = blocks_.at(id);
  const auto pair = block.pairs.find(model);
  if (pair == block.pairs.end() || pair->second != State::kOpen) return;
  count_open(block, model, false);
  pair->second = State::kHost;
  left.push_back({model, id});
}

void WorkBoard::refuse_block(BlockId id, std::vector<Pair>& left) {
  Block& block = blocks_.at(id);
  block.refused = true;
  for (const auto& [model, state] : block.pairs) leave_to_host(model, id, left);
}

void WorkBoard::report(const std::vector<Pair>& left) const {
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
  const bool host = refused_ || block.refused || refused_models_.contains(model);
  if (!block.pairs.emplace(model, host ? State::kHost : State::kOpen).second) return;
  block.targets = std::move(targets);
  if (!host) count_open(block, model, true);
}

void WorkBoard::remove_model(ModelId model) {
  const MutexLock lock(mutex_);
  refused_models_.erase(model);
}

void WorkBoard::remove_block(BlockId id) {
  const MutexLock lock(mutex_);
  const auto block = blocks_.find(id);
  if (block == blocks_.end() || !block->second.pairs.empty()) return;
  assign(block->second, std::nullopt);
  blocks_.erase(block);
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

SegmentId WorkBoard::make_segment(std::vector<BlockId> blocks) {
  const MutexLock lock(mutex_);
  const SegmentId segment = next_segment_++;
  segments_[segment].left = blocks.size();
  for (const BlockId id : blocks) assign(blocks_[id], segment);
  segments_[segment].blocks = std::move(blocks);
  return segment;
}

std::vector<Claim> WorkBoard::claim(ModelId model, SegmentId id) {
  std::vector<Claim> claims;
  const MutexLock lock(mutex_);
  const auto segment = segments_.find(id);
  if (segment == segments_.end()) return claims;
  claims.resize(segment->second.blocks.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const BlockId block_id = segment->second.blocks[i];
    const auto block = blocks_.find(block_id);
    if (block == blocks_.end() || block->second.segment != id) continue;
    const auto pair = block->second.pairs.find(model);
    if (pair == block->second.pairs.end() || pair->second != State::kOpen) continue;
    count_open(block->second, model, false);
    pair->second = State::kClaimed;
    claims[i] = Claim(*this, model, block_id, block->second.targets);
  }
  return claims;
}

std::size_t WorkBoard::open_models(SegmentId segment) const {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(segment);
  return found == segments_.end() ? 0 : found->second.open.size();
}

std::optional<ModelId> WorkBoard::next_open(SegmentId segment, ModelId from) const {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return std::nullopt;
  const auto next = found->second.open.lower_bound(from);
  return next == found->second.open.end() ? std::nullopt : std::optional(next->first);
}

void WorkBoard::refuse_model(ModelId model) {
  std::vector<Pair> left;
  {
    const MutexLock lock(mutex_);
    refused_models_.insert(model);
    for (const auto& [id, block] : blocks_) leave_to_host(model, id, left);
  }
  report(left);
}

void WorkBoard::refuse_segment(SegmentId segment) {
  std::vector<Pair> left;
  {
    const MutexLock lock(mutex_);
    const auto found = segments_.find(segment);
    if (found == segments_.end()) return;
    for (const BlockId id : found->second.blocks) {
      const auto block = blocks_.find(id);
      if (block != blocks_.end() && block->second.segment == segment) refuse_block(id, left);
    }
  }
  report(left);
}

void WorkBoard::refuse_all() {
  std::vector<Pair> left;
  {
    const MutexLock lock(mutex_);
    refused_ = true;
    for (const auto& [id, block] : blocks_) refuse_block(id, left);
  }
  report(left);
}

bool WorkBoard::close_if_done(SegmentId segment) {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return true;
  if (!found->second.open.empty()) return false;
  for (const BlockId id : found->second.blocks) {
    const auto block = blocks_.find(id);
    if (block != blocks_.end() && block->second.segment == segment) block->second.refused = true;
  }
  return true;
}

void WorkBoard::end_claim(ModelId model, BlockId id, bool done) {
  TargetsPtr gone;
  {
    const MutexLock lock(mutex_);
    if (done) {
      gone = remove(model, id);
      return;
    }
    blocks_.at(id).pairs.at(model) = State::kHost;
  }
  left_to_host_(model, id);
}

}  // namespace hmmjit
