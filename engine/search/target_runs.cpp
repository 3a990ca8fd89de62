#include "search/target_runs.hpp"

#include <cstring>
#include <utility>

namespace hmmjit {

Status TargetRuns::begin() {
  if (!file_) {
    HMMJIT_ASSIGN(file_, SpoolFile::create(kSpoolWriteBuffer));
  }
  begin_ = file_->size();
  return {};
}

Status TargetRuns::append(std::uint64_t target, std::string_view record) {
  const Header header{target, record.size()};
  HMMJIT_TRY(file_->append({reinterpret_cast<const char*>(&header), sizeof header}));
  return file_->append(record);
}

Status TargetRuns::end() {
  runs_.push_back({begin_, file_->size()});
  return runs_.size() < kMostSpoolRuns ? Status{} : merge();
}

Status TargetRuns::open() {
  const auto read = [](SpoolRun& run, Header& header) -> Status {
    HMMJIT_ASSIGN(const std::string_view bytes, run.peek(sizeof header));
    std::memcpy(&header, bytes.data(), sizeof header);
    return {};
  };
  merged_.emplace(*file_, runs_, memory_, read,
                  [](const Header& a, const Header& b) { return a.target < b.target; });
  return merged_->open();
}

Result<std::string_view> TargetRuns::stored() {
  return merged_->front_run().take(sizeof(Header) + merged_->front().size);
}

Result<std::string_view> TargetRuns::record() {
  HMMJIT_ASSIGN(const std::string_view bytes, stored());
  return bytes.substr(sizeof(Header));
}

Status TargetRuns::merge() {
  HMMJIT_ASSIGN(SpoolFile merged, SpoolFile::create(kSpoolWriteBuffer));
  HMMJIT_TRY(open());
  while (!at_end()) {
    HMMJIT_ASSIGN(const std::string_view bytes, stored());
    HMMJIT_TRY(merged.append(bytes));
    HMMJIT_TRY(advance());
  }
  merged_.reset();
  file_ = std::move(merged);
  runs_ = {{0, file_->size()}};
  return {};
}

}  // namespace hmmjit
