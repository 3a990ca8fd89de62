#include "domain/envelopes.hpp"

#include <algorithm>

namespace hmmjit::domain {
namespace {

// A set of this size fills the vectors, and the cores still share their cache.
constexpr std::size_t kSetBytes = std::size_t{4} << 20;

std::size_t row_bytes(const Kernels& kernel, int Q) {
  return kernel.choice_row(Q) +
         static_cast<std::size_t>(4 * kLanes * kernel.groups) * sizeof(float);
}

}  // namespace

std::size_t EnvelopeScorer::choice_bytes(const ForwardTables& model, int L) {
  return (L + 1) * kernels(1).choice_row(model.tables().Q);
}

void EnvelopeScorer::start(const ForwardTables& model, const EmissionRows& emission,
                           std::vector<Job>&& jobs, bool sums, std::size_t max_bytes) {
  tables_ = &model.tables();
  emission_ = &emission;
  jobs_ = std::move(jobs);
  at_ = 0;
  sums_ = sums;
  max_bytes_ = max_bytes;
  longest_first(jobs_);
}

std::size_t EnvelopeScorer::set_size() const {
  const Kernels& widest = kernels(kMaxGroups);
  const std::size_t bytes = row_bytes(widest, tables_->Q);
  const auto longest = static_cast<std::size_t>(jobs_[at_].L) + 1;
  if (longest * bytes > max_bytes_) return 1;
  const auto groups = static_cast<std::size_t>(widest.groups);
  const std::size_t most = std::max(longest, kSetBytes / bytes) * groups;
  std::size_t rows = 0, count = 0;
  while (at_ + count < jobs_.size()) {
    rows += static_cast<std::size_t>(jobs_[at_ + count].L) + 1;
    if (rows > most && count >= groups) break;
    ++count;
  }
  return count;
}

std::span<const Job> EnvelopeScorer::next() {
  if (at_ == jobs_.size()) return {};
  const std::span<Job> set = std::span(jobs_).subspan(at_, set_size());
  at_ += set.size();
  kernel_ = &deal(*emission_, set, lanes_, set.size() == 1 ? 1 : kMaxGroups);
  const LengthModel odds = length_model(1, false);
  float* const row = space_.cells.ensure(MatrixLayout::of(tables_->Q, kernel_->groups).row);
  kernel_->forward(*tables_, lanes_, 0, lanes_.rows - 1, odds.ec, odds.ej, row, 0);
  kernel_->envelope_backward(*tables_, lanes_, odds.ec, space_);
  kernel_->decode(*tables_, lanes_, odds.ec, sums_, space_);
  return set;
}

}  // namespace hmmjit::domain
