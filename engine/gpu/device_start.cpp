#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "compile/kernel_provider.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "gpu/engine_state.hpp"

namespace hmmjit::gpu {
namespace {

// Minimum device memory per lane.
constexpr int kLaneBudgetBits = 27;

compile::ProviderSettings compile_settings(const Settings& settings) {
  compile::ProviderSettings out;
  // The other cores filter meanwhile. With an empty cache, compiling the kernels for a search with
  // hundreds of models takes 20 core-seconds; then the kernels filter and score about a hundred
  // times as fast as a core.
  out.threads =
      compile::compile_threads(0, std::max(1, available_cores() * 3 / 4), available_memory());
  out.on_event = [trace = settings.trace](const compile::ProviderEvent& event) {
    if (event.kind != compile::ProviderEvent::Kind::kCompiled || trace == nullptr) return;
    const double now = Trace::now();
    trace->add("compiler", event.kernel, now - event.seconds, now);
  };
  return out;
}

using Opened = Result<std::unique_ptr<ActiveDevice>>;

Opened open_device(const std::shared_ptr<driver::Driver>& driver, const Settings& settings,
                   int ordinal) {
  HMMJIT_ASSIGN(driver::DevicePtr device, driver->device(ordinal));
  HMMJIT_ASSIGN(const driver::Device::Memory memory, device->memory());
  std::uint64_t budget = memory.free / 10 * 9;
  if (settings.vram > 0) budget = std::min(budget, settings.vram);
  auto out = std::make_unique<ActiveDevice>(budget);
  out->driver = driver;
  out->device = std::move(device);
  HMMJIT_ASSIGN(out->origin, driver::Event::now(out->device));
  out->origin_time = Trace::now();
  return out;
}

void share_out(ActiveDevice& device, const Settings& settings) {
  const std::uint64_t budget = device.memory.budget();
  // Each lane holds lists as long as a segment's number of targets: Cascade::bytes_for().
  const int most = static_cast<int>(std::min<std::uint64_t>(budget >> kLaneBudgetBits, 64));
  device.lanes = std::clamp(most, std::min(2, settings.lanes), settings.lanes);
  // Targets take precedence over the domain stage, which the CPU can do as well.
  device.domain_workspace = std::clamp<std::uint64_t>(budget / 12, DomainStage::kLeastWorkspace,
                                                      DomainStage::kMostWorkspace);
  const std::uint64_t room = budget / 2 / DomainStage::bytes(device.domain_workspace);
  // A single lane would be slower than the threads, which would then wait for it.
  if (room >= 2) {
    device.domain_lanes =
        static_cast<int>(std::min(room, static_cast<std::uint64_t>(settings.domain_lanes)));
  }
}

}  // namespace

Result<std::vector<std::unique_ptr<ActiveDevice>>> start_devices(EngineState& engine) {
  const Settings& settings = engine.settings;
  const double begun = Trace::now();
  const auto driver = settings.open_driver ? settings.open_driver() : driver::Driver::open();
  const double initialised = Trace::now();
  engine.counters.update([&](Statistics& s) { s.driver_seconds = initialised - begun; });
  engine.span("gpu start", 0, "driver", begun, initialised);
  HMMJIT_TRY(driver->require());

  // Contexts take a sixth of a second each. They are created concurrently, while the kernel cache
  // is opened and kernels are requested, for which the device's traits suffice.
  std::vector<std::future<Opened>> opening;
  for (const int ordinal : settings.devices) {
    opening.push_back(std::async(std::launch::async, [&settings, &driver, ordinal] {
      return open_device(driver, settings, ordinal);
    }));
  }
  HMMJIT_ASSIGN(auto source, settings.open_kernels
                                 ? settings.open_kernels()
                                 : open_kernel_source(driver->report().version / 1000,
                                                      compile_settings(settings)));
  // Kernels are compiled once, for the first device that works and all others of its architecture.
  // Only among devices of several kinds it has to be known which one that is.
  int first = settings.devices.empty() ? 0 : settings.devices.front();
  HMMJIT_ASSIGN(plan::DeviceTraits traits, driver->traits(first));
  const bool one_kind = std::ranges::all_of(settings.devices, [&](int ordinal) {
    const auto other = driver->traits(ordinal);
    return !other || other->capability() == traits.capability();
  });
  const auto open_kernels = [&] { engine.kernels.open(std::move(source), traits); };
  if (one_kind) open_kernels();

  std::optional<Error> first_error;
  std::vector<std::unique_ptr<ActiveDevice>> ready;
  for (std::size_t i = 0; i < opening.size(); ++i) {
    const int ordinal = settings.devices[i];
    Opened device = opening[i].get();
    if (!device) {
      if (!first_error) first_error = device.error();
      continue;
    }
    if (ready.empty()) {
      first = ordinal;
      traits = (*device)->device->traits();
    } else if ((*device)->device->traits().capability() != traits.capability()) {
      if (settings.demanded)
        engine.warn(fmt::format("device {} is of another architecture than device {}: left out",
                                ordinal, first));
      continue;
    }
    (*device)->position = static_cast<int>(ready.size());
    share_out(**device, settings);
    ready.push_back(*std::move(device));
  }
  const double contexts = Trace::now();
  engine.span("gpu start", 0, "contexts", initialised, contexts);
  if (ready.empty()) return std::unexpected(first_error.value_or(Error{}));
  if (!one_kind) open_kernels();
  if (first_error) engine.warn(first_error->to_string() + "; going on with the other devices");
  std::vector<driver::DevicePtr> usable;
  for (const auto& device : ready) usable.push_back(device->device);
  engine.kernels.load_on(driver, std::move(usable));
  engine.counters.update([&](Statistics& s) {
    s.context_seconds = contexts - initialised;
    for (const auto& device : ready) s.devices.push_back(device->device->traits().name);
  });
  return ready;
}

}  // namespace hmmjit::gpu
