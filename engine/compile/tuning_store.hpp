// The file of the tuning table, in the folder of the kernel cache.
#pragma once

#include <string>

#include "cache/cache_settings.hpp"
#include "core/error.hpp"
#include "plan/tuning.hpp"
#include "render/template_library.hpp"

namespace hmmjit::compile {

/// Version of the measured kernels: digest of all templates and of the launch convention, 16
/// hexadecimal digits.
std::string catalogue_version(const render::TemplateLibrary& templates);

/// <user cache folder>/tuning.jsonl; empty if there is no folder or the cache is off.
std::string tuning_path(const cache::Settings& settings);

/// False if HMMJIT_TUNED is 0, off or no.
bool tuning_wanted();

struct LoadedTuning {
  plan::TuningTable table;
  std::size_t skipped = 0;  ///< malformed lines and lines of other catalogues
};
/// Never fails: the table is empty if there is no readable file, if the kernel cache would refuse
/// the folder or file (cache/entry_store.hpp), or if the file exceeds 16 MiB.
LoadedTuning load_tuning(const cache::Settings& settings, const std::string& catalogue);

/// Makes the folder. Call it before measuring: results must not be lost for lack of a folder. Fails
/// with kOutput, also if the kernel cache refuses the folder; kUsage if tuning_path is empty or the
/// mode is read-only.
Status prepare_tuning(const cache::Settings& settings);
/// Replaces the file atomically; the last of several writers wins. Fails as prepare_tuning.
Status store_tuning(const cache::Settings& settings, const plan::TuningTable& table);

/// Removes the file; returns true if there was one.
Result<bool> clear_tuning(const cache::Settings& settings);

}  // namespace hmmjit::compile
