// Segmentation: the CPU reference against the definition, the kernels in lockstep against the CPU
// reference, the catalogue entries through planner and compiler, the host code over a fake driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fake_gpu.hpp"
#include "gpu_sweeper.hpp"
#include "lockstep/lockstep.hpp"
#include "lockstep/registry.hpp"
#include "segmentation.hpp"

namespace {

using namespace mrf;
using namespace mrf_device;
using hmmjit_lockstep::KernelInstance;
using testing::HasSubstr;

struct Scene {
  Volume volume;
  Labels labels;
  std::vector<ClassTerm> terms;
  int beta = 0;
};

/// Anything: labels and intensities unrelated, classes unsorted, extreme energies among them.
Scene random_scene(Size size, int classes, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return random() % n; };
  Scene s;
  s.volume.size = size;
  for (std::int64_t i = 0; i < size.voxels(); ++i) {
    s.volume.levels.push_back(static_cast<std::uint16_t>(below(4) ? below(4096) : below(2) * 4095));
    s.labels.push_back(static_cast<std::uint8_t>(below(static_cast<unsigned>(classes))));
  }
  for (int k = 0; k < classes; ++k) {
    const double sigma = static_cast<double>(below(3) ? 50 + below(800) : 2);
    s.terms.push_back(class_term({1, static_cast<double>(below(4096)), sigma}));
  }
  s.beta = scaled_beta(0.25 * static_cast<double>(below(12)));
  return s;
}

// ---- the definition ----

/// One sweep, straight from the formulas: neighbours found by distance among
/// all voxels, in-class and out-class ones counted apart.
std::uint64_t sweep_by_definition(const Scene& s, Labels& labels, int neighbours) {
  struct Voxel {
    int x, y, z;
  };
  std::vector<Voxel> voxels;
  for (int z = 0; z < s.volume.size.depth; ++z)
    for (int y = 0; y < s.volume.size.height; ++y)
      for (int x = 0; x < s.volume.size.width; ++x) voxels.push_back({x, y, z});
  const auto colour_of = [&](const Voxel& v) {
    return neighbours == 6 ? (v.x + v.y + v.z) % 2 : v.x % 2 + 2 * (v.y % 2) + 4 * (v.z % 2);
  };
  std::uint64_t changed = 0;
  for (int colour = 0; colour < (neighbours == 6 ? 2 : 8); ++colour) {
    const Labels before = labels;  // of one colour all at once
    for (std::size_t i = 0; i < voxels.size(); ++i) {
      if (colour_of(voxels[i]) != colour) continue;
      std::vector<std::int64_t> energies;
      for (std::size_t k = 0; k < s.terms.size(); ++k) {
        const std::int64_t distance = 16 * s.volume.levels[i] - s.terms[k].mean;
        std::int64_t energy = distance * distance * s.terms[k].weight / (std::int64_t{1} << 32);
        if (energy > 16777216) energy = 16777216;
        energy += s.terms[k].offset;
        for (std::size_t j = 0; j < voxels.size(); ++j) {
          const int dx = std::abs(voxels[i].x - voxels[j].x);
          const int dy = std::abs(voxels[i].y - voxels[j].y);
          const int dz = std::abs(voxels[i].z - voxels[j].z);
          const bool near = neighbours == 6 ? dx + dy + dz == 1 : std::max({dx, dy, dz}) == 1;
          if (near) energy += before[j] == k ? -s.beta : s.beta;
        }
        energies.push_back(energy);
      }
      const auto best = std::min_element(energies.begin(), energies.end()) - energies.begin();
      changed += labels[i] != best;
      labels[i] = static_cast<std::uint8_t>(best);
    }
  }
  return changed;
}

