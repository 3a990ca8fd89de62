// `hmmjit cache ...`: shows, checks, moves and cleans the kernel cache.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cache/cache_settings.hpp"
#include "cache/kernel_cache.hpp"
#include "core/error.hpp"
#include "hmmjit/command_line.hpp"

namespace hmmjit::tools {

/// The outcome of `hmmjit cache warm`.
struct WarmReport {
  std::uint64_t made = 0;       ///< compiled and stored now
  std::uint64_t present = 0;    ///< already in the cache
  std::vector<Error> failures;  ///< kernels that could not be made
};

/// Compiles the kernels that the options request into `cache`. Provided by the layer that owns a
/// compiler.
using WarmFunction = std::function<Result<WarmReport>(cache::KernelCache&, const ParsedOptions&)>;

/// Completions for options of `cache warm`.
struct WarmNames {
  std::string_view targets = {}, stages = {};  ///< comma separated
};

/// `hmmjit cache` with its subcommands. Without `warm`, `cache warm` fails with kCompile.
CommandSpec cache_command(WarmFunction warm, WarmNames names = {});

/// `options`, then --cache-dir, --cache-mode, ..., each overriding its HMMJIT_CACHE_* variable.
std::vector<OptionSpec> with_cache_options(std::vector<OptionSpec> options);
/// `command`: the name in printed warnings of the cache; null: prints none.
Result<cache::Settings> cache_settings(const ParsedOptions& options, const char* command = nullptr);

/// --length: model lengths.
std::vector<int> lengths_of(const ParsedOptions& options);

}  // namespace hmmjit::tools
