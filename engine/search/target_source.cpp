#include "search/target_source.hpp"

#include <algorithm>
#include <utility>

#include "core/coding.hpp"
#include "model/residue_copies.hpp"

namespace hmmjit {
namespace {

class RestrictedTargets final : public ForwardingSource {
 public:
  RestrictedTargets(std::unique_ptr<TargetSource> source, const Alphabet& alphabet,
                    std::string first, std::optional<std::uint64_t> count)
      : ForwardingSource(std::move(source)),
        alphabet_(alphabet),
        first_(std::move(first)),
        count_(count) {}

  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    while (!count_ || passed_ < *count_) {
      TargetBlock all;
      HMMJIT_ASSIGN(const bool more, source_->next(all, residues));
      if (!more) {
        if (!found())
          return fail(ErrorCode::kInput, "no target is named " + first_, {},
                      "check --restrictdb_stkey");
        return false;
      }
      block.set_first_index(passed_);
      ResidueCopies copies;
      for (std::size_t i = 0; i < all.size() && (!count_ || passed_ < *count_); ++i) {
        const TargetView target = all[i];
        if (!found() && target.name != first_) continue;
        found_ = true;
        HMMJIT_ASSIGN(const auto checked, copies.of(all, i, alphabet_));
        block.begin_target(target.name, target.accession, target.description);
        block.append(checked);
        block.end_target();
        ++passed_;
      }
      if (block.size() > 0) return true;
    }
    return false;
  }
  Status rewind() override {
    found_ = false;
    passed_ = 0;
    return source_->rewind();
  }

 private:
  bool found() const { return first_.empty() || found_; }

  const Alphabet& alphabet_;
  std::string first_;
  std::optional<std::uint64_t> count_;
  bool found_ = false;
  std::uint64_t passed_ = 0;
};

}  // namespace

std::uint64_t block_residues_of(std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20, kBlocks = 256;
  return std::clamp(bytes / kBlocks, kLeast, 4 * kLeast);
}

std::unique_ptr<TargetSource> restrict_targets(std::unique_ptr<TargetSource> source,
                                               const Alphabet& alphabet, std::string first,
                                               std::optional<std::uint64_t> count) {
  return std::make_unique<RestrictedTargets>(std::move(source), alphabet, std::move(first), count);
}

Result<std::unique_ptr<BlockSpool>> BlockSpool::create() {
  HMMJIT_ASSIGN(SpoolFile file, SpoolFile::create());
  return std::unique_ptr<BlockSpool>(new BlockSpool(std::move(file)));
}

// Residues are neither copied before they are written nor read at once: a target may take most of
// the memory.
Status BlockSpool::append(const TargetBlock& block) {
  std::string record;
  for (const std::uint64_t count : {block.first_index(), block.size(), block.residue_count()})
    put_count(record, count);
  HMMJIT_TRY(SpoolRun::append(file_, record));
  for (std::size_t i = 0; i < block.size(); ++i) {
    const TargetView target = block[i];
    record.clear();
    for (const std::string_view text : {target.name, target.accession, target.description})
      put_text(record, text);
    put_count(record, target.residues.size());
    HMMJIT_TRY(SpoolRun::append(file_, record));
    HMMJIT_TRY(file_.append(
        {reinterpret_cast<const char*>(target.residues.data()), target.residues.size()}));
  }
  return {};
}

Result<bool> BlockSpool::next(TargetBlock& block, std::size_t) {
  std::string_view bytes;
  HMMJIT_ASSIGN(const bool more, unread_.next(bytes));
  if (!more) return false;
  Decoder head(bytes);
  block.set_first_index(head.count());
  const std::uint64_t targets = head.count();
  block.reserve(head.count() + targets + 1);
  for (std::uint64_t n = 0; n < targets; ++n) {
    HMMJIT_ASSIGN(const bool whole, unread_.next(bytes));
    if (!whole) return damaged_spool_file();
    Decoder record(bytes);
    const std::string_view name = record.text(), accession = record.text();
    block.begin_target(name, accession, record.text());
    for (std::uint64_t left = record.count(); left > 0; left -= bytes.size()) {
      HMMJIT_ASSIGN(bytes, unread_.take(std::min(left, kBuffer)));
      block.append({reinterpret_cast<const Residue*>(bytes.data()), bytes.size()});
    }
    block.end_target();
  }
  return true;
}

Status BlockSpool::rewind() {
  unread_ = SpoolRun(file_, 0, file_.size(), kBuffer);
  return {};
}

}  // namespace hmmjit
