// SSV of both strands and the Viterbi filter of windows on a GPU. If hits are rare, these take
// nearly all of the time.
//
// The device computes the plain recurrences, which do not clear a row after a hit. SSV cells are
// therefore no lower than the scan's, and a block of rows whose largest value stays below the
// threshold has no hit. Threads scan the other blocks exactly, together with the rows before on
// which they depend. Viterbi cells equal the scan's up to its first hit: the kernel leaves a window
// undecided if the J state, which it does not compute, has an effect. A window whose highest match
// cell stays below the threshold has no hit. Threads scan the other windows.
//
// WindowParser computes Forward and the steps after it, up to the envelopes.
//
// A dedicated thread serves the device. While it waits for the driver or the compiler, and after
// the loss of the device, the worker threads compute everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/filters.hpp"
#include "gpu/gpu_filters.hpp"
#include "layout/packed_targets.hpp"
#include "model/profile.hpp"
#include "nucleotide/pieces.hpp"
#include "nucleotide/window_parser.hpp"
#include "search/verifier.hpp"

namespace hmmjit::nucleotide {

/// A model for the device's scan.
struct ScanModel {
  const SearchModel* model = nullptr;
  /// reference::marking_height(); 0: the model is not scanned.
  int height = 0;
  /// Longest length model of a window, in residues; 0: windows stay on the CPU.
  int window_length = 0;
};

/// The largest values of all blocks of rows, for one model and one block of targets.
class ScanMarks {
 public:
  /// Appends the rows of `part` in which a cell may reach the threshold, in order, as rows of
  /// sequence `sequence`.
  void append(const StrandPart& part, std::size_t sequence,
              std::vector<cpu::MarkedRows>& rows) const;

 private:
  friend class DeviceScan;
  int height_ = 0;
  int suspect_ = 0;           // from this value on, following rows may have overflowed
  std::int64_t reach_ = 0;    // number of such rows
  std::int64_t padding_ = 0;  // rows before the bottom strand
  std::vector<std::uint8_t> top_, bottom_;
};

/// Thread-safe. Construction starts the driver in its own thread and returns at once.
class DeviceScan {
 public:
  explicit DeviceScan(gpu::Settings settings);
  ~DeviceScan();
  DeviceScan(const DeviceScan&) = delete;
  DeviceScan& operator=(const DeviceScan&) = delete;

  /// Sets the models for the following blocks. `verifier` checks some of the device's answers; may
  /// be null. Both must live until end_block() of the last of these blocks returns.
  void use_models(std::vector<ScanModel> models, bool top, bool bottom,
                  search_run::Verifier* verifier = nullptr);
  /// Begins a block with this top strand. Call marks() `uses` times per model, in model order.
  void begin_block(std::span<const Residue> top, std::size_t uses);
  /// The marks of a model; null: the caller finds the rows itself. Waits if the device is about to
  /// deliver them.
  std::shared_ptr<const ScanMarks> marks(std::size_t model);
  /// True if best_cells() for this model would now wait for the device.
  bool takes_windows(std::size_t model) const;
  /// Requests the best cells of a model's windows, at most once per block.
  void request_cells(std::size_t model, layout::PackedTargets windows);
  /// The highest match cell of each requested window, or kUnknownCell, in packing order. Null: the
  /// caller scans all windows. Waits if the device is about to deliver them.
  std::shared_ptr<const std::vector<int>> best_cells(std::size_t model);
  /// Null before the device is ready and after it is lost.
  WindowParser* parser() const;
  /// True if a demanded device cannot be used; end_block() then fails.
  bool missing() const;
  /// Waits until the device has finished with the block.
  Status end_block();

  gpu::Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit::nucleotide
