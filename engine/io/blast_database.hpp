// BLAST databases (makeblastdb, formatdb) of proteins or nucleotides as targets: versions 4 and 5,
// one volume or an alias of several. A volume has three files: .pin or .nin (offsets of the
// records), .phr or .nhr (definition lines, ASN.1 in BER), and .psq (residues, one byte each) or
// .nsq (two bits each, and a list of residues other than A, C, G and T). The accession index of
// version 5 is not read.
//
// Formats: "BLAST database format" in the NCBI C++ Toolkit Book; Blast-def-line-set in
// objects/blastdb/blastdb.asn of that toolkit, Seq-id in objects/seqloc/seqloc.asn.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "model/alphabet.hpp"

namespace hmmjit {

/// File suffixes of a database's volumes and aliases.
inline constexpr std::array<std::string_view, 8> kBlastSuffixes{".pin", ".phr", ".psq", ".pal",
                                                                ".nin", ".nhr", ".nsq", ".nal"};

/// True if `path` names a BLAST database: `path`.pin, .pal, .nin or .nal exists.
bool is_blast_database(const std::string& path);

/// Opens a database of residues of `alphabet`, for the parser of SequenceFormat::kNcbi; the source
/// itself delivers no bytes. Maps one volume at a time. Fails with kInput if a file is missing,
/// damaged or of another version, or if an alias restricts the database.
Result<std::unique_ptr<ByteSource>> open_blast_database(const std::string& path,
                                                        const Alphabet& alphabet);

/// The files of one volume; the bytes must outlive the source.
struct BlastVolumeBytes {
  std::string_view index, headers, sequences;  ///< .pin, .phr, .psq, or .nin, .nhr, .nsq
};
/// Opens a volume in memory. Errors use `name`.
Result<std::unique_ptr<ByteSource>> open_blast_volume(std::string name,
                                                      const BlastVolumeBytes& bytes,
                                                      const Alphabet& alphabet);

}  // namespace hmmjit
