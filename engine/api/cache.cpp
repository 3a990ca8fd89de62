// The public handle of a kernel cache.
#include "api/convert.hpp"
#include "api/handles.hpp"
#include "api/structs.hpp"
#include "cache/maintenance.hpp"

namespace hmmjit::v0 {
namespace {

template <typename Mode, typename From, typename To>
void copy_settings(const From& from, To& to) {
  to.directory = from.directory;
  to.system_directory = from.system_directory;
  to.mode = static_cast<Mode>(from.mode);
  to.max_bytes = from.max_bytes;
  to.max_memory_bytes = from.max_memory_bytes;
  to.allow_group = from.allow_group;
  to.lock_wait = from.lock_wait;
}

cache::Settings to_settings(CacheSettings settings, const FloatControl& host) {
  check_choice(static_cast<std::int32_t>(settings.mode), HMMJIT_CACHE_STRICT, "cache mode");
  cache::Settings out;
  copy_settings<cache::Mode>(settings, out);
  if (settings.on_warning) {
    // With the host's floating-point mode.
    out.on_warning = [report = std::move(settings.on_warning), host](const hmmjit::Error& warning) {
      const FloatControlScope control(host);
      report(to_public(warning));
    };
  }
  return out;
}
static_assert(static_cast<int>(CacheMode::kOff) == static_cast<int>(cache::Mode::kOff) &&
              static_cast<int>(CacheMode::kReadOnly) == static_cast<int>(cache::Mode::kReadOnly) &&
              static_cast<int>(CacheMode::kReadWrite) ==
                  static_cast<int>(cache::Mode::kReadWrite) &&
              static_cast<int>(CacheMode::kRefresh) == static_cast<int>(cache::Mode::kRefresh) &&
              static_cast<int>(CacheMode::kStrict) == static_cast<int>(cache::Mode::kStrict));

const cache::EntryStore& store_of(const cache::KernelCache& cache, bool for_writing) {
  const cache::EntryStore* store = cache.user_store();
  if (store == nullptr) {
    if (!cache.settings().directory.empty() && cache.user_store_error())
      raise(*cache.user_store_error());
    throw Error(ErrorCode::kOutput, "this cache has no folder", {}, "open it with a directory");
  }
  if (for_writing && store->access() != cache::Access::kReadWrite)
    throw Error(ErrorCode::kOutput, "this cache is read-only", store->root(),
                "open it with CacheMode::kReadWrite");
  return *store;
}

}  // namespace

CacheSettings CacheSettings::from_environment() {
  return guarded([] {
    CacheSettings out;
    copy_settings<CacheMode>(value(cache::settings_from_environment()), out);
    return out;
  });
}

Cache::Cache() : Cache(CacheSettings::from_environment()) {}
Cache::Cache(CacheSettings settings)
    : SharedHandle(guarded([&, host = float_control()] {
        return std::make_shared<Impl>(
            Impl{cache::KernelCache::open(to_settings(std::move(settings), host))});
      })) {}

static_assert(std::is_standard_layout_v<hmmjit_cache>);
const hmmjit_cache* Cache::c_handle() const noexcept {
  return reinterpret_cast<const hmmjit_cache*>(this);
}

const std::string& Cache::directory() const { return impl_->cache->settings().directory; }

CacheStatistics Cache::statistics() const {
  return guarded([&] {
    using cache::Counter;
    const cache::Counters& counters = impl_->cache->counters();
    CacheStatistics out{};
    out.size = sizeof out;
    out.memory_hits = counters.get(Counter::kMemoryHits);
    out.user_hits = counters.get(Counter::kUserHits);
    out.system_hits = counters.get(Counter::kSystemHits);
    out.misses = counters.get(Counter::kMisses);
    out.published = counters.get(Counter::kPublished);
    out.publish_failures = counters.get(Counter::kPublishFailures);
    out.bad_entries = counters.get(Counter::kBadEntries);
    out.refused_entries = counters.get(Counter::kRefusedEntries);
    if (const cache::EntryStore* store = impl_->cache->user_store()) {
      const cache::StoreScan scan = store->scan();
      out.entries = scan.entries.size();
      out.disk_bytes = scan.allocated_total;
    }
    return out;
  });
}

std::uint64_t Cache::trim(std::uint64_t max_bytes) {
  return guarded([&]() -> std::uint64_t {
    const cache::EntryStore& store = store_of(*impl_->cache, true);
    if (max_bytes == 0) max_bytes = impl_->cache->settings().max_bytes;
    const auto report = cache::trim(store, max_bytes);
    return report ? report->entries_removed : 0;  // no report: another process trims
  });
}

std::uint64_t Cache::clear() {
  return guarded([&] {
    const cache::EntryStore& store = store_of(*impl_->cache, true);
    const auto report = cache::clear(store, impl_->cache->settings().max_bytes);
    check(report.status(store));
    return report.removed;
  });
}

std::uint64_t Cache::export_bundle(const std::string& path) const {
  return guarded([&] {
    check_output(path);
    return value(cache::export_bundle(store_of(*impl_->cache, false), path, {})).entries;
  });
}

std::uint64_t Cache::import_bundle(const std::string& path) {
  return guarded([&] {
    const cache::EntryStore& store = store_of(*impl_->cache, true);
    const std::uint64_t most = impl_->cache->settings().max_bytes;
    return value(cache::import_and_trim(store, path, most)).imported;
  });
}

}  // namespace hmmjit::v0
