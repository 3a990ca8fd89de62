// Receives the results of a device's chains, and answers its threads' questions about the search.
#pragma once

#include <vector>

#include "search/filter_tasks.hpp"
#include "search/pair_dispatcher.hpp"
#include "search/scoring_load.hpp"
#include "search/search_tasks.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// Seconds until all pairs of the models begun so far have been filtered, at the pace of the search
/// up to now, which has taken `seconds`. What is still to be read counts in proportion to the bytes
/// of the input. 0 as long as nothing has been filtered.
double filter_seconds_left(const SearchProgress& progress, double seconds);

/// Thread-safe, without a lock of its own.
class DeviceClient final : public gpu::Client {
 public:
  DeviceClient(SearchTasks& tasks, const PairDispatcher& pairs, FilterTasks& filters,
               Verifier& verifier, const ScoringLoad& load, const SearchProgress& progress)
      : tasks_(tasks),
        pairs_(pairs),
        filters_(filters),
        verifier_(verifier),
        load_(load),
        progress_(progress) {}

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
  const SearchProgress& progress_;
  const double begun_ = now_seconds();
};

}  // namespace hmmjit::search_run
