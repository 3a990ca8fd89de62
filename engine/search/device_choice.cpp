#include "search/device_choice.hpp"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <ranges>
#include <string_view>

#include "core/folder.hpp"
#include "core/numbers.hpp"
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

}  // namespace

gpu::Settings device_settings(const DeviceChoice& choice) {
  gpu::Settings out;
  out.devices = choice.ordinals;
  out.demanded = choice.use == DeviceChoice::Use::kGpu;
  out.vram = choice.vram;
  return out;
}

Result<bool> starts_devices(DeviceChoice& choice, const SearchOptions& options,
                            const SizeOf& positions, const SizeOf& residues, std::string& note) {
  const bool demanded = choice.use == DeviceChoice::Use::kGpu;
  note.clear();
  if (choice.use == DeviceChoice::Use::kCpu) {
    note = "demanded";
    return false;
  }
  const auto model_positions = !demanded && positions ? positions() : std::nullopt;
  const auto target_residues = !demanded && residues ? residues() : std::nullopt;
  if (!demanded && !device_pays(options, model_positions, target_residues, note, choice.started))
    return false;
  if (choice.started) return true;
  if (const std::size_t present = choice.ordinals.size(); !demanded && present > 1) {
    const bool known = model_positions && target_residues;
    const int paying = devices_that_pay(known ? *model_positions * *target_residues : 0,
                                        options.threads, static_cast<int>(present));
    choice.ordinals.resize(static_cast<std::size_t>(paying));
    if (choice.ordinals.size() < present)
      note = fmt::format("{} of {} GPUs: {}", paying, present,
                         known ? "another one would take longer to start than it saves"
                               : "the size of the search is not known");
  }
  // Devices take threads of their own, which mostly wait: for the driver, for compiles, and for the
  // streams of each device. Where the system refuses them, the CPU needs what threads there are.
  // Common to all: starter, packer, four of the kernel store, up to twelve that compile, and room
  // for some of the driver's own.
  constexpr int kCommonThreads = 22;
  const gpu::Settings settings;
  const int devices = static_cast<int>(std::max<std::size_t>(choice.ordinals.size(), 1));
  const int wanted =
      kCommonThreads + (settings.lanes + settings.domain_lanes) * devices + options.threads;
  if (can_start_threads(wanted)) return true;
  note = "the threads it needs cannot be started";
  if (!demanded) return false;
  return fail(ErrorCode::kResources, "the threads a GPU needs cannot be started", {},
              "raise the limit on processes (ulimit -u), or search on the CPU alone");
}

std::optional<double> positions_of_file(const std::string& path) {
  constexpr double kBytesPerNode = 380;  // of HMMER3 text
  return text_bytes(path).transform([](double bytes) { return bytes / kBytesPerNode; });
}

std::optional<double> residues_of_file(const std::string& path) {
  constexpr double kBytesPerResidue = 1.15;
  if (const auto residues = text_bytes(path + ".psq")) return residues;  // a database of BLAST
  return text_bytes(path).transform([](double bytes) { return bytes / kBytesPerResidue; });
}

bool device_pays(const SearchOptions& options, std::optional<double> positions,
                 std::optional<double> residues, std::string& note, bool started) {
  // Cells a second in all steps of a search. Measured with AVX-512 on 16 cores: 30 G with models, 7
  // to 18 G with queries rich in hits.
  constexpr double kCoreRate = 15e9;
  // From this time on the CPU takes longer than a GPU: driver, context, first upload, and the
  // search; if started, kernels, the model's tables, and the chain's launches.
  const double pays_from = started ? 0.06 : 0.6;
  if (options.filters.F1 >= 1.0) {
    note =
        options.filters.F2 < 1.0 ? "the first filter is off (--F1 1)" : "no filter to run (--max)";
    return false;
  }
  if (!positions || !residues) return true;
  const double seconds = *positions * *residues / (kCoreRate * options.threads);
  if (seconds > pays_from) return true;
  note = fmt::format("the CPU searches in about {:.2f} s; a GPU pays from {:.2f} s", seconds,
                     pays_from);
  return false;
}

int devices_that_pay(double cells, int threads, int present) {
  // Measured on H100s and 16 threads: 349 models (67,195 positions) against 45 M residues take
  // 1.07 s on one device and 1.33 s on two, against 1.8 G residues 12.4 and 7.9 s.
  constexpr double kRate = 10.4e12;  // cells a second, with all that a search does besides
  constexpr double kFurther = 0.73;  // rate of each further device, of the first one's
  constexpr double kStart = 0.38;    // seconds for each further device
  // With fewer threads for each device, the CPU's share takes longer.
  constexpr int kThreadsThatFeedADevice = 8;
  const auto seconds = [&](int devices) {
    return kStart * (devices - 1) + cells / (kRate * (1 + kFurther * (devices - 1)));
  };
  int best = 1;
  while (best < std::min(present, threads / kThreadsThatFeedADevice) &&
         seconds(best + 1) < seconds(best))
    ++best;
  return best;
}

int devices_present(const char* visible, const std::string& nodes) {
  if (visible != nullptr) {
    const std::string_view list = visible;
    // A process can use one partition of a device (MIG).
    if (list.find("MIG") != list.npos) return 1;
    return static_cast<int>(std::ranges::count(list, ',')) + 1;
  }
  constexpr std::string_view kNode = "nvidia";
  const auto names = names_in_folder(nodes);
  if (!names) return 1;
  const auto count = std::ranges::count_if(*names, [&](std::string_view name) {
    return name.starts_with(kNode) && parse_int(name.substr(kNode.size()));
  });
  return std::max(static_cast<int>(count), 1);
}

std::optional<std::string> visible_devices_up_to(int last, const char* present) {
  if (present == nullptr) return fmt::format("{}", fmt::join(std::views::iota(0, last + 1), ","));
  // Numbers or names of devices. The driver ignores the list from the first unknown one on.
  const std::string_view list = present;
  std::size_t end = 0;
  for (int i = 0; i <= last; ++i) {
    const std::size_t comma = list.find(',', i == 0 ? 0 : end + 1);
    if (comma == std::string_view::npos) return std::nullopt;
    end = comma;
  }
  return std::string(list.substr(0, end));
}

std::optional<int> driver_queues(std::optional<double> positions) {
  // Enough for each stream of a device: eight filter lanes and six domain lanes. On an H200 eight
  // more take 0.2 s to start and save 0.3 ms for each model that waits for short launches: 2,094
  // models against 10 M residues take 2.04 s instead of 2.58, 349 against 31 M 1.29 instead
  // of 1.03, 349 against 530 M 6.27 and 6.29.
  constexpr int kQueues = 16;
  constexpr double kPositions = 200'000;  // of a thousand models
  if (positions && *positions >= kPositions) return kQueues;
  return std::nullopt;
}

}  // namespace hmmjit
