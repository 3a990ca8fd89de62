// Target databases: sequences digitised once, then searched without parsing.
//
//   hmmjit::build_database({hmmjit::Targets::from_file("proteome.fasta")}, "proteins.hjdb");
//   hmmjit::search(models, hmmjit::Targets::from_file("proteins.hjdb"));
#pragma once

#include <string>
#include <vector>

#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"
#include "hmmjit/models.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// Header of a database, described in hmmjit.h. Format: docs/database-format.md.
struct DatabaseInfo : hmmjit_database_info {
  std::string about;  ///< lines "program ..." (the writer) and "source ..." (paths or "memory")
};

/// Writes the targets of all `inputs`, in order, to the file `output`, which appears once complete,
/// like `hmmjit db build`. Search it with Targets::from_file(output). Reads several files
/// concurrently, on all cores. Thread-safe.
///
/// Throws Error: kInput for missing, damaged or unsuitable input, kOutput, kUsage without inputs.
HMMJIT_EXPORT DatabaseInfo build_database(const std::vector<Targets>& inputs,
                                          const std::string& output,
                                          Alphabet alphabet = Alphabet::kAmino);

/// Describes a database. Reads only its header, in constant time. Thread-safe. Throws Error kInput
/// for a file that is not a complete database.
HMMJIT_EXPORT DatabaseInfo database_info(const std::string& path);

/// Checks every byte of a database. Thread-safe. Throws Error kInput at the first damage.
HMMJIT_EXPORT DatabaseInfo verify_database(const std::string& path);

HMMJIT_END_NAMESPACE
