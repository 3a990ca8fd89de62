// Helpers for listing the candidates of a stage in the catalogue.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "plan/kernel_variant.hpp"

namespace hmmjit::plan {

/// Constant lists ranked by predicted rate; ties keep the order of insertion.
class RankedConstants {
 public:
  /// Ignores lists that have already been added.
  void add(double rate, Constants constants) {
    if (std::ranges::find(entries_, constants, &Entry::constants) == entries_.end()) {
      entries_.push_back({rate, std::move(constants)});
    }
  }
  /// The first `most` lists, then those others for which `also`, called in order, returns true.
  std::vector<Constants> best(
      std::size_t most = std::numeric_limits<std::size_t>::max(),
      const std::function<bool(const Constants&)>& also = [](const Constants&) { return false; }) {
    std::ranges::stable_sort(entries_, std::greater{}, &Entry::rate);
    std::vector<Constants> out;
    for (const Entry& entry : entries_) {
      const bool wanted = also(entry.constants);
      if (out.size() < most || wanted) out.push_back(entry.constants);
    }
    return out;
  }

 private:
  struct Entry {
    double rate = 0;
    Constants constants;
  };
  std::vector<Entry> entries_;
};

/// Registers available to a thread if `threads` of them share an SM, as the compiler derives from a
/// launch bound. They are allocated per warp in units of eight per thread.
constexpr int register_bound(std::int64_t threads) {
  constexpr std::int64_t kRegistersOfAnSm = 65536, kMost = 255, kUnit = 8;
  return static_cast<int>(std::min(kMost, kRegistersOfAnSm / threads / kUnit * kUnit));
}

}  // namespace hmmjit::plan
