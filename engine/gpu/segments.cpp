#include <limits>

#include "gpu/gpu_filters_state.hpp"

namespace hmmjit::gpu {

void GpuFilters::State::close_segment(std::size_t first, std::size_t last) {
  auto segment = std::make_shared<Segment>();
  std::vector<BlockId> ids;
  for (std::size_t i = first; i < last; ++i) {
    BlockRef& block = loose[i];
    segment->residues += block.targets->residue_count();
    ids.push_back(block.id);
    segment_of[block.id] = segment;
    segment->blocks.push_back(std::move(block));
  }
  segment->shard = board->make_shard(std::move(ids));
  ++stats.segments;
  segments.push_back(segment);
  to_pack.push_back(segment);
  if (phase == Phase::kReady) assign(*segment);
}

void GpuFilters::State::assign(Segment& segment) {
  if (segment.device >= 0 || devices.empty()) return;
  std::vector<std::uint64_t> load(devices.size(), 0);
  for (const SegmentPtr& s : segments) {
    if (s->device >= 0) load[static_cast<std::size_t>(s->device)] += s->residues;
  }
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (!devices[d]->lost && load[d] < best) {
      best = load[d];
      segment.device = static_cast<int>(d);
    }
  }
}

void GpuFilters::State::close_segments(bool all) {
  if (phase == Phase::kFailed || loose.empty()) return;
  const auto shares = static_cast<std::uint64_t>(std::max<std::size_t>(settings.devices.size(), 1));
  std::uint64_t most = next_segment_residues;
  // Half the device memory at most, so that two segments fit and one loads while one is used.
  if (settings.vram > 0) most = std::min(most, settings.vram / 4);
  for (const auto& device : devices) most = std::min(most, device->budget / 4);
  // A packed copy waits for each device while the next one is made.
  if (host_bytes > 0) most = std::min(most, host_bytes / (shares + 1));
  most = std::max<std::uint64_t>(most, 1);
  const std::uint64_t round = most * shares;
  if (!all && loose_residues < round) return;
  // The block that completes a round makes its segments a little larger, not twice as many.
  const std::uint64_t rounds = (loose_residues + (all ? round - 1 : 0)) / round;
  const std::uint64_t pieces = std::max<std::uint64_t>(rounds, 1) * shares;
  const std::uint64_t total = loose_residues;
  std::uint64_t reached = 0, made = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < loose.size(); ++i) {
    reached += loose[i].targets->residue_count();
    if (i + 1 < loose.size() && reached * pieces < total * (made + 1)) continue;
    close_segment(first, i + 1);
    first = i + 1;
    made = reached * pieces / std::max<std::uint64_t>(total, 1);
  }
  loose.clear();
  loose_residues = 0;
  const std::uint64_t largest = std::max(settings.segment_residues, settings.largest_segment);
  next_segment_residues = std::min(next_segment_residues * settings.segment_growth, largest);
  wake.notify_all();
}

SegmentPtr GpuFilters::State::next_to_pack() const {
  if (to_pack.empty()) return nullptr;
  std::size_t ahead = 0;
  for (const SegmentPtr& s : segments) {
    ahead += s->packed != nullptr && s->resident == nullptr && !s->abandoned && has_open(*s) &&
             !s->packed->targets.residues.empty();
  }
  return ahead < settings.devices.size() ? to_pack.front() : nullptr;
}

void GpuFilters::State::run_packer() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return stop || next_to_pack() != nullptr; });
    if (stop) return;
    SegmentPtr segment = next_to_pack();
    to_pack.pop_front();
    ++holders;
    lock.unlock();
    const double begun = Trace::now();
    std::shared_ptr<PackedSegment> packed;
    try {
      packed = std::make_shared<PackedSegment>(pack_segment(segment->blocks));
    } catch (const std::bad_alloc&) {
      // Without a packed copy the owner's threads do these blocks.
    }
    const double done = Trace::now();
    span("gpu start", 1, "pack", begun, done);
    lock.lock();
    stats.pack_seconds += done - begun;
    if (packed != nullptr) {
      segment->packed = std::move(packed);
      wake.notify_all();
    } else {
      segment->abandoned = true;
      lock.unlock();
      release_abandoned(segment);
      lock.lock();
    }
    let_go(lock, segment);
  }
}

void GpuFilters::State::let_go(std::unique_lock<std::mutex>& lock, SegmentPtr& segment) {
  std::vector<SegmentPtr> victims;
  victims.swap(dropped);
  lock.unlock();
  segment.reset();
  victims.clear();
  lock.lock();
  --holders;
  quiet.notify_all();
}

void GpuFilters::State::release_abandoned(const SegmentPtr& segment) {
  call_client([&](Client&, WorkBoard& b) { b.refuse_shard(segment->shard); });
}

void GpuFilters::State::give_back(std::vector<Claim> claims) {
  {
    const std::lock_guard lock(mutex);
    for (const Claim& claim : claims) stats.blocks_given_back += claim ? 1 : 0;
  }
  claims.clear();
}

std::uint64_t GpuFilters::State::resident_bytes(const DeviceState& d) const {
  std::uint64_t bytes = 0;
  for (const SegmentPtr& s : segments) {
    if (s->device == d.position && s->resident != nullptr) bytes += s->resident->bytes();
  }
  return bytes;
}

