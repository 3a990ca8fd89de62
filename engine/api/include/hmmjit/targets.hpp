// Target sequences: from files, from memory, one at a time.
//
//   const auto targets = hmmjit::Targets::from_file("proteome.fasta.gz");
//   hmmjit::Targets own;
//   own.add({.name = "first", .residues = "MKVLAAGGHKLM"});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hmmjit/error.hpp"
#include "hmmjit/models.hpp"

HMMJIT_BEGIN_NAMESPACE

/// One target as text; views into the host's memory, copied where they are kept.
struct Sequence {
  std::string_view name = {};
  std::string_view residues = {};  ///< letters of the alphabet, either case; white space is dropped
  std::string_view accession = {}, description = {};
};

/// The targets of a search: sequences in memory, or a file that each search reads as it
/// goes, once, keeping it while it fits in the memory bound.
///
/// Formats: FASTA, EMBL/UniProt, GenBank and the alignment formats hmmsearch reads; plain, gzip
/// or zstd; recognised by content, or named as hmmsearch's --tformat ("fasta", "embl",
/// "stockholm", ...). And target databases (.hjdb, see database.hpp), recognised by content, for
/// which no format is named; their alphabet must be the one asked for, or DNA for RNA and RNA for
/// DNA.
///
/// Handle: copies share. Immutable apart from `add`; several threads may search one at once.
class HMMJIT_EXPORT Targets : public SharedHandle<struct TargetsImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Empty, to be filled by `add`.
  explicit Targets(Alphabet alphabet = Alphabet::kAmino);
  /// Read during each search. Nothing is opened here: a missing file is an Error of the search.
  /// "-" is standard input, for one search. A target database is mapped, not read: the quickest way
  /// to search one often. Throws Error kUsage for an unknown format.
  static Targets from_file(std::string path, const std::string& format = {});
  /// Read now and kept, a byte per residue, also of a target database. Throws Error kInput for a
  /// missing or damaged file or a database of another alphabet, kUsage for an unknown format or one
  /// asserted of a database.
  static Targets load(const std::string& path, Alphabet alphabet = Alphabet::kAmino,
                      const std::string& format = {});
  /// Parsed now from the contents of such a file; `name` stands for the path in messages. Throws as
  /// load does.
  static Targets from_memory(std::string_view contents, Alphabet alphabet = Alphabet::kAmino,
                             const std::string& format = {}, const std::string& name = "memory");

  /// A session: the same targets, and what searches of them need, kept from one search to the next,
  /// as hmmjit_targets_keep describes; iterations may search it, too. All is freed with the last
  /// copy. Throws as load does.
  Targets keep(Alphabet alphabet = Alphabet::kAmino) const;

  /// Appends one target. Not while a search runs. Throws Error kInput for a character outside the
  /// alphabet; kUsage on a Targets of from_file or keep, for an empty name, for blanks or control
  /// characters in name or accession, and for control characters (but tabs) in the description,
  /// because they would break the lines of tables.
  void add(const Sequence& sequence);
  /// Appends all targets of another, reading its file where it has one. Not while a search runs.
  /// Throws as load does, and kUsage on a Targets of from_file; targets read before an error stay.
  void add(const Targets& others);
  /// Targets and residues in memory; 0 for from_file.
  std::size_t size() const;
  std::uint64_t residues() const;
  /// The alphabet of targets in memory; none for from_file, which is read in the alphabet of the
  /// models.
  std::optional<Alphabet> alphabet() const;
  /// Calls `visit` with the index and the texts of each target from number `first` on, reading the
  /// file where there is one, until it returns false; the texts live until it returns. Residues are
  /// upper case letters. `alphabet`: of a file. Exceptions of `visit` pass unchanged. Throws
  /// Error kInput for a missing or damaged file.
  void for_each(const std::function<bool(std::uint64_t index, const Sequence& target)>& visit,
                std::uint64_t first = 0, Alphabet alphabet = Alphabet::kAmino) const;
};

HMMJIT_END_NAMESPACE
