// Target databases from any target sources.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "io/target_database.hpp"
#include "search/target_source.hpp"

namespace hmmjit {

/// One input of a database: opened when its turn has come.
struct DatabaseInput {
  std::string name;  ///< kept in the database, as its source
  std::function<Result<std::unique_ptr<TargetSource>>()> open;
  /// Whether another thread may open and read it before the inputs before it have ended.
  bool beside_others = false;
};

/// Writes the targets of all inputs, in order, into the database file `output`, which appears when
/// it is complete, with the same bytes for any number of threads. The calling thread writes;
/// `threads` - 1 others parse and decompress, one input each (0: one thread per core). Parsed
/// targets that wait to be written take at most 128 MB, and one block of each input. `program`:
/// recorded in the database.
Result<DatabaseSummary> build_database(std::span<const DatabaseInput> inputs,
                                       const Alphabet& alphabet, const std::string& output,
                                       const std::string& program, int threads = 0);

}  // namespace hmmjit