TEST(MrfReference, FollowsTheDefinition) {
  unsigned seed = 1;
  for (const Size size : {Size{5, 4, 3}, {7, 1, 1}, {1, 6, 2}, {1, 1, 1}, {6, 5, 1}, {2, 2, 9}}) {
    for (const int neighbours : {6, 26}) {
      for (const int classes : {2, 3, 11}) {
        const Scene s = random_scene(size, classes, seed++);
        Labels expected = s.labels;
        const auto sweeper = cpu_sweeper(s.volume, s.labels, classes, neighbours);
        for (int sweep = 0; sweep < 3; ++sweep) {
          const std::uint64_t changed = sweep_by_definition(s, expected, neighbours);
          const Sweep done = sweeper->sweep(s.terms, s.beta);
          ASSERT_EQ(done.changed, changed);
          ASSERT_EQ(sweeper->labels(), expected) << size.width << 'x' << size.height << 'x'
                                                 << size.depth << ' ' << neighbours << ' ' << sweep;
        }
      }
    }
  }
}

TEST(MrfReference, DataEnergyIsTheGaussians) {
  for (const double sigma : {2.0, 35.5, 400.0}) {
    const double mean = 1234.5;
    const ClassTerm term = class_term({1, mean, sigma});
    for (const int level : {1230, 1234, 1300, 2000}) {
      const double exact = (level - mean) * (level - mean) / (2 * sigma * sigma) + std::log(sigma);
      if (exact > 8000) continue;  // clamped
      EXPECT_NEAR(data_energy(term, level) / double{kEnergyScale}, exact, 0.002 + 2e-4 * exact);
    }
  }
  EXPECT_EQ(data_energy(class_term({1, 0, 2}), 4095) - class_term({1, 0, 2}).offset,
            kMaxDataEnergy);
}

TEST(MrfReference, NoSweepRaisesTheEnergy) {
  for (const int neighbours : {6, 26}) {
    const Scene s = random_scene({9, 8, 7}, 4, 77);
    const auto sweeper = cpu_sweeper(s.volume, s.labels, 4, neighbours);
    std::int64_t before = total_energy(s.volume, s.labels, s.terms, s.beta, neighbours);
    std::uint64_t changed = 1;
    int sweeps = 0;
    while (changed != 0) {
      changed = sweeper->sweep(s.terms, s.beta).changed;
      const std::int64_t now =
          total_energy(s.volume, sweeper->labels(), s.terms, s.beta, neighbours);
      EXPECT_LE(now, before);
      before = now;
      ASSERT_LT(++sweeps, 100) << "it must come to rest";
    }
    // At rest no single change of a voxel lowers the energy.
    Labels labels = sweeper->labels();
    for (std::uint8_t& label : labels) {
      const std::uint8_t kept = label;
      for (std::uint8_t k = 0; k < 4; ++k) {
        label = k;
        EXPECT_GE(total_energy(s.volume, labels, s.terms, s.beta, neighbours), before);
      }
      label = kept;
    }
  }
}

TEST(MrfReference, FindsASyntheticTruth) {
  const Synthetic made = synthetic_volume({40, 36, 32}, 3, 0.6, 5);
  Settings settings;
  settings.classes = 3;
  const auto right = [&](const Labels& labels) {
    double n = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) n += labels[i] == made.truth[i];
    return n / static_cast<double>(labels.size());
  };
  for (const int neighbours : {6, 26}) {
    settings.neighbours = neighbours;
    settings.beta = neighbours == 6 ? 1 : 0.3;
    const Labels first = first_labels(made.volume, settings);
    const auto sweeper = cpu_sweeper(made.volume, first, 3, neighbours);
    const Segmentation result = segment(made.volume, first, settings, *sweeper);
    EXPECT_TRUE(result.converged);
    EXPECT_LT(right(first), 0.9);
    EXPECT_GT(right(result.labels), 0.97) << neighbours;
    EXPECT_GT(result.changed.size(), 1u);
    const auto truth = estimate(class_sums(made.volume, made.truth, 3), {});
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(result.last[k].mean, truth[k].mean, 100);
      EXPECT_NEAR(result.last[k].sigma, truth[k].sigma, 100);
    }
  }
}

