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

/// One profile HMM. Immutable; copies share; threads may share it.
class HMMJIT_EXPORT Model : public SharedHandle<const struct ModelImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Names, cutoffs, probabilities and calibration. Texts are never null; they and the arrays live
  /// as long as any copy of the model.
  const ModelInfo& info() const;
  /// A model with the names, cutoffs and query of `info`, a changed copy of info(); ignores other
  /// members. Throws Error kUsage for an empty name, and for blanks or control characters that
  /// tables cannot hold.
  Model with(const ModelInfo& info) const;

  /// The model in format HMMER3/f, as hmmbuild saves it, but without the history of models from
  /// files. Rounds probabilities to five digits. Throws Error kInput if no program could read it.
  std::string text() const;
  /// The model in HMMER's binary format (.h3m): all parameters bit for bit.
  std::string binary() const;
};

/// The queries of a search: models in memory, or a file that each search reads step by step, so
/// that bounded memory suffices for a library of any size.
///
/// Formats, recognised by content: HMMER3/a to /f text and binary (.h3m), HMMER2 text; plain,
/// gzip or zstd. Like hmmsearch, prefers a pressed database (F.h3m next to F) to F. Source: HMMER
/// user's guide, "Profile HMM file format".
///
/// Handle: copies share. Immutable except by `add`; several threads may search one concurrently.
class HMMJIT_EXPORT Models : public SharedHandle<struct ModelsImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// No models; fill it with `add`.
  Models();
  /// A file that each search reads. Does not open it: the search throws Error for a missing file.
  /// "-": standard input, for one search.
  static Models from_file(std::string path);
  /// Reads a file now. Throws Error kInput for a missing, damaged or empty file.
  static Models load(const std::string& path);
  /// Parses the content of such a file now. Messages use `name` as path. Throws Error kInput.
  static Models from_memory(std::string_view contents, const std::string& name = "memory");

  /// Appends one model. Do not call it during a search. Throws Error kUsage on a Models of
  /// from_file.
  void add(Model model);
  /// Models in memory; 0 for from_file.
  std::size_t size() const;
  /// 0 <= index < size(). Throws Error kUsage otherwise.
  Model operator[](std::size_t index) const;
  /// Calls `visit` for each model, in memory or read from the file, until `visit` returns false.
  /// Exceptions of `visit` pass unchanged. Throws Error kInput for a missing or damaged file.
  void for_each(const std::function<bool(const Model&)>& visit) const;
};

HMMJIT_END_NAMESPACE
