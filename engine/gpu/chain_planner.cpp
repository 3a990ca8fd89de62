#include "gpu/chain_planner.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/threads.hpp"
#include "gpu/chain_plans.hpp"

namespace hmmjit::gpu {
namespace {

constexpr int kPlanners = 4;

}  // namespace

ChainPlanner::~ChainPlanner() {
  stop();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void ChainPlanner::start(KernelSource& source, const plan::DeviceTraits& device) {
  const MutexLock lock(mutex_);
  if (stop_) return;
  source_ = &source;
  device_ = device;
  threads_.reserve(kPlanners);
  for (int i = 0; i < std::min(kPlanners, available_cores()); ++i)
    threads_.push_back(thread_until_out_of_memory([this] { run(); }, out_of_memory_));
}

void ChainPlanner::stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

const KernelSlots* ChainPlanner::of(const SearchModel& model) {
  const SizeClass key{plan::class_length(model.bytes.M), model.bytes.Kp};
  {
    const MutexLock lock(mutex_);
    if (const auto known = classes_.find(key); known != classes_.end()) return &known->second;
    if (in_planning_.contains(key) || !unplanned_.insert(key).second) return nullptr;
    loader_.expect_class();
  }
  wake_.notify_all();
  return nullptr;
}

void ChainPlanner::request(KernelSlotPtr slot) {
  {
    const MutexLock lock(mutex_);
    wanted_.push_back(std::move(slot));
  }
  wake_.notify_all();
}

std::vector<int> ChainPlanner::unfinished_lengths() const {
  std::set<SizeClass> unfinished;
  {
    const MutexLock lock(mutex_);
    if (source_ == nullptr) return {};
    unfinished = unplanned_;
    unfinished.insert(in_planning_.begin(), in_planning_.end());
    for (const auto& [key, slots] : classes_) {
      if (std::ranges::any_of(slots, [](const auto& slot) { return slot->progress().pending(); }))
        unfinished.insert(key);
    }
  }
  std::vector<int> out;
  for (const auto& [length, codes] : unfinished) {
    if (codes == amino_alphabet().Kp) out.push_back(length);
  }
  return out;
}

void ChainPlanner::run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stop_ && wanted_.empty() && unplanned_.empty()) lock.wait(wake_);
    if (stop_) return;
    if (unplanned_.empty()) {
      const KernelSlotPtr slot = std::move(wanted_.front());
      wanted_.pop_front();
      lock.unlock();
      slot->set_future(source_->request(*slot->plan(), 0));
      loader_.add(slot);
      lock.lock();
      continue;
    }
    const auto next = std::ranges::max_element(
        unplanned_, {}, [](const SizeClass& c) { return link_priority(Link::kSsv, c.first); });
    const SizeClass key = *next;
    unplanned_.erase(next);
    in_planning_.insert(key);
    lock.unlock();
    KernelSlots made = plan_class(key);
    loader_.add_class(made);
    lock.lock();
    in_planning_.erase(key);
    classes_.emplace(key, std::move(made));
    lock.unlock();
    if (on_planned_) on_planned_();
    lock.lock();
  }
}

KernelSlots ChainPlanner::plan_class(const SizeClass& key) {
  KernelSlots made;
  constexpr auto kFine = static_cast<std::size_t>(Link::kFineSsv);
  made[kFine] = plan_link(Link::kFineSsv, key);
  // The most urgent first: idle compilers take kernels in this order.
  std::array<std::size_t, kFine> links{};
  std::iota(links.begin(), links.end(), std::size_t{0});
  std::ranges::sort(links, std::greater<>(), [&](std::size_t link) {
    return link_priority(static_cast<Link>(link), key.first);
  });
  for (const std::size_t link : links) {
    // No coarse kernel if the finer one needs no compile.
    const bool fine =
        link == static_cast<std::size_t>(Link::kSsv) && made[kFine]->progress().cached;
    made[link] = fine ? made[kFine] : plan_link(static_cast<Link>(link), key);
  }
  return made;
}

KernelSlotPtr ChainPlanner::plan_link(Link link, const SizeClass& key) {
  const auto [M, Kp] = key;
  std::vector<int> lengths = link_lengths(link, M, Kp, device_);
  if (link == Link::kFineSsv) {
    // The model's own size class if an earlier run has made its kernel.
    const auto own = link_plan(link, M, Kp, device_, source_->tuning());
    if (own && source_->find(*own)) lengths = {M};
  }
  KernelSlotPtr slot;
  for (const int length : lengths) {
    slot = slot_for(link, length, Kp);
    if (slot->plan_once([&] { return plan(link, length, Kp); })) return slot;
  }
  slot->fail();
  return slot;
}

KernelSlotPtr ChainPlanner::slot_for(Link link, int length, int alphabet_codes) {
  const MutexLock lock(mutex_);
  KernelSlotPtr& known = slots_[{link, length, alphabet_codes}];
  if (known == nullptr) known = std::make_shared<KernelSlot>(failures_);
  return known;
}

// A slot is planned for the exact length and alphabet of its key, so that its kernel covers every
// model that finds it.
std::optional<KernelSlot::Planned> ChainPlanner::plan(Link link, int length, int alphabet_codes) {
  auto made = link_plan(link, length, alphabet_codes, device_, source_->tuning());
  if (!made) {
    if (link_stage(link) == plan::Stage::kSsv) failures_.note(made.error());
    return std::nullopt;
  }
  KernelSlot::Planned out{.plan = *std::move(made)};
  if (auto found = source_->find(out.plan)) {
    out.cached = true;
    out.future = *std::move(found);
  } else if (link != Link::kFineSsv) {  // until the coarse one has cost a compile's time
    out.future = source_->request(out.plan, link_priority(link, length));
  }
  return out;
}

}  // namespace hmmjit::gpu
