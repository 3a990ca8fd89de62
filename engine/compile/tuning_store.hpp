// The tuning table as a file in the folder of the kernel cache.
#pragma once

#include <string>

#include "cache/cache_settings.hpp"
#include "core/error.hpp"
#include "plan/tuning.hpp"
#include "render/template_library.hpp"

namespace hmmjit::compile {

/// Version of what a measurement measured: the digest of all templates and of the launch
/// convention, 16 hexadecimal digits.
std::string catalogue_version(const render::TemplateLibrary& templates);

/// <user cache folder>/tuning.jsonl; empty where there is no folder or the cache is off.
std::string tuning_path(const cache::Settings& settings);

/// False when HMMJIT_TUNED says 0, off or no.
bool tuning_wanted();

struct LoadedTuning {
  plan::TuningTable table;
  std::size_t skipped = 0;  ///< lines of other catalogues or none of ours
};
/// Never fails: without a readable file the table is empty, and so it is where the kernel cache
/// would refuse the folder or a file of it (cache/entry_store.hpp), or the file has more than 16
/// MiB.
LoadedTuning load_tuning(const cache::Settings& settings, const std::string& catalogue);

/// Publishes the whole table: the file is replaced at once or stays as it was. The last of several
/// writers wins. Fails with kOutput, also where the kernel cache refuses the folder; kUsage where
/// tuning_path is empty or the mode writes nothing.
Status store_tuning(const cache::Settings& settings, const plan::TuningTable& table);

/// Removes the file; true when there was one.
Result<bool> clear_tuning(const cache::Settings& settings);

}  // namespace hmmjit::compile
