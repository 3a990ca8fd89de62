#include "compile/pool_size.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

namespace hmmjit::compile {
namespace {

constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

/// The only number of a file; none for "max" or a missing file.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

/// The number behind `name` in a file of such lines, 0 when there is none.
std::uint64_t field_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size(), nullptr, 10);
  }
  return 0;
}

/// What a control group leaves; file pages nobody has touched lately are given back on demand.
std::uint64_t left_in_group(const std::string& folder, const char* limit, const char* used,
                            const std::string& inactive) {
  const auto most = number_in(folder + "/" + limit), now = number_in(folder + "/" + used);
  if (!most || !now) return kUnknown;
  const std::uint64_t cached = field_of(folder + "/memory.stat", inactive);
  const std::uint64_t held = *now - std::min(*now, cached);
  return *most - std::min(*most, held);
}

}  // namespace

std::uint64_t available_memory(const std::string& root) {
  const std::string base = root.ends_with('/') ? root : root + "/";
  std::uint64_t room = kUnknown;
  if (const std::uint64_t kib = field_of(base + "proc/meminfo", "MemAvailable:"); kib > 0) {
    room = kib * 1024;
  }
  std::ifstream self(base + "proc/self/cgroup");
  std::string line;
  while (std::getline(self, line)) {
    const bool unified = line.starts_with("0::");
    const std::size_t v1 = line.find(":memory:");
    if (!unified && v1 == std::string::npos) continue;
    std::string folder = unified ? line.substr(3) : line.substr(v1 + 8);
    // A limit may stand at any level above. In a container the path may be the host's, of which
    // only the root is visible here.
    for (;;) {
      if (folder == "/") folder.clear();
      room =
          std::min(room, unified ? left_in_group(base + "sys/fs/cgroup" + folder, "memory.max",
                                                 "memory.current", "inactive_file ")
                                 : left_in_group(base + "sys/fs/cgroup/memory" + folder,
                                                 "memory.limit_in_bytes", "memory.usage_in_bytes",
                                                 "total_inactive_file "));
      const std::size_t slash = folder.find_last_of('/');
      if (slash == std::string::npos) break;
      folder.resize(slash);
    }
  }
  return room;
}

int compile_threads(int wanted, int cores, std::uint64_t memory) {
  constexpr int kMost = 8;  // NVRTC gains little from more
  // Measured with NVRTC 13.0 on the catalogue's kernels: 91 MB once, 19 MB for each compile that
  // runs; held here twice, for larger kernels and other versions.
  constexpr std::uint64_t kOnce = std::uint64_t{182} << 20, kEach = std::uint64_t{38} << 20;
  if (wanted > 0) return wanted;
  int threads = std::min(cores, kMost);
  if (memory < kOnce + static_cast<std::uint64_t>(kMost) * kEach) {
    const std::uint64_t rest = memory - std::min(memory, kOnce);
    threads = std::min(threads, static_cast<int>(rest / kEach));
  }
  return std::max(threads, 1);
}

}  // namespace hmmjit::compile
