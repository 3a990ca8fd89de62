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

Segment::Segment(std::vector<BlockRef> blocks, WorkBoard& board)
    : blocks_(std::move(blocks)),
      shard_(board.make_shard(ids_of(blocks_))),
      residues_(residues_of(blocks_)) {}

// ---- what there is ------------------------------------------------------------------------------

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
  for (const BlockRef& block : segment->blocks()) by_block.erase(block.id);
  std::erase(to_pack, segment);
  std::erase(all, segment);
}

// ---- blocks in, segments out --------------------------------------------------------------------

void Segments::attach(WorkBoard& board) {
  const MutexLock lock(mutex_);
  board_ = &board;
  streaming_ = false;
}

void Segments::clear() {
  SegmentTable gone;
  const MutexLock lock(mutex_);
  board_ = nullptr;
  gone.all.swap(table_.all);
  gone.by_block.swap(table_.by_block);
  gone.to_pack.swap(table_.to_pack);
}

void Segments::use_devices(std::vector<ActiveDevice*> devices) {
  const MutexLock lock(mutex_);
  table_.use_devices(std::move(devices));
}

void Segments::make(BlockGroups::Groups groups) {
  if (groups.empty()) return;
  {
    const MutexLock lock(mutex_);
    if (board_ == nullptr) return;
    for (std::vector<BlockRef>& blocks : groups) table_.make(std::move(blocks), *board_);
  }
  counters_.update([&](Statistics& s) { s.segments += groups.size(); });
  changed_.raise();
}

// Lanes drop what they finish from now on; what they have finished already goes here, or its blocks
// would hold the memory that reading waits for.
void Segments::set_streaming() {
  std::vector<SegmentPtr> dropped;
  const MutexLock lock(mutex_);
  streaming_ = true;
  drop_finished(dropped);
}

bool Segments::drop_if_done(const SegmentPtr& segment) {
  if (!streaming_ || board_ == nullptr || segment->in_use_ > 0) return false;
  if (!board_->close_if_done(segment->shard())) return false;
  table_.remove(segment);
  return true;
}

// Those that the host has done are among them: no lane has had them, and perhaps not the packer.
void Segments::drop_finished(std::vector<SegmentPtr>& dropped) {
  if (!streaming_) return;
  const std::vector<SegmentPtr> all = table_.all;
  for (const SegmentPtr& segment : all) {
    if (drop_if_done(segment)) dropped.push_back(segment);
  }
}

// ---- packing ------------------------------------------------------------------------------------

SegmentPtr Segments::take_to_pack(bool& wait) {
  const MutexLock lock(mutex_);
  wait = !table_.to_pack.empty() && board_ != nullptr;
  if (!wait) return nullptr;
  std::size_t waiting = 0;
  for (const SegmentPtr& s : table_.all) {
    waiting += s->packed_ != nullptr && s->resident_ == nullptr && !s->abandoned_ &&
               !s->packed_->targets.residues.empty() && board_->has_open(s->shard());
  }
  if (waiting >= copies_) return nullptr;
  SegmentPtr next = std::move(table_.to_pack.front());
  table_.to_pack.pop_front();
  return next;
}

void Segments::packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed) {
  {
    const MutexLock lock(mutex_);
    segment->abandoned_ = packed == nullptr;
    segment->packed_ = std::move(packed);
  }
  changed_.raise();
}

// ---- on a device --------------------------------------------------------------------------------

Segments::Offer Segments::offer(const ActiveDevice& device) {
  std::vector<SegmentPtr> dropped;
  Offer out;
  const MutexLock lock(mutex_);
  drop_finished(dropped);
  if (board_ == nullptr) return out;
  for (const SegmentPtr& s : table_.all) {
    if (s->device_ != &device || s->abandoned_ || !board_->has_open(s->shard())) continue;
    if (s->resident_ != nullptr) {
      out.resident.push_back(s);
    } else if (s->packed_ != nullptr && !s->loading_ && out.to_load == nullptr) {
      out.to_load = s;
    }
  }
  return out;
}

