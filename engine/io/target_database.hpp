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
#include "model/alphabet.hpp"
#include "model/targets.hpp"

namespace hmmjit {

inline constexpr std::uint32_t kDatabaseVersion = 1;
/// Targets start at multiples of this many bytes, as the kernels want them.
inline constexpr std::uint32_t kDatabaseAlignment = 16;

/// One part of a database file.
struct DatabaseSection {
  std::string_view name;
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t checksum = 0;  ///< XXH3 of the bytes
};

/// What the header says.
struct DatabaseSummary {
  std::uint32_t version = kDatabaseVersion;
  const Alphabet* alphabet = nullptr;
  std::uint64_t targets = 0, residues = 0;
  std::uint32_t longest = 0, shortest = 0;  ///< residues of a target; 0 and 0 without targets
  std::uint64_t file_bytes = 0;
  std::uint64_t identity = 0;  ///< of the targets and their order, whatever their source
  std::vector<DatabaseSection> sections;
};

/// Whether a file that begins with `head` (8 bytes are enough) is a target database.
bool is_target_database(std::string_view head);
/// The same of a file by its name; false for what is no regular file, which is not read: what was
/// read of a pipe is gone. Fails with kInput where the file cannot be read.
Result<bool> is_target_database_file(const std::string& path);

/// How the bytes of a database file come into memory.
enum class DatabaseAccess {
  /// The file is mapped, and blocks of targets are views of it: nothing is copied. Where the file
  /// is cut short meanwhile, the process gets the signal SIGBUS, for which it needs a handler.
  kMap,
  /// Blocks of targets are read into memory of their own: a file that is cut short is an error
  /// value, and what was checked stays as it was. For programs whose signals are not ours.
  kRead,
};

/// A database open for reading. Immutable and shareable.
///
/// Opening looks at the header only (which has a checksum of its own) and takes no time that grows
/// with the file. Everything else is checked where it is used: a reader refuses entries that point
/// outside their section and residues outside the alphabet, so a damaged file gives an error and
/// never an invalid access. Damage that keeps to those bounds is what verify() is for.
class TargetDatabase {
 public:
  /// Fails with kInput when the file is no database, of another version, cut short or damaged in
  /// its header.
  static Result<std::shared_ptr<const TargetDatabase>> open(
      const std::string& path, DatabaseAccess access = DatabaseAccess::kMap);
  /// The same for bytes in memory, which are copied. `name` is for messages.
  static Result<std::shared_ptr<const TargetDatabase>> from_bytes(std::string name,
                                                                  std::string_view bytes);
  ~TargetDatabase();

  const std::string& name() const;
  const DatabaseSummary& summary() const;
  /// Lines "key value" about the file's making; the bytes as stored. Like all functions below it
  /// fails with kInput where the file was cut short since it was opened.
  Result<std::string> about() const;
  /// Length of the target at a rank of the length order: longest first, equal lengths in input
  /// order. Fails with kUsage where there is no such rank, with kInput in a damaged file.
  Result<std::uint32_t> length_at_rank(std::uint64_t rank) const;

  /// Targets [first, last) whose first residue lies in the fraction [from, to) / of of the residues
  /// section (docs/part-format.md): the fractions of one `of` hold each target exactly once. Looks
  /// at a few entries only.
  Result<std::pair<std::uint64_t, std::uint64_t>> targets_of_fraction(std::uint64_t from,
                                                                      std::uint64_t to,
                                                                      std::uint64_t of) const;

  /// Reads everything: checksums of all sections, zero bytes between them, every entry, residue
  /// code and padding byte, counts, and the length order. Fails with kInput at the first damage.
  /// Holds 4 bytes a target meanwhile.
  Status verify() const;

 private:
  friend class DatabaseReader;
  struct State;
  explicit TargetDatabase(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Delivers the targets of a database in input order. One thread per reader.
class DatabaseReader {
 public:
  explicit DatabaseReader(std::shared_ptr<const TargetDatabase> database);

  /// Makes `block` a view of the next targets: as many as it takes to reach `max_residues`, at
  /// least one. False at the end. Fails with kInput where the file is damaged or cut short. When
  /// the last copy of the block goes, its memory leaves the process (not the page cache).
  Result<bool> read_block(TargetBlock& block, std::uint64_t max_residues);
  /// Goes on at target `index` (0: the first). kInput when there is none, unless it is the end.
  Status seek(std::uint64_t index);
  /// Targets from `index` on are not delivered.
  void set_end(std::uint64_t index) { end_ = index; }
  std::uint64_t targets_read() const { return next_; }
  /// Bytes of residues, entries and text of the targets delivered since the start.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::shared_ptr<const TargetDatabase> database_;
  std::uint64_t next_ = 0;  // target
  std::uint64_t end_ = ~std::uint64_t{0};
  std::uint64_t residues_ = 0;    // where it must start
  std::uint64_t prefetched_ = 0;  // residues up to here are being read by the system
  std::uint64_t text_ = 0;
  std::uint64_t bytes_read_ = 0;
};

/// Writes a database; it appears under its name when finish() succeeds. One thread at a time.
/// Holds 4 bytes a target while it finishes; entries and text wait in unnamed temporary files
/// in the folder of the output.
class DatabaseWriter {
 public:
  /// Fails with kOutput.
  static Result<DatabaseWriter> create(const std::string& path, const Alphabet& alphabet);
  DatabaseWriter(DatabaseWriter&&) noexcept;
  DatabaseWriter& operator=(DatabaseWriter&&) noexcept;
  ~DatabaseWriter();

  /// Appends the targets of `block`. Fails with kOutput, and with kInput beyond 2^32 - 1 targets.
  Status add(const TargetBlock& block);
  /// `about`: lines "key value" kept with the data.
  Result<DatabaseSummary> finish(std::string_view about);

 private:
  struct State;
  explicit DatabaseWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
