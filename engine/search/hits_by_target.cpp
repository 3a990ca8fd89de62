#include "search/hits_by_target.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "core/coding.hpp"
#include "search/hit_coding.hpp"

namespace hmmjit {
namespace {

std::uint64_t bytes_in_memory(const Hit& hit) {
  constexpr std::uint64_t kOfAllocation = 16;
  std::uint64_t bytes = sizeof(Hit) + kOfAllocation;
  for (const std::string* text : {&hit.name, &hit.accession, &hit.description})
    bytes += text->capacity() + kOfAllocation;
  for (const domain::Domain& domain : hit.score.domains) {
    bytes += sizeof(domain::Domain) + sizeof(Hit::Flags);
    const domain::Alignment& a = domain.alignment;
    for (const std::string* line : {&a.rf, &a.cs, &a.model, &a.match, &a.sequence, &a.pp})
      if (!line->empty()) bytes += line->capacity() + kOfAllocation;
  }
  return bytes;
}

}  // namespace

Status HitsByTarget::add(std::uint64_t target, Hit hit) {
  held_ += bytes_in_memory(hit);
  hits_[target - first_].push_back(std::move(hit));
  return held_ > memory_ / 2 ? write_run() : Status{};
}

Status HitsByTarget::write_run() {
  if (!file_) {
    HMMJIT_ASSIGN(file_, SpoolFile::create(kSpoolWriteBuffer));
  }
  const std::uint64_t begin = file_->size();
  std::string record;
  for (std::size_t target = 0; target < hits_.size(); ++target) {
    for (Hit& hit : hits_[target]) {
      record.clear();
      encode_judged_hit(hit, alignments_, record);
      constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
      if (record.size() > kMost)
        return fail(ErrorCode::kResources, "model " + hit.name + " has too many domains to store",
                    {}, "raise --mem, or scan with --noali");
      const Header header{static_cast<std::uint32_t>(target),
                          static_cast<std::uint32_t>(record.size())};
      HMMJIT_TRY(file_->append({reinterpret_cast<const char*>(&header), sizeof header}));
      HMMJIT_TRY(file_->append(record));
    }
    hits_[target] = {};
  }
  held_ = 0;
  runs_.push_back({begin, file_->size()});
  return runs_.size() < kMostSpoolRuns ? Status{} : merge_runs();
}

Status HitsByTarget::open_runs() {
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
Result<std::string_view> HitsByTarget::front_record() {
  return merged_->front_run().take(sizeof(Header) + merged_->front().size);
}

Status HitsByTarget::merge_runs() {
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

Result<std::vector<Hit>> HitsByTarget::take(std::uint64_t target) {
  const std::uint64_t number = target - first_;
  if (!merged_ && file_) HMMJIT_TRY(open_runs());
  std::vector<Hit> hits;
  while (merged_ && !merged_->empty() && merged_->front().target == number) {
    HMMJIT_ASSIGN(const std::string_view record, front_record());
    Decoder decoder(record.substr(sizeof(Header)));
    if (!decode_judged_hit(decoder, hits.emplace_back())) return damaged_spool_file();
    HMMJIT_TRY(merged_->advance());
  }
  std::ranges::move(hits_[number], std::back_inserter(hits));
  hits_[number] = {};
  return hits;
}

}  // namespace hmmjit
