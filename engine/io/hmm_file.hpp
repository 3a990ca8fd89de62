// Reading profile HMM files: HMMER3 ASCII and binary, HMMER2 ASCII.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "model/hmm.hpp"

namespace hmmjit {

/// Suffixes of the files that hmmpress writes next to a profile file.
inline constexpr const char* kPressedSuffixes[] = {".h3m", ".h3f", ".h3p", ".h3i"};

/// Longest line, and longest string of a binary file, in bytes. hmmsearch has no limit; the longest
/// line in Pfam's models has a few hundred bytes.
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
  /// Fails with kInput when the file is missing, empty, or not a profile file.
  static Result<HmmReader> open(const std::string& path);
  static Result<HmmReader> open(std::unique_ptr<ByteSource> source);

  HmmReader(HmmReader&&) noexcept;
  HmmReader& operator=(HmmReader&&) noexcept;
  ~HmmReader();

  /// The next model; nullopt after the last. Do not call it again after an error.
  Result<std::optional<Hmm>> next();
  /// Offset, in the decompressed file, of the first byte after the last model returned.
  std::uint64_t offset() const;
  Compression compression() const;
  /// The file that is read: the given path or its .h3m.
  const std::string& name() const;
  HmmFormat format() const;

 private:
  struct State;
  explicit HmmReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
