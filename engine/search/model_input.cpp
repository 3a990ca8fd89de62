#include "search/model_input.hpp"

#include <utility>

namespace hmmjit::search_run {

Result<std::optional<Query>> ModelInput::next(std::size_t& index) {
  const MutexLock lock(mutex_);
  index = next_index_;
  if (peek_error_) return std::unexpected(*peek_error_);
  if (peeked_) {
    std::optional<Query> query = std::exchange(peeked_, std::nullopt);
    ++next_index_;
    return query;
  }
  if (ended_) return std::nullopt;
  auto query = source_();
  if (!query || !*query) ended_ = true;
  if (!query || *query) ++next_index_;
  return query;
}

bool ModelInput::has_more() {
  const MutexLock lock(mutex_);
  if (peeked_ || peek_error_) return true;
  if (ended_) return false;
  auto query = source_();
  if (!query) {
    peek_error_ = query.error();
    return true;
  }
  if (!*query) {
    ended_ = true;
    return false;
  }
  peeked_ = std::move(*query);
  return true;
}

}  // namespace hmmjit::search_run
