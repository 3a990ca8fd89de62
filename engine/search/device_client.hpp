// Receives the results of a device, and tells its threads about the state of the search.
#pragma once

#include <vector>

#include "search/agenda.hpp"
#include "search/verifier.hpp"

namespace hmmjit::search_run {

/// Estimates the seconds until all pairs of the models begun so far have been filtered, at the
/// average rate of the search, which has taken `seconds`. Unread targets count in proportion to the
/// bytes of the input. 0 before anything has been filtered.
double filter_seconds_left(const SearchProgress& progress, double seconds);

/// Thread-safe, without a lock of its own.
class DeviceClient final : public gpu::Client {
 public:
  DeviceClient(Agenda& agenda, Verifier& verifier, const SearchProgress& progress)
      : agenda_(agenda), verifier_(verifier), progress_(progress) {}

  void deliver(ModelId model, std::vector<gpu::Delivery> pairs) override;
  void deliver_early(ModelId model, std::vector<gpu::EarlyDelivery> pairs) override;
  gpu::SampleRequest sample(ModelId model, const std::vector<gpu::UsedKernel>& kernels,
                            std::size_t blocks) override;
  void stopped(const Error& reason, bool ends) override;
  void targets_wait() override { agenda_.device_waits(); }
  gpu::HostLoad load() const override;

 private:
  Agenda& agenda_;
  Verifier& verifier_;
  const SearchProgress& progress_;
  const double begun_ = now_seconds();
};

}  // namespace hmmjit::search_run
