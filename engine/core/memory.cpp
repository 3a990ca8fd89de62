#include "core/memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace hmmjit {

std::uint64_t available_memory(const MemoryFiles& files) {
  std::uint64_t available = std::uint64_t{1} << 30;
  std::ifstream info(files.machine);
  std::string key, unit;
  std::uint64_t kilobytes = 0;
  while (info >> key >> kilobytes) {
    if (key == "MemAvailable:") available = kilobytes * 1024;
    std::getline(info, unit);
  }
  if (const auto left = cgroup_memory_left(files.groups)) available = std::min(available, *left);
  return available;
}

std::uint64_t peak_resident_memory() {
  // Not getrusage: its figure begins with that of the process that started this one.
  std::ifstream status("/proc/self/status");
  std::string key;
  std::uint64_t kilobytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (std::istringstream words(line); words >> key >> kilobytes && key == "VmHWM:")
      return kilobytes * 1024;
  }
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace hmmjit
