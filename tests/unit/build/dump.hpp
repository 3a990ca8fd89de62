// A model as text with exact numbers, in the format of the golden dumps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "build/built_model.hpp"

namespace hmmjit::test_support {

/// A number as C's %a.
std::string hex(double value);
/// The lines of a dump, from "NAME" on.
std::string dump(const build::BuiltModel& built);
/// The dumps in `path` (.gz) by model name, "W" lines included. Throws std::runtime_error.
std::map<std::string, std::string> read_dumps(const std::string& path);
/// Up to five lines of `got` that differ from `wanted`; empty if equal.
std::string difference(const std::string& wanted, const std::string& got);

}  // namespace hmmjit::test_support