TEST(MrfReference, StartsFromQuantilesOfEvenClasses) {
  // Three slabs of equal size.
  Synthetic made = synthetic_volume({30, 20, 20}, 3, 0.4, 2);
  for (std::size_t i = 0; i < made.truth.size(); ++i) {
    const int label = static_cast<int>(i % 30 / 10);
    const int level = made.volume.levels[i] + 1350 * (label - made.truth[i]);
    made.volume.levels[i] = static_cast<std::uint16_t>(std::clamp(level, 0, 4095));
    made.truth[i] = static_cast<std::uint8_t>(label);
  }
  Settings settings;
  settings.classes = 3;
  settings.start = Start::kQuantiles;
  const Labels first = first_labels(made.volume, settings);
  const auto sums = class_sums(made.volume, first, 3);
  for (const ClassSums& s : sums) EXPECT_NEAR(static_cast<double>(s.count), 4000, 60);
  const auto sweeper = cpu_sweeper(made.volume, first, 3, 6);
  const Labels labels = segment(made.volume, first, settings, *sweeper).labels;
  int wrong = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) wrong += labels[i] != made.truth[i];
  EXPECT_LT(wrong, 120);
}

TEST(MrfReference, StopsWhereTold) {
  const Synthetic made = synthetic_volume({20, 20, 20}, 4, 0.8, 1);
  Settings settings;
  settings.tolerance = 0;
  settings.iterations = 2;
  const Labels first = first_labels(made.volume, settings);
  auto sweeper = cpu_sweeper(made.volume, first, 4, 6);
  Segmentation result = segment(made.volume, first, settings, *sweeper);
  EXPECT_FALSE(result.converged);
  EXPECT_EQ(result.changed.size(), 2u);
  settings.iterations = 0;
  sweeper = cpu_sweeper(made.volume, first, 4, 6);
  EXPECT_EQ(segment(made.volume, first, settings, *sweeper).labels, first);
  settings.iterations = 50;
  settings.tolerance = 1;
  EXPECT_EQ(segment(made.volume, first, settings, *sweeper).changed.size(), 1u);
}

TEST(MrfReference, QuantisesWithinTheWindow) {
  const std::vector<float> values{-5, 0, 50, 100, NAN, INFINITY};
  const Volume v = quantise({6, 1, 1}, values, std::pair{0.0, 100.0});
  EXPECT_EQ(v.levels, (std::vector<std::uint16_t>{0, 0, 2048, 4095, 0, 4095}));
  EXPECT_EQ(v.value_of(4095), 100);
  EXPECT_EQ(quantise({6, 1, 1}, values, {}).levels[0], 0);
  EXPECT_THROW(quantise({2, 1, 1}, std::vector<float>{3, 3}, {}), hmmjit::Error);
  EXPECT_THROW(quantise({1, 1, 1}, std::vector<float>{NAN}, {}), hmmjit::Error);
}

// ---- kernels in lockstep ----

/// Device layouts in host memory.
struct DeviceImage {
  DeviceImage(const Volume& volume, const Labels& from, int classes) : size(volume.size) {
    const auto [w, h, d] = size;
    labels.assign(static_cast<std::size_t>(label_plane(w, h) * (d + 2)),
                  static_cast<std::uint8_t>(classes));
    levels.assign(static_cast<std::size_t>(filled(w) * h * d), 0);
    std::size_t i = 0;
    for (int z = 0; z < d; ++z)
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x, ++i) {
          labels[index(x, y, z)] = from[i];
          levels[static_cast<std::size_t>((z * h + y) * filled(w) + x)] = volume.levels[i];
        }
  }
  std::size_t index(int x, int y, int z) const {
    return static_cast<std::size_t>(label_origin(size.width, size.height) +
                                    z * label_plane(size.width, size.height) +
                                    y * label_pitch(size.width) + x);
  }
  Labels dense() const {
    Labels out;
    for (int z = 0; z < size.depth; ++z)
      for (int y = 0; y < size.height; ++y)
        for (int x = 0; x < size.width; ++x) out.push_back(labels[index(x, y, z)]);
    return out;
  }
  int border_voxels(int classes) const {
    return static_cast<int>(std::count(labels.begin(), labels.end(), classes));
  }
  Size size;
  std::vector<std::uint8_t> labels;
  std::vector<std::uint16_t> levels;
};

