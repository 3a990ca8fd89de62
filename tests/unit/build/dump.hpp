// A model as text, every number exact: the form of the golden dumps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "build/built_model.hpp"

namespace hmmjit::test_support {

/// Lines from "NAME" on, as the dumps have them.
std::string dump(const build::BuiltModel& built);
/// The dumps in `path` (.gz) by model name, "W" lines included. Throws std::runtime_error.
std::map<std::string, std::string> read_dumps(const std::string& path);
/// Up to five lines of `got` that differ from `wanted`; empty when equal.
std::string difference(const std::string& wanted, const std::string& got);

}  // namespace hmmjit::test_support
