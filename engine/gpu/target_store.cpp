#include "gpu/target_store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "gpu/active_device.hpp"
#include "gpu/cascade.hpp"
#include "gpu/change_signal.hpp"
#include "gpu/gpu_filters.hpp"

namespace hmmjit::gpu {
namespace {

using State = Segment::State;

}  // namespace

// ---- BlockGroups -------------------------------------------------------------------------------

void BlockGroups::begin(std::uint64_t host_bytes) {
  open_ = true;
  host_bytes_ = host_bytes;
  next_residues_ = settings_.segment_residues;
}

std::uint64_t BlockGroups::devices() const {
  return std::max<std::uint64_t>(settings_.devices.size(), 1);
}

std::uint64_t BlockGroups::segment_residues(std::uint64_t device_bytes, bool at_once) const {
  std::uint64_t most = at_once ? settings_.segment_residues : next_residues_;
  // At most half the device memory, so that one segment can load while another is in use.
  if (settings_.vram > 0) most = std::min(most, settings_.vram / 4);
  most = std::min(most, device_bytes / 4);
  // For each device, one packed copy waits while the next one is made.
  if (host_bytes_ > 0) most = std::min(most, host_bytes_ / (devices() + 1));
  return std::max<std::uint64_t>(most, 1);
}

BlockGroups::Groups BlockGroups::add(BlockRef block, std::uint64_t device_bytes, bool at_once) {
  if (!open_) return {};
  residues_ += block.targets->residue_count();
  blocks_.push_back(std::move(block));
  std::uint64_t rounds = residues_ / (segment_residues(device_bytes, false) * devices());
  if (residues_ >= segment_residues(device_bytes, at_once) * devices())
    rounds = std::max<std::uint64_t>(rounds, 1);
  Groups out = take(rounds);
  if (!out.empty())
    next_residues_ = std::min(next_residues_ * settings_.segment_growth, settings_.largest_segment);
  return out;
}

BlockGroups::Groups BlockGroups::rest(std::uint64_t device_bytes) {
  if (blocks_.empty()) return {};
  const std::uint64_t round = segment_residues(device_bytes, false) * devices();
  return take(std::max<std::uint64_t>((residues_ + round - 1) / round, 1));
}

// The block that completes a round makes its segments a little larger, not twice as many.
BlockGroups::Groups BlockGroups::take(std::uint64_t rounds) {
  if (rounds == 0) return {};
  const std::uint64_t pieces = rounds * devices();
  const std::uint64_t total = std::exchange(residues_, 0);
  std::uint64_t reached = 0, made = 0;
  Groups out(1);
  for (BlockRef& block : std::exchange(blocks_, {})) {
    if (!out.back().empty() && reached * pieces >= total * (made + 1)) {
      out.emplace_back();
      made = reached * pieces / std::max<std::uint64_t>(total, 1);
    }
    reached += block.targets->residue_count();
    out.back().push_back(std::move(block));
  }
  return out;
}

std::vector<BlockRef> BlockGroups::end() {
  open_ = false;
  residues_ = 0;
  return std::exchange(blocks_, {});
}

// ---- a search begins and ends ------------------------------------------------------------------

void TargetStore::attach(WorkBoard& board, std::uint64_t host_bytes) {
  release_unknown();
  const MutexLock lock(mutex_);
  board_ = &board;
  streaming_ = false;
  groups_.begin(host_bytes);
}

// Called by destructors, so it must not allocate.
void TargetStore::clear() {
  Segments ended, kept;
  std::map<BlockId, SegmentPtr> by_block;
  std::vector<BlockRef> blocks;
  {
    const MutexLock lock(mutex_);
    board_ = nullptr;
    blocks = groups_.end();
    ended.swap(all_);
    by_block.swap(by_block_);
    to_pack_.clear();  // all of them are in `ended`
    kept.swap(kept_);
    for (auto at = ended.begin(); at != ended.end();) {
      const auto segment = at++;
      if ((*segment)->state == State::kResident && (*segment)->in_use == 0 &&
          !(*segment)->views.empty() && !(*segment)->device->lost)
        kept.splice(kept.end(), ended, segment);
    }
  }
  for (const SegmentPtr& segment : kept) {
    for (BlockRef& block : segment->blocks) block.targets.reset();
  }
  const MutexLock lock(mutex_);
  kept_.splice(kept_.end(), kept);
}

void TargetStore::release_unknown() {
  Segments unknown;
  const MutexLock lock(mutex_);
  for (auto at = kept_.begin(); at != kept_.end();) {
    const auto segment = at++;
    if (std::ranges::any_of((*segment)->views, [](const auto& v) { return v.owner.expired(); }))
      unknown.splice(unknown.end(), kept_, segment);
  }
}

void TargetStore::forget() {
  clear();
  Segments kept;
  const MutexLock lock(mutex_);
  kept.swap(kept_);
}

void TargetStore::use_devices(std::vector<ActiveDevice*> devices) {
  const MutexLock lock(mutex_);
  devices_ = std::move(devices);
  for (const SegmentPtr& segment : all_) assign(*segment);
}

// From now on, lanes drop segments when they finish. Those that have already finished are dropped
// here; otherwise their blocks would hold the memory for which reading waits.
void TargetStore::set_streaming() {
  std::vector<SegmentPtr> dropped;
  const MutexLock lock(mutex_);
  streaming_ = true;
  drop_finished(dropped);
}

// ---- segments are made -------------------------------------------------------------------------

std::uint64_t TargetStore::device_bytes() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const ActiveDevice* device : devices_) least = std::min(least, device->memory.budget());
  return least;
}

