// Reading part files (docs/part-format.md). Everything read is checked: damage is an error that
// names the file and the block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parts/part_format.hpp"

namespace hmmjit::parts {

/// A part open for reading. Immutable and shareable.
class PartFile {
 public:
  /// Reads and checks all but the blocks. `keep_open`: false opens the file again for every read,
  /// for more parts than the system lets a process have open. Fails with kInput.
  static Result<std::shared_ptr<const PartFile>> open(const std::string& path,
                                                      bool keep_open = true);
  ~PartFile();

  const std::string& path() const { return path_; }
  const PartSettings& settings() const { return settings_; }
  const std::string& settings_text() const { return settings_text_; }
  const PartPlace& place() const { return place_; }
  const PartOrigin& origin() const { return origin_; }
  const Digest& content() const { return prelude_.content; }
  const Digest& search() const { return prelude_.search; }
  std::uint64_t file_bytes() const { return prelude_.file_bytes; }
  std::uint64_t hits() const { return prelude_.hits; }
  std::uint64_t domains() const { return prelude_.domains; }

  /// Reads everything and computes the content digest anew.
  Status verify() const;

  std::size_t hit_blocks() const { return prelude_.hit_blocks; }
  std::size_t head_blocks() const { return prelude_.head_blocks; }
  const BlockEntry& hit_block(std::size_t n) const { return table_[n]; }
  const BlockEntry& head_block(std::size_t n) const { return table_[prelude_.hit_blocks + n]; }
  /// The bytes of a block as they were written; `packed` is scratch memory.
  Status read_block(const BlockEntry& entry, std::string& packed, std::string& raw) const;
  std::unexpected<Error> damaged(const std::string& what) const;
  /// Whether an error says that a file is a damaged part, and not that it is none.
  static bool is_damage(const Error& error);

 private:
  PartFile() = default;
  Status read(bool keep_open);
  Status read_at(std::uint64_t offset, std::size_t size, std::string& bytes) const;

  std::string path_;
  int descriptor_ = -1;
  Prelude prelude_{};
  PartSettings settings_;
  std::string settings_text_;
  PartPlace place_;
  PartOrigin origin_;
  std::vector<BlockEntry> table_;
};
using PartPtr = std::shared_ptr<const PartFile>;

/// Goes through the models of a part, and through the hits of each. Holds one block of either
/// kind. One thread at a time.
class PartCursor {
 public:
  explicit PartCursor(PartPtr part) : part_(std::move(part)) {}

  /// The next model; false after the last.
  Result<bool> next_model(ModelHead& head);
  /// Goes on with model `index` of the model file, which the part holds or ends with.
  Status seek(std::uint64_t index);
  /// Begins with the first hit of a model.
  Status begin_hits(const ModelHead& head);
  /// The next hit of that model; false after the last.
  Result<bool> next_hit(Hit& hit);
  const PartFile& part() const { return *part_; }

 private:
  // Makes block `number` of its kind the one whose records come next.
  struct Block {
    std::string raw;
    std::size_t number = 0, at = 0;
    bool loaded = false;
  };
  Status load(Block& block, bool of_heads);
  Result<bool> ready(Block& block, bool of_heads, std::size_t count);

  PartPtr part_;
  Block heads_, hits_;
  std::string packed_;
  std::uint64_t hits_left_ = 0;
};

}  // namespace hmmjit::parts
