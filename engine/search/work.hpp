// The kinds of work of a search, as values with their names in the timeline, and how work is
// divided.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/handover_policy.hpp"
#include "search/model_job.hpp"
#include "search/search.hpp"

namespace hmmjit::search_run {

/// A device's results for a block: all of them, or a part that is delivered early.
struct DeviceUnit {
  TargetsPtr targets;
  gpu::FilteredBlock filtered;
  std::uint64_t cells = 0;  ///< still to be scored of targets that passed
};

/// The result of a finished model, whose text is being made or which waits for its turn.
struct Finished {
  ModelResult result;
  ResultSink* sink = nullptr;
  std::size_t reserved = 0;  ///< bytes of the agenda's room for results, the text included
  std::size_t bytes = 0;     ///< once all parts of the text are made
  std::atomic<std::size_t> parts_left{0};
};
using FinishedPtr = std::shared_ptr<Finished>;

/// Read, calibrate and prepare the next model of the input.
struct SetUpModel {
  static constexpr const char* kName = "set-up";
  std::uint64_t announced = 0;  ///< calls of Agenda::more_models() before
};
/// Read the next block of targets.
struct ReadBlock {
  static constexpr const char* kName = "read";
};
/// Decompress or parse targets ahead of ReadBlock.
struct ReadAhead {
  static constexpr const char* kName = "read ahead";
};
/// Release the blocks kept so far; copy them first if the input cannot be read again.
struct BeginBatch {
  static constexpr const char* kName = "begin batch";
  std::vector<BlockPtr> blocks;
};
/// Start again at the first target, for a further batch of models.
struct NextPass {
  static constexpr const char* kName = "rewind";
  std::uint64_t announced = 0;  ///< as of SetUpModel
};
/// Take targets that wait for the domain stage of a device; `load` decides how many.
struct Backfill {
  static constexpr const char* kName = "backfill";
  gpu::HostLoad load;
};
/// Filter targets [begin, end) of a block.
struct FilterRange {
  static constexpr const char* kName = "filters";
  JobPtr job;
  TargetsPtr targets;
  std::size_t begin = 0, end = 0;
};
/// Filter a pair of the board, unless a device has claimed it or will.
struct FilterPair {
  static constexpr const char* kName = "filters";
  JobPtr job;
  BlockId block = 0;
};
/// Do the rest of the filters after a device. `early`: the results for these blocks are not whole.
struct FilterRest {
  static constexpr const char* kName = "filters after device";
  JobPtr job;
  std::vector<DeviceUnit> units;
  bool early = false;
};
/// Score targets that passed the filters.
struct ScoreBatch {
  static constexpr const char* kName = "scoring";
  JobPtr job;
  std::vector<WaitingTarget> targets;
};
/// Judge the hits of a model.
struct FinishModel {
  static constexpr const char* kName = "finish";
  JobPtr job;
};
/// Make a part of the text of a result.
struct FormatPart {
  static constexpr const char* kName = "report";
  FinishedPtr finished;
  std::size_t part = 0;
};
/// Pass the next result to the sink.
struct DeliverResult {
  static constexpr const char* kName = "output";
  FinishedPtr finished;
};
/// The search has ended.
struct End {
  static constexpr const char* kName = "end";
};

using Work =
    std::variant<End, DeliverResult, FormatPart, FinishModel, BeginBatch, NextPass, Backfill,
                 SetUpModel, ReadAhead, ReadBlock, ScoreBatch, FilterRange, FilterPair, FilterRest>;

/// Divides a block into ranges of about `each` cells for a model of `nodes` nodes.
std::vector<std::pair<std::size_t, std::size_t>> filter_ranges(const TargetBlock& targets,
                                                               std::uint64_t nodes,
                                                               std::uint64_t each);

/// Determines the size of batches.
struct BatchSizes {
  std::size_t threads = 1;
  std::uint64_t nodes = 0;  ///< of the model
  std::uint64_t rows = 0;   ///< most residues of a batch, see MemoryShares
  bool device = false;      ///< one takes part, whose last targets reach all threads at once
  bool idle = false;        ///< threads have nothing to do
};
/// The smallest batch whose targets share work, and the largest worth waiting for.
inline constexpr std::size_t kSmallestBatch = 8, kLargestBatch = 512;

/// Targets in batches.
struct Batches {
  std::vector<std::vector<WaitingTarget>> large;  ///< of one target each
  std::vector<std::vector<WaitingTarget>> others;
};
/// Divides targets among batches: those of similar size share vectors, the largest are alone.
Batches divide(std::vector<WaitingTarget> targets, const BatchSizes& sizes);

/// Divides a device's results into pieces that are enough work for a thread, and few enough to
/// balance the load.
std::vector<std::vector<DeviceUnit>> divide(std::vector<DeviceUnit> units);

/// The cells still to be scored of targets that passed.
std::uint64_t cells_left(const std::vector<WaitingTarget>& targets);
std::uint64_t passed_cells(const ModelJob& job, const DeviceUnit& unit);

}  // namespace hmmjit::search_run
