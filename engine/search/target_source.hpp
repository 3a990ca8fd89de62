// Where target blocks come from: a sequence reader, possibly read several times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/sorted.hpp"
#include "model/targets.hpp"

namespace hmmjit {

class TargetSource;

/// Target blocks in memory, which any number of searches read at a time.
class ResidentTargets {
 public:
  virtual ~ResidentTargets() = default;
  /// A source at the first block. It keeps these targets in memory. Thread-safe.
  virtual std::unique_ptr<TargetSource> open() const = 0;
  /// The memory that they take at most, without mapped files.
  virtual std::uint64_t bytes() const = 0;
};

/// A sequence of target blocks in input order. One thread at a time.
class TargetSource {
 public:
  virtual ~TargetSource() = default;
  /// Appends whole targets to the empty `block` until it is about full (TargetBlock::full), and
  /// sets its first_index. False when the input had no further target.
  virtual Result<bool> next(TargetBlock& block, std::size_t residues) = 0;
  /// Starts again at the first target.
  virtual Status rewind() = 0;
  virtual bool rewindable() const = 0;
  /// Decompresses or parses a piece of the input ahead of `next`, from any thread, while that runs
  /// or not. True when there is room for more at once.
  virtual bool read_ahead() { return false; }
  /// The threads that read_ahead can keep busy now, after a `next`, with those that it does; 0: it
  /// does nothing.
  virtual int read_ahead_threads() const { return 0; }
  /// Bytes of memory for what is read ahead; before the first `next`.
  virtual void limit_ahead(std::uint64_t /*bytes*/) {}
  /// Residues of a target that there is memory for: one of more ends the search with kResources.
  /// Targets that are mapped, not read, have no such limit.
  virtual void limit_targets(std::uint64_t /*residues*/) {}
  /// The targets in memory whose blocks this delivers; may be null.
  virtual std::shared_ptr<const ResidentTargets> resident() const { return nullptr; }
  /// Whether these are a batch of the input's targets: others follow in later searches.
  virtual bool is_batch() const { return false; }
  /// Bytes read so far and in all (0: not known), for progress and reading speed.
  virtual std::uint64_t bytes_read() const { return 0; }
  virtual std::uint64_t bytes_total() const { return 0; }
};

/// The residues of a block for an input of `bytes` (0: not known). Each pair of a model and a block
/// costs a task or two and an entry of the board: tens of microseconds. So a large input has some
/// hundreds of blocks, and a block with a long model takes a tenth of a second.
std::uint64_t block_residues_of(std::uint64_t bytes);

/// A source that reads from another one.
class ForwardingSource : public TargetSource {
 public:
  explicit ForwardingSource(std::unique_ptr<TargetSource> source) : source_(std::move(source)) {}
  Status rewind() override { return source_->rewind(); }
  bool rewindable() const override { return source_->rewindable(); }
  bool read_ahead() override { return source_->read_ahead(); }
  int read_ahead_threads() const override { return source_->read_ahead_threads(); }
  void limit_ahead(std::uint64_t bytes) override { source_->limit_ahead(bytes); }
  void limit_targets(std::uint64_t residues) override { source_->limit_targets(residues); }
  std::uint64_t bytes_read() const override { return source_->bytes_read(); }
  std::uint64_t bytes_total() const override { return source_->bytes_total(); }

 protected:
  std::unique_ptr<TargetSource> source_;
};

/// Only the targets from the one named `first` on (empty: from the start), `count` of them at
/// most: hmmsearch's --restrictdb options. Indices count the targets let through.
std::unique_ptr<TargetSource> restrict_targets(std::unique_ptr<TargetSource> source,
                                               const Alphabet& alphabet, std::string first,
                                               std::optional<std::uint64_t> count);

/// Blocks in a temporary file, written on the first pass and read again on later ones where the
/// input itself cannot be (a pipe with more models than fit in memory). Rewind it after the last
/// append, before the first next.
class BlockSpool final : public TargetSource {
 public:
  /// Fails with kOutput.
  static Result<std::unique_ptr<BlockSpool>> create();

  Status append(const TargetBlock& block);

  /// Blocks come back as they were appended; `residues` is ignored.
  Result<bool> next(TargetBlock& block, std::size_t residues) override;
  Status rewind() override;
  bool rewindable() const override { return true; }

 private:
  static constexpr std::uint64_t kBuffer = std::uint64_t{1} << 18;
  explicit BlockSpool(SpoolFile file) : file_(std::move(file)), unread_(file_, 0, 0, kBuffer) {}

  SpoolFile file_;
  SpoolRun unread_;  // what is left of this pass
};

}  // namespace hmmjit
