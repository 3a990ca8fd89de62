// Profile HMMs: from files, from memory, one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
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

  /// The model in format HMMER3/f, as hmmbuild saves it; of models that were read, without what a
  /// file says of their making. Probabilities are rounded to five digits.
  std::string text() const;
  /// The same in HMMER's binary format (.h3m): every parameter bit for bit.
  std::string binary() const;

  /// The sequence that stands for the model in reports: of models of build_model the one they were
  /// built from. `name` empty: none.
  struct Query {
    std::string name, accession, description;
  };
  const Query& query() const;
  /// The same model with another one.
  Model with_query(Query query) const;

  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }  ///< for the library itself

 private:
  std::shared_ptr<const Impl> impl_;
};

/// What a search is given as queries: models in memory, or a file that each search reads as it
/// goes, so that a library of any size can be searched in bounded memory.
///
/// Formats, recognised by content: HMMER3/a to /f text and binary (.h3m), HMMER2 text; plain,
/// gzip or zstd. A pressed database (F.h3m beside F) is preferred to F, as hmmsearch does.
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
  /// What `visit` throws comes out as it is. Throws Error kInput for a missing or damaged file.
  void for_each(const std::function<bool(const Model&)>& visit) const;

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }  ///< for the library itself

 private:
  explicit Models(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

HMMJIT_END_NAMESPACE