bool TargetStore::any_device_waits() const {
  for (const ActiveDevice* device : devices_) {
    bool waits = !device->lost;
    for (const SegmentPtr& s : all_)
      waits = waits && (s->device != device || board_->open_models(s->id) == 0);
    if (waits) return true;
  }
  return false;
}

void TargetStore::add(BlockRef block) {
  BlockRef unused;  // destroyed without the lock
  MutexLock lock(mutex_);
  if (board_ == nullptr) {
    unused = std::move(block);
    return;
  }
  const std::size_t made =
      find_kept(block) ? 1
                       : make(groups_.add(std::move(block), device_bytes(), any_device_waits()));
  lock.unlock();
  if (made > 0) changed_.raise();
}

void TargetStore::flush() {
  {
    const MutexLock lock(mutex_);
    if (board_ == nullptr) return;
    // Segments whose blocks have not all arrived are of no use.
    for (const SegmentPtr& segment : kept_) {
      for (BlockRef& block : segment->blocks) {
        if (block.targets != nullptr)
          make(groups_.add(std::exchange(block, {}), device_bytes(), false));
      }
    }
    make(groups_.rest(device_bytes()));
  }
  changed_.raise();
}

std::size_t TargetStore::make(BlockGroups::Groups groups, ActiveDevice* device) {
  for (std::vector<BlockRef>& blocks : groups) {
    auto segment = std::make_shared<Segment>();
    for (const BlockRef& block : blocks) segment->residues += block.targets->residue_count();
    segment->blocks = std::move(blocks);
    segment->device = device;
    assign(*segment);
    to_pack_.push_back(segment);
    insert(std::move(segment));
  }
  return groups.size();
}

void TargetStore::insert(SegmentPtr segment) {
  std::vector<BlockId> ids;
  for (const BlockRef& block : segment->blocks) {
    ids.push_back(block.id);
    by_block_[block.id] = segment;
  }
  segment->id = board_->make_segment(std::move(ids));
  segment->lanes_without_room.clear();
  all_.push_back(std::move(segment));
  counters_.update([](Statistics& s) { ++s.segments; });
}

bool TargetStore::find_kept(const BlockRef& block) {
  const TargetBlock& targets = *block.targets;
  const std::shared_ptr<const void>& owner = targets.owner();
  if (owner == nullptr) return false;
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    Segment& segment = **at;
    const auto view = std::ranges::find_if(segment.views, [&](const Segment::View& v) {
      return !v.owner.owner_before(owner) && !owner.owner_before(v.owner) &&
             v.residues == targets.packed_residues().data() && v.targets == targets.size();
    });
    if (view == segment.views.end() || segment.device->lost) continue;
    BlockRef& place = segment.blocks[static_cast<std::size_t>(view - segment.views.begin())];
    if (place.targets != nullptr) continue;
    place = block;
    by_block_[block.id] = *at;  // from now on it waits for its device; see has_been_resident()
    if (std::ranges::all_of(segment.blocks,
                            [](const BlockRef& b) { return b.targets != nullptr; })) {
      insert(*at);
      kept_.erase(at);
    }
    return true;
  }
  return false;
}

void TargetStore::assign(Segment& segment) {
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

void TargetStore::split(const SegmentPtr& segment) {
  const std::vector<BlockRef>& blocks = segment->blocks;
  const auto half = blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2);
  make({{blocks.begin(), half}, {half, blocks.end()}}, segment->device);
  std::erase(all_, segment);
}

