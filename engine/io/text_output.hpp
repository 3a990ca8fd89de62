// An output file whose name determines its compression.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/output_file.hpp"

namespace hmmjit {

/// ".gz" (gzip) or ".zst" (Zstandard) if an output of this name is compressed, otherwise empty.
std::string_view compressed_suffix(std::string_view name);

/// Compresses text that arrives in pieces.
class Compressor {
 public:
  virtual ~Compressor() = default;
  /// Passes compressed bytes to `out`; with `end`, all remaining ones. The last call, and no other,
  /// must have `end`.
  virtual void compress(std::string_view text, bool end,
                        const std::function<void(std::string_view)>& out) = 0;
};
/// Throws std::bad_alloc.
std::unique_ptr<Compressor> make_gzip();

/// An OutputFile, compressed if compressed_suffix() of its name is not empty. One thread at a time.
class TextOutput {
 public:
  /// Fails with kOutput; throws std::bad_alloc if a compressor cannot allocate memory.
  static Result<TextOutput> create(const std::string& path);

  /// As OutputFile::write.
  void write(std::string_view text);
  /// As OutputFile::status.
  Status status() const { return file_.status(); }
  /// Ends the compressed data: nothing may be written afterwards.
  Status flush();
  Status commit();
  const std::string& path() const { return file_.path(); }
  /// The file to publish; call flush() first.
  OutputFile& file() { return file_; }

 private:
  explicit TextOutput(OutputFile file);
  void compress(std::string_view text, bool end);

  OutputFile file_;
  std::unique_ptr<Compressor> compressor_;  // null: uncompressed
  bool ended_ = false;                      // the compressed data
};

}  // namespace hmmjit
