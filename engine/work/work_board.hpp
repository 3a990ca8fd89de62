// Which pairs of a model and a target block are still to be done, and who may do them.
//
// A search does every pair once, on threads of the host or on a device. The board is the only
// record of who has which: a pair is taken from it, and nobody else can have it then. It knows
// neither models nor kernels nor threads, and calls nobody while it is locked.
//
//   open ----------> taken by the host: no longer on the board
//    |  \            .
//    |   `---------> claimed by a device ------> finished: no longer on the board
//    v                      |
//   the host's <------------'  (the claim ends unfinished)
//
// A pair that a device cannot do is left to the host alone, and the board reports it at once
// through the function it was made with; a pair never goes back to devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/mutex.hpp"
#include "model/targets.hpp"

namespace hmmjit {

using ModelId = std::uint64_t;  ///< ascends in the order in which results are wanted
using BlockId = std::uint64_t;
using ShardId = std::uint64_t;  ///< of blocks that a device takes together
using TargetsPtr = std::shared_ptr<const TargetBlock>;

class WorkBoard;

/// A pair that a device has claimed. Its holder does the pair or loses it to the host: where the
/// claim is destroyed without `finish`, the pair is left to the host. Empty where there was nothing
/// to claim.
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
  /// The pair is done. Once; returns the targets.
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

/// Thread-safe. Claims must be gone before the board is.
class WorkBoard {
 public:
  /// `left_to_host` is called for every pair that was open and that devices leave to the host from
  /// now on, without a lock, on the thread that caused it. It must not throw.
  explicit WorkBoard(std::function<void(ModelId, BlockId)> left_to_host)
      : left_to_host_(std::move(left_to_host)) {}
  WorkBoard(const WorkBoard&) = delete;
  WorkBoard& operator=(const WorkBoard&) = delete;

  // ---- what there is to do ---------------------------------------------------------------------

  /// A block that devices may be given; pairs of other blocks are left to the host.
  void add_block(BlockId block);
  /// The pair is to be done. The board keeps the targets while a pair of theirs is on it.
  void open(ModelId model, BlockId block, TargetsPtr targets);
  /// Nothing more comes of this model, or of this block: what the board knows of it is forgotten.
  void remove_model(ModelId model);
  void remove_block(BlockId block);

  // ---- the host --------------------------------------------------------------------------------

  /// Takes the pair for the caller and returns its targets; null where somebody else has it.
  TargetsPtr take_for_host(ModelId model, BlockId block);
  /// Whether host and devices may take the pair. False: it is left to the host alone, or taken.
  bool is_open(ModelId model, BlockId block) const;

  // ---- devices ---------------------------------------------------------------------------------

  /// Blocks that a device takes together from now on, in this order. A block is in one shard: it
  /// leaves the one it was in.
  ShardId make_shard(std::vector<BlockId> blocks);
  /// Claims what is open of a model's pairs with the blocks of a shard: as many entries as the
  /// shard has blocks.
  std::vector<Claim> claim(ModelId model, ShardId shard);
  /// For how many models some pair of the shard is open.
  std::size_t open_models(ShardId shard) const;
  /// Calls `visit` with the models of which a pair of the shard is open, ascending, until it
  /// returns false. With the board locked: it must not call the board.
  template <typename Visit>
  void visit_open(ShardId shard, Visit&& visit) const {
    const MutexLock lock(mutex_);
    const auto found = shards_.find(shard);
    if (found == shards_.end()) return;
    for (const auto& [model, pairs] : found->second.open) {
      if (!visit(model)) return;
    }
  }

  // What devices leave to the host, now and for pairs that are opened later.
  void refuse_model(ModelId model);
  void refuse_shard(ShardId shard);
  void refuse_all();
  /// refuse_shard where no pair of it is open; whether that is so.
  bool close_if_done(ShardId shard);

 private:
  friend class Claim;
  enum class State : std::uint8_t { kOpen, kHost, kClaimed };
  struct Block {
    TargetsPtr targets;  // while there are pairs
    std::optional<ShardId> shard;
    bool refused = false;
    std::map<ModelId, State> pairs;
  };
  struct Shard {
    std::vector<BlockId> blocks;
    std::size_t left = 0;                 // blocks that have not been removed
    std::map<ModelId, std::size_t> open;  // pairs
  };
  struct Model {
    bool refused = false;
    std::set<BlockId> blocks;  // with a pair on the board
  };
  struct Pair {
    ModelId model;
    BlockId block;
  };
  void count_open(const Block& block, ModelId model, bool more) HMMJIT_REQUIRES(mutex_);
  // The block leaves its shard for this one, if any, and its open pairs with it.
  void assign(Block& block, std::optional<ShardId> shard) HMMJIT_REQUIRES(mutex_);
  // The targets where it was the last pair of its block: destroyed without the lock.
  TargetsPtr remove(ModelId model, BlockId block) HMMJIT_REQUIRES(mutex_);
  // Adds the pair to `left` where it was open.
  void leave_to_host(ModelId model, BlockId block, std::vector<Pair>& left) HMMJIT_REQUIRES(mutex_);
  void refuse_block(BlockId block, std::vector<Pair>& left) HMMJIT_REQUIRES(mutex_);
  void report(const std::vector<Pair>& left) const HMMJIT_EXCLUDES(mutex_);
  void end_claim(ModelId model, BlockId block, bool done) HMMJIT_EXCLUDES(mutex_);

  const std::function<void(ModelId, BlockId)> left_to_host_;
  mutable Mutex mutex_;
  bool refused_ HMMJIT_GUARDED_BY(mutex_) = false;
  ShardId next_shard_ HMMJIT_GUARDED_BY(mutex_) = 1;
  std::unordered_map<BlockId, Block> blocks_ HMMJIT_GUARDED_BY(mutex_);
  std::unordered_map<ShardId, Shard> shards_ HMMJIT_GUARDED_BY(mutex_);
  std::unordered_map<ModelId, Model> models_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit
