// Profile HMMs: from files, from memory, one at a time.
//
//   const auto models = hmmjit::Models::load("globins4.hmm");
//   const hmmjit::Model strict = models[0].with_cutoffs({{.sequence = 30, .domain = 25}}, {}, {});
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "hmmjit/error.hpp"

HMMJIT_BEGIN_NAMESPACE

enum class Alphabet { kAmino, kDna, kRna };

/// Bit score cutoffs of a curated model (GA, TC, NC).
struct ScoreCutoff {
  double sequence = 0, domain = 0;
};

/// One profile HMM. Immutable; copies share; shareable between threads.
class HMMJIT_EXPORT Model {
 public:
  const std::string& name() const;
  const std::string& accession() const;    ///< empty: none
  const std::string& description() const;  ///< empty: none
  int length() const;                      ///< match states, M
  Alphabet alphabet() const;
  const std::string& consensus() const;  ///< M characters
  std::optional<ScoreCutoff> gathering() const, trusted() const, noise() const;

  /// The model in format HMMER3/f, as hmmbuild saves it; models read from files lose the lines on
  /// how they were built. Probabilities are rounded to five digits.
  std::string text() const;
  /// The same in HMMER's binary format (.h3m): every parameter bit for bit.
  std::string binary() const;

  /// The sequence that reports name in place of the model. build_model sets it to the sequence
  /// that the model is built from. `name` empty: none.
  struct Query {
    std::string name, accession, description;
  };
  const Query& query() const;
  /// The same model with another query, other names or other cutoffs. Throws Error kUsage for a
  /// name without characters, and for blanks or control characters where tables have none.
  Model with_query(Query query) const;
  Model with_names(std::string name, std::string accession, std::string description) const;
  Model with_cutoffs(std::optional<ScoreCutoff> gathering, std::optional<ScoreCutoff> trusted,
                     std::optional<ScoreCutoff> noise) const;

  /// Probabilities and calibration. Spans live as long as any copy of the model.
  struct Parameters {
    int letters = 0;  ///< of the alphabet: 20 for proteins, in alphabetical order
    /// Rows 0 to length(), of `letters` emission probabilities; row 0 of `match` is not used.
    std::span<const float> match, insert;
    /// Rows 0 to length() of MM, MI, MD, IM, II, DM, DD; row 0 leaves the begin state.
    std::span<const float> transition;
    std::span<const float> composition;  ///< mean emission of the model; empty: unknown
    /// Score distributions in bits, as (location, lambda); location of `forward` is tau. Unset: not
    /// calibrated.
    struct Distribution {
      double location = 0, lambda = 0;
    };
    std::optional<Distribution> msv, viterbi, forward;
  };
  Parameters parameters() const;

  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }  ///< for the library itself

 private:
  std::shared_ptr<const Impl> impl_;
};

/// The queries of a search: models in memory, or a file that each search reads as it
/// goes, so that a library of any size can be searched in bounded memory.
///
/// Formats, recognised by content: HMMER3/a to /f text and binary (.h3m), HMMER2 text; plain,
/// gzip or zstd. A pressed database (F.h3m next to F) is preferred to F, as in hmmsearch.
/// Source: HMMER user's guide, "Profile HMM file format".
///
/// Handle: copies share. Immutable apart from `add`; several threads may search one at once.
class HMMJIT_EXPORT Models {
 public:
  /// Empty, to be filled by `add`.
  Models();
  /// Read during each search. Nothing is opened here: a missing file is an Error of the search.
  /// "-" is standard input, for one search.
  static Models from_file(std::string path);
  /// Read now and kept. Throws Error kInput for a missing, damaged or empty file.
  static Models load(const std::string& path);
  /// Parsed now from the contents of such a file; `name` stands for the path in messages. Throws
  /// Error kInput.
  static Models from_memory(std::string_view contents, const std::string& name = "memory");

  /// Appends one model. Not while a search runs. Throws Error kUsage on a Models of from_file.
  void add(Model model);
  /// Models in memory; 0 for from_file.
  std::size_t size() const;
  /// 0 <= index < size(). Throws Error kUsage otherwise.
  Model operator[](std::size_t index) const;
  /// Calls `visit` for each model, reading the file where there is one, until it returns false.
  /// Exceptions of `visit` pass unchanged. Throws Error kInput for a missing or damaged file.
  void for_each(const std::function<bool(const Model&)>& visit) const;

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }  ///< for the library itself

 private:
  explicit Models(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

HMMJIT_END_NAMESPACE
