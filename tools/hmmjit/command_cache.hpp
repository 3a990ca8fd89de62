// `hmmjit cache ...`: look at, check, move and clean the kernel cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cache/cache_settings.hpp"
#include "cache/kernel_cache.hpp"
#include "core/error.hpp"
#include "hmmjit/command_line.hpp"

namespace hmmjit::tools {

/// The kernels that `hmmjit cache warm` makes; empty lists mean the maker's defaults.
struct WarmRequest {
  std::vector<std::string> targets;  ///< e.g. "sm_80", "sm_90"
  std::vector<std::string> models;   ///< HMM files whose models' kernels are wanted
  std::vector<int> lengths;          ///< model lengths, where no file is at hand
  std::vector<std::string> stages;   ///< e.g. "ssv"
  int up_to = 0;                     ///< every size class of models up to this length; 0: none
  bool idle = false;  ///< with the lowest priority, and not while another process does it
};

struct WarmReport {
  std::uint64_t made = 0;       ///< compiled and stored now
  std::uint64_t present = 0;    ///< were in the cache already
  std::vector<Error> failures;  ///< kernels that could not be made
};

/// Compiles kernels into `cache`; given by the layer that owns a compiler.
using WarmFunction = std::function<Result<WarmReport>(cache::KernelCache&, const WarmRequest&)>;

/// Completions of the options of `cache warm`.
struct WarmNames {
  std::string_view targets = {}, stages = {};  ///< comma separated
};

/// `hmmjit cache` with its subcommands. Without `warm`, `cache warm` fails with kCompile.
CommandSpec cache_command(WarmFunction warm, WarmNames names = {});

/// --cache-dir, --cache-mode, ... of any command, each overriding its HMMJIT_CACHE_* variable.
std::vector<OptionSpec> cache_options();
Result<cache::Settings> cache_settings(const ParsedOptions& options);

/// --length: model lengths.
Result<std::vector<int>> lengths_of(const ParsedOptions& options);

}  // namespace hmmjit::tools
