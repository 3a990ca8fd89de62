#include "core/cgroup.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/numbers.hpp"
#include "core/read_only_file.hpp"
#include "core/text_fields.hpp"

namespace hmmjit {
namespace {

std::optional<double> number_in(const std::string& path) {
  const std::string text = read_kernel_file(path);
  std::string_view rest = text;
  return parse_real(take_line(&rest));  // "max" is not a number: no limit
}

// The folders of a controller's group and its ancestors, innermost first. In a container, `path` is
// often the host's, but the mounted tree is the container's own group: skips folders that do not
// exist; the mounted one always does.
std::vector<std::string> folders_above(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  for (;;) {
    while (path.ends_with('/')) path.pop_back();
    folders.push_back(mount + path);
    if (path.empty()) return folders;
    path.resize(std::min(path.rfind('/'), path.size()));
  }
}

// The folders of the unified hierarchy (version 2; empty `controller`) or of a version 1
// controller.
std::vector<std::string> folders_of(const CgroupFiles& files, std::string_view controller) {
  const std::string membership = read_kernel_file(files.membership);
  for (std::string_view rest = membership; !rest.empty();) {
    std::string_view line = take_line(&rest);
    if (std::ranges::count(line, ':') < 2) continue;
    take_up_to(&line, ':');  // the hierarchy's number
    const std::string controllers(take_up_to(&line, ':'));
    const std::string path(line);
    if (controller.empty()) {
      if (controllers.empty()) return folders_above(files.mount, path);
      continue;
    }
    for (std::string_view names = controllers; !names.empty();) {
      const std::string name(take_up_to(&names, ','));
      if (name != controller) continue;
      // Version 1 mounts "cpu,cpuacct" under that name, with a link for each single name.
      std::vector<std::string> folders = folders_above(files.mount + "/" + controllers, path);
      if (controllers != name) {
        for (std::string& folder : folders_above(files.mount + "/" + name, path))
          folders.push_back(std::move(folder));
      }
      return folders;
    }
  }
  // No entry for the controller: only the mounted group is known.
  return {controller.empty() ? files.mount : files.mount + "/" + std::string(controller)};
}

}  // namespace

double cgroup_cores(const CgroupFiles& files) {
  double best = 0;
  const auto consider = [&best](std::optional<double> quota, std::optional<double> period) {
    if (!quota || !period || !(*quota > 0) || !(*period > 0)) return;
    if (best == 0 || *quota / *period < best) best = *quota / *period;
  };
  for (const std::string& folder : folders_of(files, "")) {
    const std::string text = read_kernel_file(folder + "/cpu.max");
    std::string_view limit = text;
    const auto quota = parse_real(take_up_to(&limit, ' '));
    consider(quota, parse_real(take_line(&limit)));
  }
  for (const std::string& folder : folders_of(files, "cpu"))
    consider(number_in(folder + "/cpu.cfs_quota_us"), number_in(folder + "/cpu.cfs_period_us"));
  return best;
}

std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files) {
  std::optional<double> best;
  // The usage of a group is read only if it has a limit, because the kernel sums it up for each
  // read. Version 1 expresses "no limit" as the largest number of whole pages.
  const auto consider = [&best](const std::string& folder,
                                std::initializer_list<const char*> limits, const char* usage,
                                std::string_view droppable) {
    std::optional<double> limit;
    for (const char* file : limits) {
      const auto value = number_in(folder + file);
      if (value && *value < 0x1p62 && (!limit || *value < *limit)) limit = value;
    }
    if (!limit) return;
    const auto used = number_in(folder + usage);
    if (!used) return;
    const auto cached = value_in_kernel_file(folder + "/memory.stat", droppable).value_or(0);
    const double left = *limit - std::max(0.0, *used - static_cast<double>(cached));
    if (!best || left < *best) best = left;
  };
  for (const std::string& folder : folders_of(files, ""))
    consider(folder, {"/memory.max", "/memory.high"}, "/memory.current", "inactive_file");
  for (const std::string& folder : folders_of(files, "memory"))
    consider(folder, {"/memory.limit_in_bytes"}, "/memory.usage_in_bytes", "total_inactive_file");
  if (!best) return std::nullopt;
  return static_cast<std::uint64_t>(std::max(0.0, *best));
}

}  // namespace hmmjit
