#include "search/device_client.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::search_run {

double filter_seconds_left(const SearchProgress& progress, double seconds) {
  const auto done = static_cast<double>(progress.cells.load()),
             known = static_cast<double>(progress.cells_queued.load()),
             read = static_cast<double>(progress.target_bytes_read.load()),
             all = static_cast<double>(progress.target_bytes_total.load());
  if (done <= 0 || read <= 0) return 0;
  return std::max(0.0, known * std::max(all / read, 1.0) / done - 1) * seconds;
}

void DeviceClient::deliver(ModelId model, std::vector<gpu::Delivery> pairs) {
  const JobPtr job = agenda_.find(model);
  std::vector<DeviceUnit> units;
  units.reserve(pairs.size());
  for (gpu::Delivery& pair : pairs) {
    DeviceUnit& unit = units.emplace_back(pair.claim.finish(), std::move(pair.found));
    unit.cells = passed_cells(*job, unit);
  }
  agenda_.deliver(model, std::move(units), false);
}

void DeviceClient::deliver_early(ModelId model, std::vector<gpu::EarlyDelivery> pairs) {
  const JobPtr job = agenda_.find(model);
  std::vector<DeviceUnit> units;
  units.reserve(pairs.size());
  for (gpu::EarlyDelivery& pair : pairs) {
    DeviceUnit& unit = units.emplace_back(std::move(pair.targets), std::move(pair.found));
    unit.cells = passed_cells(*job, unit);
  }
  agenda_.deliver(model, std::move(units), true);
}

gpu::SampleRequest DeviceClient::sample(ModelId model, const std::vector<gpu::UsedKernel>& kernels,
                                        std::size_t blocks) {
  const JobPtr job = agenda_.find(model);
  return job == nullptr ? gpu::SampleRequest{} : verifier_.sample(*job, kernels, blocks);
}

void DeviceClient::stopped(const Error& reason, bool ends) {
  if (ends) agenda_.abort(reason);
}

gpu::HostLoad DeviceClient::load() const {
  gpu::HostLoad load = agenda_.load();
  load.filter_seconds_left = filter_seconds_left(progress_, now_seconds() - begun_);
  return load;
}

}  // namespace hmmjit::search_run