void TargetStore::pack_again(const SegmentPtr& segment) {
  segment->state = State::kUnpacked;
  segment->packed.reset();
  to_pack_.push_back(segment);
}

// ---- finished segments -------------------------------------------------------------------------

bool TargetStore::drop_if_done(const SegmentPtr& segment) {
  if (!streaming_ || board_ == nullptr || segment->in_use > 0) return false;
  if (!board_->close_if_done(segment->id)) return false;
  for (const BlockRef& block : segment->blocks) {
    const auto found = by_block_.find(block.id);
    if (found != by_block_.end() && found->second == segment) by_block_.erase(found);
  }
  std::erase(to_pack_, segment);
  std::erase(all_, segment);
  return true;
}

// Includes those whose work the CPU has done: no lane has had them, and perhaps not the packer.
void TargetStore::drop_finished(std::vector<SegmentPtr>& dropped) {
  if (!streaming_) return;
  const Segments all = all_;
  for (const SegmentPtr& segment : all) {
    if (drop_if_done(segment)) dropped.push_back(segment);
  }
}

// ---- packing -----------------------------------------------------------------------------------

SegmentPtr TargetStore::take_to_pack() {
  const MutexLock lock(mutex_);
  if (to_pack_.empty() || board_ == nullptr) return nullptr;
  std::size_t waiting = 0;
  for (const SegmentPtr& s : all_) {
    waiting += (s->state == State::kPacked || s->state == State::kLoading) &&
               !s->packed->targets.residues.empty() && board_->open_models(s->id) > 0;
  }
  // At most one per device may wait.
  if (waiting >= settings_.devices.size()) return nullptr;
  SegmentPtr next = std::move(to_pack_.front());
  to_pack_.pop_front();
  return next;
}

void TargetStore::packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed) {
  {
    const MutexLock lock(mutex_);
    segment->packed = std::move(packed);
    if (segment->state == State::kUnpacked) segment->state = State::kPacked;
  }
  changed_.raise();
}

// ---- devices -----------------------------------------------------------------------------------

std::vector<SegmentPtr> TargetStore::leave(const ActiveDevice& device) {
  std::vector<SegmentPtr> abandoned;
  std::vector<std::shared_ptr<DeviceTargets>> freed;
  {
    const MutexLock lock(mutex_);
    for (const SegmentPtr& s : all_) {
      if (s->device != &device || s->in_use > 0) continue;
      s->device = nullptr;
      assign(*s);
      if (s->device == nullptr) {
        s->state = State::kAbandoned;
        abandoned.push_back(s);
      } else if (s->state == State::kResident) {
        freed.push_back(std::move(s->resident));
        pack_again(s);
      }
    }
  }
  changed_.raise();
  return abandoned;
}

bool TargetStore::has_been_resident(BlockId block) const {
  const MutexLock lock(mutex_);
  const auto found = by_block_.find(block);
  return found != by_block_.end() && found->second->has_been_resident &&
         found->second->state != State::kAbandoned;
}

TargetStore::Offer TargetStore::offer(const ActiveDevice& device, int lane) {
  std::vector<SegmentPtr> dropped;
  Offer out;
  const MutexLock lock(mutex_);
  drop_finished(dropped);
  if (board_ == nullptr) return out;
  for (const SegmentPtr& s : all_) {
    if (s->device != &device || board_->open_models(s->id) == 0) continue;
    if (s->state == State::kResident && !std::ranges::count(s->lanes_without_room, lane))
      out.resident.push_back(s);
    if (s->state == State::kPacked && out.to_load == nullptr) out.to_load = s;
  }
  return out;
}

std::shared_ptr<DeviceTargets> TargetStore::begin_work(const ActiveDevice& device,
                                                       const SegmentPtr& segment) {
  std::shared_ptr<DeviceTargets> targets;
  {
    const MutexLock lock(mutex_);
    if (segment->device != &device || segment->state != State::kResident) return nullptr;
    ++segment->in_use;
    segment->last_use = ++uses_;
    targets = segment->resident;
  }
  DeviceTargets* const resident = targets.get();
  // Also called if there is no memory for the result.
  auto end = [this, segment, targets = std::move(targets)](DeviceTargets*) mutable {
    targets.reset();  // from now on the segment may be evicted
    end_use(segment, nullptr);
  };
  return {resident, std::move(end)};
}

