// `hmmjit cache ...`: look at, check, move and clean the kernel cache.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cache/cache_settings.hpp"
#include "cache/kernel_cache.hpp"
#include "core/error.hpp"
#include "hmmjit/command_line.hpp"

namespace hmmjit::tools {

/// Of `hmmjit cache warm`.
struct WarmReport {
  std::uint64_t made = 0;       ///< compiled and stored now
  std::uint64_t present = 0;    ///< were in the cache already
  std::vector<Error> failures;  ///< kernels that could not be made
};

/// Compiles the kernels that options ask for into `cache`; given by the layer that owns a compiler.
using WarmFunction = std::function<Result<WarmReport>(cache::KernelCache&, const ParsedOptions&)>;

/// Completions of the options of `cache warm`.
struct WarmNames {
  std::string_view targets = {}, stages = {};  ///< comma separated
};

/// `hmmjit cache` with its subcommands. Without `warm`, `cache warm` fails with kCompile.
CommandSpec cache_command(WarmFunction warm, WarmNames names = {});

/// `options`, then --cache-dir, --cache-mode, ..., each overriding its HMMJIT_CACHE_* variable.
std::vector<OptionSpec> with_cache_options(std::vector<OptionSpec> options);
/// `command`: prints warnings of the cache under its name.
Result<cache::Settings> cache_settings(const ParsedOptions& options, const char* command = nullptr);

/// --length: model lengths.
std::vector<int> lengths_of(const ParsedOptions& options);

}  // namespace hmmjit::tools
