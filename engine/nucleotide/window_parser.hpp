// Forward, Backward, decoding and sampled traces of windows on a device, and then their envelopes,
// by the kernels of gpu/domain_stage.hpp.
//
// A launch takes as long as its longest window, however few it has: models that wait share it, and
// several lanes make launches. The last models that came go first; threads that come to a model
// whose windows still wait take them back. So neither side idles, whichever is faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/gpu_filters.hpp"
#include "gpu/kernel_loader.hpp"
#include "nucleotide/window_domains.hpp"

namespace hmmjit::nucleotide {

/// Windows of a model, none of them empty.
struct ParseRequest {
  std::shared_ptr<const SearchModel> model;
  /// With each of them; traces are sampled with the last.
  std::vector<std::shared_ptr<const EmissionState>> emissions;
  std::shared_ptr<const TargetBlock> windows;
  std::optional<std::uint32_t> trace_seed;  ///< empty: the CPU samples traces
  std::size_t uses = 0;                     ///< calls of parsed() to come
};

/// Envelopes of a model, by run; none of the runs is empty.
struct EnvelopeRequest {
  std::shared_ptr<const SearchModel> model;
  std::vector<std::shared_ptr<const EstimatedEnvelopes>> runs;
};
/// By run and envelope; empty: falls back to the CPU.
using ScoredRuns = std::vector<std::vector<std::optional<ScoredEnvelope>>>;

/// Thread-safe. Threads of its own serve the device.
class WindowParser {
 public:
  /// `source` and `counters` must outlive it. Call source.cancel() before the destructor, which
  /// waits for a kernel that is being made.
  WindowParser(driver::DevicePtr device, std::shared_ptr<driver::Driver> driver,
               gpu::KernelSource& source, gpu::Counters& counters, const gpu::Settings& settings);
  ~WindowParser();
  WindowParser(const WindowParser&) = delete;
  WindowParser& operator=(const WindowParser&) = delete;

  /// At most one request of a model until finish(), and one of each round of its envelopes.
  void request(std::size_t model, ParseRequest request);
  void request(std::size_t model, std::size_t round, EnvelopeRequest request);
  /// The device's findings for each set of emissions; null: none. Waits only for a launch that has
  /// begun.
  std::shared_ptr<const std::vector<ParsedWindows>> parsed(std::size_t model);
  /// The same of envelopes. Call it once for each run.
  std::shared_ptr<const ScoredRuns> scored(std::size_t model, std::size_t round);
  /// Drops requests, and returns when the device has ended. Fails after the loss of the device.
  Status finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit::nucleotide
