#include "gpu/segments.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "gpu/cascade.hpp"
#include "gpu/domain_stage.hpp"

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

Segment::Segment(std::vector<BlockRef> of, WorkBoard& board)
    : blocks(std::move(of)),
      shard(board.make_shard(ids_of(blocks))),
      residues(residues_of(blocks)) {}

void SegmentStore::attach(WorkBoard& board) {
  const MutexLock lock(mutex_);
  board_ = &board;
  streaming_ = false;
}

void SegmentStore::clear() {
  // In a destructor, so without an allocation: a deque would make one to be empty.
  std::vector<SegmentPtr> all;
  std::map<BlockId, SegmentPtr> by_block;
  std::list<SegmentPtr> to_pack;
  const MutexLock lock(mutex_);
  board_ = nullptr;
  all.swap(all_);
  by_block.swap(by_block_);
  to_pack.swap(to_pack_);
}

void SegmentStore::use_devices(std::vector<ActiveDevice*> devices) {
  const MutexLock lock(mutex_);
  devices_ = std::move(devices);
  for (const SegmentPtr& segment : all_) assign(*segment);
}

void SegmentStore::add(SegmentPtr segment) {
  for (const BlockRef& block : segment->blocks) by_block_[block.id] = segment;
  to_pack_.push_back(segment);
  all_.push_back(std::move(segment));
}

void SegmentStore::assign(Segment& segment) {
  if (segment.device != nullptr) return;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (ActiveDevice* const device : devices_) {
    std::uint64_t load = 0;
    for (const SegmentPtr& s : all_) load += s->device == device ? s->residues : 0;
    if (!device->lost && load < least) {
      least = load;
      segment.device = device;
    }
  }
}

void SegmentStore::make(BlockGroups::Groups groups) {
  if (groups.empty()) return;
  {
    const MutexLock lock(mutex_);
    if (board_ == nullptr) return;
    for (std::vector<BlockRef>& blocks : groups) {
      add(std::make_shared<Segment>(std::move(blocks), *board_));
      assign(*all_.back());
    }
  }
  counters_.update([&](Statistics& s) { s.segments += groups.size(); });
  changed_.raise();
}

void SegmentStore::split(const SegmentPtr& segment) {
  const std::vector<BlockRef>& blocks = segment->blocks;
  const auto half = blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2);
  for (const bool second : {false, true}) {
    auto part = std::make_shared<Segment>(
        std::vector<BlockRef>(second ? half : blocks.begin(), second ? blocks.end() : half),
        *board_);
    part->device = segment->device;
    add(std::move(part));
  }
  segment->abandoned = true;  // a lane that was offered it before has no use for it
  std::erase(all_, segment);
}

bool SegmentStore::evict(const ActiveDevice& device) {
  SegmentPtr victim;
  for (const SegmentPtr& s : all_) {
    if (s->device != &device || s->resident == nullptr || s->in_use > 0) continue;
    if (victim == nullptr || s->last_use < victim->last_use) victim = s;
  }
  if (victim == nullptr) return false;
  victim->resident.reset();
  victim->packed.reset();
  to_pack_.push_back(victim);
  return true;
}

bool SegmentStore::drop_if_done(const SegmentPtr& segment) {
  if (!streaming_ || board_ == nullptr || segment->in_use > 0) return false;
  if (!board_->close_if_done(segment->shard)) return false;
  for (const BlockRef& block : segment->blocks) {
    const auto found = by_block_.find(block.id);
    if (found != by_block_.end() && found->second == segment) by_block_.erase(found);
  }
  std::erase(to_pack_, segment);
  std::erase(all_, segment);
  return true;
}

// Also those whose work the CPU has done: no lane has had them, and perhaps not the packer.
void SegmentStore::drop_finished(std::vector<SegmentPtr>& dropped) {
  if (!streaming_) return;
  const std::vector<SegmentPtr> all = all_;
  for (const SegmentPtr& segment : all) {
    if (drop_if_done(segment)) dropped.push_back(segment);
  }
}

// Lanes drop segments as they finish from now on. Those that are finished already are dropped here,
// or their blocks would hold the memory that reading waits for.
void SegmentStore::set_streaming() {
  std::vector<SegmentPtr> dropped;
  const MutexLock lock(mutex_);
  streaming_ = true;
  drop_finished(dropped);
}

SegmentPtr SegmentStore::take_to_pack() {
  const MutexLock lock(mutex_);
  if (to_pack_.empty() || board_ == nullptr) return nullptr;
  std::size_t waiting = 0;
  for (const SegmentPtr& s : all_) {
    waiting += s->packed != nullptr && s->resident == nullptr && !s->abandoned &&
               !s->packed->targets.residues.empty() && board_->open_models(s->shard) > 0;
  }
  if (waiting >= copies_) return nullptr;
  SegmentPtr next = std::move(to_pack_.front());
  to_pack_.pop_front();
  return next;
}

void SegmentStore::packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed) {
  {
    const MutexLock lock(mutex_);
    segment->packed = std::move(packed);
  }
  changed_.raise();
}

