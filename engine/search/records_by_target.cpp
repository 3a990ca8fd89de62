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
  runs_.emplace_back(begin, file_->size());
  return runs_.size() < kMostSpoolRuns ? Status{} : merge_runs();
}

Status RecordsByTarget::open_readers() {
  readers_.clear();
  for (const auto& [begin, end] : runs_) readers_.push_back({SpoolRun(begin, end), {}});
  for (Reader& reader : readers_) HMMJIT_TRY(find_target(reader));
  return {};
}

Status RecordsByTarget::find_target(Reader& reader) {
  reader.target.reset();
  if (reader.run.at_end()) {
    reader.run.release();
    return {};
  }
  Header header{};
  HMMJIT_ASSIGN(const std::string_view bytes,
                reader.run.peek(*file_, sizeof header, memory_, runs_.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  reader.target = header.target;
  return {};
}

std::optional<std::uint64_t> RecordsByTarget::first_target() const {
  std::optional<std::uint64_t> first;
  for (const Reader& reader : readers_) {
    if (reader.target && (!first || *reader.target < *first)) first = reader.target;
  }
  return first;
}

Result<std::string_view> RecordsByTarget::peek(Reader& reader) {
  Header header{};
  HMMJIT_ASSIGN(const std::string_view head,
                reader.run.peek(*file_, sizeof header, memory_, runs_.size()));
  std::memcpy(&header, head.data(), sizeof header);
  return reader.run.peek(*file_, sizeof header + header.size, memory_, runs_.size());
}

Status RecordsByTarget::skip(Reader& reader, std::size_t bytes) {
  reader.run.skip(bytes);
  return find_target(reader);
}

Status RecordsByTarget::merge_runs() {
  HMMJIT_ASSIGN(SpoolFile merged, SpoolFile::create(kSpoolWriteBuffer));
  HMMJIT_TRY(open_readers());
  for (;;) {
    const std::optional<std::uint64_t> target = first_target();
    if (!target) break;
    for (Reader& reader : readers_) {  // of one target, those of the earlier run first
      while (reader.target == target) {
        HMMJIT_ASSIGN(const std::string_view bytes, peek(reader));
        HMMJIT_TRY(merged.append(bytes));
        HMMJIT_TRY(skip(reader, bytes.size()));
      }
    }
  }
  file_ = std::move(merged);
  runs_ = {{0, file_->size()}};
  readers_.clear();
  return {};
}

Result<bool> RecordsByTarget::next(std::uint64_t& target, std::vector<std::string>& records) {
  records.clear();
  if (!std::exchange(reading_, true)) {
    if (runs_.empty()) {
      sort();
    } else {
      HMMJIT_TRY(write_run());
      HMMJIT_TRY(open_readers());
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
  const std::optional<std::uint64_t> first = first_target();
  if (!first) return false;
  target = *first;
  for (Reader& reader : readers_) {
    while (reader.target == first) {
      HMMJIT_ASSIGN(const std::string_view bytes, peek(reader));
      records.emplace_back(bytes.substr(sizeof(Header)));
      HMMJIT_TRY(skip(reader, bytes.size()));
    }
  }
  return true;
}

}  // namespace hmmjit
