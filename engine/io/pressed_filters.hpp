// The file F.h3f of a pressed profile database: of each model, what the MSV filter needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "model/profile.hpp"

namespace hmmjit {

/// The MSV filter of a model, as hmmpress has stored it. Views are valid until the next is read.
struct PressedFilter {
  static constexpr int kLanes = 16;

  std::string_view name;
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
  explicit PressedFilterReader(std::unique_ptr<ByteSource> source) : input_(std::move(source)) {}

  BufferedInput input_;
  std::size_t record_ = 0;  // bytes of the last record returned, which are skipped by next()
};

}  // namespace hmmjit
