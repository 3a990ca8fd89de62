#include "search/device_choice.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>
#include <string_view>

#include "core/threads.hpp"

namespace hmmjit {
namespace {

// Size of a regular file in bytes as if it were not compressed, or nothing.
std::optional<double> text_bytes(const std::string& path) {
  struct stat info {};
  if (path == "-" || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const bool compressed = path.ends_with(".gz") || path.ends_with(".zst") || path.ends_with(".bz2");
  return static_cast<double>(info.st_size) * (compressed ? 2.5 : 1.0);
}

std::optional<double> divided(std::optional<double> amount, double by) {
  if (amount) *amount /= by;
  return amount;
}

}  // namespace

gpu::Settings device_settings(const DeviceChoice& choice) {
  gpu::Settings out;
  out.devices = choice.ordinals;
  out.demanded = choice.use == DeviceChoice::Use::kGpu;
  out.vram = choice.vram;
  return out;
}

Result<bool> starts_devices(const DeviceChoice& choice, const SearchOptions& options,
                            const SizeOf& positions, const SizeOf& residues, std::string& note) {
  const bool demanded = choice.use == DeviceChoice::Use::kGpu;
  if (choice.use == DeviceChoice::Use::kCpu) {
    note = "demanded";
    return false;
  }
  if (!demanded && !device_pays(options, positions ? positions() : std::nullopt,
                                residues ? residues() : std::nullopt, note))
    return false;
  // Devices take threads of their own, which mostly wait: for the driver, for compiles, and for the
  // streams of each device. Where the system refuses them, the CPU needs what threads there are.
  constexpr int kCommonThreads = 22, kThreadsOfADevice = 14;
  const int devices = static_cast<int>(std::max<std::size_t>(choice.ordinals.size(), 1));
  const int wanted = kCommonThreads + kThreadsOfADevice * devices + options.threads;
  if (can_start_threads(wanted)) return true;
  note = "the threads it needs cannot be started";
  if (!demanded) return false;
  return fail(ErrorCode::kResources, "the threads a GPU needs cannot be started", {},
              "raise the limit on processes (ulimit -u), or search on the CPU alone");
}

std::optional<double> positions_of_file(const std::string& path) {
  constexpr double kBytesPerNode = 380;  // of HMMER3 text
  return divided(text_bytes(path), kBytesPerNode);
}

std::optional<double> residues_of_file(const std::string& path) {
  constexpr double kBytesPerResidue = 1.15;
  if (const auto residues = text_bytes(path + ".psq")) return residues;  // a database of BLAST
  return divided(text_bytes(path), kBytesPerResidue);
}

bool device_pays(const SearchOptions& options, std::optional<double> positions,
                 std::optional<double> residues, std::string& note) {
  // Without a GPU each core filters at about kCoreRate. With one, the search waits kStart for the
  // driver and shares the machine with it meanwhile.
  constexpr double kCoreRate = 55e9;  // cells a second, between AVX2 and AVX-512
  constexpr double kStart = 0.3;      // driver, context, first upload
  if (options.filters.F1 >= 1.0) {
    note = "no filter to run (--max)";
    return false;
  }
  if (!positions || !residues) return true;
  const double seconds = *positions * *residues / (kCoreRate * options.threads);
  if (seconds > 2 * kStart) return true;
  note = fmt::format("the CPU filters in about {:.2f} s, a GPU takes {:.2f} s to start", seconds,
                     kStart);
  return false;
}

std::optional<std::string> visible_devices_up_to(int last, const char* present) {
  std::string out;
  if (present == nullptr) {
    for (int i = 0; i <= last; ++i)
      fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", i);
    return out;
  }
  // Numbers or names of devices. The driver ignores the list from the first unknown one on.
  std::string_view list = present;
  for (int i = 0; i <= last; ++i) {
    const std::size_t comma = list.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", list.substr(0, comma));
    list.remove_prefix(comma + 1);
  }
  return out;
}

std::optional<int> driver_queues(std::optional<double> positions) {
  // One for each stream of a device: eight filter lanes and six domain lanes. On an H200 eight more
  // take 0.2 s to start and save 0.3 ms for each model that waits for short launches: 2,094 models
  // against 10 M residues take 2.04 s instead of 2.58, 349 against 31 M 1.29 instead of 1.03, 349
  // against 530 M 6.27 and 6.29.
  constexpr int kQueues = 16;
  constexpr double kPositions = 200'000;  // of a thousand models
  if (positions && *positions >= kPositions) return kQueues;
  return std::nullopt;
}

}  // namespace hmmjit