Size size_of(const KernelInstance& k) {
  return {static_cast<int>(k.at("kWidth")), static_cast<int>(k.at("kHeight")),
          static_cast<int>(k.at("kDepth"))};
}

unsigned ceiling(std::int64_t a, std::int64_t b) { return static_cast<unsigned>((a + b - 1) / b); }

TEST(MrfLockstep, UpdatesAsTheReference) {
  int tested = 0;
  unsigned seed = 100;
  for (const KernelInstance& kernel : hmmjit_lockstep::kernel_instances()) {
    if (kernel.kernel != "mrf_update") continue;
    SCOPED_TRACE(kernel.name);
    ++tested;
    const int classes = static_cast<int>(kernel.at("kClasses"));
    const int neighbours = static_cast<int>(kernel.at("kNeighbours"));
    const int step = neighbours == 6 ? 1 : 2;
    const Size size = size_of(kernel);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Scene s = random_scene(size, classes, ++seed);
      const auto reference = cpu_sweeper(s.volume, s.labels, classes, neighbours);
      DeviceImage device(s.volume, s.labels, classes);
      const int border = device.border_voxels(classes);
      for (int sweep = 0; sweep < 3; ++sweep) {
        const Sweep expected = reference->sweep(s.terms, s.beta);
        unsigned changed = 0;
        UpdateParameters p{};
        p.labels = device.labels.data();
        p.intensities = device.levels.data();
        p.changed = &changed;
        p.beta = s.beta;
        std::ranges::copy(s.terms, p.classes);
        const unsigned blocks = ceiling(ceiling(size.width, 4), kernel.at("kTileX")) *
                                ceiling(ceiling(size.height, step), kernel.at("kTileY")) *
                                ceiling(ceiling(size.depth, step), kernel.at("kTileZ"));
        for (int colour = 0; colour < colours(neighbours); ++colour) {
          p.colour = static_cast<unsigned>(colour);
          hmmjit_lockstep::launch(blocks,
                                  static_cast<unsigned>(kernel.at("kTileX") * kernel.at("kTileY")),
                                  0, [&] { kernel.run(&p); });
        }
        ASSERT_EQ(device.dense(), reference->labels()) << "sweep " << sweep;
        ASSERT_EQ(changed, expected.changed);
        ASSERT_EQ(device.border_voxels(classes), border) << "the border was written";
      }
    }
  }
  EXPECT_GE(tested, 10);
}

TEST(MrfLockstep, SumsAsTheReference) {
  int tested = 0;
  for (const KernelInstance& kernel : hmmjit_lockstep::kernel_instances()) {
    if (kernel.kernel != "mrf_statistics") continue;
    SCOPED_TRACE(kernel.name);
    ++tested;
    const int classes = static_cast<int>(kernel.at("kClasses"));
    Scene s = random_scene(size_of(kernel), classes, 9);
    for (const bool brightest : {false, true}) {
      if (brightest) {  // the largest sums
        std::ranges::fill(s.volume.levels, std::uint16_t{4095});
        std::ranges::fill(s.labels, std::uint8_t{1});
      }
      const DeviceImage device(s.volume, s.labels, classes);
      std::vector<ClassSums> sums(static_cast<std::size_t>(classes));
      const StatisticsParameters p{device.labels.data(), device.levels.data(), sums.data()};
      const std::int64_t words = std::int64_t{ceiling(s.volume.size.width, 4)} *
                                 s.volume.size.height * s.volume.size.depth;
      hmmjit_lockstep::launch(ceiling(words, kernel.at("kThreads") * kernel.at("kWordsPerThread")),
                              static_cast<unsigned>(kernel.at("kThreads")), 0,
                              [&] { kernel.run(&p); });
      const auto expected = class_sums(s.volume, s.labels, classes);
      for (int k = 0; k < classes; ++k) {
        EXPECT_EQ(sums[k].count, expected[k].count);
        EXPECT_EQ(sums[k].sum, expected[k].sum);
        EXPECT_EQ(sums[k].squares, expected[k].squares);
      }
    }
  }
  EXPECT_GE(tested, 3);
}

