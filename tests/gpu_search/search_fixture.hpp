// One search on generated data, with or without (fake) devices, and its complete result as text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fake_driver/fake_driver.hpp"
#include "gpu/gpu_filters.hpp"
#include "kernel_script.hpp"
#include "model/hmm.hpp"
#include "model/targets.hpp"
#include "search/session.hpp"

namespace hmmjit::tests {

struct SearchData {
  std::vector<Hmm> models;
  std::vector<std::vector<Residue>> targets;
};
/// Models of several lengths; targets at background, homologous, tandem, odd and empty ones.
SearchData make_search_data(std::uint64_t seed, int models, int targets, int longest_model = 150);

/// Every hit, domain, flag and counter, floats to the bit.
struct TextSink : ResultSink {
  Status receive(const ModelResult& result) override;
  std::string text;
};
struct SearchOutcome {
  std::string text;   ///< of all models delivered
  std::string error;  ///< empty: none
  SearchStatistics statistics;
};
SearchOutcome run_search(const SearchData& data, gpu::GpuFilters* device,
                         const SearchOptions& options, SearchProgress* progress = nullptr);
/// The same models against other targets.
SearchOutcome run_search(const SearchData& data, gpu::GpuFilters* device,
                         const SearchOptions& options, TargetSource& targets,
                         SearchProgress* progress = nullptr);
SearchOutcome run_search(const SearchData& data, Session& session, const SearchOptions& options);
SearchOutcome run_search(const SearchData& data, Session& session, const SearchOptions& options,
                         const ResidentTargets& targets);

/// Settings for GpuFilters over a fake driver.
gpu::Settings fake_settings(
    const FakeDriver& driver, int devices = 1,
    std::shared_ptr<KernelScript> script = std::make_shared<KernelScript>());

/// Options with small blocks, so that many pieces of work exist.
SearchOptions small_blocks(int threads);

/// The targets, kept in memory.
std::unique_ptr<TargetSource> kept_targets(const SearchData& data);
std::shared_ptr<const ResidentTargets> resident_targets(const SearchData& data);
/// Waits until a device is ready or has failed.
void wait_until_started(const gpu::GpuFilters& gpu);

}  // namespace hmmjit::tests
