// Segments a synthetic volume on the CPU and with the GPU kernel of this example: see README.md.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <hmmjit/device.hpp>
#include <hmmjit/engine.hpp>
#include <hmmjit/error.hpp>
#include <string>

#include "segmentation.hpp"

extern const char* const kParametersText;  // of templates.cpp, which CMake makes
extern const char* const kUpdateText;

namespace {

using namespace mrf;
using namespace mrf_device;
using hmmjit::Configuration;
using hmmjit::constant;
using hmmjit::Device;
using hmmjit::Problem;
using hmmjit::Verdict;

constexpr int kBeta = kEnergyScale;  // 1.0
constexpr int kSweeps = 10;

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Verdict accepts(const Problem& problem, const Device&) {
  std::int64_t bytes = 1;
  for (const char* name : {"width", "height", "depth"})
    bytes *= constant(problem.parameters, name) + 8;
  return bytes < (std::int64_t{1} << 31) ? Verdict{}
                                         : Verdict{false, "kernels address 2^31 voxels at most"};
}

/// Candidate tiles: tile_x words of four voxels by tile_y rows (a thread per word), by tile_z
/// planes.
std::vector<Configuration> configurations(const Problem& problem, const Device& device) {
  const auto get = [&](const char* name) { return constant(problem.parameters, name); };
  std::vector<Configuration> out;
  for (const int z : {8, 1}) {
    for (const int x : {32, 16, 8, 4}) {
      const int y = 128 / x;
      const std::int64_t words = ceiling(get("width"), 4);
      const std::int64_t blocks =
          ceiling(words, x) * ceiling(get("height"), y) * ceiling(get("depth"), z);
      const double busy = static_cast<double>(words * get("height") * get("depth")) /
                          static_cast<double>(blocks * 128 * z);
      // Eight blocks per multiprocessor hide the latency of memory. A march reads each plane once.
      const double full =
          std::min(1.0, static_cast<double>(blocks) / (8.0 * std::max(1, device.sm_count)));
      Configuration c;
      c.constants = {{"kWidth", get("width")},
                     {"kHeight", get("height")},
                     {"kDepth", get("depth")},
                     {"kClasses", get("classes")},
                     {"kTileX", x},
                     {"kTileY", y},
                     {"kTileZ", z}};
      c.launch.threads_x = 128;
      c.expected.registers = 64;
      c.expected.items_per_clock_per_sm = 128 / (38.0 + 9.0 * static_cast<double>(get("classes"))) *
                                          busy * full * (z > 1 ? 1 : 0.85);
      c.expected.binding_resource = "issue";
      out.push_back(std::move(c));
    }
  }
  return out;
}

hmmjit::Engine make_engine() {
  hmmjit::EngineSettings settings;
  settings.templates = {{"mrf/parameters.h", kParametersText}, {"mrf/update.cu", kUpdateText}};
  settings.variants = {
      {.name = "mrf_update_tile",
       .family = "mrf_update",
       .template_file = "mrf/update.cu",
       .entry_name = "mrf_update",
       .accepts = accepts,
       .configurations = configurations,
       .summary = "a thread for four voxels of a row, which marches through the planes of a tile",
       .references = {"Walters et al. 2009", "Besag 1986"}}};
  return hmmjit::Engine(std::move(settings));
}

Problem problem_of(Size s, int classes) {
  return {"mrf_update",
          {{"width", s.width}, {"height", s.height}, {"depth", s.depth}, {"classes", classes}}};
}

/// Index of each row's first voxel: without a border, and in the layout of the kernel's labels.
std::vector<std::pair<std::size_t, std::size_t>> rows_of(Size s) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (std::int64_t z = 0; z < s.depth; ++z) {
    for (std::int64_t y = 0; y < s.height; ++y) {
      const std::int64_t plane = (z + 1) * label_plane(s.width, s.height);
      out.emplace_back((z * s.height + y) * s.width, plane + (y + 1) * label_pitch(s.width) + 4);
    }
  }
  return out;
}

double segment_on_cpu(const Volume& volume, const std::vector<ClassTerm>& terms, Labels& labels) {
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < kSweeps; ++i) sweep(volume, labels, terms, kBeta);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

