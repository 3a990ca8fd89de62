// The unfinished pairs of a model and a target block, and their owners.
//
// A search processes each pair once, on the CPU or on a device. Only the board records the owner of
// a pair. It knows neither models nor kernels nor threads, and calls nothing while it is locked.
//
//   open ----------> taken by the CPU: off the board
//    |  \            .
//    |   `---------> claimed by a device ------> finished: off the board
//    v                      |
//   CPU only <--------------'  (the claim ends unfinished)
//
// A pair that a device refuses falls back to the CPU, and the board reports it at once through
// the function it was constructed with. A pair never returns to devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/mutex.hpp"
#include "model/targets.hpp"

namespace hmmjit {

using ModelId = std::uint64_t;  ///< ascends in the order of the results
using BlockId = std::uint64_t;
using SegmentId = std::uint64_t;  ///< of blocks that a device processes together
using TargetsPtr = std::shared_ptr<const TargetBlock>;

class WorkBoard;

/// A pair that a device has claimed. If the claim is destroyed without `finish`, the pair falls
/// back to the CPU. Empty if there was nothing to claim.
class Claim {
 public:
  Claim() = default;
  Claim(Claim&& other) noexcept { *this = std::move(other); }
  Claim& operator=(Claim&& other) noexcept;
  ~Claim() { give_up(); }
  explicit operator bool() const { return board_ != nullptr; }
  ModelId model() const { return model_; }
  BlockId block() const { return block_; }
  const TargetsPtr& targets() const { return targets_; }
  /// Marks the pair as done and returns the targets. Call it once.
  TargetsPtr finish();

 private:
  friend class WorkBoard;
  Claim(WorkBoard& board, ModelId model, BlockId block, TargetsPtr targets)
      : board_(&board), model_(model), block_(block), targets_(std::move(targets)) {}
  void give_up() noexcept;

  WorkBoard* board_ = nullptr;
  ModelId model_ = 0;
  BlockId block_ = 0;
  TargetsPtr targets_;
};

/// Thread-safe. Must outlive its claims.
class WorkBoard {
 public:
  /// `left_to_host` is called for every open pair that falls back to the CPU, without a lock, on
  /// the thread that caused it. It must not throw.
  explicit WorkBoard(std::function<void(ModelId, BlockId)> left_to_host)
      : left_to_host_(std::move(left_to_host)) {}
  WorkBoard(const WorkBoard&) = delete;
  WorkBoard& operator=(const WorkBoard&) = delete;

  // ---- pairs -----------------------------------------------------------------------------------

  /// Lets devices claim pairs of this block; pairs of other blocks go to the CPU.
  void add_block(BlockId block);
  /// Opens a pair. The board keeps the targets alive while it has a pair of them.
  void open(ModelId model, BlockId block, TargetsPtr targets);
  /// Forgets a model or a block.
  void remove_model(ModelId model);
  void remove_block(BlockId block);

  // ---- the CPU ---------------------------------------------------------------------------------

  /// Takes the pair for the caller and returns its targets; null if it is claimed or done.
  TargetsPtr take_for_host(ModelId model, BlockId block);
  /// True if both CPU and devices may take the pair.
  bool is_open(ModelId model, BlockId block) const;

  // ---- devices ---------------------------------------------------------------------------------

  /// Makes a segment of these blocks, in this order. A block leaves the segment that it was in.
  SegmentId make_segment(std::vector<BlockId> blocks);
  /// Claims the open pairs of a model with the blocks of a segment: one entry per block, empty
  /// where the pair was not open.
  std::vector<Claim> claim(ModelId model, SegmentId segment);
  /// The number of models with an open pair in the segment.
  std::size_t open_models(SegmentId segment) const;
  /// The first model, from `from` on, that has an open pair in the segment.
  std::optional<ModelId> next_open(SegmentId segment, ModelId from) const;

  // Devices refuse pairs, both open ones and those that are opened later.
  void refuse_model(ModelId model);
  void refuse_segment(SegmentId segment);
  void refuse_all();
  /// refuse_segment() if none of its pairs is open; returns whether that is so.
  bool close_if_done(SegmentId segment);

 private:
  friend class Claim;
  enum class State : std::uint8_t { kOpen, kHost, kClaimed };
  struct Block {
    TargetsPtr targets;  // null without pairs
    std::optional<SegmentId> segment;
    bool refused = false;
    std::map<ModelId, State> pairs;
  };
  struct Segment {
    std::vector<BlockId> blocks;
    std::size_t left = 0;                 // blocks that have not been removed
    std::map<ModelId, std::size_t> open;  // pairs
  };
  struct Pair {
    ModelId model;
    BlockId block;
  };
  void count_open(const Block& block, ModelId model, bool more) HMMJIT_REQUIRES(mutex_);
  // Moves the block and its open pairs from its segment to this one, if any.
  void assign(Block& block, std::optional<SegmentId> segment) HMMJIT_REQUIRES(mutex_);
  // Returns the targets if it was the last pair of its block: destroy them without the lock.
  TargetsPtr remove(ModelId model, BlockId block) HMMJIT_REQUIRES(mutex_);
  // Adds the pair to `left` if it is open.
  void leave_to_host(ModelId model, BlockId block, std::vector<Pair>& left) HMMJIT_REQUIRES(mutex_);
  void refuse_block(BlockId block, std::vector<Pair>& left) HMMJIT_REQUIRES(mutex_);
  void report(const std::vector<Pair>& left) const HMMJIT_EXCLUDES(mutex_);
  void end_claim(ModelId model, BlockId block, bool done) HMMJIT_EXCLUDES(mutex_);

  const std::function<void(ModelId, BlockId)> left_to_host_;
  mutable Mutex mutex_;
  bool refused_ HMMJIT_GUARDED_BY(mutex_) = false;
  SegmentId next_segment_ HMMJIT_GUARDED_BY(mutex_) = 1;
  std::unordered_map<BlockId, Block> blocks_ HMMJIT_GUARDED_BY(mutex_);
  std::unordered_map<SegmentId, Segment> segments_ HMMJIT_GUARDED_BY(mutex_);
  std::unordered_set<ModelId> refused_models_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit
