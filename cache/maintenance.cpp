#include "cache/maintenance.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "cache/cache_statistics.hpp"
#include "cache/entry_lock.hpp"

namespace hmmjit::cache {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

void remove_empty_folders(const EntryStore& store) {
  // Removing a non-empty folder fails, and a publication creates its folder again.
  for (unsigned i = 0; i < 256; ++i) {
    ::rmdir(fmt::format("{}/{:02x}", store.root(), i).c_str());
  }
}

}  // namespace

std::optional<TrimReport> trim(const EntryStore& store, std::uint64_t max_bytes,
                               std::chrono::seconds stale_age) {
  // Busy: another process trims. Without file locks several may trim at once; some deletions then
  // fail, harmlessly.
  const auto lock = FileLock::acquire(store.lock_path(), kTrimLockOffset,
                                      std::chrono::milliseconds(0), store.file_mode());
  if (!lock && lock.error().code == ErrorCode::kResources) return std::nullopt;

  StoreScan scan = store.scan();
  TrimReport report;
  report.bytes_before = scan.allocated_total;
  std::uint64_t left = scan.allocated_total;
  std::uint64_t evicted_bytes = 0;
  timespec clock{};
  ::clock_gettime(CLOCK_REALTIME, &clock);
  const std::int64_t now = clock.tv_sec * kNanoseconds + clock.tv_nsec;
  // A time over an hour in the future is wrong (the clock was set back): treat the file as old.
  const auto last_used = [&](const StoredFile& file) {
    return file.last_used > now + 3600 * kNanoseconds ? 0 : file.last_used;
  };
  for (const StoredFile& file : scan.temporaries) {
    if (now - last_used(file) < stale_age.count() * kNanoseconds) continue;
    if (store.remove_path(file.path, file.identity)) {
      ++report.temporaries_removed;
      left -= std::min(left, file.allocated);
    }
  }
  if (left > max_bytes) {
    const auto target = static_cast<std::uint64_t>(kTrimTarget * static_cast<double>(max_bytes));
    std::ranges::sort(scan.entries, {}, [&](const StoredFile& file) {
      return std::pair(last_used(file), file.name);
    });
    for (const StoredFile& file : scan.entries) {
      if (left <= target) break;
      // The identity includes the time stamp: an entry used since the scan stays.
      if (!store.remove_path(file.path, file.identity)) continue;
      ++report.entries_removed;
      evicted_bytes += file.allocated;
      left -= std::min(left, file.allocated);
      // Folders take blocks too. Removing one that is not empty fails; a publication that loses its
      // folder creates it again.
      struct stat folder {};
      const std::string path = folder_of(file.path);
      if (::stat(path.c_str(), &folder) == 0 && ::rmdir(path.c_str()) == 0) {
        left -= std::min<std::uint64_t>(left, static_cast<std::uint64_t>(folder.st_blocks) * 512);
      }
    }
  }
  report.bytes_after = left;
  update_statistics(store, [&](StoredStatistics& stored) {
    stored.estimated_bytes = report.bytes_after;
    stored.counters.add(Counter::kTrims, report.entries_removed != 0 ? 1 : 0);
    stored.counters.add(Counter::kEvicted, report.entries_removed);
    stored.counters.add(Counter::kEvictedBytes, evicted_bytes);
    stored.counters.add(Counter::kSweptTemporaries, report.temporaries_removed);
  });
  return report;
}

Status ClearReport::status(const EntryStore& store) const {
  if (left == 0) return {};
  return fail(ErrorCode::kOutput, fmt::format("{} kernels could not be removed", left),
              store.root(), "they are in use or not yours; try again");
}

ClearReport clear(const EntryStore& store, std::uint64_t max_bytes) {
  ClearReport report;
  if (!store.exists()) return report;
  for (const StoredFile& file : store.scan().entries)
    ++(store.remove_path(file.path, file.identity) ? report.removed : report.left);
  trim(store, max_bytes);
  remove_empty_folders(store);
  return report;
}

Result<ImportReport> import_and_trim(const EntryStore& store, const std::string& path,
                                     std::uint64_t max_bytes) {
  HMMJIT_ASSIGN(const ImportReport report, import_bundle(store, path));
  trim(store, max_bytes);
  return report;
}

}  // namespace hmmjit::cache
