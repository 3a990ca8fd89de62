// SSV of both strands and the Viterbi filter of windows on a GPU: if hits are rare, they take
// nearly all of the time.
//
// The device computes the plain recurrences, which do not clear a row after a hit. SSV cells are
// therefore no lower than the scan's, and a block of rows whose largest value stays below the
// threshold has no hit. Threads scan the other blocks exactly, together with the preceding rows on
// which they depend. Viterbi cells equal the scan's up to its first hit, because the kernel leaves
// a window undecided if the J state has an effect that it does not compute. A window whose highest
// match cell stays below the threshold has no hit, and threads scan the others.
//
// WindowParser computes Forward and the steps after it, up to the envelopes.
//
// A dedicated thread serves the device. While it waits for the driver or the compiler, and after
// the device is lost, the worker threads compute everything themselves.
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

/// A model in the form that the device scans with.
struct ScanModel {
  const SearchModel* model = nullptr;
  /// reference::marking_height(); models for which it is 0 are not scanned.
  int height = 0;
  /// Longest length of a window's length model; 0: windows stay on the CPU.
  int window_length = 0;
};

/// The largest values of all blocks of rows, for one model and one block of targets.
class ScanMarks {
 public:
  /// Appends the rows of a part in which a cell may reach the threshold, in order, as rows of
  /// sequence number `sequence`.
  void append(const StrandPart& part, std::size_t sequence,
              std::vector<cpu::MarkedRows>& rows) const;

 private:
  friend class DeviceScan;
  int height_ = 0;
  int suspect_ = 0;           // from this value on, bytes in the following rows may have overflowed
  std::int64_t reach_ = 0;    // number of these rows
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

  /// Sets the models for the following blocks, and what checks some of the device's answers (null:
  /// nothing does). Both must live until end_block() of the last of these blocks returns.
  void use_models(std::vector<ScanModel> models, bool top, bool bottom,
                  search_run::Verifier* verifier = nullptr);
  /// Begins a block with this top strand. marks() will be called `uses` times per model, in model
  /// order.
  void begin_block(std::span<const Residue> top, std::size_t uses);
  /// Null: the caller finds the rows itself. Waits while the device is about to deliver them.
  std::shared_ptr<const ScanMarks> marks(std::size_t model);
  /// True if best_cells() for this model would now wait for the device.
  bool takes_windows(std::size_t model) const;
  /// Requests the best cells of a model's windows, at most once per block.
  void request_cells(std::size_t model, layout::PackedTargets windows);
  /// The highest match cell of each requested window, or kUnknownCell, in the order in which the
  /// windows were packed. Null: the caller scans them all. Waits while the device is about to
  /// decide.
  std::shared_ptr<const std::vector<int>> best_cells(std::size_t model);
  /// Null before the device is ready and after it is lost.
  WindowParser* parser() const;
  /// True if a demanded device cannot be used at all; end_block() then fails.
  bool missing() const;
  /// Waits until the device has finished with the block.
  Status end_block();

  gpu::Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit::nucleotide