/// Returns the seconds of all launches.
double segment_on_gpu(const Volume& volume, const std::vector<ClassTerm>& terms, Labels& labels) {
  const auto [w, h, d] = volume.size;
  const int classes = static_cast<int>(terms.size());
  hmmjit::Engine engine = make_engine();
  const hmmjit::Gpu gpu(0);
  const hmmjit::Plan plan = engine.plan(problem_of(volume.size, classes), gpu.device());
  const hmmjit::Kernel kernel = engine.load(plan, gpu);
  std::printf("%s, kernel from: %s\n", gpu.device().name.c_str(), kernel.image().info().origin);

  const auto rows = rows_of(volume.size);
  const auto width = static_cast<std::size_t>(w), row_levels = static_cast<std::size_t>(filled(w));
  Labels padded(static_cast<std::size_t>(label_plane(w, h)) * static_cast<std::size_t>(d + 2),
                static_cast<std::uint8_t>(classes));
  std::vector<std::uint16_t> levels(row_levels * rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(&labels[rows[i].first], width, &padded[rows[i].second]);
    std::copy_n(&volume.levels[rows[i].first], width, &levels[i * row_levels]);
  }
  hmmjit::Stream stream(gpu);
  hmmjit::Event begun(gpu, true), ended(gpu, true);
  hmmjit::Buffer device_labels(gpu, padded.size()), device_levels(gpu, 2 * levels.size());
  hmmjit::Buffer changed(gpu, sizeof(unsigned));
  device_labels.upload(stream, padded.data(), padded.size());
  device_levels.upload(stream, levels.data(), 2 * levels.size());
  changed.fill(stream, 0, changed.size());

  UpdateParameters p{};
  p.labels = device_labels.pointer<unsigned char>();
  p.intensities = device_levels.pointer<unsigned short>();
  p.changed = changed.pointer<unsigned>();
  p.beta = kBeta;
  std::ranges::copy(terms, p.classes);
  const auto tiles = [&](std::int64_t extent, const char* tile) {
    return ceiling(extent, constant(kernel.image().candidate().constants, tile));
  };
  const auto blocks = static_cast<unsigned>(tiles(ceiling(w, 4), "kTileX") * tiles(h, "kTileY") *
                                            tiles(d, "kTileZ"));
  begun.record(stream);
  for (int launch = 0; launch < 2 * kSweeps; ++launch) {
    p.colour = static_cast<unsigned>(launch % 2);
    kernel.launch(stream, {blocks}, p);
  }
  ended.record(stream);
  device_labels.download(stream, padded.data(), padded.size());
  stream.synchronize();
  for (const auto& [dense, at] : rows) std::copy_n(&padded[at], width, &labels[dense]);
  return hmmjit::Event::milliseconds(begun, ended) / 1e3;
}

double right(const Volume& volume, const Labels& labels) {
  std::int64_t equal = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) equal += labels[i] == volume.truth[i];
  return 100 * static_cast<double>(equal) / static_cast<double>(labels.size());
}

int run(const std::string& mode, Size size, int classes) {
  if (mode == "plan") {
    const auto plan = make_engine().plan(problem_of(size, classes), hmmjit::find_device("H200"));
    std::fputs(plan.info().text.c_str(), stdout);
    return 0;
  }
  const Volume volume = synthetic_volume(size, classes);
  const Labels first = first_labels(volume, classes);
  const auto terms = estimate(volume, first, classes);
  const auto updates = kSweeps * static_cast<double>(size.voxels());
  Labels on_cpu = first, on_gpu = first;
  double seconds = segment_on_cpu(volume, terms, on_cpu);
  std::printf("labels right: %.1f %% by intensity alone, %.1f %% segmented\n", right(volume, first),
              right(volume, on_cpu));
  std::printf("CPU: %.3g voxel updates/s\n", updates / seconds);
  if (mode == "cpu") return 0;
  seconds = segment_on_gpu(volume, terms, on_gpu);
  std::printf("GPU: %.3g voxel updates/s\n", updates / seconds);
  std::printf("labels of both: %s\n", on_cpu == on_gpu ? "equal" : "DIFFERENT");
  return on_cpu == on_gpu ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int i) { return argc == 6 ? std::atoi(argv[i]) : 0; };
  const std::string mode = argc == 6 ? argv[1] : "";
  const Size size{number(2), number(3), number(4)};
  const auto [least, most] = std::minmax({size.width, size.height, size.depth});
  const bool known = mode == "plan" || mode == "cpu" || mode == "compare";
  if (!known || least < 1 || most > 2048 || number(5) < 2 || number(5) > kMaxClasses) {
    std::fprintf(stderr, "usage: mrf plan|cpu|compare WIDTH HEIGHT DEPTH CLASSES\n");
    return 2;
  }
  return run(mode, size, number(5));
} catch (const hmmjit::Error& error) {
  std::fprintf(stderr, "mrf: %s\n", error.what());
  return static_cast<int>(error.code());
}
