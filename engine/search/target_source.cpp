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
  HMMJIT_ASSIGN(SpoolFile file, SpoolFile::create(0));
  return std::unique_ptr<BlockSpool>(new BlockSpool(std::move(file)));
}

Status BlockSpool::append(const TargetBlock& block) {
  std::string record;
  record.reserve(block.bytes());
  put_count(record, block.first_index());
  put_count(record, block.size());
  for (std::size_t i = 0; i < block.size(); ++i) {
    const TargetView target = block[i];
    for (const std::string_view text : {target.name, target.accession, target.description})
      put_text(record, text);
    put_text(record,
             {reinterpret_cast<const char*>(target.residues.data()), target.residues.size()});
  }
  std::string size;
  put_bytes(size, record.size());
  HMMJIT_TRY(file_.append(size));
  return file_.append(record);
}

Result<bool> BlockSpool::next(TargetBlock& block, std::size_t) {
  if (position_ == file_.size()) return false;
  std::string bytes;
  HMMJIT_TRY(file_.read(position_, sizeof(std::size_t), bytes));
  position_ += bytes.size();
  HMMJIT_TRY(file_.read(position_, Decoder(bytes).bytes<std::size_t>(), bytes));
  position_ += bytes.size();
  Decoder record(bytes);
  block.set_first_index(record.count());
  for (std::uint64_t left = record.count(); left > 0; --left) {
    const std::string_view name = record.text(), accession = record.text();
    const std::string_view description = record.text(), residues = record.text();
    block.begin_target(name, accession, description);
    block.append({reinterpret_cast<const Residue*>(residues.data()), residues.size()});
    block.end_target();
  }
  return true;
}

Status BlockSpool::rewind() {
  position_ = 0;
  return {};
}

}  // namespace hmmjit