// ---- planner, compiler, host code ----

hmmjit::Engine engine() {
  hmmjit::CacheSettings cache;
  cache.mode = hmmjit::CacheMode::kOff;
  return hmmjit::Engine(engine_settings(hmmjit::Cache(cache)));
}

/// The instance with a plan's constants.
const KernelInstance* instance_of(const std::string& kernel, const hmmjit::Constants& constants) {
  for (const KernelInstance& k : hmmjit_lockstep::kernel_instances()) {
    bool same = k.kernel == kernel && k.constants.size() == constants.size();
    for (const auto& c : constants) {
      same = same && k.constants.contains(c.name) && k.at(c.name) == c.value;
    }
    if (same) return &k;
  }
  return nullptr;
}

TEST(MrfEngine, PlansForEveryDeviceAndShape) {
  const hmmjit::Engine e = engine();
  int devices = 0;
  for (const hmmjit::Device& device : hmmjit::device_table()) {
    if (device.major < 5) continue;  // no run-time compiler that hmmjit works with
    ++devices;
    for (const Size size : {Size{512, 512, 200}, {181, 217, 181}, {5000, 1, 1}, {1, 1, 700}}) {
      for (const int neighbours : {6, 26}) {
        const hmmjit::Plan plan = e.plan(update_problem(size, 4, neighbours), device);
        EXPECT_EQ(hmmjit::constant(plan.chosen().constants, "kWidth"), size.width);
        EXPECT_GE(plan.fallbacks().size(), 3u);
        EXPECT_THAT(e.render(plan).text, HasSubstr("enum : int { kClasses = 4 };"));
      }
    }
  }
  EXPECT_GE(devices, 5);
  const hmmjit::Device h200 = hmmjit::find_device("H200");
  const auto tile = [&](Size size, const char* name) {
    return hmmjit::constant(e.plan(update_problem(size, 4, 6), h200).chosen().constants, name);
  };
  EXPECT_EQ(tile({512, 512, 512}, "kTileZ"), 8);
  EXPECT_EQ(tile({512, 512, 1}, "kTileZ"), 1) << "no march through one plane";
  EXPECT_EQ(tile({12, 4000, 100}, "kTileX"), 4) << "narrow volumes get narrow tiles";
}

TEST(MrfEngine, RefusesWhatCannotBeAddressed) {
  try {
    engine().plan(update_problem({2048, 2048, 1024}, 4, 6), hmmjit::find_device("H200"));
    ADD_FAILURE() << "no error";
  } catch (const hmmjit::Error& error) {
    EXPECT_EQ(error.code(), hmmjit::ErrorCode::kCompile);
    EXPECT_THAT(error.what(), HasSubstr("2^31 voxels"));
  }
}

#define COMPILER_OR_SKIP() \
  if (const auto info = hmmjit::compiler_info(); !info.found) GTEST_SKIP() << info.message

