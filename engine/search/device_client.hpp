// Receives the results of a device's chains, and answers its threads' questions about the search.
#pragma once

#include <vector>

#include "search/filter_tasks.hpp"
#include "search/pair_dispatcher.hpp"
#include "search/scoring_load.hpp"
#include "search/search_tasks.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// Thread-safe, without a lock of its own.
class DeviceClient final : public gpu::Client {
 public:
  DeviceClient(SearchTasks& tasks, const PairDispatcher& pairs, FilterTasks& filters,
               Verifier& verifier, const ScoringLoad& load)
      : tasks_(tasks), pairs_(pairs), filters_(filters), verifier_(verifier), load_(load) {}

  void deliver(ModelId model, std::vector<gpu::Delivery> pairs) override;
  void deliver_early(ModelId model, std::vector<gpu::EarlyDelivery> pairs) override;
  gpu::SampleRequest sample(ModelId model, const std::vector<gpu::UsedKernel>& kernels,
                            std::size_t blocks) override;
  void stopped(const Error& reason, bool demanded) override;
  void out_of_memory() noexcept override;
  gpu::HostLoad load() const override;

 private:
  SearchTasks& tasks_;
  const PairDispatcher& pairs_;
  FilterTasks& filters_;
  Verifier& verifier_;
  const ScoringLoad& load_;
};

}  // namespace hmmjit::search_run
