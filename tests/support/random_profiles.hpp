// Seeded generators of random and adversarial models, profiles and targets, for the property
// tests of every filter implementation. The same seed gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/profile.hpp"

namespace hmmjit::test_support {

/// Small deterministic generator (SplitMix64); standard distributions differ between libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// Uniform in [0, 1).
  double real();
  /// Uniform in low..high, both included.
  int integer(int low, int high);
  bool chance(double p) { return real() < p; }

 private:
  std::uint64_t state_;
};

/// Kinds of generated models.
enum class ModelKind {
  kTypical,     ///< peaked emissions, Pfam-like transitions
  kFlat,        ///< emissions near the background: all scores near zero
  kStrong,      ///< one residue per node with probability near 1: overflows early
  kDeleteRich,  ///< cheap D->D: long delete paths decide
  kInsertRich,  ///< cheap inserts
  kImpossible,  ///< many zero probabilities: minus infinity scores and transitions
  kExtreme,     ///< probabilities spread over 30 orders of magnitude
};
inline constexpr ModelKind kAllModelKinds[] = {
    ModelKind::kTypical,    ModelKind::kFlat,       ModelKind::kStrong, ModelKind::kDeleteRich,
    ModelKind::kInsertRich, ModelKind::kImpossible, ModelKind::kExtreme};
ModelKind any_model_kind(Random& random);
std::string to_string(ModelKind kind);

/// A calibrated-looking model of M nodes; emissions and transitions sum to one up to rounding.
Hmm random_hmm(std::uint64_t seed, int M, ModelKind kind = ModelKind::kTypical,
               const Alphabet& alphabet = amino_alphabet());
/// Draws the length, then the seed. Arguments that draw would be evaluated in an order that depends
/// on the compiler.
struct Lengths {
  int least, most;
};
Hmm random_hmm(Random& random, Lengths lengths, ModelKind kind = ModelKind::kTypical);
std::shared_ptr<const SearchModel> random_model(std::uint64_t seed, int M,
                                                ModelKind kind = ModelKind::kTypical,
                                                const Alphabet& alphabet = amino_alphabet());

/// Quantised profiles with arbitrary values in the ranges their types allow, beyond what any
/// probability model gives: for saturation, overflow and wrap-around.
ByteProfile random_byte_profile(std::uint64_t seed, int M, const Alphabet& alphabet);
WordProfile random_word_profile(std::uint64_t seed, int M, const Alphabet& alphabet);

/// Kinds of generated targets.
enum class TargetKind {
  kBackground,     ///< residues at background frequencies
  kUniformCodes,   ///< every code of the alphabet alike: gap, degenerate, '*', '~' included
  kHomologous,     ///< fragments of the model's consensus between random residues
  kTandem,         ///< consensus copies back to back: the J state, overflow
  kLowComplexity,  ///< one or two residues repeated
  kNonresidue,     ///< only gap, '*', '~' codes
};
inline constexpr TargetKind kAllTargetKinds[] = {
    TargetKind::kBackground, TargetKind::kUniformCodes,  TargetKind::kHomologous,
    TargetKind::kTandem,     TargetKind::kLowComplexity, TargetKind::kNonresidue};
TargetKind any_target_kind(Random& random);
std::string to_string(TargetKind kind);

/// `hmm` gives the alphabet and, for the homologous kinds, the consensus.
std::vector<Residue> random_target(std::uint64_t seed, int L, TargetKind kind, const Hmm& hmm);
/// As random_hmm of Lengths.
std::vector<Residue> random_target(Random& random, Lengths lengths, TargetKind kind,
                                   const Hmm& hmm);

}  // namespace hmmjit::test_support
