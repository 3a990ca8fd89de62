// Database files of targets: digitised once, searched without parsing.
// Format: docs/database-format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/hidden.hpp"
#include "model/alphabet.hpp"
#include "model/targets.hpp"

namespace hmmjit {

inline constexpr std::uint32_t kDatabaseVersion = 1;
/// Alignment of targets in bytes, as the kernels require.
inline constexpr std::uint32_t kDatabaseAlignment = 16;

/// One section of a database file.
struct DatabaseSection {
  std::string_view name;
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t checksum = 0;  ///< XXH3 of the bytes
};

/// Contents of the header.
struct DatabaseSummary {
  std::uint32_t version = kDatabaseVersion;
  const Alphabet* alphabet = nullptr;
  std::uint64_t targets = 0, residues = 0;
  std::uint32_t longest = 0, shortest = 0;  ///< target lengths in residues; both 0 without targets
  std::uint64_t file_bytes = 0;
  std::uint64_t identity = 0;  ///< digest of the targets and their order, not of the source files
  std::vector<DatabaseSection> sections;
};

/// True if a file that begins with `head` (8 bytes are enough) is a target database.
bool is_target_database(std::string_view head);
/// The same for the file `path`. False for anything but a regular file: bytes read from a pipe
/// would be lost. Fails with kInput if the file cannot be read.
Result<bool> is_target_database_file(const std::string& path);

enum class DatabaseAccess {
  /// Maps the file; blocks of targets are views of it. If the file is truncated meanwhile, the
  /// process receives SIGBUS and must handle it.
  kMap,
  /// kMap for databases that are read many times: keeps pages mapped, and checks residues on first
  /// reading only. Each later reading takes 0.1 ms per block.
  kResident,
  /// Copies blocks of targets: a truncated file gives an error, and checked bytes cannot change.
  /// For host programs, which have their own signal handlers.
  kRead,
};

/// A database open for reading. Immutable; threads may share it.
///
/// Opening reads only the header (which has its own checksum), in constant time. Readers check the
/// rest as they use it: entries that point outside their section and residues outside the alphabet
/// give an error, never an invalid access. verify() finds all other damage.
class TargetDatabase {
 public:
  /// Fails with kInput if the file is no database, is of another version, is truncated, or has a
  /// damaged header.
  static Result<std::shared_ptr<const TargetDatabase>> open(
      const std::string& path, DatabaseAccess access = DatabaseAccess::kMap);
  /// Copies a database from memory. Errors use `name`.
  static Result<std::shared_ptr<const TargetDatabase>> from_bytes(std::string name,
                                                                  std::string_view bytes);

  const std::string& name() const;
  const DatabaseSummary& summary() const;
  /// Lines "key value" that describe how the file was made. Like all functions below, fails with
  /// kInput if the file was truncated after it was opened.
  Result<std::string> about() const;
  /// Length of the target at a rank in the order by length: longest first, equal lengths in input
  /// order. Fails with kUsage if there is no such rank, and with kInput if the file is damaged.
  Result<std::uint32_t> length_at_rank(std::uint64_t rank) const;

  /// Targets [first, last) whose first residue lies in the fraction [from / of, to / of) of the
  /// residues section (docs/part-format.md). Reads only a few entries.
  Result<std::pair<std::uint64_t, std::uint64_t>> targets_of_fraction(std::uint64_t from,
                                                                      std::uint64_t to,
                                                                      std::uint64_t of) const;

  /// Reads everything: checksums of all sections, zero bytes between them, every entry, residue
  /// code and padding byte, counts, and the length order. Fails with kInput at the first damage.
  /// Needs 4 bytes of memory per target.
  Status verify() const;

 private:
  friend class DatabaseReader;
  struct State;
  explicit TargetDatabase(Hidden<State> state) : state_(std::move(state)) {}
  Hidden<State> state_;
};

/// Delivers the targets of a database in input order. One thread per reader.
class DatabaseReader {
 public:
  explicit DatabaseReader(std::shared_ptr<const TargetDatabase> database);

  /// Makes `block` a view of the next targets, up to the one that fills it (TargetBlock::full).
  /// False at the end. Fails with kInput if the file is damaged or truncated. The last copy of the
  /// block releases its pages, which stay in the page cache.
  Result<bool> read_block(TargetBlock& block, std::uint64_t max_residues);
  /// Continues at target `index` (0: the first). kInput if `index` is beyond the end.
  Status seek(std::uint64_t index);
  /// Stops before target `index`.
  void set_end(std::uint64_t index) { end_ = index; }
  std::uint64_t targets_read() const { return next_; }
  /// Bytes of residues, entries and text in the targets delivered since the start.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::shared_ptr<const TargetDatabase> database_;
  std::uint64_t next_ = 0;  // index of the next target
  std::uint64_t end_ = ~std::uint64_t{0};
  std::uint64_t residues_ = 0, text_ = 0;  // positions at which its residues and text must start
  std::uint64_t bytes_read_ = 0;
};

/// Writes a database, which gets its name when finish() succeeds. Keeps entries and text in unnamed
/// temporary files in the output's folder; finish() needs 4 bytes of memory per target. One thread
/// at a time.
class DatabaseWriter {
 public:
  /// Fails with kOutput.
  static Result<DatabaseWriter> create(const std::string& path, const Alphabet& alphabet);

  /// Appends the targets of `block`. Fails with kOutput, or with kInput beyond 2^32 - 1 targets.
  Status add(const TargetBlock& block);
  /// `about`: lines "key value" to store with the data.
  Result<DatabaseSummary> finish(std::string_view about);

 private:
  struct State;
  explicit DatabaseWriter(Hidden<State> state) : state_(std::move(state)) {}
  Hidden<State> state_;
};

}  // namespace hmmjit
