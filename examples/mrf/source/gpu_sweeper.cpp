#include "gpu_sweeper.hpp"

#include <algorithm>
#include <cstring>

#include "templates.hpp"

namespace mrf {

using namespace mrf_device;
using hmmjit::Configuration;
using hmmjit::constant;
using hmmjit::Device;
using hmmjit::Problem;
using hmmjit::Verdict;

namespace {

constexpr std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Size size_of(const Problem& problem) {
  const auto get = [&](const char* name) {
    return static_cast<int>(constant(problem.parameters, name));
  };
  return {get("width"), get("height"), get("depth")};
}

std::int64_t label_bytes(Size s) {
  return std::int64_t{label_pitch(s.width)} * (s.height + 2) * (s.depth + 2);
}

/// Kernels address with 32-bit integers.
Verdict addressable(const Problem& problem, const Device&) {
  const Size s = size_of(problem);
  if (s.voxels() < 1) return {false, "empty volume"};
  const bool small = s.width < (1 << 24) && s.height < (1 << 24) && s.depth < (1 << 24) &&
                     std::int64_t{label_pitch(s.width)} * (s.height + 2) < (1 << 30) &&
                     label_bytes(s) < (std::int64_t{1} << 31);
  return small ? Verdict{} : Verdict{false, "more than 2^31 voxels with their border"};
}

/// A tile is tile_x words of four voxels by tile_y rows, one thread each, by tile_z planes.
struct Tile {
  int x, y, z;
};

std::vector<Configuration> update_configurations(const Problem& problem, const Device& device) {
  const Size s = size_of(problem);
  const int classes = static_cast<int>(constant(problem.parameters, "classes"));
  const int neighbours = static_cast<int>(constant(problem.parameters, "neighbours"));
  const int step = neighbours == 6 ? 1 : 2;
  const std::int64_t words = ceiling(s.width, 4), rows = ceiling(s.height, step),
                     planes = ceiling(s.depth, step);
  // Instructions of one update, estimated: fixed work, neighbours, classes; 128 lanes an SM.
  const double instructions = 20 + 3 * neighbours + 9 * classes;
  std::vector<Configuration> out;
  for (const Tile tile : {Tile{32, 4, 8},
                          {16, 8, 8},
                          {8, 16, 8},
                          {4, 32, 8},
                          {32, 4, 1},
                          {16, 8, 1},
                          {8, 16, 1},
                          {4, 32, 1}}) {
    if (tile.z > 1 && tile.z > planes) continue;
    const std::int64_t blocks =
        ceiling(words, tile.x) * ceiling(rows, tile.y) * ceiling(planes, tile.z);
    const double busy = static_cast<double>(words * rows * planes) /
                        static_cast<double>(blocks * tile.x * tile.y * tile.z);
    // Threads that wait for memory hide it from each other: eight blocks an SM are enough.
    const double full =
        std::min(1.0, static_cast<double>(blocks) / (8.0 * std::max(1, device.sm_count)));
    // A march through planes loads each plane once instead of three times.
    const double reuse = neighbours == 6 && tile.z > 1 ? 1 : 0.85;
    Configuration c;
    c.constants = {{"kWidth", s.width},   {"kHeight", s.height},      {"kDepth", s.depth},
                   {"kClasses", classes}, {"kTileX", tile.x},         {"kTileY", tile.y},
                   {"kTileZ", tile.z},    {"kNeighbours", neighbours}};
    c.launch.threads_x = tile.x * tile.y;
    // As compiled for sm_75 to sm_120: 32 and 62, and some room for other compilers.
    c.expected.registers = classes <= 5 && neighbours == 6 ? 40 : 80;
    c.expected.items_per_clock_per_sm = 128 / instructions * busy * full * reuse;
    c.expected.binding_resource = "issue";
    out.push_back(std::move(c));
  }
  return out;
}

std::vector<Configuration> statistics_configurations(const Problem& problem, const Device&) {
  const Size s = size_of(problem);
  const auto classes = constant(problem.parameters, "classes");
  const std::int64_t words = ceiling(s.width, 4) * s.height * s.depth;
  Configuration c;
  c.constants = {{"kWidth", s.width},
                 {"kHeight", s.height},
                 {"kDepth", s.depth},
                 {"kClasses", classes},
                 {"kThreads", 128},
                 {"kWordsPerThread", std::clamp<std::int64_t>(words / (128 * 512), 1, 64)}};
  c.launch.threads_x = 128;
  c.expected.registers = 80;
  c.expected.items_per_clock_per_sm = 128 / (8 + 6 * static_cast<double>(classes));
  c.expected.binding_resource = "issue";
  return {c};
}

}  // namespace

hmmjit::EngineSettings engine_settings(hmmjit::Cache cache) {
  hmmjit::EngineSettings out;
  out.cache = std::move(cache);
  out.templates = {{"mrf/parameters.h", kParametersText},
                   {"mrf/update.cu", kUpdateText},
                   {"mrf/statistics.cu", kStatisticsText}};
  hmmjit::KernelVariant update;
  update.name = "mrf_update_tile";
  update.family = "mrf_update";
  update.template_file = "mrf/update.cu";
  update.entry_name = "mrf_update";
  update.accepts = addressable;
  update.configurations = update_configurations;
  update.summary = "a thread per four voxels of a row, marching through a tile's planes";
  update.references = {"Walters et al. 2009", "Besag 1986"};
  hmmjit::KernelVariant statistics;
  statistics.name = "mrf_statistics_sums";
  statistics.family = "mrf_statistics";
  statistics.template_file = "mrf/statistics.cu";
  statistics.entry_name = "mrf_statistics";
  statistics.accepts = addressable;
  statistics.configurations = statistics_configurations;
  statistics.summary = "count, sum and squares of each class in registers, then atomically";
  statistics.references = {"Walters et al. 2009"};
  out.variants = {update, statistics};
  return out;
}

Problem update_problem(Size size, int classes, int neighbours) {
  return {"mrf_update",
          {{"width", size.width},
           {"height", size.height},
           {"depth", size.depth},
           {"classes", classes},
           {"neighbours", neighbours}}};
}

Problem statistics_problem(Size size, int classes) {
  return {"mrf_statistics",
          {{"width", size.width},
           {"height", size.height},
           {"depth", size.depth},
           {"classes", classes}}};
}

namespace {
// Counters of one sweep: changed voxels, then the sums of each class.
constexpr std::size_t kSumsOffset = 16;
std::size_t counter_bytes(int classes) {
  return kSumsOffset + static_cast<std::size_t>(classes) * sizeof(ClassSums);
}
}  // namespace

GpuSweeper::GpuSweeper(hmmjit::Engine& engine, const hmmjit::Gpu& gpu, const Volume& volume,
                       const Labels& labels, int classes, int neighbours)
    : size_(volume.size),
      classes_(classes),
      neighbours_(neighbours),
      update_(engine.load(
          engine.plan(update_problem(volume.size, classes, neighbours), gpu.device()), gpu)),
      statistics_(
          engine.load(engine.plan(statistics_problem(volume.size, classes), gpu.device()), gpu)),
      stream_(gpu),
      begun_(gpu, true),
      ended_(gpu, true),
      labels_(gpu, static_cast<std::size_t>(label_bytes(volume.size))),
      intensities_(gpu, std::size_t{2} * filled(size_.width) * size_.height * size_.depth),
      counters_(gpu, counter_bytes(classes)) {
  // Layouts of parameters.h.
  const auto [w, h, d] = size_;
  Labels padded(labels_.size(), static_cast<std::uint8_t>(classes));
  std::vector<std::uint16_t> levels(intensities_.size() / 2);
  std::size_t row = 0;
  for (int z = 0; z < d; ++z) {
    for (int y = 0; y < h; ++y, ++row) {
      const std::size_t to = static_cast<std::size_t>(label_origin(w, h)) +
                             static_cast<std::size_t>(z) * label_plane(w, h) +
                             static_cast<std::size_t>(y) * label_pitch(w);
      std::copy_n(&labels[row * w], w, &padded[to]);
      std::copy_n(&volume.levels[row * w], w, &levels[row * filled(w)]);
    }
  }
  labels_.upload(stream_, padded.data(), padded.size());
  intensities_.upload(stream_, levels.data(), intensities_.size());
  stream_.synchronize();
}

Sweep GpuSweeper::sweep(std::span<const ClassTerm> terms, int beta) {
  counters_.fill(stream_, 0, counters_.size());

  UpdateParameters update{};
  update.labels = labels_.pointer<unsigned char>();
  update.intensities = intensities_.pointer<unsigned short>();
  update.changed = counters_.pointer<unsigned>();
  update.beta = beta;
  std::ranges::copy(terms, update.classes);
  const auto& constants = update_.constants();
  const int step = neighbours_ == 6 ? 1 : 2;
  const auto blocks = [&](std::int64_t extent, const char* tile) {
    return ceiling(extent, constant(constants, tile));
  };
  const std::int64_t grid = blocks(ceiling(size_.width, 4), "kTileX") *
                            blocks(ceiling(size_.height, step), "kTileY") *
                            blocks(ceiling(size_.depth, step), "kTileZ");
  begun_.record(stream_);
  for (int colour = 0; colour < colours(neighbours_); ++colour) {
    update.colour = static_cast<unsigned>(colour);
    update_.launch(stream_, {static_cast<unsigned>(grid)}, update);
  }
  ended_.record(stream_);

  StatisticsParameters statistics{};
  statistics.labels = update.labels;
  statistics.intensities = update.intensities;
  statistics.sums = reinterpret_cast<ClassSums*>(counters_.pointer<unsigned char>() + kSumsOffset);
  const std::int64_t words = ceiling(size_.width, 4) * size_.height * size_.depth;
  const std::int64_t per_block = constant(statistics_.constants(), "kThreads") *
                                 constant(statistics_.constants(), "kWordsPerThread");
  statistics_.launch(stream_, {static_cast<unsigned>(ceiling(words, per_block))}, statistics);

  std::vector<unsigned char> counters(counters_.size());
  counters_.download(stream_, counters.data(), counters.size());
  stream_.synchronize();
  Sweep out;
  unsigned changed = 0;
  std::memcpy(&changed, counters.data(), sizeof changed);
  out.changed = changed;
  out.sums.resize(static_cast<std::size_t>(classes_));
  std::memcpy(out.sums.data(), counters.data() + kSumsOffset, out.sums.size() * sizeof(ClassSums));
  out.seconds = hmmjit::Event::milliseconds(begun_, ended_) / 1e3;
  return out;
}

Labels GpuSweeper::labels() {
  const auto [w, h, d] = size_;
  Labels padded(labels_.size()), out(static_cast<std::size_t>(size_.voxels()));
  labels_.download(stream_, padded.data(), padded.size());
  stream_.synchronize();
  std::size_t row = 0;
  for (int z = 0; z < d; ++z) {
    for (int y = 0; y < h; ++y, ++row) {
      const std::size_t from = static_cast<std::size_t>(label_origin(w, h)) +
                               static_cast<std::size_t>(z) * label_plane(w, h) +
                               static_cast<std::size_t>(y) * label_pitch(w);
      std::copy_n(&padded[from], w, &out[row * w]);
    }
  }
  return out;
}

}  // namespace mrf
