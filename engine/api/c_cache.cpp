// The C interface: the kernel cache.
#include "api/c_support.hpp"
#include "api/defaults.hpp"

using namespace hmmjit::c_interface;

namespace {

template <typename Work>
int32_t counted(const hmmjit_cache* cache, uint64_t* count, hmmjit_error** error, Work work) {
  return run(error, [&] {
    hmmjit::Cache handle = object(cache, "cache");  // shares the cache
    const uint64_t entries = work(handle);
    if (count != nullptr) *count = entries;
  });
}

}  // namespace

extern "C" {

int32_t hmmjit_cache_open(const hmmjit_cache_settings* settings, hmmjit_cache** out,
                          hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_cache_settings s = read(settings, hmmjit_defaults::kCacheSettings);
    hmmjit::CacheSettings to = hmmjit::CacheSettings::from_environment();
    if (s.directory != nullptr) to.directory = s.directory;
    if (s.system_directory != nullptr) to.system_directory = s.system_directory;
    if (s.mode != -1) to.mode = static_cast<hmmjit::CacheMode>(s.mode);
    if (s.allow_group != 0) to.allow_group = true;
    if (s.max_bytes > 0) to.max_bytes = s.max_bytes;
    if (s.max_memory_bytes > 0) to.max_memory_bytes = s.max_memory_bytes;
    give(out, hmmjit::Cache(std::move(to)));
  });
}
const char* hmmjit_cache_directory(const hmmjit_cache* cache) {
  return cache != nullptr ? cache->value.directory().c_str() : "";
}
int32_t hmmjit_cache_get_statistics(const hmmjit_cache* cache, hmmjit_cache_statistics* statistics,
                                    hmmjit_error** error) {
  return run(error, [&] { write(statistics, object(cache, "cache").statistics()); });
}
int32_t hmmjit_cache_trim(const hmmjit_cache* cache, uint64_t max_bytes, uint64_t* count,
                          hmmjit_error** error) {
  return counted(cache, count, error, [&](hmmjit::Cache& c) { return c.trim(max_bytes); });
}
int32_t hmmjit_cache_clear(const hmmjit_cache* cache, uint64_t* count, hmmjit_error** error) {
  return counted(cache, count, error, [](hmmjit::Cache& c) { return c.clear(); });
}
int32_t hmmjit_cache_export(const hmmjit_cache* cache, const char* path, uint64_t* count,
                            hmmjit_error** error) {
  return counted(cache, count, error,
                 [&](hmmjit::Cache& c) { return c.export_bundle(&required(path, "path")); });
}
int32_t hmmjit_cache_import(const hmmjit_cache* cache, const char* path, uint64_t* count,
                            hmmjit_error** error) {
  return counted(cache, count, error,
                 [&](hmmjit::Cache& c) { return c.import_bundle(&required(path, "path")); });
}
void hmmjit_cache_free(hmmjit_cache* cache) { delete cache; }

}  // extern "C"
