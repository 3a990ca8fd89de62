#include "gpu/segments.hpp"

#include <utility>

namespace hmmjit::gpu {

void Segments::attach(WorkBoard& board) {
  const MutexLock lock(book_.mutex);
  book_.board = &board;
  book_.streaming = false;
}

void Segments::clear() {
  SegmentTable gone;
  const MutexLock lock(book_.mutex);
  book_.board = nullptr;
  gone.all.swap(book_.table.all);
  gone.by_block.swap(book_.table.by_block);
  gone.to_pack.swap(book_.table.to_pack);
}

void Segments::use_devices(std::vector<ActiveDevice*> devices) {
  const MutexLock lock(book_.mutex);
  book_.table.use_devices(std::move(devices));
}

void Segments::make(BlockGroups::Groups groups) {
  if (groups.empty()) return;
  {
    const MutexLock lock(book_.mutex);
    if (book_.board == nullptr) return;
    for (std::vector<BlockRef>& blocks : groups) book_.table.make(std::move(blocks), *book_.board);
  }
  book_.counters.update([&](Statistics& s) { s.segments += groups.size(); });
  book_.changed.raise();
}

// Lanes drop what they finish from now on; what they have finished already goes here, or its blocks
// would hold the memory that reading waits for.
void Segments::set_streaming() {
  std::vector<SegmentPtr> dropped;
  const MutexLock lock(book_.mutex);
  book_.streaming = true;
  book_.drop_finished(dropped);
}

SegmentPtr Segments::take_to_pack(bool& wait) {
  const MutexLock lock(book_.mutex);
  wait = !book_.table.to_pack.empty() && book_.board != nullptr;
  if (!wait) return nullptr;
  std::size_t waiting = 0;
  for (const SegmentPtr& s : book_.table.all) {
    waiting += s->packed_ != nullptr && s->resident_ == nullptr && !s->abandoned_ &&
               !s->packed_->targets.residues.empty() && book_.board->open_models(s->shard()) > 0;
  }
  if (waiting >= copies_) return nullptr;
  SegmentPtr next = std::move(book_.table.to_pack.front());
  book_.table.to_pack.pop_front();
  return next;
}

void Segments::packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed) {
  {
    const MutexLock lock(book_.mutex);
    segment->abandoned_ = packed == nullptr;
    segment->packed_ = std::move(packed);
  }
  book_.changed.raise();
}

std::vector<SegmentPtr> Segments::leave(const ActiveDevice& device) {
  std::vector<SegmentPtr> abandoned;
  std::vector<std::shared_ptr<DeviceTargets>> freed;
  {
    const MutexLock lock(book_.mutex);
    for (const SegmentPtr& s : book_.table.all) {
      if (s->device_ != &device || s->in_use_ > 0) continue;
      s->device_ = nullptr;
      book_.table.assign(*s);
      if (s->device_ == nullptr) {
        s->abandoned_ = true;
        abandoned.push_back(s);
      } else if (s->resident_ != nullptr) {
        freed.push_back(std::move(s->resident_));
        s->packed_.reset();
        book_.table.to_pack.push_back(s);
      }
    }
  }
  book_.changed.raise();
  return abandoned;
}

bool Segments::has_been_resident(BlockId block) const {
  const MutexLock lock(book_.mutex);
  const auto found = book_.table.by_block.find(block);
  return found != book_.table.by_block.end() && found->second->has_been_resident_ &&
         !found->second->abandoned_;
}

}  // namespace hmmjit::gpu