std::vector<SegmentPtr> SegmentStore::leave(const ActiveDevice& device) {
  std::vector<SegmentPtr> abandoned;
  std::vector<std::shared_ptr<DeviceTargets>> freed;
  {
    const MutexLock lock(mutex_);
    for (const SegmentPtr& s : all_) {
      if (s->device != &device || s->in_use > 0) continue;
      s->device = nullptr;
      assign(*s);
      if (s->device == nullptr) {
        s->abandoned = true;
        abandoned.push_back(s);
      } else if (s->resident != nullptr) {
        freed.push_back(std::move(s->resident));
        s->packed.reset();
        to_pack_.push_back(s);
      }
    }
  }
  changed_.raise();
  return abandoned;
}

bool SegmentStore::has_been_resident(BlockId block) const {
  const MutexLock lock(mutex_);
  const auto found = by_block_.find(block);
  return found != by_block_.end() && found->second->has_been_resident && !found->second->abandoned;
}

SegmentStore::Offer SegmentStore::offer(const ActiveDevice& device) {
  std::vector<SegmentPtr> dropped;
  Offer out;
  const MutexLock lock(mutex_);
  drop_finished(dropped);
  if (board_ == nullptr) return out;
  for (const SegmentPtr& s : all_) {
    if (s->device != &device || s->abandoned || board_->open_models(s->shard) == 0) continue;
    if (s->resident != nullptr) {
      out.resident.push_back(s);
    } else if (s->packed != nullptr && !s->loading && out.to_load == nullptr) {
      out.to_load = s;
    }
  }
  return out;
}

// Keeps the targets of a segment on their device.
class SegmentStore::Work {
 public:
  explicit Work(SegmentStore& owner) : owner_(owner) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    if (segment_ == nullptr) return;
    targets_.reset();  // from now on the segment may be evicted
    owner_.end_use(segment_, nullptr);
  }
  DeviceTargets* begin(SegmentPtr segment, std::shared_ptr<DeviceTargets> targets) {
    segment_ = std::move(segment);
    targets_ = std::move(targets);
    return targets_.get();
  }

 private:
  SegmentStore& owner_;
  SegmentPtr segment_;
  std::shared_ptr<DeviceTargets> targets_;
};

std::shared_ptr<DeviceTargets> SegmentStore::begin_work(const ActiveDevice& device,
                                                        const SegmentPtr& segment) {
  auto work = std::make_shared<Work>(*this);
  const MutexLock lock(mutex_);
  if (segment->device != &device || segment->resident == nullptr) return nullptr;
  ++segment->in_use;
  segment->last_use = ++uses_;
  DeviceTargets* const targets = work->begin(segment, segment->resident);
  return {std::move(work), targets};
}

std::optional<SegmentStore::Loading> SegmentStore::begin_load(ActiveDevice& device,
                                                              const SegmentPtr& segment,
                                                              bool beside_work) {
  const MutexLock lock(mutex_);
  if (segment->device != &device || segment->packed == nullptr || segment->resident != nullptr ||
      segment->loading || segment->abandoned)
    return std::nullopt;
  const PackedSegment& packed = *segment->packed;
  const DeviceMemory::Load load{.bytes = DeviceTargets::bytes_for(packed),
                                .buffers = static_cast<std::uint64_t>(device.lanes) *
                                               Cascade::bytes_for(packed.targets.size()) +
                                           static_cast<std::uint64_t>(device.domain_lanes) *
                                               DomainStage::bytes(device.domain_workspace)};
  if (beside_work) {
    if (!device.memory.begin_load_beside_work(load)) return std::nullopt;
  } else {
    while (!device.memory.begin_load(load)) {
      if (!evict(device)) return std::nullopt;
      counters_.update([](Statistics& s) { ++s.evictions; });
      changed_.raise();
    }
  }
  segment->loading = true;
  ++segment->in_use;
  segment->last_use = ++uses_;
  return Loading{segment->packed, load};
}

void SegmentStore::loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets) {
  std::vector<std::uint8_t> residues;
  const MutexLock lock(mutex_);
  counters_.update([&](Statistics& s) { s.upload_bytes += targets->bytes(); });
  segment->resident = segment->device->memory.keep(std::move(targets));
  segment->has_been_resident = true;
  // The device has them; if they are evicted, they are packed again.
  residues.swap(segment->packed->targets.residues);
}

bool SegmentStore::did_not_fit(const SegmentPtr& segment) {
  bool abandoned = false;
  {
    const MutexLock lock(mutex_);
    segment->device->memory.reduce_to_what_is_held();
    abandoned = segment->blocks.size() < 2 || board_ == nullptr;
    if (abandoned) {
      segment->abandoned = true;
    } else {
      split(segment);
    }
  }
  changed_.raise();
  return abandoned;
}

void SegmentStore::end_use(const SegmentPtr& segment, const Loading* loading) {
  {
    const MutexLock lock(mutex_);
    if (loading != nullptr) {
      segment->device->memory.end_load(loading->load);
      segment->loading = false;
    }
    --segment->in_use;
    drop_if_done(segment);
  }
  changed_.raise();
}

std::size_t SegmentStore::open_pairs(const ActiveDevice& device) const {
  const MutexLock lock(mutex_);
  std::size_t pairs = 0;
  for (const SegmentPtr& s : all_) {
    if (s->device == &device && board_ != nullptr) pairs += board_->open_models(s->shard);
  }
  return pairs;
}

}  // namespace hmmjit::gpu
