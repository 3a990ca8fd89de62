// Protein databases of BLAST (makeblastdb, formatdb) as targets: versions 4 and 5, one volume or an
// alias of several. A volume is three files: .pin (where records begin), .phr (their definition
// lines, ASN.1 in BER) and .psq (their residues, a byte each). Version 5 adds an index of
// accessions, which is not needed to read all records.
//
// Formats: "BLAST database format" in the NCBI C++ Toolkit Book; Blast-def-line-set in
// objects/blastdb/blastdb.asn of that toolkit, Seq-id in objects/seqloc/seqloc.asn.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "io/byte_source.hpp"

namespace hmmjit {

/// Whether `path` names a protein database of BLAST: `path`.pin or `path`.pal exists.
bool is_blast_database(const std::string& path);

/// The records of a database, as the parser of SequenceFormat::kNcbi reads them. Volumes are mapped
/// one at a time. Fails with kInput if a file is missing, damaged, of another version or holds
/// nucleotides, and if an alias selects only a part of a database.
Result<std::unique_ptr<ByteSource>> open_blast_database(const std::string& path);

/// The files of one volume; the bytes must outlive the source.
struct BlastVolumeBytes {
  std::string_view index, headers, sequences;  ///< .pin, .phr, .psq
};
/// The same for a volume in memory. Messages use `name`.
Result<std::unique_ptr<ByteSource>> open_blast_volume(std::string name,
                                                      const BlastVolumeBytes& bytes);

}  // namespace hmmjit
