// Forward, Backward, decoding and sampled traces of windows, and then their envelopes, on a device,
// by the kernels of gpu/domain_stage.hpp.
//
// A launch with few windows still takes the time of its longest window. So waiting models share a
// launch, and several lanes launch. The newest requests go first; a thread that reaches a model
// whose windows still wait takes them back. So neither threads nor device idle, whichever are
// faster.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/hidden.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/gpu_filters.hpp"
#include "gpu/kernel_loader.hpp"
#include "nucleotide/window_domains.hpp"

namespace hmmjit::nucleotide {

/// A model's windows, none of them empty.
struct ParseRequest {
  std::shared_ptr<const SearchModel> model;
  /// Windows are parsed with each of these; traces are sampled with the last.
  std::vector<std::shared_ptr<const EmissionState>> emissions;
  std::shared_ptr<const TargetBlock> windows;
  std::optional<std::uint32_t> trace_seed;  ///< empty: the CPU samples traces
  std::size_t uses = 0;                     ///< remaining calls of parsed()
};

/// A model's envelopes by run; no run is empty.
struct EnvelopeRequest {
  std::shared_ptr<const SearchModel> model;
  std::vector<std::shared_ptr<const EstimatedEnvelopes>> runs;
};
/// Results by run and envelope; empty: falls back to the CPU.
struct ScoredRuns {
  gpu::UsedKernels kernels;
  std::vector<std::vector<std::optional<ScoredEnvelope>>> runs = {};
};

/// Device memory of a search: settings.vram or, by default, all there is.
class ScanMemory : public gpu::DeviceMemory {
 public:
  explicit ScanMemory(const gpu::Settings& settings)
      : DeviceMemory(settings.vram > 0 ? settings.vram : ~std::uint64_t{0}), settings_(settings) {}
  gpu::Cascade::Resize resize() {
    return [this](std::size_t from, std::size_t to) { return resize_buffer(from, to); };
  }
  /// Warns at the first lack of memory.
  void warn(const Error& error) {
    if (!warned_.exchange(true) && settings_.on_warning)
      settings_.on_warning(error.to_string() + "; going on with the CPU for some targets");
  }

 private:
  const gpu::Settings& settings_;
  std::atomic<bool> warned_{false};
};

/// Thread-safe. Its own threads serve the device.
class WindowParser {
 public:
  /// All references must outlive this object. Call source.cancel() first: the destructor waits for
  /// running compiles.
  WindowParser(driver::DevicePtr device, std::shared_ptr<driver::Driver> driver,
               gpu::KernelSource& source, gpu::Counters& counters, const gpu::Settings& settings,
               ScanMemory& memory);

  /// Requests windows at most once per model, and envelopes once per round, until finish().
  void request(std::size_t model, ParseRequest request);
  void request(std::size_t model, std::size_t round, EnvelopeRequest request);
  /// The device's findings for each set of emissions; null: none. Waits only for a launch that has
  /// begun.
  std::shared_ptr<const std::vector<ParsedWindows>> parsed(std::size_t model);
  /// The same for envelopes. Call it once per run.
  std::shared_ptr<const ScoredRuns> scored(std::size_t model, std::size_t round);
  /// Drops all requests and waits for the device. Fails if the device was lost.
  Status finish();

 private:
  struct State;
  Hidden<State> state_;
};

}  // namespace hmmjit::nucleotide
