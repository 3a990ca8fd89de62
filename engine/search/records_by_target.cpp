#include "search/records_by_target.hpp"

#include <algorithm>
#include <cstring>
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
  if (!file_) {
    HMMJIT_ASSIGN(file_, SpoolFile::create(kSpoolWriteBuffer));
  }
  const std::uint64_t begin = file_->size();
  for (const Place& place : places_) {
    const Header header{place.target, place.size};
    HMMJIT_TRY(file_->append({reinterpret_cast<const char*>(&header), sizeof header}));
    HMMJIT_TRY(file_->append(std::string_view(bytes_).substr(place.offset, place.size)));
  }
  bytes_ = {};
  places_ = {};
  runs_.push_back({begin, file_->size()});
  return runs_.size() < kMostSpoolRuns ? Status{} : merge_runs();
}

Status RecordsByTarget::open_runs() {
  const auto read = [](SpoolRun& run, Header& header) -> Status {
    HMMJIT_ASSIGN(const std::string_view bytes, run.peek(sizeof header));
    std::memcpy(&header, bytes.data(), sizeof header);
    return {};
  };
  merged_.emplace(*file_, runs_, memory_, read,
                  [](const Header& a, const Header& b) { return a.target < b.target; });
  return merged_->open();
}

// Until the next call.
Result<std::string_view> RecordsByTarget::front_record() {
  return merged_->front_run().take(sizeof(Header) + merged_->front().size);
}

Status RecordsByTarget::merge_runs() {
  HMMJIT_ASSIGN(SpoolFile merged, SpoolFile::create(kSpoolWriteBuffer));
  HMMJIT_TRY(open_runs());
  while (!merged_->empty()) {
    HMMJIT_ASSIGN(const std::string_view record, front_record());
    HMMJIT_TRY(merged.append(record));
    HMMJIT_TRY(merged_->advance());
  }
  merged_.reset();
  file_ = std::move(merged);
  runs_ = {{0, file_->size()}};
  return {};
}

Result<bool> RecordsByTarget::next(std::uint64_t& target, std::vector<std::string>& records) {
  records.clear();
  if (!std::exchange(reading_, true)) {
    if (runs_.empty()) {
      sort();
    } else {
      HMMJIT_TRY(write_run());
      HMMJIT_TRY(open_runs());
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
  if (merged_->empty()) return false;
  target = merged_->front().target;
  while (!merged_->empty() && merged_->front().target == target) {
    HMMJIT_ASSIGN(const std::string_view record, front_record());
    records.emplace_back(record.substr(sizeof(Header)));
    HMMJIT_TRY(merged_->advance());
  }
  return true;
}

}  // namespace hmmjit
