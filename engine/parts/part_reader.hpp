// Reads part files (docs/part-format.md) and checks everything; errors name the damaged block.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/read_only_file.hpp"
#include "parts/part_format.hpp"

namespace hmmjit::parts {

/// A part open for reading. Immutable; threads may share it.
class PartFile {
 public:
  /// Reads and checks everything except the blocks. Without `keep_open`, opens the file for each
  /// read: for more parts than a process may have open files. Fails with kInput.
  static Result<std::shared_ptr<const PartFile>> open(const std::string& path,
                                                      bool keep_open = true);

  const std::string& path() const { return path_; }
  const PartSettings& settings() const { return settings_; }
  const std::string& settings_text() const { return settings_text_; }
  const PartPlace& place() const { return prelude_.place; }
  const PartOrigin& origin() const { return origin_; }
  const Digest& content() const { return prelude_.content; }
  const Digest& search() const { return prelude_.search; }
  std::uint64_t file_bytes() const { return prelude_.file_bytes; }
  std::uint64_t hits() const { return prelude_.hits; }
  std::uint64_t domains() const { return prelude_.domains; }

  /// Reads everything and compares the content digest.
  Status verify() const;

  std::size_t hit_blocks() const { return prelude_.hit_blocks; }
  std::size_t head_blocks() const { return prelude_.head_blocks; }
  const BlockEntry& hit_block(std::size_t n) const { return table_[n]; }
  const BlockEntry& head_block(std::size_t n) const { return table_[prelude_.hit_blocks + n]; }
  /// Decompresses a block to `raw`; `packed` is scratch memory.
  Status read_block(const BlockEntry& entry, std::string& packed, std::string& raw) const;
  std::unexpected<Error> damaged(const std::string& what) const;
  /// True for errors about damaged parts, false for errors about other files.
  static bool is_damage(const Error& error);

 private:
  PartFile() = default;
  Status read();
  Status read_at(std::uint64_t offset, std::size_t size, std::string& bytes) const;

  std::string path_;
  std::optional<ReadOnlyFile> file_;  // empty: opened for each read
  Prelude prelude_{};
  PartSettings settings_;
  std::string settings_text_;
  PartOrigin origin_;
  std::vector<BlockEntry> table_;
};
using PartPtr = std::shared_ptr<const PartFile>;

/// Iterates over the models of a part and the hits of each, with one block of each kind in memory.
/// One thread at a time.
class PartCursor {
 public:
  explicit PartCursor(PartPtr part) : part_(std::move(part)) {}

  /// Reads the next model; false after the last.
  Result<bool> next_model(ModelHead& head);
  /// Continues with model `index` of the model file, which must not precede the part.
  Status seek(std::uint64_t index);
  /// Moves to the first hit of a model.
  Status begin_hits(const ModelHead& head);
  /// Reads the next hit of that model; false after the last.
  Result<bool> next_hit(Hit& hit);
  const PartFile& part() const { return *part_; }

 private:
  struct Block {
    std::string raw;
    std::size_t number = 0, at = 0;
    bool loaded = false;
  };
  Result<bool> ready(Block& block, bool of_heads, std::size_t count);

  PartPtr part_;
  Block heads_, hits_;
  std::string packed_;
  std::uint64_t hits_left_ = 0;
};

}  // namespace hmmjit::parts
