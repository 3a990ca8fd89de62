#include "search/kept_targets.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace hmmjit {
namespace {

class KeptTargets final : public ForwardingSource {
 public:
  KeptTargets(std::unique_ptr<TargetSource> source, std::uint64_t memory)
      : ForwardingSource(std::move(source)), memory_(memory) {}

  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    if (replay_ != nullptr) return replay_->next(block, residues);
    HMMJIT_ASSIGN(const bool more, source_->next(block, residues));
    if (!more) {
      complete_ = keeping_;
      return false;
    }
    if (!keeping_) return true;
    block = block.packed();
    kept_ += block.bytes();
    if (kept_ > memory_) {
      keeping_ = false;
      blocks_ = {};
      return true;
    }
    blocks_.push_back(block);
    return true;
  }
  Status rewind() override {
    if (complete_) {
      if (replay_ == nullptr) replay_ = resident_targets(std::move(blocks_))->open();
      return replay_->rewind();
    }
    if (!source_->rewindable())
      return fail(ErrorCode::kResources, "the targets do not fit in memory and come from a pipe",
                  {}, "give a file, or raise --mem");
    if (keeping_) {  // stopped before its end
      blocks_ = {};
      kept_ = 0;
    }
    return source_->rewind();
  }
  bool rewindable() const override { return complete_ || source_->rewindable(); }
  int read_ahead_threads() const override { return complete_ ? 0 : source_->read_ahead_threads(); }
  std::uint64_t bytes_read() const override {
    return replay_ != nullptr ? 0 : source_->bytes_read();
  }

 private:
  std::uint64_t memory_, kept_ = 0;
  bool keeping_ = true, complete_ = false;
  std::vector<TargetBlock> blocks_;
  std::unique_ptr<TargetSource> replay_;  // of the blocks, from the second pass on
};

class LoadedTargets final : public ResidentTargets,
                            public std::enable_shared_from_this<LoadedTargets> {
 public:
  explicit LoadedTargets(std::vector<TargetBlock> blocks) : blocks_(std::move(blocks)) {}
  std::unique_ptr<TargetSource> open() const override {
    return std::make_unique<Source>(shared_from_this());
  }
  std::uint64_t bytes() const override {
    std::uint64_t sum = 0;
    for (const TargetBlock& block : blocks_) sum += block.bytes();
    return sum;
  }

 private:
  class Source final : public TargetSource {
   public:
    explicit Source(std::shared_ptr<const LoadedTargets> loaded) : loaded_(std::move(loaded)) {}
    Result<bool> next(TargetBlock& block, std::size_t) override {
      if (position_ == loaded_->blocks_.size()) return false;
      block = loaded_->blocks_[position_++];
      return true;
    }
    Status rewind() override {
      position_ = 0;
      return {};
    }
    bool rewindable() const override { return true; }
    std::shared_ptr<const ResidentTargets> resident() const override { return loaded_; }

   private:
    std::shared_ptr<const LoadedTargets> loaded_;
    std::size_t position_ = 0;
  };

  const std::vector<TargetBlock> blocks_;
};

}  // namespace

Result<std::shared_ptr<const ResidentTargets>> load_targets(TargetSource& source,
                                                            std::uint64_t memory) {
  constexpr std::size_t kResidues = std::size_t{1} << 20;
  std::vector<TargetBlock> blocks;
  for (std::uint64_t bytes = 0;;) {
    TargetBlock block;
    HMMJIT_ASSIGN(const bool more, source.next(block, kResidues));
    if (!more) return resident_targets(std::move(blocks));
    blocks.push_back(block.packed());
    bytes += blocks.back().bytes();
    if (memory > 0 && bytes > memory)
      return fail(ErrorCode::kResources, "the targets do not fit in memory", {},
                  "allow more memory, or make a database of them with hmmjit db build");
  }
}

std::unique_ptr<TargetSource> keep_targets(std::unique_ptr<TargetSource> source,
                                           std::uint64_t memory) {
  return std::make_unique<KeptTargets>(std::move(source), memory);
}

Result<TargetBlock> load_block(TargetSource& source, std::size_t residues) {
  TargetBlock block;
  HMMJIT_ASSIGN(const bool more, source.next(block, residues));
  return more ? block.packed() : TargetBlock();
}

std::shared_ptr<const ResidentTargets> resident_targets(std::vector<TargetBlock> blocks) {
  return std::make_shared<const LoadedTargets>(std::move(blocks));
}

}  // namespace hmmjit
