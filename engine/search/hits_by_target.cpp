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
  runs_.emplace_back(begin, file_->size());
  return runs_.size() < kMostSpoolRuns ? Status{} : merge_runs();
}

Result<std::string_view> HitsByTarget::bytes_of(SpoolRun& run, std::size_t count) {
  return run.peek(*file_, count, memory_, runs_.size());
}

// Of the next hit of a run, nullopt after the last.
Result<std::optional<HitsByTarget::Header>> HitsByTarget::peek(SpoolRun& run) {
  if (run.at_end()) return std::nullopt;
  Header header{};
  HMMJIT_ASSIGN(const std::string_view bytes, bytes_of(run, sizeof header));
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

Status HitsByTarget::merge_runs() {
  HMMJIT_ASSIGN(SpoolFile merged, SpoolFile::create(kSpoolWriteBuffer));
  for (std::size_t target = 0; target < hits_.size(); ++target) {
    for (SpoolRun& run : runs_) {
      for (;;) {
        HMMJIT_ASSIGN(const std::optional<Header> header, peek(run));
        if (!header || header->target != target) break;
        const std::size_t size = sizeof(Header) + header->size;
        HMMJIT_ASSIGN(const std::string_view record, bytes_of(run, size));
        HMMJIT_TRY(merged.append(record));
        run.skip(size);
      }
    }
  }
  file_ = std::move(merged);
  runs_.assign(1, SpoolRun(0, file_->size()));
  return {};
}

Result<std::vector<Hit>> HitsByTarget::take(std::uint64_t target) {
  const std::uint64_t number = target - first_;
  std::vector<Hit> hits;
  for (SpoolRun& run : runs_) {
    for (;;) {
      HMMJIT_ASSIGN(const std::optional<Header> header, peek(run));
      if (!header || header->target != number) break;
      const std::size_t size = sizeof(Header) + header->size;
      HMMJIT_ASSIGN(const std::string_view record, bytes_of(run, size));
      Decoder decoder(record.substr(sizeof(Header)));
      if (!decode_judged_hit(decoder, hits.emplace_back())) return damaged_spool_file();
      run.skip(size);
    }
  }
  std::ranges::move(hits_[number], std::back_inserter(hits));
  hits_[number] = {};
  return hits;
}

}  // namespace hmmjit
