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

// What encode_hit leaves out.
struct Judgement {
  double sort_key;
  std::int32_t reported_domains, included_domains;
  Hit::Flags flags;
};

void encode(Hit& hit, bool alignments, std::string& out) {
  out.clear();
  Judgement judgement{};
  judgement.sort_key = hit.sort_key;
  judgement.reported_domains = hit.reported_domains;
  judgement.included_domains = hit.included_domains;
  judgement.flags = hit.flags;
  put_bytes(out, judgement);
  for (const Hit::Flags flags : hit.domain_flags) put_bytes(out, flags);
  // Domains may be judged again: all texts are kept.
  hit.domain_flags.assign(hit.score.domains.size(), Hit::Flags{true, true});
  encode_hit(hit, alignments, out);
}

bool decode(std::string_view bytes, std::size_t domains, Hit& hit) {
  Judgement judgement{};
  const std::size_t flags = domains * sizeof(Hit::Flags);
  if (bytes.size() < sizeof judgement + flags) return false;
  std::memcpy(&judgement, bytes.data(), sizeof judgement);
  Decoder decoder(bytes.substr(sizeof judgement + flags));
  if (!decode_hit(decoder, hit) || hit.score.domains.size() != domains) return false;
  hit.sort_key = judgement.sort_key;
  hit.reported_domains = judgement.reported_domains;
  hit.included_domains = judgement.included_domains;
  hit.flags = judgement.flags;
  hit.domain_flags.resize(domains);
  std::memcpy(static_cast<void*>(hit.domain_flags.data()), bytes.data() + sizeof judgement, flags);
  return true;
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
      const std::size_t domains = hit.score.domains.size();
      encode(hit, alignments_, record);
      constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
      if (record.size() > kMost)
        return fail(ErrorCode::kResources, "model " + hit.name + " has too many domains to store",
                    {}, "raise --mem, or scan with --noali");
      const Header header{static_cast<std::uint32_t>(target),
                          static_cast<std::uint32_t>(record.size()),
                          static_cast<std::uint32_t>(domains)};
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
    if (!decode(record.substr(sizeof(Header)), merged_->front().domains, hits.emplace_back()))
      return damaged_spool_file();
    HMMJIT_TRY(merged_->advance());
  }
  std::ranges::move(hits_[number], std::back_inserter(hits));
  hits_[number] = {};
  return hits;
}

}  // namespace hmmjit
