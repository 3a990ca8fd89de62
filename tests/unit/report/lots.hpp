// Hits in memory, delivered in lots.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "search/search.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit::test_support {

class Lots final : public HitSource {
 public:
  Lots(std::vector<Hit> hits, std::size_t lot) : hits_(std::move(hits)), lot_(lot) {}
  /// Small, so that text is kept in temporary files.
  std::uint64_t output_memory() const override { return 1 << 14; }

 private:
  Status begin() override {
    next_ = 0;
    return {};
  }
  Result<bool> next(Hit& hit) override {
    if (next_ == hits_.size()) return false;
    hit = hits_[next_++];
    return true;
  }
  std::size_t hits_of_lot() const override { return lot_; }

  std::vector<Hit> hits_;
  std::size_t lot_, next_ = 0;
};

/// The same result with its hits in lots of `lot`.
inline ModelResult in_lots(const ModelResult& result, std::size_t lot) {
  ModelResult out = without_hits(result);
  out.stored = std::make_shared<Lots>(result.hits.hits, lot);
  return out;
}

}  // namespace hmmjit::test_support
