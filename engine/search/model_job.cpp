#include "search/model_job.hpp"

#include "model/score_statistics.hpp"

namespace hmmjit::search_run {

bool ModelJob::passes_forward(float nats, float filter_nats, double F3) const {
  const Calibration& calibration = model->hmm.calibration;
  const float bits = nats_to_bits(nats - filter_nats);
  return !(exponential_survival(bits, calibration.forward_tau, calibration.forward_lambda) > F3);
}

}  // namespace hmmjit::search_run
