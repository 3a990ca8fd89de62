// Targets from a sequence file or a target database, as a TargetSource.
#pragma once

#include <memory>
#include <string>

#include "io/sequence_file.hpp"
#include "io/target_database.hpp"
#include "search/kept_targets.hpp"
#include "search/target_source.hpp"

namespace hmmjit {

/// Opens `name` ("-": standard input) as SequenceReader::open does; a target database, recognised
/// by its first bytes, is accessed as `access` says and its blocks are views. Fails with kInput
/// when the database has another alphabet than `options`, with kUsage when options assert a
/// sequence format of it.
Result<std::unique_ptr<TargetSource>> open_target_file(
    const std::string& name, const SequenceFormatOptions& options,
    DatabaseAccess access = DatabaseAccess::kMap);

/// Targets `first` to before `last`, with their indices in the whole database. Reads only their
/// bytes.
std::unique_ptr<TargetSource> open_target_range(std::shared_ptr<const TargetDatabase> database,
                                                std::uint64_t first, std::uint64_t last);

/// The targets of a file for any number of searches at a time: those of a target database are
/// mapped, others loaded (load_targets). Fails with kInput, and with kResources beyond `memory`.
Result<std::shared_ptr<const ResidentTargets>> keep_target_file(
    const std::string& name, const SequenceFormatOptions& options, std::uint64_t memory);

}  // namespace hmmjit
