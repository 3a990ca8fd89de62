#include "search/target_source.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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

// Spool record of a block: fixed header, then per target four lengths and the bytes.
struct BlockHeader {
  std::uint64_t first_index, targets, bytes;
};
struct TargetHeader {
  std::uint32_t residues, name, accession, description;
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
  std::string body;
  body.reserve(block.bytes());
  const auto put = [&](const void* data, std::size_t size) {
    body.append(static_cast<const char*>(data), size);
  };
  for (std::size_t i = 0; i < block.size(); ++i) {
    const TargetView target = block[i];
    const TargetHeader header{static_cast<std::uint32_t>(target.residues.size()),
                              static_cast<std::uint32_t>(target.name.size()),
                              static_cast<std::uint32_t>(target.accession.size()),
                              static_cast<std::uint32_t>(target.description.size())};
    put(&header, sizeof header);
    put(target.name.data(), target.name.size());
    put(target.accession.data(), target.accession.size());
    put(target.description.data(), target.description.size());
    put(target.residues.data(), target.residues.size());
  }
  const BlockHeader header{block.first_index(), block.size(), body.size()};
  HMMJIT_TRY(file_.append({reinterpret_cast<const char*>(&header), sizeof header}));
  return file_.append(body);
}

Result<bool> BlockSpool::next(TargetBlock& block, std::size_t) {
  if (position_ == file_.size()) return false;
  std::string bytes;
  HMMJIT_TRY(file_.read(position_, sizeof(BlockHeader), bytes));
  BlockHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  HMMJIT_TRY(file_.read(position_ + sizeof header, header.bytes, bytes));
  position_ += sizeof header + header.bytes;
  block.set_first_index(header.first_index);
  const char* at = bytes.data();
  const auto take = [&at](std::size_t size) {
    const std::string_view text(at, size);
    at += size;
    return text;
  };
  for (std::uint64_t i = 0; i < header.targets; ++i) {
    TargetHeader target;
    std::memcpy(&target, take(sizeof target).data(), sizeof target);
    const auto name = take(target.name);
    const auto accession = take(target.accession);
    const auto description = take(target.description);
    block.begin_target(name, accession, description);
    const auto residues = take(target.residues);
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
