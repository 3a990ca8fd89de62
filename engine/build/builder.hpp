// Builds and calibrates models from alignments and sequences.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "build/alignment_model.hpp"
#include "build/calibration.hpp"
#include "build/score_system.hpp"
#include "core/error.hpp"

namespace hmmjit::build {

/// False if profile files cannot hold the name: it is blank or has control characters.
bool is_model_name(std::string_view name);
/// The name for an unnamed alignment: its file's name without folder and last suffix. Empty for
/// standard input ("-") and if is_model_name() is false.
std::string name_from_file(const std::string& path);

/// Builds models like hmmbuild, and like nhmmer for queries that are not models. Threads may share
/// it.
struct Builder {
  AlignmentOptions alignment = {};
  CalibrationOptions calibration = {};
  /// If set, builds alignments of one row as sequences (--singlemx).
  std::optional<ScoreSystem> single = {};
  std::optional<double> open = {}, extend = {};  ///< forced gap costs of models from alignments
  // Maximum length of nucleotide models: explicit, or from a tail mass (0: four times the nodes).
  std::optional<int> max_length = {};
  double tail_mass = 1e-7;

  /// `rows`, if given, receives the alignment's rows, unless the model is built from a sequence.
  /// Fails like `build_from_alignment` and `calibrate`.
  Result<BuiltModel> from_alignment(const MultipleAlignment& given,
                                    AlignedRows* rows = nullptr) const;
  /// `single` must be set. Fails like `calibrate`.
  Result<BuiltModel> from_sequence(std::string name, std::span<const Residue> residues) const;

 private:
  Status calibrate_and_limit(Hmm& hmm) const;
};

}  // namespace hmmjit::build
