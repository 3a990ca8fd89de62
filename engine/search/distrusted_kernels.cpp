#include "search/distrusted_kernels.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::search_run {

bool DistrustedKernels::add(std::span<const gpu::UsedKernel> kernels) {
  const MutexLock lock(mutex_);
  bool news = false;
  for (const gpu::UsedKernel& kernel : kernels) news = wrong_.insert(kernel).second || news;
  return news;
}

bool DistrustedKernels::wrong(const std::set<gpu::UsedKernel>& kernels) const {
  for (const gpu::UsedKernel& kernel : kernels) {
    if (wrong_.contains(kernel)) return true;
  }
  return false;
}

bool DistrustedKernels::include_any(const std::set<gpu::UsedKernel>& kernels) const {
  const MutexLock lock(mutex_);
  return wrong(kernels);
}

std::optional<Again> DistrustedKernels::keep(Retained&& model) {
  if (model.query == nullptr) return std::nullopt;
  const MutexLock lock(mutex_);
  if (wrong(model.kernels)) return Again{model.index, std::move(model.query), model.digest};
  bytes_ += model.bytes;
  delivered_.push_back(std::move(model));
  while (bytes_ > most_bytes_) {
    Retained& oldest = delivered_.front();
    of_forgotten_.insert(oldest.kernels.begin(), oldest.kernels.end());
    bytes_ -= oldest.bytes;
    delivered_.pop_front();
  }
  return std::nullopt;
}

DistrustedKernels::Recalled DistrustedKernels::recall(std::span<const gpu::UsedKernel> added) {
  Recalled out;
  const MutexLock lock(mutex_);
  std::deque<Retained> kept;
  for (Retained& model : delivered_) {
    if (wrong(model.kernels)) {
      bytes_ -= model.bytes;
      out.models.push_back({model.index, std::move(model.query), model.digest});
    } else {
      kept.push_back(std::move(model));
    }
  }
  delivered_ = std::move(kept);
  for (const gpu::UsedKernel& kernel : added) out.lost = out.lost || of_forgotten_.contains(kernel);
  return out;
}

std::size_t DistrustedKernels::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace hmmjit::search_run
