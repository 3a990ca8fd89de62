#include "gpu/chain_kernels.hpp"

#include <utility>

namespace hmmjit::gpu {
namespace {

// A stage without a kernel falls back to the cores, which are a hundred times slower. The
// compiles of a class take half a second each, several at a time; with few cores, a chain does
// not wait for all of them.
constexpr double kOthersSeconds = 1.5;

}  // namespace

ChainKernels::ChainKernels(const Settings& settings)
    : finer_kernel_seconds_(settings.finer_kernel_seconds),
      loader_(settings.trace, settings.changed, settings.out_of_memory),
      planner_(failures_, loader_, settings.changed, settings.out_of_memory) {}

ChainKernels::~ChainKernels() { stop(); }

void ChainKernels::open(std::unique_ptr<KernelSource> source, const plan::DeviceTraits& device) {
  const MutexLock lock(mutex_);
  if (stop_) return;
  source_ = std::move(source);
  planner_.start(*source_, device);
}

void ChainKernels::load_on(std::shared_ptr<driver::Driver> driver,
                           std::vector<driver::DevicePtr> devices) {
  const MutexLock lock(mutex_);
  if (stop_) return;
  loader_.start(std::move(driver), std::move(devices), *source_);
}

void ChainKernels::stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    if (source_ != nullptr) source_->cancel();
  }
  planner_.stop();
  loader_.stop();
}

ChainKernels::State ChainKernels::state(const KernelSlots& slots) {
  const KernelProgress ssv = of_link(slots, Link::kSsv)->progress();
  if (ssv.kernel == nullptr) return ssv.failed ? State::kFailed : State::kPending;
  const auto pending = [&](bool decides) {
    for (std::size_t i = 0; i < kLinks; ++i) {
      const auto link = static_cast<Link>(i);
      if (!is_filter(link) || link_decides(link) != decides) continue;
      if (slots[i]->progress().pending()) return true;
    }
    return false;
  };
  if (pending(true)) return State::kPending;
  return ssv.ready_seconds < kOthersSeconds && pending(false) ? State::kPending : State::kReady;
}

void ChainKernels::ssv_took(const KernelSlots& slots, double seconds) {
  KernelSlot& coarse = *of_link(slots, Link::kSsv);
  if (coarse.add_seconds(seconds) < finer_kernel_seconds_) return;
  const KernelSlotPtr& fine = of_link(slots, Link::kFineSsv);
  if (fine->claim_request(coarse.plan()->class_length)) planner_.request(fine);
}

Result<std::array<ReadyKernel, kLinks>> ChainKernels::ready(const driver::Device& device,
                                                            const KernelSlots& slots,
                                                            const SearchModel& model) {
  std::array<ReadyKernel, kLinks> out;
  for (std::size_t link = 0; link < kLinks; ++link) {
    KernelSlot& slot = *slots[link];
    const compile::KernelPtr kernel = slot.progress().kernel;
    if (kernel == nullptr) continue;
    auto loaded = loader_.load(device, slot, kernel);
    if (loaded) {
      // Cannot happen by the way slots are found; this check keeps results right in any case.
      if (const Status covered = loaded->require(extent_of(model)); !covered) {
        failures_.note(covered.error());
        continue;
      }
      out[link] = *std::move(loaded);
      continue;
    }
    if (link == static_cast<std::size_t>(Link::kSsv) || loaded.error().code != ErrorCode::kCompile)
      return std::unexpected(loaded.error());
    failures_.note(loaded.error());
    // The finer kernel may be the same.
    if (slots[link] != of_link(slots, Link::kSsv)) slot.fail();
  }
  if (!of_link(out, Link::kSsv))
    return fail(ErrorCode::kCompile, "there is no SSV kernel", model.hmm.name);
  return out;
}

compile::ProviderStatistics ChainKernels::statistics() const {
  const MutexLock lock(mutex_);
  return source_ != nullptr ? source_->statistics() : compile::ProviderStatistics{};
}

}  // namespace hmmjit::gpu