std::shared_ptr<DeviceTargets> Segments::begin_work(const ActiveDevice& device,
                                                    const SegmentPtr& segment) {
  const MutexLock lock(mutex_);
  if (segment->device_ != &device || segment->resident_ == nullptr) return nullptr;
  ++segment->in_use_;
  segment->last_use_ = ++uses_;
  return segment->resident_;
}

std::optional<Segments::Loading> Segments::begin_load(ActiveDevice& device,
                                                      const SegmentPtr& segment, bool beside_work) {
  const MutexLock lock(mutex_);
  if (segment->device_ != &device || segment->packed_ == nullptr || segment->resident_ != nullptr ||
      segment->loading_ || segment->abandoned_)
    return std::nullopt;
  const PackedSegment& packed = *segment->packed_;
  const DeviceMemory::Load load{.bytes = DeviceTargets::bytes_for(packed),
                                .buffers = static_cast<std::uint64_t>(device.lanes) *
                                               Cascade::bytes_for(packed.targets.size()) +
                                           static_cast<std::uint64_t>(device.domain_lanes) *
                                               DomainStage::bytes(device.domain_workspace)};
  if (beside_work) {
    if (!device.memory.begin_load_beside_work(load)) return std::nullopt;
  } else {
    while (!device.memory.begin_load(load)) {
      if (!table_.evict(device)) return std::nullopt;
      counters_.update([](Statistics& s) { ++s.evictions; });
      changed_.raise();
    }
  }
  segment->loading_ = true;
  ++segment->in_use_;
  segment->last_use_ = ++uses_;
  return Loading{segment->packed_, load};
}

void Segments::loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets) {
  std::vector<std::uint8_t> residues;
  const MutexLock lock(mutex_);
  counters_.update([&](Statistics& s) { s.upload_bytes += targets->bytes(); });
  segment->resident_ = segment->device_->memory.keep(std::move(targets));
  segment->has_been_resident_ = true;
  // The device has them; should they be evicted, they are packed again.
  residues.swap(segment->packed_->targets.residues);
}

bool Segments::did_not_fit(const SegmentPtr& segment) {
  bool abandoned = false;
  {
    const MutexLock lock(mutex_);
    segment->device_->memory.reduce_to_what_is_held();
    abandoned = segment->blocks().size() < 2 || board_ == nullptr;
    if (abandoned) {
      segment->abandoned_ = true;
    } else {
      table_.split(segment, *board_);
    }
  }
  changed_.raise();
  return abandoned;
}

void Segments::end(SegmentPtr segment, const Loading* loading) {
  {
    const MutexLock lock(mutex_);
    if (loading != nullptr) {
      segment->device_->memory.end_load(loading->load);
      segment->loading_ = false;
    }
    --segment->in_use_;
    drop_if_done(segment);
  }
  changed_.raise();
}

std::vector<SegmentPtr> Segments::leave(const ActiveDevice& device) {
  std::vector<SegmentPtr> abandoned;
  std::vector<std::shared_ptr<DeviceTargets>> freed;
  {
    const MutexLock lock(mutex_);
    for (const SegmentPtr& s : table_.all) {
      if (s->device_ != &device || s->in_use_ > 0) continue;
      s->device_ = nullptr;
      table_.assign(*s);
      if (s->device_ == nullptr) {
        s->abandoned_ = true;
        abandoned.push_back(s);
      } else if (s->resident_ != nullptr) {
        freed.push_back(std::move(s->resident_));
        s->packed_.reset();
        table_.to_pack.push_back(s);
      }
    }
  }
  changed_.raise();
  return abandoned;
}

std::size_t Segments::open_pairs(const ActiveDevice& device) const {
  const MutexLock lock(mutex_);
  std::size_t pairs = 0;
  for (const SegmentPtr& s : table_.all) {
    if (s->device_ == &device && board_ != nullptr) pairs += board_->open_models(s->shard());
  }
  return pairs;
}

bool Segments::has_been_resident(BlockId block) const {
  const MutexLock lock(mutex_);
  const auto found = table_.by_block.find(block);
  return found != table_.by_block.end() && found->second->has_been_resident_ &&
         !found->second->abandoned_;
}

}  // namespace hmmjit::gpu
