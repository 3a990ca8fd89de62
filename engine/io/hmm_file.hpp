// Reading profile HMM files: HMMER3 ASCII and binary, HMMER2 ASCII.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "io/sequence_format.hpp"
#include "model/hmm.hpp"

namespace hmmjit {

/// Suffixes of the files that hmmpress writes next to a profile file.
inline constexpr const char* kPressedSuffixes[] = {".h3m", ".h3f", ".h3p", ".h3i"};

/// Longest line, and longest string of a binary file, in bytes. hmmsearch has no limit; Pfam's
/// longest line has a few hundred bytes.
inline constexpr std::size_t kLongestModelLine = std::size_t{4} << 20;

enum class HmmFormat { kHmmer2, kAscii3, kBinary3 };

/// Reads the models of one file in order. Formats, recognised by content: HMMER3/a to /f ASCII,
/// HMMER2.0 ASCII (probabilities imported, `needs_calibration` set), binary HMMER3/a to /f
/// (.h3m); each plain, gzip or zstd compressed, from a file or standard input ("-").
///
/// Like hmmsearch, it prefers a pressed database F.h3m (with F.h3f, F.h3p, F.h3i) to F itself. All
/// models of a file must share format version and alphabet. Unlike in hmmsearch, a file that ends
/// inside a model is an error, and a model with "CONS no" gets a computed consensus.
///
/// One thread per reader. Source: HMMER user's guide, "Profile HMM file format".
class HmmReader {
 public:
  /// Fails with kInput if the file is missing, empty, or not a profile file.
  static Result<HmmReader> open(const std::string& path);
  static Result<HmmReader> open(std::unique_ptr<ByteSource> source);

  /// Text has probabilities below 2^-126 as subnormal numbers, as in hmmpress and hmmalign.
  /// Otherwise they are 0, as in hmmsearch.
  void keep_subnormals() { keeps_subnormals_ = true; }
  /// The next model; nullopt after the last. Do not call it again after an error.
  Result<std::optional<Hmm>> next();
  /// Reads to the end and returns the number of remaining models. Much faster than next(), but
  /// misses most errors that next() finds.
  Result<std::size_t> count();
  /// Offset of the first byte after the last model returned, in the decompressed file.
  std::uint64_t offset() const { return input_.offset(); }
  Compression compression() const { return input_.source().compression(); }
  /// The file read: the given path or its .h3m.
  const std::string& name() const { return input_.name(); }
  HmmFormat format() const { return format_; }

 private:
  explicit HmmReader(std::unique_ptr<ByteSource> source) : input_(std::move(source)) {
    input_.limit_lines(kLongestModelLine);
  }
  // Reads the format tag of the first model and sets format and version.
  Status detect();
  Result<std::optional<Hmm>> next_ascii();
  Result<std::optional<Hmm>> next_binary(bool probabilities = true);
  std::unexpected<Error> unknown_tag(std::string_view tag) const;

  BufferedInput input_;
  HmmFormat format_ = HmmFormat::kAscii3;
  char version_ = 0;
  bool keeps_subnormals_ = false;
  bool tag_read_ = false;  // true if the next model's tag has been consumed
  const Alphabet* alphabet_ = nullptr;
  std::optional<ForeignFile> foreign_;  // another kind of file, recognised by its first bytes
};

}  // namespace hmmjit
