// The file F.h3f of a pressed profile database: of each model, what the MSV filter needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/coding.hpp"
#include "core/error.hpp"
#include "core/read_only_file.hpp"
#include "model/profile.hpp"

namespace hmmjit {

/// The MSV filter of a model, as hmmpress has stored it. `cost` is valid until the next is read.
struct PressedFilter {
  static constexpr int kLanes = 16;

  std::string name;
  const Alphabet* alphabet = nullptr;
  ByteProfile bytes;  ///< without costs
  /// ByteProfile::cost as [Kp][stripes][kLanes]: lane l of stripe q is node 1 + q + l * stripes
  /// (Farrar 2007).
  std::span<const char> cost;
  std::size_t stripes = 0;
  float mu = 0, lambda = 0;  ///< of the Gumbel distribution of MSV scores
  std::uint64_t offset = 0;  ///< of the model in F.h3m
};

/// Reads a file of hmmpress 3.1 or later. One thread per reader.
///
///   HMMJIT_ASSIGN(PressedFilterReader reader, PressedFilterReader::open("Pfam-A.hmm"));
///   HMMJIT_ASSIGN(std::optional<PressedFilter> first, reader.next());
class PressedFilterReader {
 public:
  /// `path`: F. Fails with kInput if F.h3f is missing or unreadable.
  static Result<PressedFilterReader> open(const std::string& path);
  /// Nullopt after the last. Fails with kInput if the file is damaged or of another version.
  Result<std::optional<PressedFilter>> next();

 private:
  PressedFilterReader(ReadOnlyFile file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}
  std::unexpected<Error> damaged() const;
  // The next bytes of the file, valid until the next call.
  Result<Decoder> read(std::size_t size);

  ReadOnlyFile file_;
  std::string name_;
  std::uint64_t at_ = 0;
  std::string buffer_;
};

}  // namespace hmmjit
