#include "search/hits_by_target.hpp"

#include <algorithm>
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
  HMMJIT_TRY(runs_.begin());
  std::string record;
  for (std::size_t target = 0; target < hits_.size(); ++target) {
    for (Hit& hit : hits_[target]) {
      record.clear();
      encode_judged_hit(hit, alignments_, record);
      constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
      if (record.size() > kMost)
        return fail(ErrorCode::kResources, "model " + hit.name + " has too many domains to store",
                    {}, "raise --mem, or scan with --noali");
      HMMJIT_TRY(runs_.append(target, record));
    }
    hits_[target] = {};
  }
  held_ = 0;
  return runs_.end();
}

Result<std::vector<Hit>> HitsByTarget::take(std::uint64_t target) {
  const std::uint64_t number = target - first_;
  if (!std::exchange(reading_, true) && !runs_.empty()) HMMJIT_TRY(runs_.open());
  std::vector<Hit> hits;
  while (!runs_.at_end() && runs_.target() == number) {
    HMMJIT_ASSIGN(const std::string_view record, runs_.record());
    Decoder decoder(record);
    if (!decode_judged_hit(decoder, hits.emplace_back())) return damaged_spool_file();
    HMMJIT_TRY(runs_.advance());
  }
  std::ranges::move(hits_[number], std::back_inserter(hits));
  hits_[number] = {};
  return hits;
}

}  // namespace hmmjit
