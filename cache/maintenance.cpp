#include "cache/maintenance.hpp"

#include <fmt/format.h>

#include "cache/trimmer.hpp"

namespace hmmjit::cache {

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
