// Profile HMMs: from files, from memory, one at a time.
//
//   const auto models = hmmjit::Models::load("globins4.hmm");
//   hmmjit::ModelInfo info = models[0].info();
//   info.gathering = 30;
//   info.gathering_domain = 25;
//   const hmmjit::Model strict = models[0].with(info);
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"

HMMJIT_BEGIN_NAMESPACE

enum class Alphabet { kAmino, kDna, kRna };

/// Described in hmmjit.h.
using ModelInfo = hmmjit_model_info;

/// One profile HMM. Immutable; copies share; shareable between threads.
class HMMJIT_EXPORT Model : public SharedHandle<const struct ModelImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Names, cutoffs, probabilities and calibration. Texts are never null; they and the arrays live
  /// as long as any copy of the model.
  const ModelInfo& info() const;
  /// The model with the names, cutoffs and query of `info`, a changed copy of info(); other members
  /// are ignored. Throws Error kUsage for a name without characters, and for blanks or control
  /// characters where tables have none.
  Model with(const ModelInfo& info) const;

  /// The model in format HMMER3/f, as hmmbuild saves it; models read from files lose the lines on
  /// how they were built. Probabilities are rounded to five digits.
  std::string text() const;
  /// The same in HMMER's binary format (.h3m): every parameter bit for bit.
  std::string binary() const;
};

/// The queries of a search: models in memory, or a file that each search reads as it
/// goes, so that a library of any size can be searched in bounded memory.
///
/// Formats, recognised by content: HMMER3/a to /f text and binary (.h3m), HMMER2 text; plain,
/// gzip or zstd. A pressed database (F.h3m next to F) is preferred to F, as in hmmsearch.
/// Source: HMMER user's guide, "Profile HMM file format".
///
/// Handle: copies share. Immutable apart from `add`; several threads may search one at once.
class HMMJIT_EXPORT Models : public SharedHandle<struct ModelsImpl> {
 public:
  using SharedHandle::SharedHandle;
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
};

HMMJIT_END_NAMESPACE
