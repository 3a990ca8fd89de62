#include "kernel_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

namespace hmmjit::tests {
namespace {

Result<compile::KernelPtr> make(const KernelScript& script, const plan::Plan& plan,
                                KernelScript::Fate fate) {
  if (fate == KernelScript::kFails) return fail(ErrorCode::kCompile, "no compiler here");
  auto kernel = std::make_shared<compile::Kernel>(*fake_kernel(plan));
  kernel->image.kind = script.kind;
  return kernel;
}

class ScriptedKernels final : public gpu::KernelSource {
 public:
  explicit ScriptedKernels(std::shared_ptr<KernelScript> script) : script_(std::move(script)) {}
  void request(const plan::Plan& plan, int priority, Made done) override {
    const KernelScript::Fate fate = this->fate(plan);
    {
      const std::lock_guard lock(script_->mutex);
      script_->asked.push_back(plan);
      if (fate == KernelScript::kLate)
        return script_->late.push_back({plan, priority, std::move(done)});
      if (script_->milliseconds) {
        const std::chrono::duration<double, std::milli> takes(script_->milliseconds(plan));
        compiles_.emplace_back([this, plan, fate, takes, done = std::move(done)] {
          std::this_thread::sleep_for(takes);
          done(make(*script_, plan, fate));
        });
        return;
      }
    }
    done(make(*script_, plan, fate));
  }
  compile::KernelPtr find(const plan::Plan& plan) override {
    if (fate(plan) != KernelScript::kCached) return nullptr;
    {
      const std::lock_guard lock(script_->mutex);
      script_->asked.push_back(plan);
    }
    return *make(*script_, plan, KernelScript::kCached);
  }
  Result<compile::KernelPtr> refused(const plan::Plan& plan, const compile::KernelPtr&,
                                     const std::string& reason) override {
    const std::lock_guard lock(script_->mutex);
    const bool again = script_->refused++ > 0;
    if (script_->refused_is_another) return fake_kernel(plan, " again");
    if (again) return fail(ErrorCode::kCompile, "refused again: " + reason);
    return make(*script_, plan, KernelScript::kCompiled);
  }
  compile::ProviderStatistics statistics() const override { return {}; }
  void cancel() override {}

 private:
  KernelScript::Fate fate(const plan::Plan& plan) const {
    return script_->fate ? script_->fate(plan) : KernelScript::kCached;
  }
  const std::shared_ptr<KernelScript> script_;
  std::vector<std::jthread> compiles_;
};

}  // namespace

std::size_t KernelScript::finish(bool well, const PlanFilter& which) {
  std::vector<Late> ended;
  {
    const std::lock_guard lock(mutex);
    const auto stays = [&](const Late& l) { return which && !which(l.plan); };
    const auto first = std::stable_partition(late.begin(), late.end(), stays);
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(late.end()));
    late.erase(first, late.end());
  }
  for (const Late& l : ended) l.made(make(*this, l.plan, well ? kCompiled : kFails));
  return ended.size();
}

std::unique_ptr<gpu::KernelSource> scripted_kernels(std::shared_ptr<KernelScript> script) {
  return std::make_unique<ScriptedKernels>(std::move(script));
}
std::unique_ptr<gpu::KernelSource> scripted_kernels(KernelScript& script) {
  return scripted_kernels(std::shared_ptr<KernelScript>(std::shared_ptr<void>(), &script));
}

std::function<KernelScript::Fate(const plan::Plan&)> always(KernelScript::Fate fate) {
  return [fate](const plan::Plan&) { return fate; };
}

std::shared_ptr<KernelScript> without_kernels(std::set<std::string> entries) {
  auto script = std::make_shared<KernelScript>();
  script->fate = [entries = std::move(entries)](const plan::Plan& plan) {
    const bool missing = entries.contains(std::string(tested(plan).variant->entry_name));
    return missing ? KernelScript::kFails : KernelScript::kCached;
  };
  return script;
}

compile::KernelPtr fake_kernel(const plan::Plan& plan, const std::string& suffix) {
  const plan::Candidate& candidate = tested(plan);
  auto kernel = std::make_shared<compile::Kernel>();
  kernel->image.bytes = image_for(candidate) + suffix;
  kernel->image.entry_name = candidate.variant->entry_name;
  kernel->name = fmt::format("{}.{}, {}", plan::stage_name(plan.stage), candidate.variant->name,
                             kernel->image.bytes);
  for (const auto& [name, value] : candidate.constants.list())
    kernel->name += fmt::format(" {}={}", name, value);
  kernel->candidate = candidate;
  return kernel;
}

}  // namespace hmmjit::tests
