// Segments a volume and says how fast: see README.md.
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <hmmjit/device.hpp>
#include <hmmjit/engine.hpp>
#include <hmmjit/error.hpp>
#include <optional>
#include <string>

#include "files.hpp"
#include "gpu_sweeper.hpp"
#include "options.hpp"
#include "segmentation.hpp"

namespace mrf {
namespace {

using hmmjit::Error;
using hmmjit::ErrorCode;

constexpr double kPaperSpeedUp = 130;  // Walters et al. 2009, abstract: 8800 GTX Ultra, one core

/// One run on one device.
struct Run {
  std::string device;
  Segmentation result;
  double updates_per_second = 0;  ///< voxels x sweeps / seconds of updates
  double setup_seconds = 0;       ///< planning, compiling or cache, copies; 0 on a CPU
  std::string kernels;            ///< constants and origin
};

double rate(const Segmentation& s) {
  const double updates =
      static_cast<double>(s.labels.size()) * static_cast<double>(s.changed.size());
  return s.update_seconds > 0 ? updates / s.update_seconds : 0;
}

Run run_cpu(const Volume& volume, const Labels& first, const Settings& settings) {
  const auto sweeper = cpu_sweeper(volume, first, settings.classes, settings.neighbours);
  Run out;
  out.device = "one CPU core";
  out.result = segment(volume, first, settings, *sweeper);
  out.updates_per_second = rate(out.result);
  return out;
}

std::string describe(const hmmjit::Kernel& kernel) {
  std::string out = kernel.image().candidate().variant + " (";
  for (const auto& c : kernel.constants()) {
    if (c.name.starts_with("kTile")) out += c.name + "=" + std::to_string(c.value) + " ";
  }
  return out + std::to_string(kernel.resources().registers) + " registers, " +
         kernel.image().origin() + ")";
}

Run run_gpu(const Volume& volume, const Labels& first, const Options& options) {
  const Settings& s = options.settings;
  const auto start = std::chrono::steady_clock::now();
  hmmjit::Engine engine(engine_settings(hmmjit::Cache()));
  const hmmjit::Gpu gpu(options.gpu);
  GpuSweeper sweeper(engine, gpu, volume, first, s.classes, s.neighbours);
  Run out;
  out.device = gpu.device().name;
  out.kernels = describe(sweeper.update_kernel());
  out.setup_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.result = segment(volume, first, s, sweeper);
  out.updates_per_second = rate(out.result);
  return out;
}

/// Text that reads back as the same number in any locale.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 32) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

double accuracy(const Labels& labels, const Labels& truth) {
  std::uint64_t equal = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) equal += labels[i] == truth[i];
  return static_cast<double>(equal) / static_cast<double>(labels.size());
}

struct Report {
  const Options& options;
  const Volume& volume;
  std::string input;
  std::vector<Run> runs;
  std::optional<double> first_accuracy, accuracy;
  std::int64_t first_energy = 0, last_energy = 0;
  std::optional<bool> equal;
  std::optional<double> speed_up;
};

std::string to_json(const Report& r) {
  const Segmentation& s = r.runs.back().result;
  const Settings& settings = r.options.settings;
  std::string out = "{\"input\": " + quoted(r.input);
  const auto add = [&](const char* name, const std::string& value) {
    out += std::string(", \"") + name + "\": " + value;
  };
  const auto join = [](const auto& items, const auto& text) {
    std::string list;
    for (const auto& item : items) list += (list.empty() ? "" : ", ") + text(item);
    return "[" + list + "]";
  };
  add("size", join(std::vector{r.volume.size.width, r.volume.size.height, r.volume.size.depth},
                   [](int v) { return std::to_string(v); }));
  add("window", "[" + number(r.volume.low) + ", " + number(r.volume.high) + "]");
  add("beta", number(settings.beta));
  add("neighbours", std::to_string(settings.neighbours));
  add("sweeps", std::to_string(s.changed.size()));
  add("converged", s.converged ? "true" : "false");
  add("changed", join(s.changed, [](std::uint64_t v) { return std::to_string(v); }));
  add("energy_first", number(static_cast<double>(r.first_energy) / mrf_device::kEnergyScale));
  add("energy_last", number(static_cast<double>(r.last_energy) / mrf_device::kEnergyScale));
  add("classes", join(s.last, [&](const ClassEstimate& e) {
        return "{\"voxels\": " + std::to_string(e.count) +
               ", \"mean\": " + number(r.volume.value_of(e.mean)) +
               ", \"deviation\": " + number(r.volume.width_of(e.sigma)) + "}";
      }));
  if (r.accuracy) {
    add("accuracy_first", number(*r.first_accuracy));
    add("accuracy", number(*r.accuracy));
  }
  add("runs", join(r.runs, [](const Run& run) {
        return "{\"device\": " + quoted(run.device) +
               ", \"voxel_updates_per_second\": " + number(run.updates_per_second) +
               ", \"update_seconds\": " + number(run.result.update_seconds) +
               ", \"total_seconds\": " + number(run.result.total_seconds) +
               ", \"setup_seconds\": " + number(run.setup_seconds) +
               ", \"kernel\": " + quoted(run.kernels) + "}";
      }));
  if (r.equal) add("labels_equal", *r.equal ? "true" : "false");
  if (r.speed_up) {
    add("speed_up_over_one_core", number(*r.speed_up));
    add("speed_up_in_the_paper", number(kPaperSpeedUp));
  }
  return out + "}\n";
}

void print(const Report& r) {
  const Segmentation& s = r.runs.back().result;
  std::printf("%s: %d x %d x %d voxels, %d classes, %d neighbours, beta %s\n", r.input.c_str(),
              r.volume.size.width, r.volume.size.height, r.volume.size.depth,
              r.options.settings.classes, r.options.settings.neighbours,
              number(r.options.settings.beta).c_str());
  std::printf("%s after %zu sweeps, %llu voxels changed in the last; energy %.6g -> %.6g\n",
              s.converged ? "converged" : "stopped", s.changed.size(),
              s.changed.empty() ? 0ull : static_cast<unsigned long long>(s.changed.back()),
              static_cast<double>(r.first_energy) / mrf_device::kEnergyScale,
              static_cast<double>(r.last_energy) / mrf_device::kEnergyScale);
  std::printf("class      voxels        mean   deviation\n");
  for (std::size_t k = 0; k < s.last.size(); ++k) {
    std::printf("%5zu  %10llu  %10.5g  %10.5g\n", k,
                static_cast<unsigned long long>(s.last[k].count), r.volume.value_of(s.last[k].mean),
                r.volume.width_of(s.last[k].sigma));
  }
  if (r.accuracy) {
    std::printf("voxels labelled as the truth: %.2f %% by intensity alone, %.2f %% segmented\n",
                100 * *r.first_accuracy, 100 * *r.accuracy);
  }
  for (const Run& run : r.runs) {
    std::printf(
        "%s: %.4g voxel updates/s (%.4f s in updates, %.4f s in all%s)\n", run.device.c_str(),
        run.updates_per_second, run.result.update_seconds, run.result.total_seconds,
        run.kernels.empty()
            ? ""
            : (", set-up " + number(std::round(run.setup_seconds * 1e4) / 1e4) + " s").c_str());
    if (!run.kernels.empty()) std::printf("  %s\n", run.kernels.c_str());
  }
  if (r.equal) std::printf("labels of both devices: %s\n", *r.equal ? "equal" : "DIFFERENT");
  if (r.speed_up) {
    std::printf("speed-up over one core: %.0f (Walters et al. 2009, 8800 GTX Ultra: %.0f)\n",
                *r.speed_up, kPaperSpeedUp);
  }
}

int run(const Options& options) {
  const Settings& settings = options.settings;
  Image image;
  Volume volume;
  Labels truth;
  std::string input = options.input;
  if (input.empty()) {
    auto made = synthetic_volume(options.synthetic, settings.classes, options.noise, options.seed);
    volume = std::move(made.volume);
    truth = std::move(made.truth);
    image.size = volume.size;
    input = "synthetic volume, seed " + std::to_string(options.seed);
  } else {
    image = read_nifti(input, options.frame);
    volume = quantise(image.size, image.values, options.window);
    image.values = {};
  }
  if (!options.write_input.empty()) write_nifti(options.write_input, image, volume);

  if (options.show_plan) {
    const hmmjit::Engine engine(engine_settings(hmmjit::Cache()));
    const auto gpus = hmmjit::devices();
    const hmmjit::Device device = static_cast<std::size_t>(options.gpu) < gpus.size()
                                      ? gpus[static_cast<std::size_t>(options.gpu)]
                                      : hmmjit::find_device("H200");
    const auto problem = update_problem(volume.size, settings.classes, settings.neighbours);
    std::printf("%s", engine.plan(problem, device).text().c_str());
  }

  Report report{options, volume, input, {}, {}, {}, 0, 0, {}, {}};
  const Labels first = first_labels(volume, settings);
  const bool cpu = options.compare || options.device == DeviceChoice::kCpu;
  if (cpu) report.runs.push_back(run_cpu(volume, first, settings));
  if (options.compare || options.device != DeviceChoice::kCpu) {
    try {
      report.runs.push_back(run_gpu(volume, first, options));
    } catch (const Error& error) {
      // Whatever keeps a GPU from being used: none there, no compiler, too little memory.
      if (options.compare || options.device == DeviceChoice::kGpu) throw;
      std::fprintf(stderr, "mrf: on the CPU, because: %s\n", error.what());
      report.runs.push_back(run_cpu(volume, first, settings));
    }
  }
  const Segmentation& result = report.runs.back().result;
  if (options.compare) {
    const Segmentation& other = report.runs.front().result;
    report.equal = other.labels == result.labels && other.changed == result.changed;
    report.speed_up =
        report.runs.back().updates_per_second / report.runs.front().updates_per_second;
  }
  if (!truth.empty()) {
    report.first_accuracy = accuracy(first, truth);
    report.accuracy = accuracy(result.labels, truth);
  }
  // With the terms of the last estimate for both, so that the two can be compared.
  std::vector<ClassTerm> terms;
  for (const ClassEstimate& e : result.last) terms.push_back(class_term(e));
  const int beta = scaled_beta(settings.beta);
  report.first_energy = total_energy(volume, first, terms, beta, settings.neighbours);
  report.last_energy = total_energy(volume, result.labels, terms, beta, settings.neighbours);

  if (options.stats != "-") print(report);
  if (!options.labels.empty()) write_nifti(options.labels, image, result.labels);
  if (!options.slices.empty()) {
    const int step =
        options.slice_step > 0 ? options.slice_step : std::max(1, (volume.size.depth + 7) / 8);
    write_slices(options.slices, volume, result.labels, step);
  }
  if (options.stats == "-") {
    std::fputs(to_json(report).c_str(), stdout);
  } else if (!options.stats.empty()) {
    std::ofstream file(options.stats, std::ios::binary);
    file << to_json(report);
    file.close();
    if (!file) throw Error(ErrorCode::kOutput, "the statistics cannot be written", options.stats);
  }
  if (report.equal == false) {
    throw Error(ErrorCode::kInternal, "the devices disagree", "--compare");
  }
  return 0;
}

}  // namespace
}  // namespace mrf

int main(int argc, char** argv) {
  try {
    const mrf::Options options = mrf::parse_options(argc, argv);
    if (options.help) {
      std::fputs(mrf::kUsageText, stdout);
      return 0;
    }
    return mrf::run(options);
  } catch (const hmmjit::Error& error) {
    std::fprintf(stderr, "mrf: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "mrf: out of memory\n");
    return static_cast<int>(hmmjit::ErrorCode::kResources);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mrf: %s\n", error.what());
    return static_cast<int>(hmmjit::ErrorCode::kInternal);
  }
}
