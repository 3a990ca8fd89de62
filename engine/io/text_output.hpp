// An output file whose name determines its compression.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/output_file.hpp"

namespace hmmjit {

/// ".gz" (gzip) or ".zst" (Zstandard) if an output of this name is compressed, otherwise empty.
std::string_view compressed_suffix(std::string_view name);

/// An OutputFile that is compressed if compressed_suffix() of its name is not empty. One thread at
/// a time.
class TextOutput {
 public:
  /// Fails with kOutput; throws std::bad_alloc if a compressor cannot allocate memory.
  static Result<TextOutput> create(const std::string& path);
  TextOutput(TextOutput&&) noexcept;
  TextOutput& operator=(TextOutput&&) noexcept;
  ~TextOutput();

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
  struct Compressor;
  struct Gzip;
  struct Zstandard;
  explicit TextOutput(OutputFile file);

  OutputFile file_;
  std::unique_ptr<Compressor> compressor_;  // null: uncompressed
};

}  // namespace hmmjit
