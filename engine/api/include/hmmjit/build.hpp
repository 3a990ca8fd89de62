// Models from sequences and alignments, as phmmer, jackhmmer, nhmmer and hmmbuild build them.
//
//   const hmmjit::Model query = hmmjit::build_model({.name = "query", .residues = "MKVLAAGGHKLM"});
//   const hmmjit::Models families = hmmjit::build_from_alignments("families.sto");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hmmjit/error.hpp"
#include "hmmjit/models.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// Which columns of an alignment become match states.
enum class MatchColumns {
  kOccupied,   ///< --fast: those with residues in enough rows
  kReference,  ///< --hand: those that the RF annotation marks
};
/// Relative weights of rows.
enum class RowWeights {
  kPositionBased,  ///< --wpb: Henikoff & Henikoff 1994
  kTree,           ///< --wgsc: Gerstein, Sonnhammer & Chothia 1994
  kClusters,       ///< --wblosum: Henikoff & Henikoff 1992
  kNone,           ///< --wnone
  kGiven,          ///< --wgiven: those of the alignment
};
/// How many sequences the rows together count as.
enum class EffectiveNumber {
  kEntropy,       ///< --eent: as many as give a mean relative entropy
  kEntropyPower,  ///< --eentexp: the same, by a power of the counts
  kClusters,      ///< --eclust: single-linkage clusters
  kRows,          ///< --enone
  kSet,           ///< --eset
};
enum class ModelPrior {
  kMixture,  ///< Dirichlet mixtures (Sjoelander et al. 1996)
  kNone,     ///< --pnone: frequencies
  kLaplace,  ///< --plaplace
};

/// Defaults are HMMER's. Source: HMMER user's guide, manual pages of phmmer, nhmmer and hmmbuild.
struct BuildOptions {
  /// Alphabet of alignments and of sequences in a file. Unset: it is guessed from alignments;
  /// sequences in a file are proteins, those in memory have their own alphabet.
  std::optional<Alphabet> alphabet = {};

  // Models from one sequence.
  /// --mx: PAM30 to PAM240, BLOSUM45 to BLOSUM90, DNA1. Empty: BLOSUM62, or DNA1 for nucleotides.
  std::string matrix = {};
  std::string matrix_file = {};  ///< --mxfile: replaces `matrix`; empty: none
  /// --popen and --pextend, probabilities. Unset: 0.02 and 0.4 for one sequence (nucleotides:
  /// 0.03125 and 0.75); with an alignment, what its counts say.
  std::optional<double> gap_open = {}, gap_extend = {};
  /// Alignments of one row are taken as one sequence (--singlemx).
  bool single_rows_by_matrix = false;

  // Models from an alignment.
  MatchColumns columns = MatchColumns::kOccupied;
  double least_occupied = 0.5;  ///< --symfrac: weighted fraction of rows, 0 to 1
  double fragment = 0.5;        ///< --fragthresh: rows of at most this fraction of the columns
  RowWeights weights = RowWeights::kPositionBased;
  double weight_identity = 0.62;  ///< --wid: of kClusters, 0 to 1
  EffectiveNumber effective = EffectiveNumber::kEntropy;
  double effective_number = 0;       ///< --eset: of kSet
  /// --ere: bits per position, above 0. Unset: 0.59, or 0.62 for nucleotides.
  std::optional<double> relative_entropy = {};
  double total_entropy = 45.0;       ///< --esigma: bits, above 0
  double effective_identity = 0.62;  ///< --eid: of kClusters, 0 to 1
  ModelPrior prior = ModelPrior::kMixture;
  std::optional<int> most_insertions = {};  ///< --maxinsertlen: 5 or more

  // Models of nucleotides: the longest hit expected (MAXL).
  int window_length = 0;      ///< --w_length; 0: from window_beta
  double window_beta = 1e-7;  ///< --w_beta: tail mass beyond it; 0: four times the positions

  // Calibration: lengths and numbers of simulated targets.
  int msv_length = 200, msv_targets = 200;          ///< --EmL, --EmN
  int viterbi_length = 200, viterbi_targets = 200;  ///< --EvL, --EvN
  int forward_length = 100, forward_targets = 200;  ///< --EfL, --EfN
  double tail_mass = 0.04;                          ///< --Eft: above 0, below 1
  std::uint32_t seed = 42;                          ///< 0: an arbitrary one; models then vary

  int threads = 0;  ///< for many sequences or alignments, up to 1024; 0: all cores granted
};

/// The model that phmmer, or nhmmer for nucleotides, searches with: each residue becomes a
/// position, whose emissions come from a substitution matrix. Calibrated. Reports show the
/// sequence's name, accession and description. Thread-safe; takes about 50 ms of one core, nearly
/// all of it for the calibration.
///
/// Throws Error kUsage for invalid options or names, kInput for invalid residues, an empty sequence
/// or an unusable matrix.
HMMJIT_EXPORT Model build_model(const Sequence& sequence, const BuildOptions& options = {});
/// The same of every sequence that has residues, in order, on several threads.
HMMJIT_EXPORT Models build_models(const Targets& sequences, const BuildOptions& options = {});

/// The model that hmmbuild builds from each alignment of a file: Stockholm (any number of them), or
/// one in aligned FASTA, A2M, PSI-BLAST, Clustal, SELEX or PHYLIP; plain, gzip or zstd. `format`:
/// empty, or a name as of --informat. An alignment without a name has that of the file.
/// Thread-safe.
///
/// Throws Error kInput for a missing or malformed file, one without an alignment, or an
/// alignment that no model can be made of; kUsage for options that make no sense.
HMMJIT_EXPORT Models build_from_alignments(const std::string& path,
                                           const BuildOptions& options = {},
                                           const std::string& format = {});
/// The same of the contents of such a file; `name` stands for it in messages, and names an
/// alignment that has none.
HMMJIT_EXPORT Models build_from_alignment_text(std::string_view contents,
                                               const BuildOptions& options = {},
                                               const std::string& format = {},
                                               const std::string& name = "memory");

HMMJIT_END_NAMESPACE
