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
};

/// Writes the targets of all inputs, in order, into the database file `output`, which appears when
/// it is complete; parsing and writing run side by side. `program`: who made it, kept in the
/// database.
Result<DatabaseSummary> build_database(std::span<const DatabaseInput> inputs,
                                       const Alphabet& alphabet, const std::string& output,
                                       const std::string& program);

}  // namespace hmmjit
