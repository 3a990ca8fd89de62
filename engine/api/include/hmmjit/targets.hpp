// Target sequences: from files, from memory, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "hmmjit/error.hpp"
#include "hmmjit/models.hpp"

HMMJIT_BEGIN_NAMESPACE

/// One target as text; views into the host's memory, copied where they are kept.
struct Sequence {
  std::string_view name;
  std::string_view residues;  ///< letters of the alphabet, either case; white space is dropped
  std::string_view accession = {}, description = {};
};

/// What a search is given as targets: sequences in memory, or a file that each search reads as it
/// goes, once, keeping it while it fits in the memory bound.
///
/// Formats: FASTA, EMBL/UniProt, GenBank and the alignment formats hmmsearch reads; plain, gzip
/// or zstd; recognised by content, or named as hmmsearch's --tformat ("fasta", "embl",
/// "stockholm",
/// ...).
///
/// Handle: copies share. Immutable apart from `add`; several threads may search one at once.
class HMMJIT_EXPORT Targets {
 public:
  /// Empty, to be filled by `add`.
  explicit Targets(Alphabet alphabet = Alphabet::kAmino);
  /// Read during each search. Nothing is opened here: a missing file is an Error of the search.
  /// "-" is standard input, for one search. Throws Error kUsage for an unknown format.
  static Targets from_file(std::string path, const std::string& format = {});
  /// Read now and kept, a byte per residue. Throws Error kInput for a missing or damaged file.
  static Targets load(const std::string& path, Alphabet alphabet = Alphabet::kAmino,
                      const std::string& format = {});
  /// Parsed now from the contents of such a file; `name` stands for the path in messages. Throws
  /// Error kInput.
  static Targets from_memory(std::string_view contents, Alphabet alphabet = Alphabet::kAmino,
                             const std::string& format = {}, const std::string& name = "memory");

  /// Appends one target. Not while a search runs. Throws Error kInput for a character outside the
  /// alphabet or an empty name, kUsage on a Targets of from_file.
  void add(const Sequence& sequence);
  /// Targets and residues in memory; 0 for from_file.
  std::size_t size() const;
  std::uint64_t residues() const;
  Alphabet alphabet() const;

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }  ///< for the library itself

 private:
  explicit Targets(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

HMMJIT_END_NAMESPACE
