#include "gpu/resident_segments.hpp"

#include <utility>

#include "gpu/cascade.hpp"
#include "gpu/domain_stage.hpp"

namespace hmmjit::gpu {

ResidentSegments::Offer ResidentSegments::offer(const ActiveDevice& device) {
  std::vector<SegmentPtr> dropped;
  Offer out;
  const MutexLock lock(book_.mutex);
  book_.drop_finished(dropped);
  if (book_.board == nullptr) return out;
  for (const SegmentPtr& s : book_.table.all) {
    if (s->device_ != &device || s->abandoned_ || book_.board->open_models(s->shard()) == 0)
      continue;
    if (s->resident_ != nullptr) {
      out.resident.push_back(s);
    } else if (s->packed_ != nullptr && !s->loading_ && out.to_load == nullptr) {
      out.to_load = s;
    }
  }
  return out;
}

// What keeps the targets of a segment on their device.
class ResidentSegments::Work {
 public:
  explicit Work(ResidentSegments& owner) : owner_(owner) {}
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
  ResidentSegments& owner_;
  SegmentPtr segment_;
  std::shared_ptr<DeviceTargets> targets_;
};

std::shared_ptr<DeviceTargets> ResidentSegments::begin_work(const ActiveDevice& device,
                                                            const SegmentPtr& segment) {
  auto work = std::make_shared<Work>(*this);
  const MutexLock lock(book_.mutex);
  if (segment->device_ != &device || segment->resident_ == nullptr) return nullptr;
  ++segment->in_use_;
  segment->last_use_ = ++book_.uses;
  DeviceTargets* const targets = work->begin(segment, segment->resident_);
  return {std::move(work), targets};
}

std::optional<ResidentSegments::Loading> ResidentSegments::begin_load(ActiveDevice& device,
                                                                      const SegmentPtr& segment,
                                                                      bool beside_work) {
  const MutexLock lock(book_.mutex);
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
      if (!book_.table.evict(device)) return std::nullopt;
      book_.counters.update([](Statistics& s) { ++s.evictions; });
      book_.changed.raise();
    }
  }
  segment->loading_ = true;
  ++segment->in_use_;
  segment->last_use_ = ++book_.uses;
  return Loading{segment->packed_, load};
}

void ResidentSegments::loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets) {
  std::vector<std::uint8_t> residues;
  const MutexLock lock(book_.mutex);
  book_.counters.update([&](Statistics& s) { s.upload_bytes += targets->bytes(); });
  segment->resident_ = segment->device_->memory.keep(std::move(targets));
  segment->has_been_resident_ = true;
  // The device has them; should they be evicted, they are packed again.
  residues.swap(segment->packed_->targets.residues);
}

bool ResidentSegments::did_not_fit(const SegmentPtr& segment) {
  bool abandoned = false;
  {
    const MutexLock lock(book_.mutex);
    segment->device_->memory.reduce_to_what_is_held();
    abandoned = segment->blocks().size() < 2 || book_.board == nullptr;
    if (abandoned) {
      segment->abandoned_ = true;
    } else {
      book_.table.split(segment, *book_.board);
    }
  }
  book_.changed.raise();
  return abandoned;
}

void ResidentSegments::end_load(const SegmentPtr& segment, const Loading& loading) {
  end_use(segment, &loading);
}

void ResidentSegments::end_use(const SegmentPtr& segment, const Loading* loading) {
  {
    const MutexLock lock(book_.mutex);
    if (loading != nullptr) {
      segment->device_->memory.end_load(loading->load);
      segment->loading_ = false;
    }
    --segment->in_use_;
    book_.drop_if_done(segment);
  }
  book_.changed.raise();
}

std::size_t ResidentSegments::open_pairs(const ActiveDevice& device) const {
  const MutexLock lock(book_.mutex);
  std::size_t pairs = 0;
  for (const SegmentPtr& s : book_.table.all) {
    if (s->device_ == &device && book_.board != nullptr)
      pairs += book_.board->open_models(s->shard());
  }
  return pairs;
}

}  // namespace hmmjit::gpu