bool GpuFilters::State::has_room(const DeviceState& d, const Task& load) const {
  const std::uint64_t lanes_need =
      static_cast<std::uint64_t>(d.lanes) *
          Cascade::bytes_for(load.segment->packed->targets.size()) +
      static_cast<std::uint64_t>(d.domain_lanes) * DomainStage::bytes(d.domain_workspace);
  return resident_bytes(d) + d.loading_bytes + std::max(d.lane_bytes, lanes_need) + load.bytes <=
         d.budget;
}

bool GpuFilters::State::make_room(DeviceState& d, const Task& load) {
  for (;;) {
    if (has_room(d, load) || resident_bytes(d) + d.loading_bytes == 0) return true;
    SegmentPtr victim;
    for (const SegmentPtr& s : segments) {
      if (s->device != d.position || s->resident == nullptr || s->running > 0) continue;
      if (victim == nullptr || s->last_use < victim->last_use) victim = s;
    }
    if (victim == nullptr) return false;
    victim->resident.reset();
    victim->packed.reset();
    to_pack.push_back(victim);
    wake.notify_all();
    ++stats.evictions;
  }
}

void GpuFilters::State::forget_if_done(const SegmentPtr& segment) {
  if (!streaming || board == nullptr || segment->running > 0) return;
  if (!board->close_if_done(segment->shard)) return;
  for (const BlockRef& block : segment->blocks) segment_of.erase(block.id);
  dropped.push_back(segment);
  std::erase(segments, segment);
}

void GpuFilters::State::forget_finished() {
  if (!streaming) return;
  const std::vector<SegmentPtr> all = segments;
  for (const SegmentPtr& segment : all) {
    if ((segment->packed != nullptr || segment->abandoned) && !segment->loading)
      forget_if_done(segment);
  }
}

Cascade::Resize GpuFilters::State::resize_on(DeviceState& d) {
  return [this, &d](std::size_t from, std::size_t to) -> Status {
    const std::lock_guard lock(mutex);
    d.lane_bytes -= from;
    if (to > from && resident_bytes(d) + d.loading_bytes + d.lane_bytes + to > d.budget) {
      return fail(
          ErrorCode::kResources,
          fmt::format("buffers of {} bytes for a model exceed the device memory to be used", to));
    }
    d.lane_bytes += to;
    note_peak(d);
    return {};
  };
}

void GpuFilters::State::note_peak(const DeviceState& d) {
  stats.peak_device_bytes = std::max(stats.peak_device_bytes, resident_bytes(d) + d.lane_bytes);
}

Result<std::unique_ptr<DeviceTargets>> GpuFilters::State::upload(
    DeviceState& d, const std::shared_ptr<PackedSegment>& packed) {
  if (d.uploader == nullptr) {
    HMMJIT_ASSIGN(Uploader uploader, Uploader::create(d.device));
    d.uploader = std::make_unique<Uploader>(std::move(uploader));
  }
  return DeviceTargets::create(d.device, packed, *d.uploader);
}

void GpuFilters::State::load(DeviceState& d, const SegmentPtr& segment) {
  const double begun = Trace::now();
  std::shared_ptr<PackedSegment> packed = segment->packed;
  Result<std::unique_ptr<DeviceTargets>> made = fail(ErrorCode::kInternal, "not loaded");
  {
    const std::lock_guard uploading(d.upload_mutex);
    made = upload(d, packed);
  }
  span("gpu upload", d.position, "segment", begun, Trace::now());
  if (made) {
    const std::lock_guard lock(mutex);
    segment->resident = *std::move(made);
    segment->loaded = true;
    // The device has them; should they be evicted, they are packed again.
    std::vector<std::uint8_t>().swap(packed->targets.residues);
    stats.upload_bytes += segment->resident->bytes();
    note_peak(d);
    return;
  }
  if (made.error().code != ErrorCode::kResources) return lose_device(d, made.error());
  no_memory(d, segment, made.error());
}

void GpuFilters::State::no_memory(DeviceState& d, const SegmentPtr& segment, const Error& error) {
  bool abandon = false, tell = false;
  {
    const std::lock_guard lock(mutex);
    // What the device really has is less than was thought.
    d.budget = std::min(d.budget, (resident_bytes(d) + d.lane_bytes) * 9 / 10 + 1);
    if (segment->blocks.size() > 1 && segment->running <= 1 && segment->resident == nullptr) {
      split(segment);
    } else {
      segment->abandoned = abandon = true;
    }
    tell = !std::exchange(warned_memory, true);
  }
  if (tell)
    warn(fmt::format("{}; going on with {}", error.to_string(),
                     abandon ? "the CPU for a part of the targets" : "smaller pieces"));
  if (abandon) release_abandoned(segment);
  wake.notify_all();
}

void GpuFilters::State::split(const SegmentPtr& segment) {
  const std::size_t half = segment->blocks.size() / 2;
  for (const bool second : {false, true}) {
    auto part = std::make_shared<Segment>();
    const auto from = segment->blocks.begin() + (second ? static_cast<std::ptrdiff_t>(half) : 0);
    const auto to = second ? segment->blocks.end()
                           : segment->blocks.begin() + static_cast<std::ptrdiff_t>(half);
    part->blocks.assign(from, to);
    std::vector<BlockId> ids;
    for (const BlockRef& block : part->blocks) {
      ids.push_back(block.id);
      part->residues += block.targets->residue_count();
      segment_of[block.id] = part;
    }
    if (board != nullptr) part->shard = board->make_shard(std::move(ids));
    part->device = segment->device;
    segments.push_back(part);
    to_pack.push_back(part);
  }
  std::erase(segments, segment);
}

}  // namespace hmmjit::gpu