std::optional<TargetStore::Loading> TargetStore::begin_load(ActiveDevice& device,
                                                            const SegmentPtr& segment,
                                                            bool beside_work) {
  const MutexLock lock(mutex_);
  if (segment->device != &device || segment->state != State::kPacked) return std::nullopt;
  const PackedSegment& packed = *segment->packed;
  const DeviceMemory::Reservation load{.bytes = DeviceTargets::bytes_for(packed),
                                       .buffers = static_cast<std::uint64_t>(device.lanes) *
                                                      Cascade::bytes_for(packed.targets.size()) +
                                                  static_cast<std::uint64_t>(device.domain_lanes) *
                                                      DomainStage::bytes(device.domain_workspace)};
  while (!device.memory.begin_load(load, beside_work)) {
    if (evict_kept(device)) continue;
    if (beside_work || !evict(device)) return std::nullopt;
    counters_.update([](Statistics& s) { ++s.evictions; });
    changed_.raise();
  }
  segment->state = State::kLoading;
  ++segment->in_use;
  segment->last_use = ++uses_;
  return Loading{segment->packed, load};
}

bool TargetStore::evict(const ActiveDevice& device) {
  SegmentPtr victim;
  for (const SegmentPtr& s : all_) {
    if (s->device != &device || s->state != State::kResident || s->in_use > 0) continue;
    if (victim == nullptr || s->last_use < victim->last_use) victim = s;
  }
  if (victim == nullptr) return false;
  victim->resident.reset();
  pack_again(victim);
  return true;
}

bool TargetStore::evict_kept(const ActiveDevice& device) {
  const auto victim = std::ranges::find_if(kept_, [&](const SegmentPtr& segment) {
    return segment->device == &device &&
           std::ranges::all_of(segment->blocks,
                               [](const BlockRef& block) { return block.targets == nullptr; });
  });
  if (victim == kept_.end()) return false;
  kept_.erase(victim);
  return true;
}

bool TargetStore::make_room(const ActiveDevice& device) {
  const MutexLock lock(mutex_);
  return evict_kept(device);
}

void TargetStore::loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets) {
  std::vector<std::uint8_t> residues;
  const MutexLock lock(mutex_);
  counters_.update([&](Statistics& s) { s.upload_bytes += targets->bytes(); });
  segment->resident = segment->device->memory.keep(std::move(targets));
  segment->state = State::kResident;
  segment->has_been_resident = true;
  segment->lanes_without_room.clear();
  segment->views.clear();
  if (std::ranges::none_of(segment->blocks, [](const BlockRef& block) {
        return block.targets->packed_residues().empty();
      })) {
    for (const BlockRef& block : segment->blocks) {
      const TargetBlock& view = *block.targets;
      segment->views.push_back({view.owner(), view.packed_residues().data(), view.size()});
    }
  }
  // The device has them now; if they are evicted, they are packed again.
  residues.swap(segment->packed->targets.residues);
}

bool TargetStore::did_not_fit(const SegmentPtr& segment, std::uint64_t free) {
  bool abandoned = false;
  {
    const MutexLock lock(mutex_);
    segment->device->memory.reduce(free);
    while (evict_kept(*segment->device)) {
    }
    segment->state = State::kAbandoned;  // a lane that was offered it before has no use for it
    abandoned = segment->blocks.size() < 2 || board_ == nullptr;
    if (!abandoned) split(segment);
  }
  changed_.raise();
  return abandoned;
}

bool TargetStore::has_no_room(const SegmentPtr& segment, int lane) {
  std::shared_ptr<DeviceTargets> freed;
  const MutexLock lock(mutex_);
  std::vector<int>& lanes = segment->lanes_without_room;
  lanes.push_back(lane);
  if (std::ssize(lanes) < segment->device->lanes) return false;
  segment->state = State::kAbandoned;
  freed = std::move(segment->resident);
  return true;
}

void TargetStore::end_use(const SegmentPtr& segment, const Loading* loading) {
  {
    const MutexLock lock(mutex_);
    if (loading != nullptr) {
      segment->device->memory.end_load(loading->load);
      if (segment->state == State::kLoading) segment->state = State::kPacked;
    }
    --segment->in_use;
    drop_if_done(segment);
  }
  changed_.raise();
}

std::size_t TargetStore::open_pairs(const ActiveDevice& device) const {
  const MutexLock lock(mutex_);
  std::size_t pairs = 0;
  for (const SegmentPtr& s : all_) {
    if (s->device == &device && board_ != nullptr) pairs += board_->open_models(s->id);
  }
  return pairs;
}

}  // namespace hmmjit::gpu
