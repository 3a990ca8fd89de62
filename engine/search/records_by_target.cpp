#include "search/records_by_target.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hmmjit {

Status RecordsByTarget::add(std::uint64_t target, std::string_view record) {
  places_.push_back({target, bytes_.size(), record.size()});
  bytes_ += record;
  // Both grow by doubling, and are copied while they do.
  const std::uint64_t held = bytes_.size() + places_.size() * sizeof(Place);
  return held > memory_ / 4 ? write_run() : Status{};
}

void RecordsByTarget::sort() {
  std::ranges::sort(places_, {}, [](const Place& p) { return std::tuple(p.target, p.offset); });
}

Status RecordsByTarget::write_run() {
  if (places_.empty()) return {};
  sort();
  HMMJIT_TRY(runs_.begin());
  for (const Place& place : places_)
    HMMJIT_TRY(
        runs_.append(place.target, std::string_view(bytes_).substr(place.offset, place.size)));
  bytes_ = {};
  places_ = {};
  return runs_.end();
}

Result<bool> RecordsByTarget::next(std::uint64_t& target, std::vector<std::string>& records) {
  records.clear();
  if (!std::exchange(reading_, true)) {
    if (runs_.empty()) {
      sort();
    } else {
      HMMJIT_TRY(write_run());
      HMMJIT_TRY(runs_.open());
    }
  }
  if (runs_.empty()) {
    if (next_place_ == places_.size()) return false;
    target = places_[next_place_].target;
    for (; next_place_ < places_.size() && places_[next_place_].target == target; ++next_place_) {
      const Place& place = places_[next_place_];
      records.push_back(bytes_.substr(place.offset, place.size));
    }
    return true;
  }
  if (runs_.at_end()) return false;
  target = runs_.target();
  while (!runs_.at_end() && runs_.target() == target) {
    HMMJIT_ASSIGN(const std::string_view record, runs_.record());
    records.emplace_back(record);
    HMMJIT_TRY(runs_.advance());
  }
  return true;
}

}  // namespace hmmjit