TEST(MrfEngine, CompilesWithoutSpills) {
  COMPILER_OR_SKIP();
  hmmjit::Engine e = engine();
  std::vector<std::pair<std::string, hmmjit::PendingKernel>> pending;
  const auto supported = hmmjit::compiler_info().architectures;
  int architectures = 0;
  for (const int architecture : {75, 80, 90, 120}) {
    if (std::ranges::find(supported, architecture) == supported.end()) continue;
    ++architectures;
    const hmmjit::Device device = hmmjit::find_device("sm_" + std::to_string(architecture));
    const auto ask = [&](const hmmjit::Problem& problem) {
      pending.emplace_back(problem.family + " for " + device.name,
                           e.request(e.plan(problem, device)));
    };
    ask(update_problem({256, 256, 256}, 4, 6));
    if (architecture == 75 || architecture == 120) {
      ask(update_problem({181, 217, 181}, 11, 26));
      ask(statistics_problem({181, 217, 181}, 11));
    }
  }
  EXPECT_GE(architectures, 2);
  for (const auto& [name, kernel] : pending) {
    const hmmjit::KernelImage image = kernel.get();
    EXPECT_TRUE(image.rejected().empty()) << name << ": " << image.rejected()[0].reason;
    EXPECT_EQ(image.resources().spill_bytes, 0) << name;
    EXPECT_EQ(image.resources().local_bytes, 0) << name;
    EXPECT_EQ(image.parameter_bytes(),
              static_cast<int>(name.starts_with("mrf_update") ? sizeof(UpdateParameters)
                                                              : sizeof(StatisticsParameters)))
        << name;
  }
}

TEST(MrfEngine, SegmentsAsTheReference) {
  COMPILER_OR_SKIP();
  for (const auto& [size, classes, neighbours] :
       {std::tuple{Size{16, 12, 10}, 3, 6}, {Size{13, 7, 5}, 4, 26}}) {
    const Synthetic made = synthetic_volume(size, classes, 0.7, 3);
    Settings settings;
    settings.classes = classes;
    settings.neighbours = neighbours;
    settings.tolerance = 0;
    const Labels first = first_labels(made.volume, settings);
    const auto cpu = cpu_sweeper(made.volume, first, classes, neighbours);
    const Segmentation expected = segment(made.volume, first, settings, *cpu);

    // Launches run the lockstep instance of the constants that were planned.
    hmmjit::Constants update_constants, statistics_constants;
    const mrf_tests::FakeGpu fake([&](const mrf_tests::Launch& launch) {
      const auto* kernel = instance_of(
          launch.kernel, launch.kernel == "mrf_update" ? update_constants : statistics_constants);
      ASSERT_NE(kernel, nullptr);
      hmmjit_lockstep::launch(launch.blocks, launch.threads, 0,
                              [&] { kernel->run(launch.parameters); });
    });
    hmmjit::Engine e = engine();
    GpuSweeper sweeper(e, fake.gpu(), made.volume, first, classes, neighbours);
    update_constants = sweeper.update_kernel().constants();
    statistics_constants = sweeper.statistics_kernel().constants();
    const auto text = [](const hmmjit::Constants& constants) {
      std::string out;
      for (const auto& c : constants) out += c.name + "=" + std::to_string(c.value) + " ";
      return out;
    };
    ASSERT_NE(instance_of("mrf_update", update_constants), nullptr)
        << "tests/CMakeLists.txt has no instance " << text(update_constants);
    ASSERT_NE(instance_of("mrf_statistics", statistics_constants), nullptr)
        << "tests/CMakeLists.txt has no instance " << text(statistics_constants);

    const Segmentation result = segment(made.volume, first, settings, sweeper);
    EXPECT_EQ(result.labels, expected.labels);
    EXPECT_EQ(result.changed, expected.changed);
    EXPECT_GT(result.changed.size(), 1u);
    for (int k = 0; k < classes; ++k) {
      EXPECT_EQ(result.last[k].count, expected.last[k].count);
      EXPECT_EQ(result.last[k].mean, expected.last[k].mean);
      EXPECT_EQ(result.last[k].sigma, expected.last[k].sigma);
    }
  }
}

}  // namespace
