// Digitised target sequences, packed at about one byte per residue; read-only after loading.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/alphabet.hpp"

namespace hmmjit {

/// View of one target; valid while its TargetBlock lives.
struct TargetView {
  std::span<const Residue> residues;  ///< codes, length L; residues.data()[L] is kPaddingCode
  std::string_view name;
  std::string_view accession;    ///< empty: none
  std::string_view description;  ///< empty: none
  int length() const { return static_cast<int>(residues.size()); }
};

/// The position of a target in the arrays of its block or database, with the same layout in memory
/// and in a database file (docs/database-format.md).
struct TargetEntry {
  std::uint64_t residues;                      ///< offset of the first residue
  std::uint64_t text;                          ///< offset of the name in the pool
  std::uint32_t length;                        ///< residues
  std::uint32_t name, accession, description;  ///< bytes, stored back to back
};
static_assert(sizeof(TargetEntry) == 32);

/// Targets in another owner's arrays, laid out as in a TargetBlock; offsets are relative to them.
struct TargetStorage {
  const Residue* residues = nullptr;
  const char* text = nullptr;
  std::span<const TargetEntry> entries;
  std::uint64_t residue_count = 0;
  /// The residues of these entries, including padding.
  std::span<const Residue> occupied;
  std::shared_ptr<const void> owner;  ///< keeps the arrays alive
  bool borrowed = false;              ///< others may overwrite the arrays: a mapped file
};

/// Consecutive targets of one file. Filled by a sequence reader, then immutable: threads may share
/// it. Storage: all residues in one array, one kPaddingCode after each target (and before the
/// first), so vector code may read one past either end; all text in one pool. A block may also be a
/// view of another owner's arrays, immutable from the start.
class TargetBlock {
 public:
  TargetBlock();
  /// Makes a block that is a view of `storage`.
  TargetBlock(TargetStorage storage, std::uint64_t first_index);
  std::size_t size() const { return view_.owner ? view_.entries.size() : targets_.size(); }
  std::uint64_t residue_count() const { return residue_count_; }
  /// Index, in the whole input, of the first target of this block.
  std::uint64_t first_index() const { return first_index_; }
  void set_first_index(std::uint64_t index) { first_index_ = index; }
  TargetView operator[](std::size_t i) const;
  int length(std::size_t i) const;
  /// Resident bytes, which --mem bounds.
  std::size_t bytes() const;
  /// For a view, the residues of all its targets in place, as kernels read them: each target starts
  /// at a multiple of 16 bytes from the first, and kPaddingCode (at least one) fills the gap to the
  /// next (kernel_templates/common/launch_params.h). Empty for a block with its own storage.
  std::span<const Residue> packed_residues() const { return view_.occupied; }
  /// Owner of a view's arrays; null for a block with its own storage.
  const std::shared_ptr<const void>& owner() const { return view_.owner; }
  bool borrowed() const { return view_.borrowed; }

  /// Empties the block but keeps its memory for further targets.
  void clear();
  /// Reserves memory for `residues` residues in total: adding them then copies nothing.
  void reserve(std::size_t residues) { residues_.reserve(residues); }

  // Building: begin_target, then append residues in pieces, then end_target.
  void begin_target(std::string_view name, std::string_view accession,
                    std::string_view description);
  void append(std::span<const Residue> codes);
  /// For formats in which annotation follows the sequence.
  void set_text(std::string_view accession, std::string_view description);
  void end_target();
  /// Drops a target that was begun but not ended.
  void abandon_target();
  /// Ends building: releases unused memory. A block of less than 32 MiB becomes a view of arrays of
  /// its own.
  void finish();
  /// A view of the same targets: this block, or a copy.
  TargetBlock packed() const;
  /// True of a view, and with `residues` residues, as many bytes of entries and text (short targets
  /// take memory too), or `targets` targets.
  bool full(std::uint64_t residues,
            std::uint64_t targets = std::numeric_limits<std::uint64_t>::max()) const {
    return view_.owner || residue_count_ >= residues || size() >= targets ||
           targets_.size() * sizeof(Entry) + text_.size() >= residues;
  }

 private:
  using Entry = TargetEntry;
  const Entry& entry(std::size_t i) const { return view_.owner ? view_.entries[i] : targets_[i]; }

  TargetStorage view_;  // in use if it has an owner; the vectors are then empty
  std::vector<Residue> residues_;
  std::vector<char> text_;
  std::vector<Entry> targets_;
  std::uint64_t residue_count_ = 0;
  std::uint64_t first_index_ = 0;
};

}  // namespace hmmjit
