// Protein databases of BLAST (makeblastdb, formatdb) as targets: versions 4 and 5, one volume or an
// alias of several. A volume is three files: .pin (where records begin), .phr (their definition
// lines, ASN.1 in BER) and .psq (their residues, a byte each). What version 5 has beside them finds
// records by accession, which reading all of them does not need.
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
/// one at a time. kInput where a file is missing, damaged, of another version or of nucleotides,
/// and where an alias shows a part of a database only.
Result<std::unique_ptr<ByteSource>> open_blast_database(const std::string& path);

/// The files of one volume; the bytes must outlive the source.
struct BlastVolumeBytes {
  std::string_view index, headers, sequences;  ///< .pin, .phr, .psq
};
/// The same for a volume in memory. `name` is for messages.
Result<std::unique_ptr<ByteSource>> open_blast_volume(std::string name,
                                                      const BlastVolumeBytes& bytes);

}  // namespace hmmjit
