// Made-up hits, and hits in memory that are delivered in lots.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "search/search.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit::test_support {

/// A target of one domain.
inline Hit make_hit(std::string name, std::uint64_t index, float bits) {
  Hit hit;
  hit.name = std::move(name);
  hit.index = index;
  hit.length = 60;
  hit.score.bits = bits;
  hit.score.pre_bits = bits + 0.5f;
  hit.score.log_p = -static_cast<double>(bits);
  hit.score.expected_domains = 1.04f;
  hit.score.regions = hit.score.envelopes = 1;
  domain::Domain& domain = hit.score.domains.emplace_back();
  domain.ienv = 3, domain.jenv = 20, domain.iali = 5, domain.jali = 10;
  domain.hmm_from = 2, domain.hmm_to = 7;
  domain.bits = bits;
  domain.log_p = -static_cast<double>(bits);
  domain.accuracy_sum = 5.0f;
  domain.alignment.model = "ac.dEfG";
  domain.alignment.match = "a  d Ef";
  domain.alignment.sequence = "ACt-YFG";
  domain.alignment.pp = "98*.765";
  return hit;
}

inline ModelResult make_result(std::vector<Hit> hits, const Thresholds& rules = {}) {
  ModelResult result;
  result.model = {"model", "PF1", std::nullopt, 8};
  FilterCounters counters;
  counters.targets = 4;
  counters.residues = 240;
  result.hits = finish_hits({rules, false}, std::move(hits), counters);
  return result;
}

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
