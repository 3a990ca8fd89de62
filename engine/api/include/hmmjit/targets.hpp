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

/// One target as text: views of the host's memory. The library copies what it keeps.
struct Sequence {
  std::string_view name = {};
  std::string_view residues = {};  ///< letters of the alphabet, either case; white space is dropped
  std::string_view accession = {}, description = {};
};

/// The targets of a search: sequences in memory, or a file that each search reads step by step,
/// once if the targets fit into the memory bound.
///
/// Formats: FASTA, EMBL/UniProt, GenBank and hmmsearch's alignment formats; plain, gzip or zstd;
/// recognised by content, or named as in hmmsearch's --tformat ("fasta", "embl", "stockholm", ...).
/// Also target databases (.hjdb, see database.hpp), always recognised by content; their alphabet
/// must be the requested one, or the other one of DNA and RNA.
///
/// Handle: copies share. Immutable except by `add`; several threads may search one concurrently.
class HMMJIT_EXPORT Targets : public SharedHandle<struct TargetsImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// No targets; fill it with `add`.
  explicit Targets(Alphabet alphabet = Alphabet::kAmino);
  /// A file that each search reads. Does not open it: the search throws Error for a missing file.
  /// "-": standard input, for one search. A target database needs no parsing: the quickest way to
  /// search a file often. Throws Error kUsage for an unknown format.
  static Targets from_file(std::string path, const std::string& format = {});
  /// Reads a file or target database now; takes one byte per residue. Throws Error kInput for a
  /// missing or damaged file or a database of another alphabet, kUsage for an unknown format, or a
  /// format given for a database.
  static Targets load(const std::string& path, Alphabet alphabet = Alphabet::kAmino,
                      const std::string& format = {});
  /// Parses the content of such a file now. Messages use `name` as path. Throws as load does.
  static Targets from_memory(std::string_view contents, Alphabet alphabet = Alphabet::kAmino,
                             const std::string& format = {}, const std::string& name = "memory");

  /// A session: the same targets, kept from one search to the next with everything that searches of
  /// them need; see hmmjit_targets_keep. IterativeSearch accepts it too. The last copy frees all.
  /// Throws as load does.
  Targets keep(Alphabet alphabet = Alphabet::kAmino) const;

  /// Appends one target. Do not call it during a search. Throws Error kInput for a character
  /// outside the alphabet; kUsage on a Targets of from_file or keep, for an empty name, for blanks
  /// or control characters in name or accession, and for control characters other than tabs in the
  /// description, because they would break the lines of tables.
  void add(const Sequence& sequence);
  /// Appends all targets of `others`, from memory or its file. Do not call it during a search.
  /// Throws as load does, and kUsage on a Targets of from_file; targets read before an error stay.
  void add(const Targets& others);
  /// Targets and residues in memory; 0 for from_file.
  std::size_t size() const;
  std::uint64_t residues() const;
  /// The alphabet of targets in memory; none for from_file, which takes the alphabet of the models.
  std::optional<Alphabet> alphabet() const;
  /// Calls `visit` with the index and the texts of each target from number `first` on, in memory or
  /// read from the file, until `visit` returns false; the texts live until it returns. Residues are
  /// upper-case letters. `alphabet`: of a file. Exceptions of `visit` pass unchanged. Throws Error
  /// kInput for a missing or damaged file.
  void for_each(const std::function<bool(std::uint64_t index, const Sequence& target)>& visit,
                std::uint64_t first = 0, Alphabet alphabet = Alphabet::kAmino) const;
};

HMMJIT_END_NAMESPACE
