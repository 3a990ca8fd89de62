#include "gpu/segment_book.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace hmmjit::gpu {
namespace {

std::vector<BlockId> ids_of(const std::vector<BlockRef>& blocks) {
  std::vector<BlockId> ids;
  for (const BlockRef& block : blocks) ids.push_back(block.id);
  return ids;
}

std::uint64_t residues_of(const std::vector<BlockRef>& blocks) {
  std::uint64_t residues = 0;
  for (const BlockRef& block : blocks) residues += block.targets->residue_count();
  return residues;
}

}  // namespace

Segment::Segment(std::vector<BlockRef> blocks, WorkBoard& board)
    : blocks_(std::move(blocks)),
      shard_(board.make_shard(ids_of(blocks_))),
      residues_(residues_of(blocks_)) {}

void SegmentTable::add(SegmentPtr segment) {
  for (const BlockRef& block : segment->blocks()) by_block[block.id] = segment;
  to_pack.push_back(segment);
  all.push_back(std::move(segment));
}

void SegmentTable::make(std::vector<BlockRef> blocks, WorkBoard& board) {
  add(std::make_shared<Segment>(std::move(blocks), board));
  assign(*all.back());
}

void SegmentTable::split(const SegmentPtr& segment, WorkBoard& board) {
  const std::vector<BlockRef>& blocks = segment->blocks();
  const auto half = blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2);
  for (const bool second : {false, true}) {
    auto part = std::make_shared<Segment>(
        std::vector<BlockRef>(second ? half : blocks.begin(), second ? blocks.end() : half), board);
    part->device_ = segment->device_;
    add(std::move(part));
  }
  segment->abandoned_ = true;  // whoever was offered it before has no use for it
  std::erase(all, segment);
}

void SegmentTable::use_devices(std::vector<ActiveDevice*> devices) {
  devices_ = std::move(devices);
  for (const SegmentPtr& segment : all) assign(*segment);
}

void SegmentTable::assign(Segment& segment) {
  if (segment.device_ != nullptr) return;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (ActiveDevice* const device : devices_) {
    std::uint64_t load = 0;
    for (const SegmentPtr& s : all) load += s->device_ == device ? s->residues() : 0;
    if (!device->lost && load < least) {
      least = load;
      segment.device_ = device;
    }
  }
}

bool SegmentTable::evict(const ActiveDevice& device) {
  SegmentPtr victim;
  for (const SegmentPtr& s : all) {
    if (s->device_ != &device || s->resident_ == nullptr || s->in_use_ > 0) continue;
    if (victim == nullptr || s->last_use_ < victim->last_use_) victim = s;
  }
  if (victim == nullptr) return false;
  victim->resident_.reset();
  victim->packed_.reset();
  to_pack.push_back(victim);
  return true;
}

void SegmentTable::remove(const SegmentPtr& segment) {
  for (const BlockRef& block : segment->blocks()) {
    const auto found = by_block.find(block.id);
    if (found != by_block.end() && found->second == segment) by_block.erase(found);
  }
  std::erase(to_pack, segment);
  std::erase(all, segment);
}

bool SegmentBook::drop_if_done(const SegmentPtr& segment) {
  if (!streaming || board == nullptr || segment->in_use_ > 0) return false;
  if (!board->close_if_done(segment->shard())) return false;
  table.remove(segment);
  return true;
}

// Those that the host has done are among them: no lane has had them, and perhaps not the packer.
void SegmentBook::drop_finished(std::vector<SegmentPtr>& dropped) {
  if (!streaming) return;
  const std::vector<SegmentPtr> all = table.all;
  for (const SegmentPtr& segment : all) {
    if (drop_if_done(segment)) dropped.push_back(segment);
  }
}

}  // namespace hmmjit::gpu
