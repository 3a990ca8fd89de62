// Target databases: sequences digitised once and mapped by every search.
//
//   hmmjit::build_database({hmmjit::Targets::from_file("proteome.fasta")}, "proteins.hjdb");
//   hmmjit::search(models, hmmjit::Targets::from_file("proteins.hjdb"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmmjit/error.hpp"
#include "hmmjit/models.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// Header of a database. Format: docs/database-format.md.
struct DatabaseInfo {
  int format_version = 0;
  Alphabet alphabet = Alphabet::kAmino;
  std::uint64_t targets = 0, residues = 0;
  std::uint32_t shortest = 0, median = 0, longest = 0;  ///< residues of a target
  std::uint64_t file_bytes = 0;
  std::uint64_t identity = 0;        ///< of the targets and their order, whatever their source
  std::string program;               ///< that wrote it: "hmmjit 0.1.0"
  std::vector<std::string> sources;  ///< of the targets: paths, or "memory"
};

/// Writes the targets of all `inputs`, in order, into the file `output`, which appears when it is
/// complete, as `hmmjit db build`. Targets::from_file(output) searches it. Reads several files at
/// once, on all cores. Thread-safe.
///
/// Throws Error: kInput for missing, damaged or unsuitable input, kOutput, kUsage without inputs.
HMMJIT_EXPORT DatabaseInfo build_database(const std::vector<Targets>& inputs,
                                          const std::string& output,
                                          Alphabet alphabet = Alphabet::kAmino);

/// Describes a database from its header, in a time that does not grow with it. Thread-safe. Throws
/// Error kInput for a file that is not a complete database.
HMMJIT_EXPORT DatabaseInfo database_info(const std::string& path);

/// Checks every byte of a database. Thread-safe. Throws Error kInput at the first damage.
HMMJIT_EXPORT DatabaseInfo verify_database(const std::string& path);

HMMJIT_END_NAMESPACE
