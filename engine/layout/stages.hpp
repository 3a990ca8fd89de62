// The filter stages as their kernels see them: the tables of a model that a launch reads, their
// place in its parameters, and the meaning of its results.
//
// A stage is constructed from a model and the targets' distinct lengths. place() adds its tables to
// a block; parameters() returns the model's part of the launch parameters for that block's address,
// on a device or the host. The caller fills in targets, lists, results and scratch.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/late_params.h"
#include "common/launch_params.h"
#include "layout/byte_tables.hpp"
#include "layout/float_tables.hpp"
#include "layout/node_tables.hpp"
#include "layout/table_block.hpp"
#include "layout/word_tables.hpp"
#include "model/profile.hpp"

namespace hmmjit::layout {

// ---- SSV and MSV --------------------------------------------------------------------------------

class ByteStage {
 public:
  /// `F1`: the P-value above which targets fail.
  ByteStage(const ByteProfile& profile, const Calibration& calibration, double F1,
            std::span<const std::uint32_t> class_lengths);
  /// `msv`: includes the costs of the MSV recurrence.
  void place(TableBlock& block, bool msv);
  hmmjit_device::ByteFilterParams parameters(std::uintptr_t base) const;

  const std::vector<hmmjit_device::LengthClass>& classes() const { return classes_; }
  hmmjit_device::LengthClass* classes(std::uintptr_t base) const { return at_classes_.in(base); }

 private:
  const ByteProfile& profile_;
  ByteTables tables_;
  std::vector<hmmjit_device::LengthClass> classes_;
  Placed<hmmjit_device::LengthClass> at_classes_;
  Placed<std::int8_t> at_emissions_;
  Placed<std::uint8_t> at_costs_;
};

/// The result of an SSV or MSV kernel.
struct ByteAnswer {
  hmmjit_device::FilterStatus status = hmmjit_device::kStatusNoResult;
  int value = 0;            ///< u of SSV, J of MSV
  bool passed = false;      ///< the kernel's decision by F1
  bool recurrence = false;  ///< from the MSV recurrence
  /// +inf after an overflow; NaN if there is no result.
  float nats = std::numeric_limits<float>::quiet_NaN();
};
ByteAnswer byte_answer(const ByteProfile& profile, hmmjit_device::FilterResult result, int length);

// ---- Viterbi ------------------------------------------------------------------------------------

class WordStage {
 public:
  WordStage(const WordProfile& profile, std::span<const std::uint32_t> class_lengths);
  void place(TableBlock& block);
  hmmjit_device::WordFilterParams parameters(std::uintptr_t base) const;

  std::int16_t* moves(std::uintptr_t base) const { return at_moves_.in(base); }
  /// Empty if a kernel's arithmetic is exact for this model, else the reason why not. The Viterbi
  /// filter of a model without a kernel runs on the CPU.
  static std::string gap(const WordProfile& profile, bool speculates) {
    return speculates ? viterbi_wavefront_gap(profile) : viterbi_row_scan_gap(profile);
  }

 private:
  const WordProfile& profile_;
  NodeTables<std::int16_t> tables_;
  std::vector<std::int16_t> moves_;
  Placed<std::int16_t> at_moves_, at_emissions_, at_transitions_;
};

/// The result of a Viterbi kernel.
struct WordAnswer {
  hmmjit_device::FilterStatus status = hmmjit_device::kStatusNoResult;
  int end = 0;  ///< C of the recurrence
  /// +inf after an overflow; NaN if there is no result.
  float nats = std::numeric_limits<float>::quiet_NaN();
};
WordAnswer word_answer(const WordProfile& profile, hmmjit_device::WordResult result, int length);

// ---- Forward ------------------------------------------------------------------------------------

class FloatStage {
 public:
  explicit FloatStage(const OddsProfile& profile);
  void place(TableBlock& block);
  /// The caller also fills in `lengths`, which depends only on the targets. Results are nats.
  hmmjit_device::FloatFilterParams parameters(std::uintptr_t base) const;

 private:
  const OddsProfile& profile_;
  NodeTables<float> tables_;
  Placed<float> at_emissions_, at_transitions_;
};

// ---- bias filter --------------------------------------------------------------------------------

class BiasStage {
 public:
  explicit BiasStage(const BiasModel& model);
  void place(TableBlock& block);
  /// The caller also fills in `p1`, which depends only on the targets. Results: see bias_nats().
  hmmjit_device::BiasParams parameters(std::uintptr_t base) const;

 private:
  const BiasModel& model_;
  std::vector<float> odds_;
  Placed<float> at_odds_;
};

}  // namespace hmmjit::layout
